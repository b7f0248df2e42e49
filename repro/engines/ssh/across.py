"""One trial over several hosts: they agree on a port, start together, and end together when one fails or is lost."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repro.engines.ssh.deadline import Deadline
from repro.engines.ssh.merge import Part, merge
from repro.engines.ssh.part import Job, Run, carry_out
from repro.engines.ssh.queue import Grant
from repro.engines.ssh.readiness import address_of
from repro.engines.ssh.session import Session
from repro.engines.ssh.trouble import HostError, Trouble
from repro.evidence.layout import TrialFolder
from repro.model import Ending, TrialRecord

if TYPE_CHECKING:
    from repro.engines.ssh.engine import SshEngine

# After the first host's part has ended badly the others get this long to end by themselves.
SETTLE_S = 3.0
PORTS = 3
MEET_S = 60.0


def run_across(
    engine: SshEngine,
    grants: Sequence[Grant],
    job: Job,
    folder: TrialFolder,
    deadline: Deadline,
    given_up: Sequence[str],
) -> TrialRecord:
    """Run a trial over several hosts and bring the evidence of all of them into one folder.

    Raises:
        HostError: A host was lost; the others were told to stop.
    """
    taken: list[int] = []
    for attempt in range(1, PORTS + 1):
        meeting = _Meeting(engine, grants, job, folder, deadline, tuple(taken))
        parts = meeting.hold()
        record = merge(parts, given_up)
        if record.ending is not Ending.LAUNCH_FAILED or attempt == PORTS:
            break
        taken.append(meeting.port)
    gather_parts([meeting.folder_of(index) for index in range(len(grants))], folder)
    return record


@dataclass
class _Meeting:
    """The hosts of one attempt, a thread each, and what they wait for of each other."""

    engine: SshEngine
    grants: Sequence[Grant]
    job: Job
    folder: TrialFolder
    deadline: Deadline
    taken: tuple[int, ...]
    port: int = 0
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _reached: set[int] = field(default_factory=set)
    _sessions: dict[int, Session] = field(default_factory=dict)
    _runs: dict[int, Run] = field(default_factory=dict)
    _stopped: set[int] = field(default_factory=set)
    _failed: BaseException | None = None

    def hold(self) -> list[Part]:
        """Run all parts to their ends.

        Raises:
            HostError: The first host that was lost.
        """
        threads = [
            threading.Thread(target=self._serve, args=(index,), name=f"node-{index}", daemon=True)
            for index in range(len(self.grants))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            # Every wait in a thread ends at the deadline.
            thread.join()
        if self._failed is not None:
            raise self._failed
        return [
            Part(grant.host, self._record(index), self._runs[index].clock, index in self._stopped)
            for index, grant in enumerate(self.grants)
        ]

    def folder_of(self, index: int) -> Path:
        """Where a host's part is put until all are here."""
        return self.folder.path / f".node-{index}"

    def _record(self, index: int) -> TrialRecord:
        record = self._runs[index].record
        if record is None:
            raise HostError(self.grants[index].host, Trouble.STOPPED, "it was stopped before it had a record")
        return record

    def _serve(self, index: int) -> None:
        grant = self.grants[index]
        shares = [len(each.places) for each in self.grants]
        first = sum(shares[:index])
        own = address_of(self.engine.ready(grant.host).host)
        node = {
            "index": index,
            "count": len(self.grants),
            "ranks": list(range(first, first + shares[index])),
            "address": own,
            "master": address_of(self.engine.ready(self.grants[0].host).host),
        }
        run = self._runs[index] = Run()
        shutil.rmtree(self.folder_of(index), ignore_errors=True)
        try:
            node |= {"taken": self.taken} if index == 0 else {"port": self._when_port_is_known()}
            job = replace(self.job, places=grant.places, node=node)
            with self.engine.links(grant.host).one() as remote:
                record = carry_out(
                    remote,
                    job,
                    self.folder_of(index),
                    self.deadline,
                    run,
                    prepared=lambda talk, message: self._prepared(index, talk, message),
                    begun=lambda talk: self._begun(index, talk),
                )
        except BaseException as error:  # noqa: BLE001 -- raised again by hold
            self._end(index, error)
            return
        if record.ending is not Ending.COMPLETED or any(rank.failed for rank in record.ranks):
            time.sleep(SETTLE_S)
            self._end(index, None)

    def _begun(self, index: int, talk: Session) -> None:
        self.engine.watched(talk)
        with self._changed:
            self._sessions[index] = talk
            if self._failed is not None:
                talk.ask_to_stop()

    def _prepared(self, index: int, talk: Session, message: Mapping[str, Any]) -> None:
        """The first host says its port, the others that they reach it; then all begin."""
        with self._changed:
            if "port" in message:
                self.port = int(message["port"])
            elif "reached" not in message:
                raise HostError(self.grants[index].host, Trouble.VERSIONS, f"it said {sorted(message)}")
            self._reached.add(index)
            self._changed.notify_all()
        deadline = time.monotonic() + min(MEET_S, self.deadline.left)
        while True:
            with self._changed:
                together = self._changed.wait_for(lambda: len(self._reached) == len(self.grants) or self._failed, 1.0)
            if self._failed is not None:
                raise HostError(self.grants[index].host, Trouble.STOPPED, "another host of the trial failed")
            if together:
                talk.send(go=True)
                return
            if time.monotonic() > deadline:
                raise HostError(
                    self.grants[index].host, Trouble.STOPPED, f"the other hosts did not come within {MEET_S:g} s"
                )
            talk.send(beat=True)

    def _when_port_is_known(self) -> int:
        with self._changed:
            self._changed.wait_for(lambda: self.port or self._failed, min(MEET_S, self.deadline.left))
            if not self.port:
                raise HostError(self.grants[0].host, Trouble.STOPPED, "the first host of the trial named no port")
            return self.port

    def _end(self, index: int, error: BaseException | None) -> None:
        """A part ended badly: keep the first reason that says something, and stop the others."""
        with self._changed:
            stopped = isinstance(error, HostError) and error.trouble is Trouble.STOPPED
            known = isinstance(self._failed, HostError) and self._failed.trouble is Trouble.STOPPED
            if error is not None and (self._failed is None or (known and not stopped)):
                self._failed = error
            for other, talk in self._sessions.items():
                if other != index and self._runs[other].record is None:
                    self._stopped.add(other)
                    talk.ask_to_stop()
            self._changed.notify_all()


def gather_parts(parts: Sequence[Path], folder: TrialFolder) -> None:
    """Move what the hosts left into the trial's folder: ranks have numbers of their own, the rest a folder a host."""
    for index, part in enumerate(parts):
        for path in sorted(part.iterdir()):
            target = folder.path / path.name
            if path.name.startswith("rank-") or (
                index == 0 and path.name not in ("spec.json", "trial.json", "node.json")
            ):
                path.rename(target)
            elif path.name not in ("spec.json", "SHA256SUMS"):
                kept = folder.path / f"node-{index}"
                kept.mkdir(exist_ok=True)
                path.rename(kept / path.name)
        shutil.rmtree(part)
