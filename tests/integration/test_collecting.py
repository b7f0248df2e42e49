"""What is taken of a trial beside its evidence, followed while it runs, and run again if it was only trouble."""

from __future__ import annotations

import json
import signal

from harness import PATIENCE_S, Cli, verdict


def test_what_ranks_print_is_shown_while_they_run(cli: Cli) -> None:
    process = cli.start("run", "9002.11", "--arm", "unfixed", "--follow", "--json", "--out", str(cli.out))
    assert process.stderr is not None
    lines: list[str] = []
    while not any("about to wait" in line for line in lines):
        lines.append(process.stderr.readline())
    assert "[9002.11-case-0-unfixed-single rank 0] about to wait for gate\n" in lines
    assert process.poll() is None
    cli.gate.touch()
    # A traceback among the lines is the rank's own here.
    _, rest = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert "rank 0] ValueError: asked to raise once the gate is open\n" in rest


def test_what_a_case_names_is_kept_with_the_environment(cli: Cli) -> None:
    planted = {"GITCODE_TOKEN": "hunter2xyz", "MS_DEV_NOTE": "seen"}
    done = cli("run", "9003.3", "--json", "--out", str(cli.out), **planted)
    assert (done.code, verdict(done)["verdict"]) == (0, "REPRODUCED"), done
    trial = cli.trial("9003.3-case-0-unfixed-dp2")
    kept = {str(path.relative_to(trial / "kept")) for path in (trial / "kept").rglob("*") if path.is_file()}
    assert kept == {"rank_0/graph/final.ir", "rank_1/graph/final.ir"}
    environment = json.loads((trial / "environment.json").read_text(encoding="utf-8"))
    assert environment["MS_DEV_NOTE"] == "seen"
    assert environment["GLOG_v"] == "3"
    assert "GITCODE_TOKEN" not in environment
    assert "hunter2xyz" not in (trial / "environment.json").read_text(encoding="utf-8")


def test_a_rank_killed_from_outside_brings_the_kernels_words_and_can_be_run_again(cli: Cli) -> None:
    process = cli.start("run", "9002.11", "--arm", "unfixed", "--json", "--out", str(cli.out))
    [rank] = cli.about_to("wait for gate")
    rank.send_signal(signal.SIGKILL)
    done = cli.finish(process)
    assert (done.code, verdict(done)["verdict"]) == (4, "INFRA_ERROR")
    trial = cli.trial("9002.11-case-0-unfixed-single")
    assert (trial / "rank-0" / "kernel.log").exists()

    cli.gate.touch()
    options = ("run", "9002.11", "--arm", "unfixed", "--json", "--out", str(cli.out))
    assert cli(*options).code == 4, "a finished trial is not repeated unless it is asked for"
    again = cli(*options, "--retry-infra")
    assert (again.code, verdict(again)["verdict"]) == (0, "REPRODUCED"), again
    assert "is set aside and run again" in again.err
    assert (cli.out / "set-aside" / f"{trial.name}.1" / "rank-0" / "kernel.log").exists()
    assert verdict(again)["trials"] == 1
