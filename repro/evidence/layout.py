"""Where each file of a run lies: the one place that knows the names."""

from __future__ import annotations

from dataclasses import dataclass
from glob import escape
from pathlib import Path


@dataclass(frozen=True)
class RankFolder:
    """``rank-<k>/`` of a trial."""

    path: Path

    @property
    def events(self) -> Path:
        """Phases, checks and counts, a JSON object a line."""
        return self.path / "events.jsonl"

    @property
    def samples(self) -> Path:
        """The meter's windows."""
        return self.path / "samples.csv"

    @property
    def error(self) -> Path:
        """The exception that ended the body."""
        return self.path / "error.json"

    @property
    def stdout(self) -> Path:
        """What the rank printed."""
        return self.path / "stdout.log"

    @property
    def stderr(self) -> Path:
        """What the rank and the C library wrote to standard error."""
        return self.path / "stderr.log"

    @property
    def backtrace(self) -> Path:
        """The stacks of a rank that died of a signal, or why there are none."""
        return self.path / "backtrace.txt"

    @property
    def crash(self) -> Path:
        """Signal, build-id and innermost functions, from its core."""
        return self.path / "crash.json"

    @property
    def core(self) -> Path:
        """The core itself, compressed, where it was asked for."""
        return self.path / "core.zst"

    @property
    def memray(self) -> Path:
        """The allocations of a rank that ran under memray."""
        return self.path / "memray.bin"

    @property
    def malloc_info(self) -> Path:
        """What glibc said of its arenas at the end of the body."""
        return self.path / "malloc_info.xml"

    @property
    def memory_series(self) -> Path:
        """smaps_rollup, a row a second."""
        return self.path / "memory.csv"

    @property
    def exit(self) -> Path:
        """The wait status that the launcher's shim saw, where msrun is the parent of the rank."""
        return self.path / "exit.json"


@dataclass(frozen=True)
class TrialFolder:
    """``trials/<name>/`` of a run."""

    path: Path

    @property
    def spec(self) -> Path:
        """What the trial was asked to do; written first."""
        return self.path / "spec.json"

    @property
    def wants(self) -> Path:
        """What is to be collected of the trial; written with the specification."""
        return self.path / "wants.json"

    @property
    def record(self) -> Path:
        """What came of it; written last, so a folder without it is not whole."""
        return self.path / "trial.json"

    @property
    def node(self) -> Path:
        """This host's part of a trial that runs across hosts; not there for any other."""
        return self.path / "node.json"

    @property
    def memory_table(self) -> Path:
        """What all ranks left allocated, by site."""
        return self.path / "memory.md"

    @property
    def trouble(self) -> Path:
        """Why an attempt has no record, where the engine could tell."""
        return self.path / "trouble.txt"

    @property
    def work(self) -> Path:
        """The ranks' working directory."""
        return self.path / "work"

    @property
    def launcher_log(self) -> Path:
        """What msrun itself said."""
        return self.path / "launcher.log"

    @property
    def scheduler_log(self) -> Path:
        """What the scheduler of the ranks said."""
        return self.path / "scheduler.log"

    def rank(self, rank: int) -> RankFolder:
        """The folder of one rank."""
        return RankFolder(self.path / f"rank-{rank}")


@dataclass(frozen=True)
class RunFolder:
    """``runs/<utc>-<issue>-<short id>/``."""

    path: Path

    @property
    def run(self) -> Path:
        """Versions, host, argv and the plan; written before the first trial."""
        return self.path / "run.json"

    @property
    def issue(self) -> Path:
        """The issue file as it was when the run began: what the run is judged by."""
        return self.path / "issue.yaml"

    @property
    def sums(self) -> Path:
        """Digests of run.json and issue.yaml, which do not change once they are written."""
        return self.path / "SHA256SUMS"

    @property
    def lock(self) -> Path:
        """Held by the one process that runs trials here."""
        return self.path / ".lock"

    @property
    def trials(self) -> Path:
        """One folder a trial; a name with a leading dot is unfinished."""
        return self.path / "trials"

    @property
    def verdict(self) -> Path:
        """The verdicts as JSON."""
        return self.path / "verdict.json"

    @property
    def report(self) -> Path:
        """The verdicts for a reader."""
        return self.path / "report.md"

    def trial(self, name: str) -> TrialFolder:
        """The folder of a finished trial."""
        return TrialFolder(self.trials / name)

    def unfinished(self, name: str, attempt: str) -> TrialFolder:
        """Where a trial is written until it is whole.

        Each attempt has a folder of its own: what an attempt that was cut still writes must not reach the next one.
        """
        return TrialFolder(self.trials / f".{name}.{attempt}.part")

    def attempts(self, name: str) -> list[Path]:
        """Folders of attempts at a trial that did not become whole."""
        return sorted(self.trials.glob(f".{escape(name)}.*.part"))
