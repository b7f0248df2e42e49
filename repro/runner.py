"""Carries out a plan: runs the missing trials on an engine, keeps what is finished, and stops cleanly when asked to."""

from __future__ import annotations

import fcntl
import json
import shlex
import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any
from uuid import uuid4

from repro import catalogue, host
from repro.engines.base import Engine
from repro.errors import InfraError, ReproError, UsageError
from repro.evidence import manifest
from repro.evidence.layout import RunFolder, TrialFolder
from repro.evidence.read import finished_trials, read_run_json
from repro.evidence.write import cannot_write, write_json, write_text
from repro.model import CrashOracle, Ending, Issue, TrialRecord, TrialSpec
from repro.model.wants import Cores, Wants
from repro.plan import FaultPlan

Progress = Callable[[TrialSpec, TrialRecord | None, str], None]


class InterruptedRunError(ReproError):
    """Ctrl-C or SIGTERM: what was finished is kept."""

    exit_code = 130


@dataclass(frozen=True)
class Run:
    """A run folder and what it was asked to do."""

    folder: RunFolder
    issue: Issue
    plans: tuple[FaultPlan, ...]
    wants: Wants = field(default_factory=Wants)

    def wants_of(self, spec: TrialSpec) -> Wants:
        """What is to be collected of one trial."""
        fault = next(plan.fault for plan in self.plans if plan.fault.id == spec.fault)
        case = next((case for case in fault.cases if case.name == spec.case), None)
        # Under memray a meter would read memray's memory, too.
        memory = self.wants.memory and not spec.calls
        wants = replace(self.wants, memory=memory, keep=case.keep if case else ())
        if wants.cores is not Cores.AUTO:
            return wants
        crashes = isinstance(fault.oracle_of(case) if case else fault.oracle, CrashOracle)
        cores = Cores.BACKTRACE if crashes and spec.index == 0 else Cores.NEVER
        return replace(wants, cores=cores, first_only=True)

    @property
    def specs(self) -> list[TrialSpec]:
        """All trials of the run, those of different faults taking turns as little as possible."""
        return [spec for plan in self.plans for spec in plan.trials]


def open_run(
    issue: Issue,
    plans: Sequence[FaultPlan],
    out: Path | None,
    argv: Sequence[str],
    engine: Engine,
    kind: str = "run",
    upstream: Mapping[str, object] | None = None,
    wants: Wants | None = None,
) -> Run:
    """Create the run folder, or take up one that was cut.

    Args:
        issue: The issue.
        plans: What to run.
        out: The folder; None for a new one under ``runs/``.
        argv: The command line, for the record.
        engine: Where the trials will run.
        kind: ``run`` for faults, ``matrix`` for a table of topologies.
        upstream: What identifies the checkout of hyper-parallel that is run; None for our own subject.
        wants: What is to be collected of each trial.

    Raises:
        UsageError: The folder holds another run.
        InfraError: It cannot be written.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    folder = RunFolder(out or Path("runs") / f"{stamp}-{issue.number}-{uuid4().hex[:6]}")
    run = Run(folder, issue, tuple(plans), wants or Wants())
    asked = {spec.folder: spec.key for spec in run.specs}
    identity = {
        "kind": kind,
        "issue": issue.number,
        "issue_digest": issue.digest,
        "trials": asked,
        "packages": engine.package_versions(),
        "upstream": dict(upstream) if upstream else None,
    }
    if folder.run.exists():
        known = read_run_json(folder)
        for name, value in identity.items():
            if known.get(name) != value:
                raise UsageError(
                    f"{folder.path} holds another run: its {name.replace('_', ' ')} differs",
                    "give another --out, or repeat the options of that run to resume it",
                )
        if folder.sums.exists() or finished_trials(folder):
            manifest.check_run(folder)
        else:
            manifest.seal_run(folder)
        return run
    try:
        folder.trials.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(Path(issue.folder) / catalogue.FILE_NAME, folder.issue)
    except OSError as error:
        raise cannot_write(folder.path, error) from error
    record: dict[str, Any] = {
        "schema_version": 1,
        "run": folder.path.name,
        **identity,
        "started": stamp,
        "argv": list(argv),
        "faults": {plan.fault.id: plan.tier for plan in plans},
        "host": host.facts(),
        "engine": engine.describe(),
    }
    write_json(folder.run, record)
    manifest.seal_run(folder)
    return run


def carry_out(run: Run, engine: Engine, keep_going: bool, progress: Progress) -> None:
    """Run every trial that is not finished yet.

    Args:
        run: The run.
        engine: Where trials run.
        keep_going: Go on with other trials after one could not be run at all.
        progress: Called in this thread with each trial when it starts (no record) and ends.

    Raises:
        InterruptedRunError: Ctrl-C or SIGTERM came; nothing is left running.
        InfraError: A trial could not be run and ``keep_going`` is off, or another process runs trials here.
    """
    with _alone_in(run.folder):
        complaints = _carry_out(run, engine, keep_going, progress)
    if complaints and not keep_going:
        kept = f"{len(finished_trials(run.folder))} of {len(run.specs)} trials are kept"
        # What the engine refuses because it was asked wrongly stays that.
        kind = UsageError if isinstance(complaints[0], UsageError) else InfraError
        raise kind(
            str(complaints[0]), f"{kept}; repeat the command with --out {shlex.quote(str(run.folder.path))} to finish"
        )


@contextmanager
def _alone_in(folder: RunFolder) -> Iterator[None]:
    try:
        lock = folder.lock.open("w")
    except OSError as error:
        raise cannot_write(folder.lock, error) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InfraError(
                f"another process runs trials in {folder.path}", "wait for it, or give another --out"
            ) from None
        yield


def _carry_out(run: Run, engine: Engine, keep_going: bool, progress: Progress) -> list[ReproError]:
    done = finished_trials(run.folder)
    missing = [spec for spec in run.specs if spec.folder not in done]
    complaints: list[ReproError] = []
    with _interruptible() as asked_to_stop, ThreadPoolExecutor(max_workers=engine.capacity) as pool:
        running: dict[Future[TrialRecord], TrialSpec] = {}
        try:
            while missing or running:
                free = engine.capacity - sum(engine.slots(spec) for spec in running.values())
                while missing and (engine.slots(missing[0]) <= free or not running):
                    spec = missing.pop(0)
                    free -= engine.slots(spec)
                    progress(spec, None, "")
                    running[pool.submit(_run_one, run, engine, spec)] = spec
                finished, _ = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
                if asked_to_stop.is_set():
                    raise KeyboardInterrupt
                for future in finished:
                    spec = running.pop(future)
                    problem = future.exception()
                    if problem is None:
                        progress(spec, future.result(), "")
                    elif isinstance(problem, ReproError):
                        progress(spec, None, str(problem))
                        complaints.append(problem)
                        missing = missing if keep_going else []
                    else:
                        raise problem
        except KeyboardInterrupt:
            engine.stop()
            wait(running)
            raise InterruptedRunError(
                f"interrupted; {len(finished_trials(run.folder))} of {len(run.specs)} trials are kept",
                f"repeat the command with --out {shlex.quote(str(run.folder.path))} to finish",
            ) from None
        except BaseException:
            engine.stop()
            raise
    return complaints


def _run_one(run: Run, engine: Engine, spec: TrialSpec) -> TrialRecord:
    part, whole = run.folder.unfinished(spec.folder, uuid4().hex[:6]), run.folder.trial(spec.folder)
    try:
        for cut in run.folder.attempts(spec.folder):
            if not part.path.exists() and engine.take_up(spec, TrialFolder(cut.resolve())):
                part = TrialFolder(cut)
            else:
                shutil.rmtree(cut, ignore_errors=True)
        if not part.path.exists():
            part.path.mkdir(parents=True)
            write_json(part.spec, spec.to_json())
            write_json(part.wants, run.wants_of(spec).to_json())
        # Absolute: the ranks work in a folder of their own.
        try:
            engine.run(spec, Path(run.issue.folder).resolve() / spec.program, TrialFolder(part.path.resolve()))
        except ReproError as error:
            # For `repro judge`, which tells it; the error itself is more than a note that could not be written.
            with suppress(InfraError):
                write_text(part.trouble, str(error))
            raise
        if not part.record.exists():
            raise InfraError(f"trial {spec.folder} left no record", "it was stopped; run again to finish")
        record = TrialRecord.from_json(json.loads(part.record.read_text(encoding="utf-8")))
        if record.ending is Ending.INTERRUPTED:
            raise InfraError(f"trial {spec.folder} was stopped before its end", "run again to finish")
        manifest.seal(part)
        part.path.rename(whole.path)
    except OSError as error:
        raise cannot_write(part.path, error) from error
    return record


@contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """Turn SIGINT and SIGTERM into an event that the loop looks at, so that no signal lands inside a rename."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def ask(_number: int, _frame: FrameType | None) -> None:
        asked.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
