"""The meter's schedule: fair to every series, and the same on every rank."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from repro.probes.meter import schedule

SERIES = [["case"], ["case", "clean"], ["case", "clean", "planted"], ["a", "b", "c", "d"]]


@pytest.mark.parametrize("series", SERIES)
@pytest.mark.parametrize("blocks", [1, 2, 5, 12, 24])
def test_each_series_runs_once_a_block(series: list[str], blocks: int) -> None:
    found = list(schedule(series, blocks))
    assert [block for block, _ in found] == [block for block in range(blocks) for _ in series]
    for block in range(blocks):
        assert sorted(name for at, name in found if at == block) == sorted(series)


@pytest.mark.parametrize("series", SERIES)
def test_all_ranks_run_the_same(series: list[str]) -> None:
    assert list(schedule(series, 10)) == list(schedule(list(series), 10))


@pytest.mark.parametrize("blocks", [12, 24, 60])
def test_no_series_always_follows_the_same_other(blocks: int) -> None:
    series = ["case", "clean", "planted"]
    followed = Counter((before, after) for (_, before), (_, after) in pairwise(schedule(series, blocks)))
    for name in series:
        others = [followed[other, name] for other in series if other != name]
        assert max(others) <= 1.5 * min(others), followed


@pytest.mark.parametrize("blocks", [6, 12, 24])
def test_every_series_comes_first_equally_often(blocks: int) -> None:
    series = ["case", "clean", "planted"]
    firsts = Counter(list(schedule(series, blocks))[3 * block][1] for block in range(blocks))
    assert set(firsts.values()) == {blocks // 3}
