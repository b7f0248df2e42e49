"""One record of a trial's hosts: times on one clock, the earliest failure of all, and what is uncertain said."""

from __future__ import annotations

from typing import Any

from made import SPEC, rank

from repro.engines.ssh.merge import Part, merge
from repro.engines.ssh.session import Clock
from repro.model import Ending, RankOutcome, TrialRecord


def part(host: str, *ranks: RankOutcome, skew: float = 0.0, error: float = 0.001, **changes: Any) -> Part:
    ending = changes.pop("ending", Ending.COMPLETED)
    record = TrialRecord(SPEC, 1.0 + skew, 9.0 + skew, ending, changes.pop("detail", ""), ranks)
    return Part(host, record, Clock(skew, error), **changes)


def failed(number: int, end: float) -> RankOutcome:
    return rank(number, 1, end=end)


def test_the_earliest_failure_is_named_on_one_clock() -> None:
    # By their own clocks rank 0 failed first; host b's is two minutes ahead, so that rank 2 was the first.
    parts = [part("a", failed(0, 50.0), rank(1)), part("b", failed(2, 165.0), rank(3), skew=120.0)]
    merged = merge(parts)
    assert merged.first_failing == 2
    assert [(r.rank, r.host, r.end) for r in merged.ranks if r.failed] == [(0, "a", 50.0), (2, "b", 45.0)]
    assert [(h.name, h.ranks, h.skew_s) for h in merged.hosts] == [("a", (0, 1), 0.0), ("b", (2, 3), 120.0)]
    assert (merged.start, merged.end) == (1.0, 9.0)
    assert TrialRecord.from_json(merged.to_json()) == merged


def test_what_the_clocks_cannot_tell_is_said() -> None:
    merged = merge([part("a", failed(0, 5.0)), part("b", failed(1, 5.01), error=0.05)])
    assert merged.detail == "rank 0 or rank 1 failed first: their hosts' clocks are known to 0.051 s"
    assert merge([part("a", failed(0, 5.0)), part("b", failed(1, 6.0), error=0.05)]).detail == ""


def test_a_host_that_we_stopped_does_not_make_the_trial_interrupted() -> None:
    cut = rank(1, None, 15, killed=True)
    merged = merge([part("a", failed(0, 5.0)), part("b", cut, ending=Ending.INTERRUPTED, stopped=True)])
    assert (merged.ending, merged.detail, merged.first_failing) == (
        Ending.COMPLETED,
        "ended after the first failure",
        0,
    )


def test_a_deadline_on_one_host_is_the_trials() -> None:
    parts = [part("a", rank(0)), part("b", rank(1), ending=Ending.DEADLINE, detail="the deadline of 5 s passed")]
    merged = merge(parts)
    assert (merged.ending, merged.detail) == (Ending.DEADLINE, "the deadline of 5 s passed")


def test_one_hosts_times_stay_its_own() -> None:
    merged = merge([part("a", failed(0, 5.0), skew=60.0)], ["host b: lost"])
    assert (merged.ranks[0].end, merged.ranks[0].host, merged.hosts[0].skew_s) == (5.0, "a", 60.0)
    assert merged.given_up == ("host b: lost",)
