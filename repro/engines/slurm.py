"""Engine slurm: a trial is an element of a job array, its supervisor a step of it, its evidence in a shared folder."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from repro.engines import slurm_client
from repro.engines.base import Engine
from repro.engines.slurm_queue import Queue, Ticket, known_job
from repro.engines.slurm_script import Wishes, job_options, shape_of
from repro.errors import InfraError
from repro.evidence.layout import TrialFolder
from repro.model import Tier, TrialSpec

LOOK_MINUTES = 3


def create(args: argparse.Namespace) -> SlurmEngine:
    """The engine, after a look at one node of the partition.

    Raises:
        UsageError: Slurm refuses partition, account or resources.
        InfraError: Slurm does not answer, or no node does.
        UnsupportedError: There is no Slurm here.
    """
    wishes = Wishes(
        partition=args.partition or "",
        account=args.account or "",
        qos=args.qos or "",
        gres=args.gres_name or "",
        memory=args.mem or "",
        time_limit_s=args.time_limit,
        requeue=not args.no_requeue,
        jobs_at_once=args.jobs_at_once or Wishes().jobs_at_once,
        nodes=args.nodes or 1,
    )
    return SlurmEngine(wishes, args.queue_timeout)


class SlurmEngine(Engine):
    """Runs trials on the nodes of a Slurm cluster that share this file system and this Python.

    Args:
        wishes: What is asked of the cluster.
        queue_timeout_s: How long a job may wait for a node; None for as long as it takes.
    """

    name = "slurm"

    def __init__(self, wishes: Wishes, queue_timeout_s: float | None) -> None:
        self._wishes = wishes
        self._version = slurm_client.version()
        self._node = self._look(queue_timeout_s)
        self._queue = Queue(wishes, self.package_versions(), queue_timeout_s)

    def _look(self, patience_s: float | None) -> dict[str, Any]:
        """What a node has: the login host may have other devices and, with another file system, other packages."""
        root = Path(__file__).resolve().parents[2]
        command = ["env", f"PYTHONPATH={root}", sys.executable, "-m", "repro.engines.slurm_task", "look"]
        options = [*job_options(self._wishes), f"--time={LOOK_MINUTES}"]
        printed = slurm_client.on_a_node(options, command, patience_s)
        try:
            node: dict[str, Any] = json.loads(printed.strip().splitlines()[-1])
        except (ValueError, IndexError) as error:
            raise InfraError(f"a node answered {printed[-200:]!r}", "its Python must be this one") from error
        return node

    def available_tiers(self) -> list[Tier]:
        """The tiers of the node that was looked at."""
        return [Tier(tier) for tier in self._node["tiers"]]

    def package_versions(self) -> dict[str, str | None]:
        """Versions on that node; every other node must have the same."""
        return dict(self._node["packages"])

    def describe(self) -> dict[str, Any]:
        """Slurm's version, what was asked of it, and the node that was looked at."""
        asked = {name: value for name, value in vars(self._wishes).items() if value}
        return {"name": self.name, "slurm": self._version, "asked": asked, "node": self._node["host"]}

    def slots(self, spec: TrialSpec) -> int:  # noqa: ARG002 -- every trial is one job; Slurm weighs it
        """One job."""
        return 1

    @property
    def capacity(self) -> int:
        """How many jobs may be in the queue."""
        return self._wishes.jobs_at_once

    def take_up(self, spec: TrialSpec, cut: TrialFolder) -> bool:
        """True if the job of an earlier command is still in the queue or has left a record; else it is cancelled."""
        job = known_job(cut)
        if not job or not cut.spec.exists():
            return False
        same = json.loads(cut.spec.read_text(encoding="utf-8")) == json.loads(json.dumps(spec.to_json()))
        state = slurm_client.states([job]).get(job)
        recorded = any(path.exists() for path in cut.path.glob("attempt-*/**/trial.json"))
        if same and (recorded or (state is not None and not state.over and not state.hopeless)):
            return True
        if state is not None and not state.over:
            slurm_client.cancel([job])
        return False

    def run(self, spec: TrialSpec, program: Path, folder: TrialFolder) -> None:
        """Submit the trial, or take up its job, and wait for its record.

        Raises:
            ReproError: Slurm refused or lost the job; the message is one line.
        """
        ticket = Ticket(spec.folder, folder, program, shape_of(spec, self._wishes), job=known_job(folder))
        self._queue.wait_for(ticket)

    def stop(self) -> None:
        """Cancel every job of this run."""
        self._queue.stop()
