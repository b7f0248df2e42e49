"""What Slurm says of a job, read from squeue, and which of its states end a trial as infrastructure trouble. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

FORMAT = "%i|%T|%r|%N"
# Each ends a job without a record of ours being due to the code under test: (what happened, what to do next).
LOST = {
    "TIMEOUT": ("ran into its time limit", "give a longer --time-limit, or run again with --out to finish"),
    "DEADLINE": ("ran into its Slurm deadline", "run again with --out to finish"),
    "NODE_FAIL": ("lost its node", "run again with --out to finish"),
    "BOOT_FAIL": ("lost its node, which did not boot", "run again with --out to finish"),
    "OUT_OF_MEMORY": ("was ended for want of memory", "give more --mem, or fewer ranks"),
    "CANCELLED": ("was cancelled", "run again with --out to finish"),
    "PREEMPTED": ("was preempted", "run again with --out to finish, or choose another --qos"),
    "REVOKED": ("was moved to another cluster", "run again with --out to finish"),
    "FAILED": ("failed", "see its log"),
    "COMPLETED": ("ended without a record", "see its log"),
    "SPECIAL_EXIT": ("was set aside by the cluster", "see its log"),
}
# Reasons to wait that no waiting cures.
HOPELESS = (
    "BadConstraints",
    "DependencyNeverSatisfied",
    "InvalidAccount",
    "InvalidQOS",
    "JobHeldAdmin",
    "JobHeldUser",
    "PartitionDown",
    "PartitionInactive",
    "PartitionNodeLimit",
    "PartitionTimeLimit",
    "launch failed requeued held",
)


@dataclass(frozen=True)
class JobState:
    """One job, or one element of an array, as squeue shows it.

    Attributes:
        id: Such as ``12_3``.
        state: Slurm's long name, such as ``RUNNING``.
        reason: Why it waits or why it ended, in Slurm's words.
        nodes: Where it runs or ran; empty if it never did.
    """

    id: str
    state: str
    reason: str
    nodes: str

    @property
    def over(self) -> bool:
        """True if it will not run any more."""
        return self.state in LOST

    @property
    def hopeless(self) -> bool:
        """True if it waits for something that will not come."""
        held = self.reason.startswith(HOPELESS)
        return self.state == "REQUEUE_HOLD" or (self.state == "PENDING" and held)


def parse(text: str) -> dict[str, JobState]:
    """Jobs by id, from squeue's output in ``FORMAT``; lines of another form are left out."""
    rows = (line.strip().split("|") for line in text.splitlines())
    return {row[0]: JobState(*row) for row in rows if len(row) == 4}  # noqa: PLR2004 -- the four fields of FORMAT


def complaint(job: JobState, log: str) -> tuple[str, str]:
    """What became of a job that left no record, and what to do next.

    Args:
        job: The job; over or hopeless.
        log: The end of its log; empty if there is none.
    """
    if not job.over:
        return f"Slurm job {job.id} waits for what will not come ({job.reason})", "see `scontrol show job`"
    # Without cgroups Slurm sees that a job takes too much and kills it, but calls it FAILED.
    starved = job.state == "FAILED" and re.search(r"(?i)exceeded (?:job )?memory limit|oom.kill", log)
    what, step = LOST["OUT_OF_MEMORY" if starved else job.state]
    where = f" on {job.nodes}" if job.nodes else ""
    reason = f", {job.reason}" if job.reason not in ("", "None") else ""
    said = ""
    if job.state in ("FAILED", "COMPLETED") and not starved:
        lines = [line for line in log.strip().splitlines() if not line.startswith("srun:")]
        said = f": {lines[-1]}" if lines else ": it left no log; do the nodes share this file system?"
    return f"Slurm job {job.id} {what}{where} ({job.state}{reason}){said}", step
