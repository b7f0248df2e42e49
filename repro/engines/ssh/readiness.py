"""Which hosts of an inventory will do: reached, let in, the same project and packages as here, each counted once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from repro import host as own
from repro.engines.ssh.connection import Limits, Remote
from repro.engines.ssh.deadline import Deadline
from repro.engines.ssh.pool import Pool
from repro.engines.ssh.session import Clock, session
from repro.engines.ssh.trouble import HostError, Trouble
from repro.hosts.inventory import Host
from repro.model import Tier
from repro.transfer.source import source_digest

PROBE_S = 60.0
WORK = "~/.cache/hyper-repro/hosted"
# Beyond this a clock is worth a word; times are corrected by what was measured in any case.
SKEW_WORTH_A_WORD_S = 2.0


@dataclass(frozen=True)
class Ready:
    """A host that takes trials.

    Attributes:
        places: How many ranks or small trials it takes at a time.
        tiers: What it has, best first.
        facts: What it said of itself.
    """

    host: Host
    places: int
    tiers: tuple[Tier, ...]
    clock: Clock
    facts: Mapping[str, Any]

    @property
    def line(self) -> str:
        """What it has, for a reader."""
        tiers, free = ", ".join(self.tiers), int(self.facts["free"]) / 1e9
        clock = f"clock {self.clock.skew_s:+.3f} s off, known to {self.clock.error_s:.3f} s"
        return f"ready: {self.places} places, tiers {tiers}, {free:.0f} GB free, {clock}"


@dataclass(frozen=True)
class Refused:
    """A host that takes none, and why."""

    host: Host
    error: HostError


def look(hosts: Sequence[Host], limits: Limits, whole_run: Deadline) -> tuple[list[Ready], list[Refused]]:
    """Look at every host at once, and sort them into those that will do and those that will not.

    Args:
        hosts: In the inventory's order, which both lists keep.
        limits: How long things may take.
        whole_run: The run's deadline.
    """
    packages, source = own.package_versions(), source_digest()

    def one(host: Host) -> Ready | Refused:
        remote = Remote(host, limits)
        deadline = whole_run.sooner(Deadline.after(limits.host_s or PROBE_S, "the host's deadline"))
        try:
            with session(remote, "probe", {"work": work_of(host)}, deadline) as talk:
                talk.doing = "it was looked at"
                facts: Mapping[str, Any] = talk.expect("facts")
                clock = talk.clock
            _check_versions(host, facts, packages, source)
            identity = f"{remote.key_fingerprint} {facts['identity']}"
            tiers = tuple(Tier(tier) for tier in facts["tiers"])
            return Ready(host, _places(host, facts), tiers, clock, {**facts, "identity": identity})
        except HostError as error:
            return Refused(host, error)
        finally:
            remote.close()

    def late(host: Host) -> Refused:
        return Refused(host, HostError(host.name, Trouble.DEADLINE, "it hangs where nothing can interrupt it"))

    deadline = whole_run.sooner(Deadline.after((limits.host_s or PROBE_S) * 2))
    found = Pool(hosts, one, late, deadline).in_order()
    return _each_once(found)


def work_of(host: Host) -> str:
    """The folder on the host that trials run in: ``hyper_repro_work`` in the inventory."""
    return str(host.variables.get("hyper_repro_work", WORK))


def address_of(host: Host) -> str:
    """The address that the other hosts reach this one by: ``hyper_repro_address``, or the one that we connect to."""
    return str(host.variables.get("hyper_repro_address", host.address))


def _places(host: Host, facts: Mapping[str, Any]) -> int:
    slots = host.variables.get("hyper_repro_slots")
    if slots is not None and not (isinstance(slots, int) and slots >= 1):
        raise HostError(
            host.name, Trouble.NOT_READY, f"hyper_repro_slots: {slots!r} is not a whole number from 1 on", host.where
        )
    return int(slots or facts["dies"] or host.dies or facts["cores"])


def _check_versions(host: Host, facts: Mapping[str, Any], packages: Mapping[str, str | None], source: str) -> None:
    differ = [
        f"{name} {facts['packages'].get(name) or 'missing'}, here {version or 'missing'}"
        for name, version in packages.items()
        if facts["packages"].get(name) != version
    ]
    if facts["source"] != source:
        differ.append(f"the project's source {facts['source']}, here {source}")
    if differ:
        raise HostError(
            host.name,
            Trouble.VERSIONS,
            f"it is not as this machine: {'; '.join(differ)}",
            "deploy the same commit and lock file to it",
        )


def _each_once(found: Sequence[Ready | Refused]) -> tuple[list[Ready], list[Refused]]:
    """Two entries with the same host key, boot and host name are one host: its dies are there once."""
    ready: dict[str, Ready] = {}
    refused: list[Refused] = []
    for each in found:
        if isinstance(each, Refused):
            refused.append(each)
            continue
        first = ready.setdefault(str(each.facts["identity"]), each)
        if first is not each:
            message = f"it is the same host as {first.host.name}, whose places are used once"
            refused.append(
                Refused(each.host, HostError(each.host.name, Trouble.NOT_READY, message, "take one of the two out"))
            )
    return list(ready.values()), refused
