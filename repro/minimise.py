"""The smallest world and topology in which a fault still shows: what to try next, and what it comes to. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from repro.model import Topology

Answers = Mapping[Topology, bool | None]


@dataclass(frozen=True)
class Smallest:
    """What the answers come to.

    Attributes:
        subject: A fault, or a column of the report's table.
        found: The smallest topology in which it shows; None if it shows in none.
        clean: Smaller ones in which it does not show.
        undecided: Smaller ones that decided nothing.
        tried: How many topologies were run, those of the run itself with them.
    """

    subject: str
    found: Topology | None
    clean: tuple[Topology, ...]
    undecided: tuple[Topology, ...]
    tried: int

    def line(self) -> str:
        """One line for a reader."""
        if self.found is None:
            return f"{self.subject}: shows in none of {self.tried} topologies, so there is nothing to make smaller"
        told = f"{self.subject}: the smallest is {self.found.label} (world {self.found.world}), of {self.tried} run"
        if self.clean:
            told += f"; not in {_labels(self.clean)}"
        if self.undecided:
            told += f"; undecided in {_labels(self.undecided)}, so it may be smaller still"
        return told

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "subject": self.subject,
            "found": self.found.label if self.found else None,
            "world": self.found.world if self.found else None,
            "clean": [each.label for each in self.clean],
            "undecided": [each.label for each in self.undecided],
            "tried": self.tried,
        }


def size(topology: Topology) -> tuple[int, int, str]:
    """The order of topologies: by ranks, then by how many ways they are split, then by name."""
    return topology.world, sum(degree > 1 for degree in asdict(topology).values()), topology.label


def smaller(topology: Topology) -> list[Topology]:
    """Every topology whose degrees divide these, itself left out, the smallest first."""
    degrees = [[d for d in range(1, degree + 1) if degree % d == 0] for degree in asdict(topology).values()]
    found = {Topology(*each) for each in itertools.product(*degrees)} - {topology}
    return sorted(found, key=size)


def next_level(answers: Answers) -> list[Topology]:
    """The topologies to run next: all of the smallest world that could still hold the smallest answer.

    A level is run whole, so that its trials fill the hosts. Worlds are tried from one rank on: a fault may show in a
    small world, not in a middling one and again in a large one, so halving would miss the smallest.

    Returns:
        Nothing if the smallest is known, or if it shows nowhere.
    """
    showing = [topology for topology, shows in answers.items() if shows]
    if not showing:
        return []
    bound = min(map(size, showing))
    candidates = {each for topology in showing for each in smaller(topology)} - answers.keys()
    left = [each for each in candidates if size(each) < bound]
    if not left:
        return []
    world = min(each.world for each in left)
    return sorted((each for each in left if each.world == world), key=size)


def conclude(subject: str, answers: Answers) -> Smallest:
    """What the answers so far come to."""
    showing = [topology for topology, shows in answers.items() if shows]
    found = min(showing, key=size, default=None)
    below = sorted((each for each in answers if found and size(each) < size(found)), key=size)
    return Smallest(
        subject,
        found,
        tuple(each for each in below if answers[each] is False),
        tuple(each for each in below if answers[each] is None),
        len(answers),
    )


def _labels(topologies: Sequence[Topology]) -> str:
    return ", ".join(topology.label for topology in topologies)
