"""Runs that are interrupted, killed, repeated, edited or judged again: what was finished counts, and only that."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from harness import PATIENCE_S, Cli, Done, kill, until, verdict

WELL, GATED = "9002.11-well-0-clean-single", "9002.11-case-0-unfixed-single"
FAULT = ("run", "9002.11", "--json")


def start_gated(cli: Cli) -> subprocess.Popen[str]:
    """A run whose control has finished and whose case waits for its gate."""
    process = cli.start(*FAULT, "--out", str(cli.out))
    cli.about_to("wait for gate")
    until(cli.trial(WELL).exists, "the control's end")
    return process


def resume(cli: Cli) -> Done:
    cli.gate.touch()
    return cli(*FAULT, "--out", str(cli.out))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_is_finished_later(number: signal.Signals, cli: Cli) -> None:
    process = start_gated(cli)
    process.send_signal(number)
    done = cli.finish(process)
    assert (done.code, done.out) == (130, "")
    kept = "interrupted; 1 of 2 trials are kept; repeat the command with --out"
    assert done.last == f"repro run: {kept} {cli.out} to finish"
    assert not cli.trial(GATED).exists()
    before = cli.record(WELL)

    told = cli("judge", str(cli.out), "--json")
    assert (told.code, verdict(told)["verdict"]) == (4, "INFRA_ERROR")
    assert f"trial {GATED} is not finished; run again with --out" in verdict(told)["why"]

    again = resume(cli)
    assert (again.code, verdict(again)["verdict"]) == (0, "REPRODUCED")
    assert cli.record(WELL) == before, "a finished trial was run again"
    assert len(again.err.splitlines()) == 1
    assert not list(cli.out.glob("trials/.*"))


def test_a_killed_harness_takes_its_ranks_along_and_is_finished_later(cli: Cli) -> None:
    process = start_gated(cli)
    process.kill()
    assert cli.finish(process).code == -signal.SIGKILL
    before = cli.record(WELL)
    again = resume(cli)
    assert (again.code, verdict(again)["verdict"]) == (0, "REPRODUCED")
    assert cli.record(WELL) == before


def test_a_killed_harness_leaves_no_stray_child(cli: Cli) -> None:
    process = cli.start("run", "9002.12", "--arm", "unfixed", "--out", str(cli.out))
    cli.about_to("fork and hang")
    process.kill()
    cli.finish(process)


def test_two_runs_do_not_share_a_folder(cli: Cli) -> None:
    process = start_gated(cli)
    second = cli.start(*FAULT, "--out", str(cli.out))
    out, err = second.communicate(timeout=PATIENCE_S)
    assert (second.returncode, out) == (4, "")
    assert err == f"repro run: another process runs trials in {cli.out}; wait for it, or give another --out\n"
    # The first is not disturbed; it ends when its terminal goes.
    process.send_signal(signal.SIGHUP)
    assert cli.finish(process).code == 130


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Cli, Done]:
    """A finished run, for the tests that only look at one."""
    cli = Cli(tmp_path_factory.mktemp("finished"))
    return cli, cli("run", "9002.1", "--json", "--out", str(cli.out))


@pytest.fixture
def copy(finished: tuple[Cli, Done], cli: Cli) -> Cli:
    """The finished run in a folder that a test may spoil."""
    shutil.copytree(finished[0].out, cli.out)
    return cli


TRIAL = "trials/9002.1-case-0-unfixed-single"


def test_judging_again_runs_nothing_and_says_the_same(finished: tuple[Cli, Done], copy: Cli) -> None:
    (copy.out / "verdict.json").unlink()
    # Neither the issue nor its programs are needed any more.
    again = copy("judge", str(copy.out), "--json", HYPER_REPRO_ISSUES="")
    assert (again.code, again.out, again.err) == (0, finished[1].out, "")
    assert json.loads((copy.out / "verdict.json").read_text(encoding="utf-8")) == json.loads(again.out)
    assert copy("run", "9002.1", "--json", "--out", str(copy.out)).out == again.out
    report = copy("report", str(copy.out))
    assert (report.code, report.err) == (0, "")
    assert "ValueError: asked to raise 形状不符" in report.out
    shown = copy("judge", str(copy.out))
    assert "REPRODUCED" in shown.out


def test_the_seals_are_read_by_sha256sum(finished: tuple[Cli, Done]) -> None:
    out = finished[0].out
    seals = [out / "SHA256SUMS", *out.glob("trials/*/SHA256SUMS")]
    assert len(seals) == 3
    for seal in seals:
        subprocess.run(["sha256sum", "--check", "--strict", "--quiet", seal.name], cwd=seal.parent, check=True)


@pytest.mark.parametrize(
    ("name", "new", "words"),
    [
        (f"{TRIAL}/rank-0/stderr.log", "nothing happened", "stderr.log was changed after the trial"),
        (f"{TRIAL}/rank-0/error.json", "{}", "error.json was changed after the trial"),
        (f"{TRIAL}/rank-0/events.jsonl", "", "events.jsonl was changed after the trial"),
        (f"{TRIAL}/trial.json", "{}", "trial.json was changed after the trial"),
        (f"{TRIAL}/trial.json", None, "trial.json is missing after the trial"),
        (f"{TRIAL}/SHA256SUMS", None, "the trial is not whole"),
        (TRIAL, None, "is not finished; run again with --out"),
    ],
)
def test_an_edited_trial_is_told_and_gives_no_verdict(name: str, new: str | None, words: str, copy: Cli) -> None:
    path = copy.out / name
    if new is not None:
        path.write_text(new)
    elif path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    done = copy("judge", str(copy.out), "--json")
    assert (done.code, verdict(done)["verdict"]) == (4, "INFRA_ERROR")
    assert words in verdict(done)["why"]


def test_a_trial_in_the_place_of_another_is_told(copy: Cli) -> None:
    shutil.rmtree(copy.out / TRIAL)
    shutil.copytree(copy.out / "trials" / "9002.1-well-0-clean-single", copy.out / TRIAL)
    done = copy("judge", str(copy.out), "--json")
    assert (done.code, verdict(done)["verdict"]) == (4, "INFRA_ERROR")
    assert "holds another trial" in verdict(done)["why"]


@pytest.mark.parametrize(
    ("name", "new", "words"),
    [
        ("issue.yaml", "asked to shout", "issue.yaml was changed after the run began"),
        ("run.json", "9002.7", "run.json was changed after the run began"),
        ("run.json", "half", "run.json: not JSON"),
        ("issue.yaml", None, "issue.yaml is missing after the run began"),
        ("run.json", None, "run.json: No such file or directory"),
    ],
)
@pytest.mark.parametrize("verb", ["judge", "report"])
def test_an_edited_run_is_told_in_one_line(verb: str, name: str, new: str | None, words: str, copy: Cli) -> None:
    path = copy.out / name
    text = path.read_text(encoding="utf-8")
    match new:
        case None:
            path.unlink()
        case "half":
            path.write_text(text[: len(text) // 2], encoding="utf-8")
        case _:
            path.write_text(text.replace("asked to raise", new).replace("9002.1", new), encoding="utf-8")
    done = copy(verb, str(copy.out))
    assert (done.code, done.out) == (4, "")
    assert words in done.last
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments", [("9002.1", "--seed", "3"), ("9002.1", "--trials", "2"), ("9002.1", "--arm", "clean"), ("9001",)]
)
def test_another_run_in_the_folder_is_a_usage_error(arguments: tuple[str, ...], copy: Cli) -> None:
    before = sorted(path.name for path in copy.out.rglob("*"))
    done = copy("run", *arguments, "--out", str(copy.out))
    assert (done.code, done.out) == (2, "")
    assert f"{copy.out} holds another run: its " in done.last
    assert len(done.err.splitlines()) == 1
    assert sorted(path.name for path in copy.out.rglob("*")) == before


def test_a_killed_rank_does_not_stop_the_other_faults(cli: Cli) -> None:
    """The trial that could not be run is told; what the others found is kept and judged."""
    process = cli.start("run", "9002.12", "--json", "--keep-going", "--out", str(cli.out))
    cli.about_to("fork and hang")
    until(cli.trial("9002.12-well-0-clean-single").exists, "the control's end")
    supervisors = cli.alive("repro.launch.supervisor")
    kill(supervisors)
    done = cli.finish(process)
    assert (done.code, verdict(done)["verdict"]) == (4, "INFRA_ERROR")
    assert (Path(cli.out) / "verdict.json").exists()
