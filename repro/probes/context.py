"""What a case program is given: its arguments, its place in the world, and the ways to record what it saw."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from repro.model import Scalar, Tier, Topology, TrialSpec
from repro.probes.events import Events

DEVICE_OF_TIER = {Tier.CPU: "CPU", Tier.SIM: "Ascend", Tier.NPU: "Ascend"}


class Context:
    """The rank's side of a trial.

    Attributes:
        args: The case's arguments from issue.yaml.
        rank, world: This rank and the number of ranks.
        topology: The split of the world.
        tier: Where this runs.
        device: MindSpore's name of the device target, ``CPU`` or ``Ascend``.
    """

    def __init__(self, spec: TrialSpec, rank: int, events: Events) -> None:
        self.args: Mapping[str, Scalar] = spec.args
        self.rank = rank
        self.world = spec.topology.world
        self.topology: Topology = spec.topology
        self.tier = spec.tier
        self.device = DEVICE_OF_TIER[spec.tier]
        self.seed = spec.seed
        self._events = events
        self._counters: dict[str, Callable[[], int]] = {}

    def init_collectives(self) -> None:
        """Form the world group: mccl on CPU, HCCL (or its stand-in) on Ascend."""
        if self.tier is Tier.CPU:
            from mindspore.communication import init

            init()
        else:
            from mindspore.mint.distributed import init_process_group

            init_process_group()

    def record(self, event: str, **values: Any) -> None:
        """Append an event of the case's own to events.jsonl.

        Raises:
            ValueError: The name is one that the harness itself writes.
        """
        if event in ("phase", "check"):
            raise ValueError(f"event {event!r} is the harness's own; use another name, or context.check")
        self._events.write(event, **values)

    def check(self, name: str, ok: bool, fault: bool, says: str = "", **values: Any) -> None:
        """Record a comparison with a reference.

        Args:
            name: What was compared.
            ok: True if it equals the reference.
            fault: True if it equals what the fault would leave there, such as the unreduced value.
            says: What was found, in words for the report.
            values: Anything that helps a reader, such as the largest difference.
        """
        self._events.write("check", name=name, ok=bool(ok), fault=bool(fault), says=says, **values)

    def count(self, name: str, reader: Callable[[], int]) -> None:
        """Register a counter of live objects that the meter reads with every sample."""
        self._counters[name] = reader

    @property
    def counters(self) -> Mapping[str, Callable[[], int]]:
        """The counters that the case registered."""
        return self._counters


def rank_of_environment() -> int:
    """This process's rank, from RANK_ID as msrun and our launchers set it; 0 where there is none."""
    return int(os.environ.get("RANK_ID", "0"))
