"""The words of the project: tiers, arms, launchers, phases, endings, verdicts, topologies."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum


class Tier(StrEnum):
    """Where the code under test runs, and so what a run can claim."""

    CPU = "cpu"
    SIM = "sim"
    NPU = "npu"


class Arm(StrEnum):
    """What a trial is for: the fault itself, with and without mends, or a control that proves the oracle."""

    UNFIXED = "unfixed"
    FIXED = "fixed"
    CLEAN = "clean"
    PLANTED = "planted"


class Launcher(StrEnum):
    """How the ranks of a trial are started."""

    PLAIN = "plain"
    RANKS = "ranks"
    MSRUN = "msrun"


class Subject(StrEnum):
    """Whose code shows the fault: our own distilled program or a real hyper-parallel checkout."""

    DISTILLED = "distilled"
    UPSTREAM = "upstream"


class Phase(StrEnum):
    """How far a rank came, by its own account written before each step."""

    BEFORE_BODY = "before body"
    IN_BODY = "in body"
    BODY_DONE = "body done"
    FINALISING = "finalising"


class Verdict(StrEnum):
    """What the evidence says of one fault."""

    REPRODUCED = "REPRODUCED"
    NOT_REPRODUCED = "NOT_REPRODUCED"
    BOUNDED = "BOUNDED"
    FIXED = "FIXED"
    NOT_FIXED = "NOT_FIXED"
    INCONCLUSIVE = "INCONCLUSIVE"
    INFRA_ERROR = "INFRA_ERROR"
    UNSUPPORTED = "UNSUPPORTED"


class Ending(StrEnum):
    """How a trial as a whole came to its end, seen by its supervisor."""

    COMPLETED = "completed"
    DEADLINE = "deadline"
    INTERRUPTED = "interrupted"
    RUNAWAY_LOG = "runaway log"
    LAUNCH_FAILED = "launch failed"
    OUT_OF_MEMORY = "out of memory"


@dataclass(frozen=True)
class Topology:
    """A split of the world into tensor, expert, fully-sharded and plain data parallel ranks."""

    tp: int = 1
    ep: int = 1
    fsdp: int = 1
    dp: int = 1

    @property
    def world(self) -> int:
        """Number of ranks: the product of the four degrees."""
        return self.tp * self.ep * self.fsdp * self.dp

    @property
    def label(self) -> str:
        """A short name fit for a folder, such as ``tp2-ep2`` or ``single``."""
        parts = [f"{name}{size}" for name, size in asdict(self).items() if size > 1]
        return "-".join(parts) or "single"

    @classmethod
    def parse(cls, text: str) -> Topology:
        """Read ``tp=2,ep=2,fsdp=2``.

        Raises:
            ValueError: A key that is not tp, ep, fsdp or dp, or a degree below 1.
        """
        degrees: dict[str, int] = {}
        for part in filter(None, (piece.strip() for piece in text.split(","))):
            name, _, size = part.partition("=")
            whole = size.isascii() and size.isdigit() and int(size) >= 1
            if name not in ("tp", "ep", "fsdp", "dp") or not whole or name in degrees:
                raise ValueError(
                    f"topology {text!r}: {part!r} is not one of tp=N, ep=N, fsdp=N, dp=N given once, N >= 1"
                )
            degrees[name] = int(size)
        return cls(**degrees)
