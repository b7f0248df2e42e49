"""The small interface that every engine fills."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from repro.evidence.layout import TrialFolder
from repro.model import TrialSpec


class Engine(ABC):
    """Runs trials, several at a time if it can; safe to call from several threads."""

    name: str

    @abstractmethod
    def slots(self, spec: TrialSpec) -> int:
        """How many of the engine's places the trial takes."""

    @property
    @abstractmethod
    def capacity(self) -> int:
        """How many places there are."""

    @abstractmethod
    def run(self, spec: TrialSpec, program: Path, folder: TrialFolder) -> None:
        """Run one trial to its end; the folder holds spec.json and afterwards trial.json.

        Raises:
            InfraError: The trial could not be run.
        """

    @abstractmethod
    def stop(self) -> None:
        """End all running trials; ``run`` returns soon after. Called on Ctrl-C."""
