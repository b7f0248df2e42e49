"""Every way in which a rank can end: the right verdict and exit code in one line, and nothing left running or lost."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import Cli, kill, until, verdict
from jsonschema import Draft202012Validator

from repro.report import data

# Fault, verdict, and what the line on it says; those that wait for their deadline first, so that others pass them.
ENDINGS = {
    "2": ("INFRA_ERROR", "the deadline of 15 s passed with rank 0 in body still running; see stderr.log for stacks"),
    "3": ("INFRA_ERROR", "the deadline of 15 s passed with rank 0 in body still running"),
    "7": ("INFRA_ERROR", "still running; before it, rank 0 left with exit code 0 in body"),
    "1": ("REPRODUCED", "rank 0 in body: ValueError: asked to raise 形状不符 (in case, 9002/misbehave.py:"),
    "4": ("NOT_REPRODUCED", "0 of 1: a rate above 95% is excluded at 95%"),
    "5": ("INFRA_ERROR", "runaway log: rank-0/stdout.log grew past 64 MiB"),
    "6": ("INFRA_ERROR", "rank 0 was killed from outside by signal 9, in body; out of memory? see dmesg"),
    "8": ("REPRODUCED", "rank 0 died of signal 6 (SIGABRT), in body"),
    "9": ("REPRODUCED", "rank 0 passed its body, then died of signal 11 (SIGSEGV), finalising"),
    "13": ("INCONCLUSIVE", "another failure did: rank 0 left with exit code 0 in body, before its end"),
}


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """One folder for all endings."""
    made = Cli(tmp_path_factory.mktemp("endings"))
    yield made
    made.nothing_left()


@pytest.fixture(scope="module")
def found(command: Cli) -> dict[str, dict[str, Any]]:
    """All endings, each as a run of its own, a few at a time."""
    at_once, results = 4, {}
    waiting = list(ENDINGS)
    running: dict[str, subprocess.Popen[str]] = {}
    while waiting or running:
        while waiting and len(running) < at_once:
            number = waiting.pop(0)
            out = str(command.folder / number)
            arguments = ("run", f"9002.{number}", "--arm", "unfixed", "--json", "--out", out)
            running[number] = command.start(*arguments)
        # Outputs are a few lines, so whoever has ended may be looked for first without filling a pipe.
        number = until(lambda: [n for n, process in running.items() if process.poll() is not None], "an ending")[0]
        out_text, err = running[number].communicate()
        code = running.pop(number).returncode
        results[number] = {"code": code, "out": out_text, "err": err}
    return results


@pytest.mark.parametrize("number", ENDINGS)
def test_a_rank_ends(number: str, command: Cli, found: dict[str, dict[str, Any]]) -> None:
    expected, words = ENDINGS[number]
    done = found[number]
    assert "Traceback" not in done["err"]
    assert len(done["err"].splitlines()) == 1, done["err"]
    printed = json.loads(done["out"])
    schema = Path(data.__file__).with_name("verdict.schema.json")
    Draft202012Validator(json.loads(schema.read_text(encoding="utf-8"))).validate(printed)
    [fault] = printed["faults"]
    assert fault["verdict"] == expected, fault
    assert words in fault["why"]
    codes = {"REPRODUCED": 0, "NOT_REPRODUCED": 1, "INCONCLUSIVE": 3, "INFRA_ERROR": 4}
    assert done["code"] == codes[expected]
    assert json.loads((command.folder / number / "verdict.json").read_text(encoding="utf-8")) == printed
    assert not list((command.folder / number / "trials").glob(".*"))


@pytest.mark.usefixtures("found")
def test_nothing_is_left_running(command: Cli) -> None:
    command.nothing_left()


def evidence(command: Cli, number: str, rank: int = 0) -> Path:
    [folder] = (command.folder / number / "trials").glob(f"9002.{number}-case-0-*/rank-{rank}")
    return folder


@pytest.mark.usefixtures("found")
def test_the_stacks_of_a_hung_rank_are_kept(command: Cli) -> None:
    for number, rank, function in (("2", 0, "_hang"), ("3", 0, "_ignore_sigterm"), ("7", 1, "_hang")):
        text = (evidence(command, number, rank) / "stderr.log").read_text(encoding="utf-8")
        assert f"in {function}" in text, number


@pytest.mark.usefixtures("found")
def test_a_flooded_log_is_cut_and_says_so(command: Cli) -> None:
    log = evidence(command, "5") / "stdout.log"
    assert log.stat().st_size < 4 << 20
    assert b"bytes dropped here" in log.read_bytes()


@pytest.mark.usefixtures("found")
def test_how_each_rank_ended_is_kept(command: Cli) -> None:
    record = json.loads((evidence(command, "7").parent / "trial.json").read_text(encoding="utf-8"))
    first, second = record["ranks"]
    assert (first["code"], first["signal"], first["phase"], first["killed"]) == (0, None, "in body", False)
    assert (second["code"], second["phase"], second["killed"]) == (None, "in body", True)
    record = json.loads((evidence(command, "9").parent / "trial.json").read_text(encoding="utf-8"))
    assert (record["ranks"][0]["signal"], record["first_failing"]) == (11, 0)


@pytest.mark.usefixtures("found")
def test_the_error_is_kept_with_its_frames(command: Cli) -> None:
    error = json.loads((evidence(command, "1") / "error.json").read_text(encoding="utf-8"))
    assert (error["type"], error["message"]) == ("ValueError", "asked to raise 形状不符")
    assert [frame[2] for frame in error["frames"]][-2:] == ["case", "_raise"]


def test_a_rank_killed_from_outside(cli: Cli) -> None:
    process = cli.start("run", "9002.15", "--arm", "unfixed", "--json", "--out", str(cli.out))
    ranks = cli.about_to("hang", 2)
    victim = next(rank for rank in ranks if rank.environ()["RANK_ID"] == "1")
    kill([victim])
    done = cli.finish(process)
    fault = verdict(done)
    assert (done.code, fault["verdict"]) == (4, "INFRA_ERROR"), fault
    assert "rank 0 in body still running; before it, rank 1 failed in body: signal 9 (SIGKILL)" in fault["why"]
    record = cli.record("9002.15-case-0-unfixed-dp2")
    assert record["first_failing"] == 1
    assert [(r["signal"], r["killed"]) for r in record["ranks"]][1] == (9, False)


def test_a_rank_that_waits_for_a_failed_one_is_not_waited_for(cli: Cli) -> None:
    done = cli.run("9002.17")
    fault = verdict(done)
    assert (done.code, fault["verdict"]) == (0, "REPRODUCED"), fault
    assert fault["why"].startswith("rank 1 in body: ValueError: asked to raise")
    record = cli.record("9002.17-case-0-unfixed-dp2")
    assert (record["ending"], record["detail"]) == ("completed", "ended after the first failure")
    assert [(r["code"], r["killed"]) for r in record["ranks"]] == [(None, True), (1, False)]
    assert record["ranks"][0]["reason"] == "ended by the launcher"


def test_a_supervisor_killed_from_outside(cli: Cli) -> None:
    """Its ranks and their stray children die too, and the one line says what happened."""
    process = cli.start("run", "9002.12", "--arm", "unfixed", "--json", "--out", str(cli.out))
    cli.about_to("fork and hang")
    kill(cli.alive("repro.launch.supervisor"))
    done = cli.finish(process)
    assert (done.code, done.out) == (4, "")
    assert done.last.startswith(
        "repro run: trial 9002.12-case-0-unfixed-single: its supervisor ended with status -9; 0 of"
    )
    assert list(cli.out.glob("trials/.*/rank-0/events.jsonl")), "what was gathered is gone"


def test_a_job_around_the_harness_does_not_reach_the_ranks(cli: Cli) -> None:
    done = cli("run", "9002.1", "--json", "--out", str(cli.out), MS_ROLE="MS_SCHED", RANK_ID="3", RANK_SIZE="8")
    assert (done.code, verdict(done)["verdict"]) == (0, "REPRODUCED")


def test_a_deadline_before_python_is_up(cli: Cli) -> None:
    done = cli.run("9002.1", "--timeout", "0.01")
    assert (done.code, verdict(done)["verdict"]) == (4, "INFRA_ERROR")
    assert "the deadline of 0.01 s passed with rank 0 before body still running" in verdict(done)["why"]
