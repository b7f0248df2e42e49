"""One record out of those of a trial's hosts: ranks in order, times on one clock, the first failure of all. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from repro.engines.ssh.session import Clock
from repro.launch.outcomes import first_failing
from repro.model import Ending, HostPart, RankOutcome, TrialRecord

# From the least to the most telling: what one host says of the trial outweighs what the others do.
_ORDER = (Ending.COMPLETED, Ending.INTERRUPTED, Ending.DEADLINE, Ending.RUNAWAY_LOG, Ending.LAUNCH_FAILED)


@dataclass(frozen=True)
class Part:
    """What one host says of the trial.

    Attributes:
        host: Its name.
        record: As its supervisor wrote it, in its own time.
        clock: Its clock against ours.
        stopped: True if we asked it to stop, because another host's part had ended.
    """

    host: str
    record: TrialRecord
    clock: Clock
    stopped: bool = False


def merge(parts: Sequence[Part], given_up: Sequence[str] = ()) -> TrialRecord:
    """The trial's record; times of ranks are on the controller's clock where there are several hosts.

    Args:
        parts: One a host, the first host first.
        given_up: Why earlier attempts came to nothing.
    """
    several = len(parts) > 1
    ranks = tuple(
        sorted(
            (_on_our_clock(rank, part, shift=several) for part in parts for rank in part.record.ranks),
            key=lambda rank: rank.rank,
        )
    )
    first = first_failing(ranks)
    ending, detail = _ending(parts)
    if several:
        detail = _with_doubt(detail, parts, ranks, first)
    shifts = {part.host: part.clock.skew_s if several else 0.0 for part in parts}
    return replace(
        parts[0].record,
        start=min(part.record.start - shifts[part.host] for part in parts),
        end=max(part.record.end - shifts[part.host] for part in parts),
        ending=ending,
        detail=detail,
        ranks=ranks,
        first_failing=first,
        launcher_code=_launcher_code(parts),
        hosts=tuple(
            HostPart(
                part.host, tuple(r.rank for r in part.record.ranks), round(part.clock.skew_s, 6), part.clock.error_s
            )
            for part in parts
        ),
        given_up=tuple(given_up),
    )


def _on_our_clock(rank: RankOutcome, part: Part, *, shift: bool) -> RankOutcome:
    skew = part.clock.skew_s if shift else 0.0
    return replace(rank, host=part.host, start=rank.start - skew, end=rank.end - skew)


def _ending(parts: Sequence[Part]) -> tuple[Ending, str]:
    told = [part for part in parts if not (part.stopped and part.record.ending is Ending.INTERRUPTED)]
    worst = max(told or parts, key=lambda part: _ORDER.index(part.record.ending))
    if worst.record.ending is Ending.COMPLETED and len(told) < len(parts):
        return Ending.COMPLETED, "ended after the first failure"
    return worst.record.ending, worst.record.detail


def _launcher_code(parts: Sequence[Part]) -> int | None:
    codes = [part.record.launcher_code for part in parts if not part.stopped]
    return next((code for code in codes if code), codes[0] if codes else None)


def _with_doubt(detail: str, parts: Sequence[Part], ranks: Sequence[RankOutcome], first: int | None) -> str:
    """Say so where two hosts' first failures lie closer together than their clocks are known."""
    failed = sorted((rank for rank in ranks if rank.failed), key=lambda rank: rank.end)
    errors = {part.host: part.clock.error_s for part in parts}
    for other in failed[1:]:
        earliest = failed[0]
        doubt = errors[earliest.host] + errors[other.host]
        if other.host != earliest.host and other.end - earliest.end < doubt:
            told = f"rank {first} or rank {other.rank} failed first: their hosts' clocks are known to {doubt:.3f} s"
            return f"{detail}; {told}" if detail else told
    return detail
