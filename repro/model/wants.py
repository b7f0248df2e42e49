"""What a run wants kept besides its evidence: cores, backtraces, memory traces. No verdict hangs on it, nor any key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class Cores(StrEnum):
    """What is done about the core of a rank that dies of a signal."""

    AUTO = "auto"
    NEVER = "never"
    BACKTRACE = "backtrace"
    BELOW = "below"
    ALWAYS = "always"


@dataclass(frozen=True)
class Wants:
    """What is to be collected of a trial.

    Attributes:
        cores: ``never``: no core is dumped. ``backtrace``: it is read and thrown away. ``below``: it is kept if it
            takes less than ``below`` bytes on disk. ``always``: it is kept. ``auto``: ``backtrace`` for the first trial
            of a case that is expected to crash, else ``never``.
        first_only: Whether the backtrace of the first rank that died is enough, as it is under ``auto``.
        memory: Whether each rank runs under memray with native traces and leaves malloc_info and smaps_rollup.
        keep: Globs of files below the ranks' working folder that are evidence; the case names them.
    """

    cores: Cores = Cores.AUTO
    below: int = 0
    first_only: bool = False
    memory: bool = False
    keep: tuple[str, ...] = ()

    @property
    def dump(self) -> bool:
        """Whether a rank may dump a core at all."""
        return self.cores not in (Cores.NEVER, Cores.AUTO)

    def keeps(self, size: int) -> bool:
        """Whether a core that takes so many bytes on disk is kept."""
        return self.cores is Cores.ALWAYS or (self.cores is Cores.BELOW and size < self.below)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Wants:
        """The inverse of ``to_json``; what a later version may add is left out.

        Raises:
            ValueError: ``cores`` is no word of ours.
        """
        cores, below = Cores(data.get("cores", Cores.NEVER)), int(data.get("below", 0))
        flags = {name: bool(data.get(name, False)) for name in ("first_only", "memory")}
        return cls(cores, below, keep=tuple(data.get("keep", ())), **flags)


def parse_cores(text: str) -> Wants:
    """Read ``never``, ``backtrace``, ``always``, ``auto`` or ``below=500M``.

    Raises:
        ValueError: It is none of these.
    """
    word, equals, size = text.partition("=")
    if word == Cores.BELOW:
        found = re.fullmatch(r"(\d+)([KMG]?)", size)
        if not found:
            raise ValueError(f"{text!r}: give a size, such as below=500M")
        return Wants(Cores.BELOW, int(found[1]) * _UNITS[found[2]])
    if equals or word not in tuple(Cores):
        raise ValueError(f"{text!r} is not auto, never, backtrace, always or below=SIZE")
    return Wants(Cores(word))
