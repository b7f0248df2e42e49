"""Evidence that was cut, edited or lost is named, never guessed; what is whole is read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from made import SPEC, rank, trial

from repro.errors import InfraError
from repro.evidence import manifest
from repro.evidence.layout import RunFolder, TrialFolder
from repro.evidence.read import (
    finished_trials,
    last_phase,
    read_error,
    read_events,
    read_run_json,
    read_trial,
    read_windows,
    tail,
)
from repro.evidence.write import write_json, write_text
from repro.model import Phase

RECORDED = Path(__file__).parents[1] / "data" / "recorded"
EVENTS = [{"event": "phase", "phase": phase.value} for phase in (Phase.BEFORE_BODY, Phase.IN_BODY)]
RUN = {
    "schema_version": 1,
    "run": "r",
    "issue": 9001,
    "trials": {SPEC.folder: SPEC.key},
    "faults": {"9001.1": "cpu"},
    "packages": {},
    "argv": [],
    "host": {},
}


@pytest.fixture
def whole(tmp_path: Path) -> TrialFolder:
    """A whole trial of one rank."""
    folder = TrialFolder(tmp_path / SPEC.folder)
    folder.rank(0).path.mkdir(parents=True)
    write_json(folder.spec, SPEC.to_json())
    folder.rank(0).events.write_text("".join(json.dumps(event) + "\n" for event in EVENTS))
    folder.rank(0).stderr.write_text("last words\n")
    shutil.copyfile(RECORDED / "control.csv", folder.rank(0).samples)
    folder.work.mkdir()
    (folder.work / "scratch").write_text("x")
    write_json(folder.record, trial(rank(0, 1)).record.to_json())
    manifest.seal(folder)
    return folder


def refused(message: str) -> pytest.RaisesExc[InfraError]:
    return pytest.raises(InfraError, match=message)


def test_a_whole_trial_is_read(whole: TrialFolder) -> None:
    manifest.check(whole)
    read = read_trial(whole)
    assert read.record == trial(rank(0, 1)).record
    assert [event["phase"] for event in read.ranks[0].events] == ["before body", "in body"]
    assert read.ranks[0].stderr_tail == "last words\n"
    assert read.ranks[0].windows


def test_events_cut_anywhere_keep_every_whole_line(tmp_path: Path) -> None:
    text = "".join(json.dumps({**event, "说": "中文"}, ensure_ascii=False) + "\n" for event in EVENTS * 2).encode()
    path = tmp_path / "events.jsonl"
    for cut in range(len(text)):
        path.write_bytes(text[:cut])
        # A JSON object is whole with its last brace, even where the line's end is missing.
        lines = text[:cut].count(b"\n") + text[:cut].endswith(b"}")
        assert len(read_events(path)) == lines
        assert last_phase(path) is (Phase.BEFORE_BODY if lines in (0, 1, 3) else Phase.IN_BODY)


@pytest.mark.parametrize("line", ["not JSON", '{"event": ', "[1]", "5"])
def test_a_broken_event_in_the_middle_is_named(line: str, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(f"{json.dumps(EVENTS[0])}\n{line}\n{json.dumps(EVENTS[1])}\n")
    with refused(r"events.jsonl:2: .*edited or damaged"):
        read_events(path)
    # The supervisor must still be able to write its record.
    assert last_phase(path) is Phase.IN_BODY


@pytest.mark.parametrize("value", ["null", "7", '"nowhere"', "[]"])
def test_an_unknown_phase_is_passed_over(value: str, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(f'{json.dumps(EVENTS[1])}\n{{"event": "phase", "phase": {value}}}\n')
    assert last_phase(path) is Phase.IN_BODY


def test_samples_cut_anywhere_keep_every_whole_row(tmp_path: Path) -> None:
    text = (RECORDED / "collective_on_cpu.csv").read_bytes()[:900]
    path = tmp_path / "samples.csv"
    path.write_bytes(text)
    all_windows = read_windows(path)
    for cut in range(len(text)):
        path.write_bytes(text[:cut])
        rows = max(0, text[:cut].count(b"\r") - 1)
        assert read_windows(path) == all_windows[:rows]


@pytest.mark.parametrize(
    "row", ["x,case,50,1.0,1,2", "1,case,50", "1,case,50,1.0,a,b", "1,case,50,1.0,1,2,3,4,5,6,7,8,9"]
)
def test_a_broken_row_is_named(row: str, tmp_path: Path) -> None:
    path = tmp_path / "samples.csv"
    path.write_text(f"block,series,calls,seconds,m_start,m_end\n0,case,50,1.0,1,2\n{row}\n2,case,50,1.0,1,2\n")
    with refused(r"samples.csv:3: not a sample"):
        read_windows(path)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"type": "E", "message": "m", "frames": [1], "issued_at": []}'])
def test_a_broken_error_record_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "error.json").write_text(text)
    with refused(r"error.json: not an error record"):
        read_error(tmp_path / "error.json")


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("rank-0/stderr.log", "edit", "stderr.log was changed after the trial"),
        ("rank-0/events.jsonl", "edit", "events.jsonl was changed after the trial"),
        ("trial.json", "edit", "trial.json was changed after the trial"),
        ("rank-0/samples.csv", "delete", "samples.csv is missing after the trial"),
        ("rank-0/error.json", "add", "error.json was added after the trial"),
        ("SHA256SUMS", "delete", "SHA256SUMS is missing: the trial is not whole"),
        ("SHA256SUMS", "edit", "after the trial"),
    ],
)
def test_an_edited_trial_is_told(name: str, change: str, words: str, whole: TrialFolder) -> None:
    path = whole.path / name
    match change:
        case "edit":
            path.write_bytes(path.read_bytes()[:-3] + b"xyz")
        case "delete":
            path.unlink()
        case _:
            path.write_text("{}")
    with refused(words):
        manifest.check(whole)


def test_the_ranks_scratch_is_no_evidence(whole: TrialFolder) -> None:
    shutil.rmtree(whole.work)
    manifest.check(whole)


@pytest.mark.parametrize("text", [None, "", "{", '{"schema_version": 9}', "[]"])
def test_a_trial_without_a_record_is_named(text: str | None, whole: TrialFolder) -> None:
    whole.record.unlink()
    if text is not None:
        whole.record.write_text(text)
    with refused(r"trial.json: .*run again"):
        read_trial(whole)


def test_run_json_is_read_if_whole(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    with refused(r"run.json: No such file or directory; name a folder that `repro run` wrote"):
        read_run_json(run)
    write_json(run.run, RUN)
    assert read_run_json(run) == RUN
    text = run.run.read_text()
    run.run.write_text(text[: len(text) // 2])
    with refused(r"run.json: not JSON"):
        read_run_json(run)
    write_json(run.run, {**RUN, "schema_version": 2})
    with refused(r"not a run of schema_version 1"):
        read_run_json(run)


@pytest.mark.parametrize("key", [key for key in RUN if key != "schema_version"])
def test_run_json_lacks_a_key(key: str, tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    write_json(run.run, {name: value for name, value in RUN.items() if name != key})
    with refused(rf"run.json: {key} is missing"):
        read_run_json(run)


@pytest.mark.parametrize("name", ["run.json", "issue.yaml"])
@pytest.mark.parametrize("change", ["was changed", "is missing"])
def test_what_a_run_is_judged_by_is_sealed(name: str, change: str, tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    with refused("SHA256SUMS is missing: the run is not whole"):
        manifest.check_run(run)
    write_json(run.run, RUN)
    run.issue.write_text("issue: 1\n")
    manifest.seal_run(run)
    manifest.check_run(run)
    if change == "is missing":
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_text("{}")
    with refused(rf"{name} {change} after the run began"):
        manifest.check_run(run)


def test_unfinished_trials_are_no_trials(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    assert finished_trials(run) == {}
    run.trial("a").path.mkdir(parents=True)
    run.unfinished("b", "1").path.mkdir()
    assert list(finished_trials(run)) == ["a"]
    assert run.attempts("b") == [run.unfinished("b", "1").path]
    assert run.attempts("a") == []


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    write_text(tmp_path / "a", "old")
    write_json(tmp_path / "a", "a path that is not UTF-8: \udc80")
    assert json.loads((tmp_path / "a").read_text()).endswith("\udc80")
    with refused(r"cannot write .*gone/a: No such file or directory; free space"):
        write_text(tmp_path / "gone" / "a", "x")


def test_the_end_of_a_log(tmp_path: Path) -> None:
    assert tail(tmp_path / "none") == ""
    (tmp_path / "log").write_bytes("中".encode() * 10)
    assert tail(tmp_path / "log", 4).endswith("中")
