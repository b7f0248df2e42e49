"""Real msrun: the wait status of each rank is kept, whatever msrun says of it, and nothing of it stays behind."""

from __future__ import annotations

import re
import signal

import pytest
from harness import Cli, kill, verdict


def test_a_rank_that_dies_after_its_body(cli: Cli) -> None:
    done = cli.run("9002.10")
    fault = verdict(done)
    assert (done.code, fault["verdict"]) == (0, "REPRODUCED"), fault
    frames = r"(, in .*string_at.*)?"
    said = rf"rank 1 passed its body, then died of signal 11 \(SIGSEGV\), finalising{frames}; msrun exit code 1"
    assert re.search(said, fault["why"]), fault["why"]
    name = "9002.10-case-0-unfixed-dp2"
    assert fault["first_failure"] == f"{name}/rank-1"
    record = cli.record(name)
    # Completed, not cut by the deadline: the scheduler, which waits for the lost rank, is not waited for.
    assert (record["ending"], record["launcher_code"], record["first_failing"]) == ("completed", 1, 1)
    ranks = record["ranks"]
    assert [rank["rank"] for rank in ranks] == [0, 1]
    assert (ranks[1]["code"], ranks[1]["signal"], ranks[1]["killed"]) == (None, 11, False)
    # The other rank had left by itself, or msrun ended it.
    assert (ranks[0]["code"], ranks[0]["killed"]) in {(0, False), (None, True)}
    assert (cli.trial(name) / "rank-1" / "stdout.log").read_text(encoding="utf-8").endswith("about to crash at exit\n")
    assert "Error code: -11" in (cli.trial(name) / "launcher.log").read_text(encoding="utf-8")


def test_a_rank_killed_from_outside(cli: Cli) -> None:
    process = cli.start("run", "9002.16", "--arm", "unfixed", "--json", "--out", str(cli.out))
    ranks = cli.about_to("hang", 2)
    kill([rank for rank in ranks if rank.environ().get("RANK_ID") == "1" and "MS_SCHED" not in rank.environ().values()])
    done = cli.finish(process)
    fault = verdict(done)
    assert (done.code, fault["verdict"]) == (4, "INFRA_ERROR"), fault
    assert "rank 1 was killed from outside by signal 9, in body" in fault["why"]
    first, second = cli.record("9002.16-case-0-unfixed-dp2")["ranks"]
    assert (second["signal"], second["killed"], first["killed"]) == (9, False, True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_harness_that_ends_takes_msrun_along(number: signal.Signals, cli: Cli) -> None:
    process = cli.start("run", "9002.16", "--arm", "unfixed", "--json", "--out", str(cli.out))
    cli.about_to("hang", 2)
    process.send_signal(number)
    done = cli.finish(process)
    assert done.code == (130 if number is signal.SIGINT else -9)
    assert not cli.trial("9002.16-case-0-unfixed-dp2").exists()
