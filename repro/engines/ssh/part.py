"""One host's part of a trial, from sending what it needs to having its evidence here, checked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from repro.engines.ssh.connection import Remote
from repro.engines.ssh.deadline import Deadline
from repro.engines.ssh.readiness import work_of
from repro.engines.ssh.session import Clock, Session, session
from repro.engines.ssh.trouble import HostError, Trouble
from repro.errors import InfraError
from repro.evidence import manifest
from repro.evidence.layout import TrialFolder
from repro.model import TrialRecord, TrialSpec
from repro.model.wants import Wants
from repro.transfer.files import list_folder

# How often a finished trial's files are asked for, each time over a new connection and from where the last one was cut.
FETCHES = 3


@dataclass(frozen=True)
class Job:
    """A trial as a host is asked to run it.

    Attributes:
        spec: The trial.
        name: Its folder on the host, below the folder for trials.
        case: The folder of the case programs, here.
        program: Which of them.
        places: Numbers of the places that it may use there.
        slots: How many unconnected ranks may run at a time.
        node: The host's part of a trial across hosts.
        wants: What is to be collected there.
    """

    spec: TrialSpec
    name: str
    case: Path
    program: str
    places: tuple[int, ...]
    slots: int
    node: Mapping[str, Any] | None = None
    wants: Wants = field(default_factory=Wants)

    def request(self, work: str) -> dict[str, Any]:
        """What the host is sent first."""
        listed = list_case(self.case)
        return {
            "work": work,
            "folder": self.name,
            "spec": self.spec.to_json(),
            "program": self.program,
            "case": listed,
            "case_digest": hashlib.sha256(json.dumps(listed).encode()).hexdigest()[:16],
            "slots": self.slots,
            "places": self.places,
            "node": self.node,
            "wants": self.wants.to_json(),
        }


def list_case(folder: Path) -> list[list[Any]]:
    """The case programs with their digests, caches left out."""
    listed = list_folder(folder, lambda path: "__pycache__" not in path.parts)
    return [[entry.name, entry.size, entry.digest] for entry in listed]


@dataclass
class Run:
    """What came of a job on a host, as far as it has come.

    Attributes:
        clock: The host's clock against ours.
        ended: True once the trial is over and sealed there: only its files are to be fetched.
        record: As the host wrote it; None until its files are here.
    """

    clock: Clock = field(default_factory=lambda: Clock(0.0, 0.0))
    ended: bool = False
    record: TrialRecord | None = None


def carry_out(
    remote: Remote,
    job: Job,
    folder: Path,
    deadline: Deadline,
    run: Run,
    prepared: Callable[[Session, Mapping[str, Any]], None] | None = None,
    begun: Callable[[Session], None] = lambda _session: None,
) -> TrialRecord:
    """Run a job on a host and bring its evidence into a folder here.

    Args:
        remote: The host.
        job: What to run.
        folder: Where its evidence goes.
        deadline: By when all must be over.
        run: Filled in on the way, for who must know how far it came when it fails.
        prepared: For a trial across hosts: called with each message that the host sends before it starts ranks; it
            answers, and returns once the trial may begin.
        begun: Called once the session stands, to be able to stop it.

    Raises:
        HostError: The host failed; nothing runs on it any more, unless it is cut off, and then not for long.
        InfraError: The evidence cannot be written here.
    """
    with session(remote, "trial", job.request(work_of(remote.host)), deadline) as talk:
        begun(talk)
        talk.doing = "a trial was prepared"
        run.clock = talk.clock
        offered: Sequence[Sequence[Any]] | None = None
        while offered is None:
            message = talk.next()
            if "want" in message:
                talk.give_case(job.case, message["want"])
            elif "files" in message:
                offered = message["files"]
                run.ended = True
            elif "started" in message:
                talk.doing = "a trial ran"
            elif prepared is not None:
                prepared(talk, message)
        talk.doing = "its evidence was fetched"
        talk.take_files(offered, folder)
    run.record = _record(remote.name, TrialFolder(folder), job.spec)
    return run.record


def _record(host: str, folder: TrialFolder, spec: TrialSpec) -> TrialRecord:
    """The record that came, once every file is as the host sealed it."""
    try:
        manifest.check(folder)
        record = TrialRecord.from_json(json.loads(folder.record.read_text(encoding="utf-8")))
    except (InfraError, OSError, ValueError, KeyError, TypeError) as error:
        raise HostError(host, Trouble.DAMAGED, f"its evidence is not whole: {error}", "run again") from error
    if record.spec.key != spec.key:
        raise HostError(host, Trouble.DAMAGED, "its evidence is of another trial", "run again")
    return record
