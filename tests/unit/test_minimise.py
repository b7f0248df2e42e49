"""The search for the smallest topology: levels from one rank up, whole levels, no guess where nothing was decided."""

from __future__ import annotations

import pytest

from repro.minimise import conclude, next_level, size, smaller
from repro.model import Topology

EIGHT = Topology(tp=2, ep=2, fsdp=2)


def search(start: Topology, shows: set[str], undecided: frozenset[str] = frozenset()) -> tuple[str, list[list[str]]]:
    answers: dict[Topology, bool | None] = {start: True}
    levels = []
    while level := next_level(answers):
        levels.append([each.label for each in level])
        answers |= {each: None if each.label in undecided else each.label in shows for each in level}
    return conclude("it", answers).line(), levels


def test_every_divisor_is_smaller() -> None:
    assert [each.label for each in smaller(Topology(tp=2, fsdp=4))] == [
        "single", "fsdp2", "tp2", "fsdp4", "tp2-fsdp2",
    ]  # fmt: skip
    assert smaller(Topology()) == []
    assert max(map(size, smaller(Topology(dp=6)))) == size(Topology(dp=3))


@pytest.mark.parametrize(
    ("shows", "line", "levels"),
    [
        ({"single"}, "it: the smallest is single (world 1), of 2 run", [["single"]]),
        (
            {"ep2", "tp2"},
            "it: the smallest is ep2 (world 2), of 5 run; not in single",
            [["single"], ["ep2", "fsdp2", "tp2"]],
        ),
        (
            {"ep2-fsdp2"},
            "it: the smallest is ep2-fsdp2 (world 4), of 8 run; not in single, ep2, fsdp2, tp2",
            [["single"], ["ep2", "fsdp2", "tp2"], ["ep2-fsdp2", "tp2-ep2", "tp2-fsdp2"]],
        ),
        (
            set(),
            (
                "it: the smallest is tp2-ep2-fsdp2 (world 8), of 8 run; "
                "not in single, ep2, fsdp2, tp2, ep2-fsdp2, tp2-ep2, tp2-fsdp2"
            ),
            [["single"], ["ep2", "fsdp2", "tp2"], ["ep2-fsdp2", "tp2-ep2", "tp2-fsdp2"]],
        ),
    ],
)
def test_levels_are_run_whole_from_one_rank_up(shows: set[str], line: str, levels: list[list[str]]) -> None:
    assert search(EIGHT, shows) == (line, levels)


def test_a_gap_in_the_middle_does_not_hide_the_smallest() -> None:
    assert search(Topology(dp=8), {"dp2"})[0].startswith("it: the smallest is dp2 (world 2)")


def test_what_decided_nothing_is_said() -> None:
    line, _ = search(Topology(dp=4), {"dp2"}, frozenset({"single"}))
    assert line == "it: the smallest is dp2 (world 2), of 3 run; undecided in single, so it may be smaller still"


def test_nothing_to_make_smaller() -> None:
    answers: dict[Topology, bool | None] = {EIGHT: False, Topology(dp=8): None}
    assert next_level(answers) == []
    assert conclude("it", answers).line() == "it: shows in none of 2 topologies, so there is nothing to make smaller"
