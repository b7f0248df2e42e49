"""How each rank ended: wait statuses joined with the rank's own phase marks, errors and logs."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from repro.errors import InfraError
from repro.evidence.layout import RankFolder, TrialFolder
from repro.evidence.read import last_phase, read_error, tail
from repro.evidence.types import RaisedError
from repro.launch.launchers import Launched
from repro.launch.process import Exit
from repro.model import RankOutcome

KEPT_OF_A_FLOODED_LOG = 1 << 20


def rank_pids(folder: TrialFolder, launched: Launched) -> list[int]:
    """Pids of all ranks, our children or msrun's."""
    shims = (read_shim(RankFolder(path)) for path in folder.path.glob("rank-*"))
    return [*launched.ranks.values(), *(int(shim["pid"]) for shim in shims if shim)]


def pids_by_rank(ranks: Sequence[int], folder: TrialFolder, launched: Launched) -> dict[int, int]:
    """Pid of every rank that was started, our children or msrun's."""
    shims = {rank: read_shim(folder.rank(rank)) for rank in ranks} if launched.manager else {}
    return {**launched.ranks, **{rank: int(shim["pid"]) for rank, shim in shims.items() if shim}}


def read_shim(rank: RankFolder) -> dict[str, float]:
    """What the shim under msrun wrote of its rank; empty if there is no shim."""
    if not rank.exit.exists():
        return {}
    values: dict[str, float] = json.loads(rank.exit.read_text(encoding="utf-8"))
    return values


def shim_exits(ranks: Sequence[int], folder: TrialFolder) -> dict[int, Exit]:
    """Exits of the ranks under msrun that their shims have seen so far."""
    exits = {}
    for rank in ranks:
        shim = read_shim(folder.rank(rank))
        if "end" in shim:
            exits[rank] = Exit(int(shim["pid"]), shim["end"], _whole(shim["code"]), _whole(shim["signal"]))
    return exits


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def collect(
    ranks: Sequence[int], folder: TrialFolder, launched: Launched, exits: Mapping[int, Exit], cut_at: float | None
) -> tuple[RankOutcome, ...]:
    """The outcome of every rank that was started.

    Args:
        ranks: Those of this host.
        folder: The trial's evidence.
        launched: What was started.
        exits: Wait statuses by pid, orphans included.
        cut_at: When the supervisor ended what still ran, seconds since the epoch; None if it ended nothing.
    """
    by_shim = shim_exits(ranks, folder)
    found: list[tuple[int, int, float, Exit | None]] = []
    for rank in ranks:
        shim = read_shim(folder.rank(rank))
        if rank in launched.ranks:
            pid, start = launched.ranks[rank], launched.started[rank]
            found.append((rank, pid, start, exits.get(pid)))
        elif shim:
            pid, start = int(shim["pid"]), shim["start"]
            found.append((rank, pid, start, by_shim.get(rank) or exits.get(pid)))
    first_bad = min((e.time for *_, e in found if e and e.code != 0), default=None)
    outcomes = []
    for rank, pid, start, ended in found:
        killed = ended is None or (cut_at is not None and ended.time >= cut_at)
        if ended and launched.manager is not None and ended.signal == signal.SIGKILL:
            # msrun kills the other workers once one has failed; alone, SIGKILL came from elsewhere.
            killed = killed or (first_bad is not None and ended.time > first_bad)
        rank_folder = folder.rank(rank)
        outcomes.append(
            RankOutcome(
                rank=rank,
                host="local",
                pid=pid,
                start=start,
                end=ended.time if ended else (cut_at or start),
                code=ended.code if ended else None,
                signal=ended.signal if ended else None,
                phase=last_phase(rank_folder.events),
                killed=killed,
                reason=_reason(rank_folder, ended, killed),
            )
        )
    return tuple(outcomes)


def _reason(folder: RankFolder, ended: Exit | None, killed: bool) -> str:
    if ended and ended.code == 0:
        return ""
    if killed:
        return "ended by the launcher"
    error = _error(folder)
    lines = (error.message if error else tail(folder.stderr, 4000)).strip().splitlines()
    if ended and ended.signal is not None:
        return f"signal {ended.signal} ({signal_name(ended.signal)})"
    if error:
        return f"{error.type}: {lines[0] if lines else ''}"
    last = lines[-1] if lines else "nothing on standard error"
    return f"exit code {ended.code if ended else '?'}: {last}"


def _error(folder: RankFolder) -> RaisedError | None:
    """What the rank raised; None too if it was cut while writing that down, which must not lose the trial."""
    try:
        return read_error(folder.error)
    except InfraError:
        return None


def signal_name(number: int) -> str:
    """Such as SIGSEGV; real-time signals have no name of their own."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIGRTMIN+{number - signal.SIGRTMIN}"


def first_failing(ranks: Sequence[RankOutcome]) -> int | None:
    """The rank whose failure came first in time: the root cause is looked for there."""
    failed = [outcome for outcome in ranks if outcome.failed]
    return min(failed, key=lambda outcome: outcome.end).rank if failed else None


def _logs(folder: TrialFolder) -> list[Path]:
    logs = [*folder.path.glob("rank-*/*.log"), *folder.path.glob("msrun/*.log"), folder.launcher_log]
    return [*logs, folder.scheduler_log]


def flooded_log(folder: TrialFolder, limit: int) -> str:
    """Name of a log that has grown past ``limit`` bytes; empty if none has."""
    for log in [*_logs(folder), *folder.path.glob("rank-*/events.jsonl")]:
        if log.exists() and log.stat().st_size > limit:
            return str(log.relative_to(folder.path))
    return ""


def trim_logs(folder: TrialFolder) -> None:
    """Cut a flooded log to its first and last MiB, saying so in the middle."""
    for log in _logs(folder):
        if not log.exists() or log.stat().st_size <= 4 * KEPT_OF_A_FLOODED_LOG:
            continue
        size = log.stat().st_size
        with log.open("r+b") as file:
            file.seek(-KEPT_OF_A_FLOODED_LOG, 2)
            end = file.read()
            file.seek(KEPT_OF_A_FLOODED_LOG)
            dropped = size - 2 * KEPT_OF_A_FLOODED_LOG
            file.write(f"\n[hyper-repro: {dropped} bytes dropped here]\n".encode() + end)
            file.truncate()


def clear(folder: TrialFolder) -> None:
    """Take away what a failed start left, so that the next attempt starts clean."""
    for path in folder.path.iterdir():
        if path in (folder.spec, folder.wants, folder.node):
            continue
        shutil.rmtree(path) if path.is_dir() else path.unlink()
