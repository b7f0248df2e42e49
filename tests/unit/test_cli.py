"""The command line: help of every verb, one line for what is wrong, exit codes, and nothing heavy loaded to answer."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from repro import cli
from repro.commands import doctor
from repro.errors import ReproError, UnsupportedError

REPOSITORY = str(Path(__file__).parents[2])
HEAVY = ("mindspore", "numpy", "rich", "psutil", "memray", "multiprocessing")


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": REPOSITORY, **environment},
        capture_output=True,
        text=True,
        check=False,
        errors="surrogateescape",
    )


@pytest.mark.parametrize("verb", cli.VERBS)
def test_every_verb_has_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([verb, "--help"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"usage: repro {verb}")
    assert "None" not in text


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(re.search(rf"\n    {verb}\s", text) for verb in cli.VERBS)
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("hyper-repro ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "the following arguments are required: VERB"),
        (["fix"], "invalid choice: 'fix'"),
        (["run"], "the following arguments are required"),
        (["run", "134", "--fast"], "unrecognized arguments: --fast"),
        (["run", "everything"], "'everything' is not an issue or a fault; give a number such as 134"),
        (["run", "134."], "'134.' is not an issue or a fault"),
        (["run", "134.x"], "'134.x' is not an issue or a fault"),
        (["run", "134.2.1"], "'134.2.1' is not an issue or a fault"),
        (["run", "²"], "'²' is not an issue or a fault"),
        (["run", "99999"], "there is no issue 99999; known are 134"),
        (["run", "134.9", "--tier", "cpu"], "issue 134 has no fault 134.9; it has 134.1"),
        (["run", "134", "--tier", "tpu"], "argument --tier: "),
        (["run", "134", "--arm", "both"], "argument --arm: "),
        (["run", "134", "--topology", "pp=2"], "argument --topology: topology 'pp=2'"),
        (["run", "134", "--ranks", "1-2"], "argument --ranks: '1-2' is not `all` or a list"),
        (["run", "134", "--trials", "0"], "argument --trials: '0' is not a whole number from 1 on"),
        (["run", "134", "--trials", "²"], "argument --trials: '²' is not a whole number"),
        (["run", "134", "--timeout", "0"], "argument --timeout: '0' is not a number of seconds above 0"),
        (["run", "134", "--timeout", "nan"], "argument --timeout: 'nan' is not"),
        (["run", "134", "--timeout", "inf"], "argument --timeout: 'inf' is not"),
        (["run", "134", "--timeout", "soon"], "argument --timeout: 'soon' is not"),
        (["run", "134", "--seed", "-1"], "--seed"),
        (["run", "134", "--seed", "4294967296"], "argument --seed: '4294967296' is not a whole number from 0"),
        (["run", "134.2", "--tier", "cpu", "--steps", "5"], "--steps: no case here measures growth"),
        (["run", "134", "--cores", "some"], "argument --cores: 'some' is not auto, never, backtrace, always or below="),
        (["run", "134", "--retry-infra"], "--retry-infra: there is no run to retry; name one with --out"),
        (["run", "134", "--partition", "debug"], "--engine local takes no --partition"),
        (["judge"], "the following arguments are required: RUN"),
        (["sim"], "there is no command to run"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    arguments: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert words in shown.err
    assert shown.err.startswith("repro")
    assert len(shown.err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("verb", ["judge", "report"])
def test_no_run_there(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([verb, str(tmp_path / "none")]) == 4
    text = capsys.readouterr().err
    assert text.startswith(f"repro {verb}: {tmp_path / 'none' / 'run.json'}: No such file or directory; name a folder")
    assert len(text.splitlines()) == 1


def test_a_tier_this_machine_has_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "134", "--tier", "npu", "--out", str(tmp_path / "run")]) == 5
    assert "134.1, 134.2: not on tier npu" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "code", ["import repro.cli; repro.cli.build_parser()", "from repro.cli import main; main(['list'])"]
)
def test_nothing_heavy_is_loaded_to_answer(code: str) -> None:
    done = python(f"import sys\n{code}\nprint([n for n in {HEAVY} if n in sys.modules], file=sys.stderr)")
    assert done.stderr.strip() == "[]"


def test_list_shows_cases(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list", "--cases"]) == 0
    text = capsys.readouterr().out
    assert "  134.1" in text
    assert "single-rank (clean; " in text


@pytest.mark.parametrize("encoding", ["ascii", "gbk", "utf-8"])
def test_chinese_titles_in_any_locale(encoding: str, tmp_path: Path) -> None:
    folder = tmp_path / "7"
    folder.mkdir()
    source = Path(REPOSITORY) / "repro" / "issues" / "134"
    for file in source.glob("*.py"):
        (folder / file.name).write_bytes(file.read_bytes())
    text = (
        (source / "issue.yaml")
        .read_text(encoding="utf-8")
        .replace("134", "7")
        .replace("A DeviceMesh", "形状不符 \\u1F600")
    )
    (folder / "issue.yaml").write_text(text, encoding="utf-8")
    done = python(
        "from repro.cli import entry; import sys; sys.argv[1:] = ['list']; entry()",
        PYTHONIOENCODING=encoding,
        HYPER_REPRO_ISSUES=str(tmp_path),
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert ("形状不符" in done.stdout) == (encoding == "utf-8")


@pytest.mark.parametrize("closed", ["2>&-", ">&-"])
def test_a_closed_stream_does_not_spill_into_the_other(closed: str) -> None:
    command = f'exec "{sys.executable}" -m repro.cli run nothing {closed}'
    environment = {**os.environ, "PYTHONPATH": REPOSITORY}
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == (0 if closed == "2>&-" else 1)


def test_a_reader_that_left_is_no_traceback() -> None:
    command = [sys.executable, "-m", "repro.cli", "list"]
    reader, writer = os.pipe()
    os.close(reader)
    environment = {**os.environ, "PYTHONPATH": REPOSITORY}
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, env=environment, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_full_disk_behind_standard_output_is_one_line() -> None:
    environment = {**os.environ, "PYTHONPATH": REPOSITORY}
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "repro.cli", "list"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (4, "repro list: No space left on device\n")


def test_a_bug_of_ours_is_one_line_and_a_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_: object) -> int:
        raise TypeError("nothing fits")

    monkeypatch.setattr("repro.commands.list.run", broken)
    assert cli.main(["list"]) == 4
    line = capsys.readouterr().err
    assert line.startswith("repro list: a bug: TypeError: nothing fits; please report ")
    log = Path(line.split()[-1])
    assert "in broken" in log.read_text(encoding="utf-8")
    log.unlink()


@pytest.mark.parametrize("kind", [ReproError, *ReproError.__subclasses__()])
def test_expected_errors_end_with_their_code(
    kind: type[ReproError], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_: object) -> int:
        raise kind("the port 1 is taken", "choose another")

    monkeypatch.setattr("repro.commands.list.run", refuse)
    assert cli.main(["list"]) == kind.exit_code
    assert capsys.readouterr().err == "repro list: the port 1 is taken; choose another\n"
    assert kind.exit_code in (2, 3, 4, 5, 130)


def test_ctrl_c_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("repro.commands.list.run", interrupted)
    assert cli.main(["list"]) == 130
    assert capsys.readouterr().err == "repro list: interrupted\n"


def test_doctor_says_what_is_here(capsys: pytest.CaptureFixture[str]) -> None:
    code = cli.main(["doctor", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert code == (0 if "cpu" in found["tiers"] else UnsupportedError.exit_code)
    assert {check["level"] for check in found["checks"]} <= {"ok", "warn", "fail"}
    assert all(check["mend"] for check in found["checks"] if check["level"] == "fail")
    assert cli.main(["doctor"]) == code
    assert "tiers here: " in capsys.readouterr().out


def test_doctor_looks_from_a_folder_that_is_gone(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    code = f"import os; os.mkdir({str(gone)!r}); os.chdir({str(gone)!r}); os.rmdir({str(gone)!r})\n"
    done = python(f"{code}from repro.cli import main; import sys; sys.exit(main(['doctor']))")
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 5), done.stderr
    assert doctor.__doc__ is not None
