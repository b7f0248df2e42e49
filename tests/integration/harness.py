"""Runs the command line as a user would, and proves that nothing it started is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil

REPOSITORY = Path(__file__).resolve().parents[2]
ISSUES = REPOSITORY / "tests" / "data" / "issues"
MARKER = "HYPER_REPRO_TEST_MARKER"
GATE = "HYPER_REPRO_TEST_GATE"
# Only ends a test that would never end: nothing is judged by time.
PATIENCE_S = 150.0


@dataclass(frozen=True)
class Done:
    """A finished command."""

    code: int
    out: str
    err: str

    @property
    def last(self) -> str:
        """The last line on standard error."""
        lines = self.err.strip().splitlines()
        return lines[-1] if lines else ""


def until(happened: Callable[[], Any], what: str) -> Any:
    """Wait until something has happened and return what it gave."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        found = happened()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"never happened: {what}")


class Cli:
    """``repro`` in a folder of its own; everything it starts carries a marker in its environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.out = folder / "run"
        self.gate = folder / "gate"
        self._marker = uuid4().hex

    @property
    def environment(self) -> dict[str, str]:
        """What every command finds."""
        ours = {MARKER: self._marker, GATE: str(self.gate), "HYPER_REPRO_ISSUES": str(ISSUES), "GLOG_v": "3"}
        # A checkout that the caller's environment names would take the place of the subject under test.
        kept = {name: value for name, value in os.environ.items() if name != "HYPER_PARALLEL_SRC"}
        return {**kept, **ours, "PYTHONPATH": str(REPOSITORY)}

    def start(self, *arguments: str, wrapper: tuple[str, ...] = (), **environment: str) -> subprocess.Popen[str]:
        """Start a command."""
        return subprocess.Popen(
            [*wrapper, sys.executable, "-m", "repro.cli", *arguments],
            cwd=self.folder,
            env={**self.environment, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def finish(self, process: subprocess.Popen[str]) -> Done:
        """Wait for a command's end and that of all it started; a traceback is never an answer."""
        out, err = process.communicate(timeout=PATIENCE_S)
        assert "Traceback" not in err, err
        self.nothing_left()
        return Done(process.returncode, out, err)

    def __call__(self, *arguments: str, **environment: str) -> Done:
        """Run a command to its end."""
        return self.finish(self.start(*arguments, wrapper=(), **environment))

    def run(self, fault: str, *more: str) -> Done:
        """``repro run`` of one fault's own case, without its control, as JSON."""
        return self("run", fault, "--arm", "unfixed", "--json", "--out", str(self.out), *more)

    def alive(self, words: str = "") -> list[psutil.Process]:
        """Processes that a command of this test started, and whose command line holds ``words``."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(MARKER) == self._marker and process.status() != psutil.STATUS_ZOMBIE:
                    found += [process] if words in " ".join(process.cmdline()) else []
            except psutil.Error:
                continue
        return found

    def nothing_left(self) -> None:
        """Fail if anything outlives its command; a supervisor whose harness was killed has a moment to end its tree."""
        deadline = time.monotonic() + 30
        while (left := self.alive()) and time.monotonic() < deadline:
            time.sleep(0.1)
        for process in left:
            process.kill()
        assert not left, f"left running: {left}"

    def about_to(self, what: str, count: int = 1) -> list[psutil.Process]:
        """Wait until ranks have said that they are about to do something, and return the ranks."""

        def said() -> bool:
            events = self.out.glob("trials/.*.part/**/rank-*/events.jsonl")
            return sum(f'"what": "{what}"' in path.read_text(encoding="utf-8") for path in events) >= count

        until(said, f"{count} ranks about to {what}")
        return self.alive("repro.probes.rank")

    def trial(self, name: str) -> Path:
        """The folder of a finished trial."""
        return self.out / "trials" / name

    def record(self, name: str) -> dict[str, Any]:
        """trial.json of a finished trial."""
        data: dict[str, Any] = json.loads((self.trial(name) / "trial.json").read_text(encoding="utf-8"))
        return data


def verdict(done: Done) -> dict[str, Any]:
    """The one fault of a run's JSON, which must be the only thing on standard output."""
    assert done.out.count("\n") == 1, done
    faults: list[dict[str, Any]] = json.loads(done.out)["faults"]
    assert len(faults) == 1
    assert "\n" not in faults[0]["why"]
    return faults[0]


def kill(processes: list[psutil.Process]) -> None:
    """SIGKILL from outside."""
    for process in processes:
        process.send_signal(signal.SIGKILL)
