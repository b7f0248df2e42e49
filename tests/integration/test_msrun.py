"""Real msrun: the wait status of each rank is kept, whatever msrun says of it."""

from __future__ import annotations

from harness import Cli, verdict


def test_a_rank_that_dies_after_its_body(cli: Cli) -> None:
    done = cli.run("9002.10")
    fault = verdict(done)
    assert (done.code, fault["verdict"]) == (0, "REPRODUCED"), fault
    assert "rank 1 passed its body, then died of signal 11 (SIGSEGV), finalising; msrun exit code 1" in fault["why"]
    name = "9002.10-case-0-unfixed-dp2"
    assert fault["first_failure"] == f"{name}/rank-1"
    record = cli.record(name)
    assert (record["ending"], record["launcher_code"], record["first_failing"]) == ("completed", 1, 1)
    ranks = record["ranks"]
    assert [rank["rank"] for rank in ranks] == [0, 1]
    assert (ranks[1]["code"], ranks[1]["signal"], ranks[1]["killed"]) == (None, 11, False)
    assert (ranks[0]["code"], ranks[0]["signal"]) in {(0, None), (None, 9)}
    # The scheduler would wait for the lost rank much longer than this.
    assert record["end"] - max(rank["end"] for rank in ranks) < record["spec"]["timeout_s"] / 2
    assert (cli.trial(name) / "rank-1" / "stdout.log").read_text(encoding="utf-8") == "well\n" or ranks[1]["signal"]
    assert "exit with exception" in (cli.trial(name) / "launcher.log").read_text(encoding="utf-8")
