"""Gathers what hosts say of themselves, and CANN's logs from them, beside a run: ``RUN/collected/HOST/``.

Files are read once where they are and written once here, go on where an earlier transfer was cut, and are checked by
their digests; nothing is deleted on a host.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repro.collect import host_facts
from repro.errors import InfraError, ReproError
from repro.evidence.layout import RunFolder
from repro.evidence.read import read_run_json
from repro.evidence.write import write_json
from repro.transfer.files import Incoming, list_folder, pieces

if TYPE_CHECKING:
    from repro.engines.ssh.connection import Limits
    from repro.hosts.inventory import Host

FACTS, LOGS = "facts.json", "cann-logs"


@dataclass(frozen=True)
class Gathered:
    """What came from one host.

    Attributes:
        logs: Folders of CANN's logs that were fetched, as the host names them.
        error: Why it is not all; None if it is.
    """

    host: str
    logs: tuple[str, ...] = ()
    error: ReproError | None = None


def started(run: RunFolder) -> float:
    """When the run began, seconds since the epoch.

    Raises:
        InfraError: The folder is no run, or its run.json is damaged.
    """
    stamp = read_run_json(run).get("started")
    try:
        return datetime.strptime(str(stamp), "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
    except ValueError as error:
        raise InfraError(f"{run.run}: started is {stamp!r}, no time", "it was edited; restore it") from error


def from_here(run: RunFolder) -> Gathered:
    """This machine's own facts and logs.

    Raises:
        InfraError: They cannot be written.
    """
    target = run.path / "collected" / "local"
    target.mkdir(parents=True, exist_ok=True)
    facts = host_facts.gather(started(run))
    write_json(target / FACTS, facts)
    for number, folder in enumerate(facts["cann_logs"]):
        copy_folder(Path(folder), target / LOGS / str(number))
    return Gathered("local", tuple(facts["cann_logs"]))


def copy_folder(source: Path, target: Path) -> None:
    """Copy a folder's files as a transfer would: cut ones are gone on with, all are checked.

    Raises:
        InfraError: A file changed while it was read.
    """
    incoming = Incoming(target, list_folder(source, lambda _: True))
    asked = incoming.missing()
    stream = ([data] for name, offset in asked for data in pieces(source, name, offset))
    incoming.receive(dict(asked), lambda: next(stream, []))


def from_hosts(hosts: Sequence[Host], run: RunFolder, limits: Limits) -> Iterator[Gathered]:
    """The same from every host, in the inventory's order; one that fails holds up no other.

    Raises:
        InfraError: The folder is no run.
    """
    from repro.engines.ssh import fanout

    told = _facts_of(hosts, started(run), limits)
    found: dict[str, dict[str, Any]] = {}
    failed: dict[str, ReproError] = {}
    for name, facts in told.items():
        if isinstance(facts, ReproError):
            failed[name] = facts
            continue
        found[name] = facts
        folder = run.path / "collected" / name
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / FACTS, facts)
    for folder in sorted({log for facts in found.values() for log in facts["cann_logs"]}):
        having = [host for host in hosts if folder in found.get(host.name, {}).get("cann_logs", ())]
        # One folder below each host's own: the last part of its path alone may be the same for two.
        target = run.path / "collected" / LOGS / folder.strip("/").replace("/", "-")
        for result in fanout.get(having, folder, target, limits):
            if result.error is not None:
                failed[result.host] = result.error
    for host in hosts:
        logs = tuple(found.get(host.name, {}).get("cann_logs", ()))
        yield Gathered(host.name, logs, failed.get(host.name))


def _facts_of(hosts: Sequence[Host], since: float, limits: Limits) -> dict[str, dict[str, Any] | ReproError]:
    from repro.engines.ssh import fanout

    facts: dict[str, dict[str, Any] | ReproError] = {}
    for result in fanout.python(hosts, ["repro.collect.host_facts", str(since)], limits):
        if result.same_as:
            continue
        if result.error is not None:
            facts[result.host] = result.error
            continue
        try:
            facts[result.host] = json.loads(result.out.strip().splitlines()[-1])
        except (ValueError, IndexError):
            said = (result.err.strip().splitlines() or [f"exit code {result.code}"])[-1]
            facts[result.host] = InfraError(f"host {result.host}: it did not say what it has: {said}", "see its Python")
    return facts
