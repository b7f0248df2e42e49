"""Engine local: one supervisor process a trial, on this machine."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from repro import host
from repro.engines.base import Engine
from repro.errors import InfraError
from repro.evidence.layout import TrialFolder
from repro.launch.process import end_strays
from repro.launch.supervisor import PARENT_VARIABLE
from repro.model import Tier, TrialSpec

# Beyond the trial's own deadline, for starting, ending and recording it; then the supervisor itself is taken for hung.
SLACK_S = 60.0
# Ranks spend much of their time waiting for their cluster to form, so a little over-commitment shortens a run.
OVERCOMMIT = 1


def create(_args: argparse.Namespace) -> LocalEngine:
    """The engine; it has no options of its own."""
    return LocalEngine()


class LocalEngine(Engine):
    """Runs trials as children of this process."""

    name = "local"

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def available_tiers(self) -> list[Tier]:
        """The tiers that this machine has."""
        return host.available_tiers()

    def slots(self, spec: TrialSpec) -> int:
        """A measurement has the machine to itself, any other trial takes one place.

        MindSpore hands operators to worker threads that spin while they wait. Where more of them want a core than there
        are, every hand-over waits for the scheduler: two measurements side by side took over ten times as long as one
        after the other.
        """
        return self.capacity if spec.calls else 1

    @property
    def capacity(self) -> int:
        """One trial a core and one more."""
        return len(os.sched_getaffinity(0)) + OVERCOMMIT

    def run(self, spec: TrialSpec, program: Path, folder: TrialFolder) -> None:
        """Run the trial under a supervisor of its own.

        Raises:
            InfraError: The supervisor failed; the message is its own.
        """
        # Simulated ranks do not talk: as many run at a time as there are cores, and only one while it is measured.
        cores = 1 if spec.calls else len(os.sched_getaffinity(0))
        command = [sys.executable, "-m", "repro.launch.supervisor", str(folder.path), str(program), str(cores)]
        root = str(Path(__file__).resolve().parents[2])
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")])),
            PARENT_VARIABLE: str(os.getpid()),
        }
        with self._lock:
            if self._stopped:
                return
            # An own session: Ctrl-C in the terminal reaches the harness alone, which then asks each supervisor to stop.
            try:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    text=True,
                    errors="replace",
                    env=environment,
                    start_new_session=True,
                )
            except OSError as error:
                raise InfraError(f"cannot start {command[0]}: {error.strerror}", "run `repro doctor`") from error
            self._running.add(process)
        try:
            _, complaint = process.communicate(timeout=spec.timeout_s + SLACK_S)
        except subprocess.TimeoutExpired:
            process.terminate()
            try:
                _, complaint = process.communicate(timeout=SLACK_S)
            except subprocess.TimeoutExpired:
                process.kill()
                _, complaint = process.communicate()
        finally:
            with self._lock:
                self._running.discard(process)
        if process.returncode != 0:
            end_strays("HYPER_REPRO_TRIAL", str(folder.path))
        if process.returncode != 0 and not self._stopped:
            lines = complaint.strip().splitlines() or [f"its supervisor ended with status {process.returncode}"]
            raise InfraError(f"trial {spec.folder}: {lines[-1]}")

    def stop(self) -> None:
        """Ask every supervisor to end its tree."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                process.send_signal(signal.SIGTERM)
