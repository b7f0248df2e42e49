"""The small interface that every engine fills."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from repro import host
from repro.evidence.layout import TrialFolder
from repro.model import Tier, TrialSpec


class Engine(ABC):
    """Runs trials, several at a time if it can; safe to call from several threads."""

    name: str

    @abstractmethod
    def available_tiers(self) -> list[Tier]:
        """The tiers of the place where trials run, best first.

        Raises:
            InfraError: The place does not answer.
        """

    def package_versions(self) -> dict[str, str | None]:
        """Versions of the packages that trials run with; a run is resumed only where they are the same."""
        return host.package_versions()

    def describe(self) -> dict[str, Any]:
        """What run.json says of the place: the engine's name, and for another place its image or hosts."""
        return {"name": self.name}

    @abstractmethod
    def slots(self, spec: TrialSpec) -> int:
        """How many of the engine's places the trial takes."""

    @property
    @abstractmethod
    def capacity(self) -> int:
        """How many places there are."""

    def take_up(self, spec: TrialSpec, cut: TrialFolder) -> bool:  # noqa: ARG002 -- for engines that outlive us
        """True if an attempt that was cut still runs or has ended elsewhere, and ``run`` can go on with its folder.

        False, and nothing of it writes there any more, if the folder is to be thrown away.
        """
        return False

    @abstractmethod
    def run(self, spec: TrialSpec, program: Path, folder: TrialFolder) -> None:
        """Run one trial to its end; the folder holds spec.json and afterwards trial.json.

        Raises:
            InfraError: The trial could not be run.
        """

    @abstractmethod
    def stop(self) -> None:
        """End all running trials; ``run`` returns soon after. Called on Ctrl-C."""
