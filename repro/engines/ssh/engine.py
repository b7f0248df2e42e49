"""Engine ssh: packs trials over the hosts of an inventory, goes on where a host is lost, and says which and why."""

from __future__ import annotations

import argparse
import hashlib
import math
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from repro.engines.base import Engine
from repro.engines.ssh.across import run_across
from repro.engines.ssh.connection import Limits
from repro.engines.ssh.deadline import Deadline
from repro.engines.ssh.links import Links
from repro.engines.ssh.merge import Part, merge
from repro.engines.ssh.part import FETCHES, Job, Run, carry_out
from repro.engines.ssh.queue import Grant, Hosts, Need, spread
from repro.engines.ssh.readiness import SKEW_WORTH_A_WORD_S, Ready, Refused, look
from repro.engines.ssh.session import Session
from repro.engines.ssh.trouble import HostError, Trouble
from repro.errors import InfraError, UnsupportedError, UsageError
from repro.evidence.layout import TrialFolder
from repro.evidence.read import read_wants
from repro.evidence.write import write_json
from repro.hosts.inventory import Host
from repro.launch.launchers import needs_port
from repro.model import Launcher, Subject, Tier, TrialRecord, TrialSpec

# Beyond a trial's own deadline, for starting, ending, sealing and fetching it.
SLACK_S = 120.0
# A trial that lost this many hosts is not tried on more: it may be what ends them.
HOSTS_A_TRIAL = 3
_MAY_COME_AGAIN = (Trouble.CLOSED, Trouble.UNREACHABLE, Trouble.DAMAGED)


def create(args: argparse.Namespace) -> SshEngine:
    """The engine on the hosts that were asked for, looked at and ready.

    Raises:
        UsageError: No inventory was named, or it has a mistake.
        InfraError: No host will do.
    """
    from repro.hosts import inventory

    if args.hosts is None:
        raise UsageError("--engine ssh: no hosts", "name them with --hosts inventory.yml")
    read = inventory.read(args.hosts)
    hosts = read.select(args.limit) if args.limit else read.hosts
    limits = Limits(host_s=args.host_timeout, run_s=args.run_timeout, silence_s=args.host_silence)
    return SshEngine(hosts, limits, nodes=args.nodes, told=lambda line: print(line, file=sys.stderr))


class SshEngine(Engine):
    """Runs trials on hosts over SSH.

    Args:
        hosts: Which, in the inventory's order.
        limits: How long things may take.
        nodes: How many hosts each connected trial is spread over; None for as few as hold it.
        told: Called with a line about each host that is refused or lost.
    """

    name = "ssh"

    def __init__(self, hosts: Sequence[Host], limits: Limits, nodes: int | None, told: Callable[[str], None]) -> None:
        self._limits = limits
        self._nodes = nodes
        self._told = told
        self._whole_run = Deadline.after(limits.run_s, "the run's deadline")
        ready, self._refused = look(hosts, limits, self._whole_run)
        for refused in self._refused:
            told(f"note: left out: {refused.error}")
        if not ready:
            why = str(self._refused[0].error) if self._refused else "the inventory has none"
            raise InfraError(f"none of {len(hosts)} hosts will do: {why}")
        for each in ready:
            if abs(each.clock.skew_s) > SKEW_WORTH_A_WORD_S:
                told(f"note: host {each.host.name}: its clock is {each.clock.skew_s:+.1f} s off; times are corrected")
        self._ready = {each.host.name: each for each in ready}
        self._links = {each.host.name: Links(each.host, limits) for each in ready}
        self._hosts = Hosts({each.host.name: each.places for each in ready})
        self._lost: dict[str, HostError] = {}
        self._sessions: set[Session] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def available_tiers(self) -> list[Tier]:
        """Tiers that every host has; trials then run on any."""
        common = set.intersection(*(set(each.tiers) for each in self._ready.values()))
        return [tier for tier in (Tier.NPU, Tier.SIM, Tier.CPU) if tier in common]

    def describe(self) -> dict[str, Any]:
        """The hosts in the inventory's order, and those that were left out, with the reason."""
        return {
            "name": self.name,
            "nodes": self._nodes,
            "hosts": [_describe(each) for each in self._ready.values()],
            "left_out": [_describe_refused(each) for each in self._refused],
        }

    @property
    def capacity(self) -> int:
        """All places; a trial in the queue waits for its host here, not in the runner."""
        return sum(each.places for each in self._ready.values()) + len(self._ready)

    def slots(self, spec: TrialSpec) -> int:  # noqa: ARG002
        """One thread a trial: who gets which host is for the engine's own queue."""
        return 1

    def run(self, spec: TrialSpec, program: Path, folder: TrialFolder) -> None:
        """Run the trial on the first hosts that it fits on, and on others if those are lost.

        Raises:
            InfraError: No host could run it.
        """
        if spec.subject is Subject.UPSTREAM:
            raise UnsupportedError(
                "a checkout of hyper-parallel is not sent to hosts", "run it on the host itself, with --engine local"
            )
        given_up: list[HostError] = []
        while not self._stopped:
            need = self._need(spec, frozenset(error.host for error in given_up))
            left = None if math.isinf(self._whole_run.at) else self._whole_run.left
            grants = self._hosts.acquire(need, left) if need else None
            if need is None or grants is None:
                raise self._nowhere(spec, given_up)
            try:
                record = self._run_on(grants, spec, program, folder, given_up)
            except HostError as error:
                self._lose(error)
                given_up.append(error)
                _empty(folder)
                if len(given_up) >= HOSTS_A_TRIAL or self._whole_run.passed:
                    raise self._nowhere(spec, given_up) from error
                continue
            finally:
                self._hosts.release(need, grants)
            write_json(folder.record, record.to_json())
            return

    def stop(self) -> None:
        """Ask every host to end its trials; connections of hosts that do not answer are closed."""
        with self._lock:
            self._stopped = True
            for talk in self._sessions:
                talk.ask_to_stop()
        self._hosts.close()

    def _run_on(
        self, grants: Sequence[Grant], spec: TrialSpec, program: Path, folder: TrialFolder, given_up: list[HostError]
    ) -> TrialRecord:
        deadline = self._whole_run.sooner(
            Deadline.after(spec.timeout_s + SLACK_S, "the trial's deadline and its slack")
        )
        slots = self._slots(spec, grants[0])
        wants = read_wants(folder)
        job = Job(spec, _name(folder, spec), program.parent, program.name, grants[0].places, slots, wants=wants)
        why = [str(error) for error in given_up]
        if needs_port(spec) and (len(grants) > 1 or self._nodes):
            return run_across(self, grants, job, folder, deadline, why)
        run = Run()
        name = grants[0].host
        for attempt in range(1, FETCHES + 1):
            try:
                with self._links[name].one() as remote:
                    record = carry_out(remote, job, folder.path, deadline, run, begun=self.watched)
                return merge([Part(name, record, run.clock)], why)
            except HostError as error:
                # The trial is over and its evidence lies there: worth another connection, and no other host.
                if not run.ended or attempt == FETCHES or error.trouble not in _MAY_COME_AGAIN or deadline.passed:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def links(self, name: str) -> Links:
        """Connections to a host."""
        return self._links[name]

    def ready(self, name: str) -> Ready:
        """What is known of a host."""
        return self._ready[name]

    def watched(self, talk: Session) -> None:
        """Remember a session, to be able to stop its trial."""
        with self._lock:
            self._sessions.add(talk)
            if self._stopped:
                talk.ask_to_stop()

    @staticmethod
    def _slots(spec: TrialSpec, grant: Grant) -> int:
        return 1 if spec.calls else len(grant.places)

    def _need(self, spec: TrialSpec, avoid: frozenset[str]) -> Need | None:
        """What a trial asks for: a place a rank where ranks run side by side, one for all where they take turns.

        Returns:
            None if it does not fit on the hosts that are left.
        """
        left = [places for name, places in self._hosts.places.items() if name not in avoid]
        if not left:
            return None
        ranks = len(spec.ranks or range(spec.topology.world))
        if spec.calls or not needs_port(spec):
            return Need((min(ranks, *left),), alone=bool(spec.calls), avoid=avoid)
        shares = spread(ranks, left, self._nodes, even=spec.launcher is Launcher.MSRUN)
        if shares:
            return Need(shares, avoid=avoid)
        if spec.tier is Tier.NPU or self._nodes:
            return None
        # On cpu, ranks beyond the places only make each other slow.
        return Need((max(left),), avoid=avoid)

    def _lose(self, error: HostError) -> None:
        if not error.lost or self._stopped:
            return
        with self._lock:
            known = error.host in self._lost
            self._lost.setdefault(error.host, error)
        self._hosts.lose(error.host)
        if not known:
            self._told(f"note: lost: {error}")

    def _nowhere(self, spec: TrialSpec, given_up: Sequence[HostError]) -> InfraError:
        if self._stopped:
            return InfraError(f"trial {spec.folder} was stopped", "run again to finish")
        if self._whole_run.passed:
            return InfraError(f"trial {spec.folder}: {self._whole_run.what} passed", "run again to finish")
        why = [*given_up, *(error for error in self._lost.values() if error not in given_up)]
        if why:
            told = "; ".join(error.message for error in why)
            return InfraError(f"trial {spec.folder}: no host is left for it: {told}", why[-1].next_step)
        places = sorted(self._hosts.places.values(), reverse=True)
        even = ", as many on each" if spec.launcher is Launcher.MSRUN else ""
        return InfraError(
            f"trial {spec.folder}: {spec.topology.world} ranks do not fit on {self._nodes or len(places)} hosts with "
            f"{places} places{even}",
            "name more hosts, another --nodes, or hyper_repro_slots",
        )


def _name(folder: TrialFolder, spec: TrialSpec) -> str:
    """The trial's folder on a host: the same when the run is resumed, another for another run."""
    run = folder.path.parent.parent
    mark = hashlib.sha256(str(run).encode()).hexdigest()[:8]
    return f"{run.name}-{mark}/{spec.folder}-{spec.key}"


def _empty(folder: TrialFolder) -> None:
    """Take away what a lost host had sent; it will be made again elsewhere."""
    from repro.launch import outcomes

    outcomes.clear(folder)


def _describe(ready: Ready) -> dict[str, Any]:
    return {
        "name": ready.host.name,
        "places": ready.places,
        "tiers": list(ready.tiers),
        "skew_s": round(ready.clock.skew_s, 6),
        "skew_error_s": round(ready.clock.error_s, 6),
    }


def _describe_refused(refused: Refused) -> dict[str, str]:
    error = refused.error
    return {
        "name": refused.host.name,
        "trouble": error.trouble.value,
        "why": error.message,
        "next_step": error.next_step,
    }
