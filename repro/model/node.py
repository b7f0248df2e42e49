"""One host's part of a trial that runs across hosts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Node:
    """Which ranks a host starts, and where all of them meet.

    Attributes:
        index: Place of the host among the trial's hosts; the first one also runs the scheduler.
        count: How many hosts there are.
        ranks: The ranks that are started here.
        address: This host's own address, which its ranks listen on.
        master: The first host's address.
        port: The scheduler's port there.
    """

    index: int
    count: int
    ranks: tuple[int, ...]
    address: str
    master: str
    port: int

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return asdict(self)

    @property
    def leads(self) -> bool:
        """True for the host that runs the scheduler."""
        return self.index == 0

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Node:
        """The inverse of ``to_json``.

        Raises:
            TypeError, ValueError, KeyError: The data is no node.
        """
        return cls(**{**data, "ranks": tuple(int(rank) for rank in data["ranks"])})


@dataclass(frozen=True)
class HostPart:
    """What the record of a trial keeps of a host that it ran on.

    Attributes:
        name: The host's name in the inventory.
        ranks: The ranks that it ran.
        skew_s: Its clock less the controller's, in seconds. Times of ranks in a record of several hosts are corrected
            by it; those of a single host are the host's own.
        skew_error_s: How far off that may be: half the quickest way there and back.
    """

    name: str
    ranks: tuple[int, ...]
    skew_s: float
    skew_error_s: float

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> HostPart:
        """The inverse of ``asdict``.

        Raises:
            TypeError, ValueError, KeyError: The data is no such part.
        """
        return cls(**{**data, "ranks": tuple(data["ranks"])})
