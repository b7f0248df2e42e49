"""Trials as elements of job arrays: submits those that wait, follows them, and takes over what they left."""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

from repro.engines import slurm_client
from repro.engines.slurm_merge import merge_parts, whole
from repro.engines.slurm_script import Shape, Wishes, render
from repro.engines.slurm_states import JobState, complaint
from repro.engines.slurm_task import NODE_FILE, attempt_folder
from repro.errors import InfraError, ReproError
from repro.evidence.layout import TrialFolder
from repro.evidence.read import tail
from repro.evidence.write import write_json
from repro.model import Ending

LOOK_S = 0.25
# Trials that are asked for within this time share an array.
GATHER_S = 0.4
ASK_SLURM_S = 2.0
# A job that is over may be started again, and its files may show late on a shared file system.
SETTLE_S = 6.0
# A controller that restarts is waited for.
CONTROLLER_PATIENCE_S = 90.0
CANCEL_PATIENCE_S = 45.0


@dataclass
class Ticket:
    """One trial that somebody waits for.

    Attributes:
        job: Id of its job; empty until it is submitted.
        error: Why there is no record; None if there is one.
    """

    name: str
    folder: TrialFolder
    program: Path
    shape: Shape
    job: str = ""
    queued: float = field(default_factory=time.monotonic)
    over_since: float | None = None
    error: ReproError | None = None
    done: threading.Event = field(default_factory=threading.Event)

    def attempts(self) -> Iterator[Path]:
        """Folders of this trial's starts, first to last."""
        for number in count():
            folder = attempt_folder(self.folder.path, number)
            if number and not folder.exists():
                return
            yield folder


class Queue:
    """Follows all tickets of a run from one thread, so that Slurm is asked once for all of them.

    Args:
        wishes: What the command line asks of the cluster.
        packages: Versions that every node must have.
        queue_timeout_s: How long a job may wait for a node; None for as long as it takes.
    """

    def __init__(self, wishes: Wishes, packages: Mapping[str, str | None], queue_timeout_s: float | None) -> None:
        self._wishes = wishes
        self._packages = dict(packages)
        self._queue_timeout_s = queue_timeout_s
        self._tickets: list[Ticket] = []
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stopped_at: float | None = None
        self._silent_since: float | None = None
        self._asked = 0.0

    def wait_for(self, ticket: Ticket) -> None:
        """Submit the ticket with its neighbours and wait until its record is in its folder.

        Raises:
            ReproError: There will be none; the message is one line.
        """
        with self._lock:
            if self._stopped_at is not None:
                return
            self._tickets.append(ticket)
            if self._thread is None:
                self._thread = threading.Thread(target=self._follow, name="slurm", daemon=True)
                self._thread.start()
        ticket.done.wait()
        if ticket.error is not None:
            raise ticket.error

    def stop(self) -> None:
        """Cancel every job; those who wait are told once Slurm has ended them."""
        with self._lock:
            self._stopped_at = time.monotonic()
            jobs = [ticket.job for ticket in self._tickets if ticket.job]
        slurm_client.cancel(jobs)

    def _follow(self) -> None:
        while True:
            with self._lock:
                tickets = list(self._tickets)
                if not tickets:
                    self._thread = None
                    return
            try:
                self._round(tickets)
            except Exception as error:  # noqa: BLE001 -- whoever waits must hear of it, or they would wait for ever
                for ticket in tickets:
                    self._end(ticket, error if isinstance(error, ReproError) else InfraError(f"a bug: {error!r}"))
            time.sleep(LOOK_S)

    def _round(self, tickets: list[Ticket]) -> None:
        now = time.monotonic()
        for ticket in tickets:
            if ticket.job and self._take_record(ticket):
                self._end(ticket, None)
        waiting = [ticket for ticket in tickets if not ticket.job]
        if self._stopped_at is not None:
            for ticket in waiting:
                self._end(ticket, InfraError(f"trial {ticket.name} was not started"))
        elif waiting and now - waiting[-1].queued > GATHER_S:
            self._submit_all(waiting)
        following = [ticket for ticket in tickets if ticket.job and not ticket.done.is_set()]
        if following and now - self._asked > ASK_SLURM_S:
            self._asked = now
            self._ask(following, now)

    def _end(self, ticket: Ticket, error: ReproError | None) -> None:
        if ticket.done.is_set():
            return
        ticket.error = error
        with self._lock:
            self._tickets.remove(ticket)
        ticket.done.set()

    def _submit_all(self, waiting: list[Ticket]) -> None:
        for shape in dict.fromkeys(ticket.shape for ticket in waiting):
            batch = [ticket for ticket in waiting if ticket.shape == shape]
            try:
                job = self._submit(batch, shape)
            except ReproError as error:
                for ticket in batch:
                    self._end(ticket, error)
                continue
            for number, ticket in enumerate(batch):
                ticket.job = f"{job}_{number}"
                # Whoever takes this run up later finds the job by this.
                write_json(ticket.folder.path / NODE_FILE, {"job": ticket.job})

    def _submit(self, batch: list[Ticket], shape: Shape) -> str:
        folder = batch[0].folder.path.parents[1] / "slurm"
        folder.mkdir(exist_ok=True)
        name = uuid4().hex[:8]
        tasks, script = folder / f"{name}.json", folder / f"{name}.sh"
        listed = [{"folder": str(ticket.folder.path), "program": str(ticket.program)} for ticket in batch]
        write_json(tasks, {"packages": self._packages, "tasks": listed})
        root = Path(__file__).resolve().parents[2]
        command = ["env", f"PYTHONPATH={root}", sys.executable, "-m", "repro.engines.slurm_task", "run"]
        text = render("hyper-repro", str(folder), str(tasks), len(batch), shape, self._wishes, command)
        script.write_text(text, encoding="utf-8")
        return slurm_client.submit(script)

    def _ask(self, following: list[Ticket], now: float) -> None:
        try:
            seen = slurm_client.states([ticket.job for ticket in following])
            self._silent_since = None
        except InfraError as error:
            self._silent_since = self._silent_since or now
            if now - self._silent_since > CONTROLLER_PATIENCE_S:
                for ticket in following:
                    self._end(ticket, InfraError(f"trial {ticket.name}: {error}"))
            return
        for ticket in following:
            self._look_at(ticket, seen.get(ticket.job), now)
        if self._stopped_at is not None and now - self._stopped_at > CANCEL_PATIENCE_S:
            for ticket in following:
                self._end(ticket, InfraError(f"Slurm job {ticket.job} does not end", f"scancel {ticket.job}"))

    def _look_at(self, ticket: Ticket, job: JobState | None, now: float) -> None:
        if job is not None and not job.over and not job.hopeless:
            ticket.over_since = None
            waited = job.state == "PENDING" and self._queue_timeout_s is not None
            if waited and now - ticket.queued > (self._queue_timeout_s or 0.0):
                slurm_client.cancel([ticket.job])
                late = f"Slurm job {job.id} waited {self._queue_timeout_s:g} s for a node ({job.reason})"
                self._end(ticket, InfraError(f"trial {ticket.name}: {late}", "give a longer --queue-timeout"))
            return
        ticket.over_since = ticket.over_since or now
        settled = now - ticket.over_since > SETTLE_S or self._stopped_at is not None
        if settled and not self._take_record(ticket):
            self._end(ticket, self._lost(ticket, job))
            if job is not None and job.hopeless:
                slurm_client.cancel([ticket.job])

    def _lost(self, ticket: Ticket, job: JobState | None) -> InfraError:
        if job is None:
            return InfraError(f"trial {ticket.name}: Slurm no longer knows job {ticket.job}", "run again to finish")
        log = ticket.folder.path.parents[1] / "slurm" / f"{job.id}.log"
        what, step = complaint(job, tail(log, 4000))
        return InfraError(f"trial {ticket.name}: {what}", step)

    def _take_record(self, ticket: Ticket) -> bool:
        """Take over the one attempt that has a record; one that Slurm cut short is none."""
        for attempt in ticket.attempts():
            if ticket.shape.nodes > 1:
                if not whole(attempt, ticket.shape.nodes):
                    continue
                merge_parts(attempt, ticket.shape.nodes, ticket.folder)
                for other in [attempt, *ticket.attempts()]:
                    shutil.rmtree(other, ignore_errors=True)
                return True
            record = TrialFolder(attempt).record
            if not record.exists() or _ending(record) == Ending.INTERRUPTED:
                continue
            # The record last: whoever takes up a move that was cut finds it where it was, and moves the rest.
            for file in sorted(attempt.iterdir(), key=lambda path: path.name == record.name):
                file.replace(ticket.folder.path / file.name)
            for other in [attempt, *ticket.attempts()]:
                shutil.rmtree(other, ignore_errors=True)
            return True
        return False


def _ending(record: Path) -> str:
    ending: str = json.loads(record.read_text(encoding="utf-8"))["ending"]
    return ending


def known_job(folder: TrialFolder) -> str:
    """Id of the job that was submitted for this folder; empty if none was."""
    try:
        data: dict[str, Any] = json.loads((folder.path / NODE_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    return str(data.get("job", ""))
