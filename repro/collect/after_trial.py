"""What is gathered of a trial on the host it ran on, once its ranks are over: backtraces, cores, the kernel's words.

Nothing here may lose a trial: what cannot be had is written down beside what could.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import zstandard

from repro.collect import backtrace, core_pattern, find_core, host_facts, memory_sites
from repro.collect.core_file import CoreFile
from repro.errors import InfraError, ReproError
from repro.evidence.layout import RankFolder, TrialFolder
from repro.evidence.write import write_json, write_text
from repro.model import RankOutcome, Tier, TrialRecord
from repro.model.wants import Wants

# All that is gathered of a trial together: reading a large core takes its time, and whoever waits for a supervisor
# takes it for hung a minute after the trial's deadline.
BUDGET_S = 50.0
# CANN's own account of a crash, where its handler came first.
TRACER_FILES = "**/stackcore_tracer*"
KEPT_OF_A_TRACER = 1 << 20
# Graph dumps of a large network take gigabytes; whoever needs all of them has the working folder.
KEPT_IN_ALL = 64 << 20
COMPRESSION = 3
_CORES_OF = {
    signal.SIGQUIT,
    signal.SIGILL,
    signal.SIGTRAP,
    signal.SIGABRT,
    signal.SIGBUS,
    signal.SIGFPE,
    signal.SIGSEGV,
}


def working_folder(folder: TrialFolder, rank: int, wants: Wants) -> Path:
    """Where a rank works: a folder of its own if it may leave a core, for the next core takes the name of the last."""
    own = folder.work / f"rank-{rank}" if wants.dump else folder.work
    own.mkdir(parents=True, exist_ok=True)
    return own


def gather(folder: TrialFolder, record: TrialRecord, wants: Wants) -> None:
    """Gather what the trial left on this host."""
    _tracer_files(folder)
    _keep(folder, wants.keep)
    _environment(folder)
    if record.spec.tier is Tier.NPU:
        write_text(folder.path / "npu-smi.txt", host_facts.npu_smi())
    deadline = time.monotonic() + BUDGET_S
    if wants.memory:
        _memory(folder, record, deadline)
    taken = 0
    for outcome in sorted(record.ranks, key=lambda each: each.end):
        if outcome.signal == signal.SIGKILL and not outcome.killed:
            _what_the_kernel_said(folder.rank(outcome.rank), outcome)
        if wants.dump and outcome.signal in _CORES_OF:
            rank = folder.rank(outcome.rank)
            why_not = ""
            if wants.first_only and taken:
                why_not = "that of the rank that died first tells"
            elif time.monotonic() > deadline:
                why_not = f"what else was gathered took {BUDGET_S:g} s"
            taken += 1
            try:
                _crash(rank, outcome, working_folder(folder, outcome.rank, wants), wants, deadline, why_not)
            except (ReproError, OSError) as error:
                write_text(rank.backtrace, f"no backtrace: {error}\n")


def _memory(folder: TrialFolder, record: TrialRecord, deadline: float) -> None:
    """One table of what all ranks left allocated; a capture that cannot be read is named below it."""
    sites: dict[int, list[memory_sites.RankSite]] = {}
    notes = []
    for outcome in record.ranks:
        try:
            sites[outcome.rank] = memory_sites.of_capture(folder.rank(outcome.rank).memray, deadline - time.monotonic())
        except ReproError as error:
            notes.append(f"rank {outcome.rank}: {error}\n")
    shown = memory_sites.table(memory_sites.merge(sites), sorted(sites))
    write_text(folder.memory_table, "\n".join([shown, *notes]))


def _crash(rank: RankFolder, outcome: RankOutcome, worked: Path, wants: Wants, deadline: float, why_not: str) -> None:
    core = find_core.find_core(core_pattern.of_this_host(), outcome.pid, worked, outcome.start, outcome.end)
    size = core.path.stat().st_blocks * 512
    if not why_not:
        stacks = backtrace.take(core, deadline - time.monotonic())
        write_text(rank.backtrace, stacks.text)
        crash = {"signal": core.signal, "pid": core.pid, "build_id": core.build_id, "size": size, "top": stacks.top}
        write_json(rank.crash, crash)
    else:
        write_text(rank.backtrace, f"no backtrace: {why_not}\n")
    if wants.keeps(size):
        _compress(core, rank.core)
    if worked in core.path.parents:
        core.path.unlink()


def _compress(core: CoreFile, target: Path) -> None:
    free = shutil.disk_usage(target.parent).free
    size = core.path.stat().st_blocks * 512
    if free < size:
        raise InfraError(f"core of {size >> 20} MiB is not kept, {free >> 20} MiB are free", "free space")
    part = target.with_suffix(".part")
    with core.path.open("rb") as source, part.open("wb") as compressed:
        zstandard.ZstdCompressor(level=COMPRESSION, threads=-1).copy_stream(source, compressed)
    part.rename(target)


def _keep(folder: TrialFolder, globs: Sequence[str]) -> None:
    """Copy what the case names from where the ranks worked into the evidence, up to a limit."""
    room, left_out = KEPT_IN_ALL, []
    for found in sorted({path for pattern in globs for path in folder.work.rglob(pattern) if path.is_file()}):
        name = found.relative_to(folder.work)
        room -= found.stat().st_size
        if found.is_symlink() or room < 0:
            left_out.append(str(name))
            continue
        target = folder.path / "kept" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(found, target)
    if left_out:
        limit = f"links, or more than {KEPT_IN_ALL >> 20} MiB in all"
        write_text(folder.path / "kept" / "LEFT_OUT.txt", f"not kept ({limit}):\n" + "\n".join([*left_out, ""]))


def _environment(folder: TrialFolder) -> None:
    """What of the supervisor's environment, and so of the ranks', bears on a fault."""
    write_json(folder.path / "environment.json", host_facts.environment(os.environ))


def _tracer_files(folder: TrialFolder) -> None:
    for found in folder.path.glob(TRACER_FILES):
        if found.is_file() and folder.work in found.parents and found.stat().st_size <= KEPT_OF_A_TRACER:
            kept = folder.path / "stackcore"
            kept.mkdir(exist_ok=True)
            shutil.copyfile(found, kept / found.name)


def _what_the_kernel_said(rank: RankFolder, outcome: RankOutcome) -> None:
    """Who was killed for want of memory stands in the kernel's log, where it may be read."""
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(outcome.start))
    command = ["dmesg", "--time-format=iso", f"--since={since}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=10, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        write_text(rank.path / "kernel.log", f"the kernel's log could not be read: {error}\n")
        return
    words = ("out of memory", "oom-kill", "oom_reaper", f"process {outcome.pid} ", f"pid={outcome.pid},")
    lines = [line for line in done.stdout.splitlines() if any(word in line.lower() for word in words)]
    write_text(rank.path / "kernel.log", "\n".join([*lines[-50:], ""]))
