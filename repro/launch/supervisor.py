"""One trial, one supervisor: start the ranks, watch them, end them all, and write down how each ended.

Run as ``python -m repro.launch.supervisor TRIAL_FOLDER PROGRAM``. It is a process of its own on every engine: it adopts
orphans, it ends its whole tree when the deadline comes or when whoever asked for the trial is gone, and a rank that
dies takes neither it nor the harness along.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from repro.collect.after_trial import gather
from repro.collect.memory_series import MemorySeries
from repro.errors import InfraError, ReproError
from repro.evidence.layout import TrialFolder
from repro.evidence.read import read_wants
from repro.evidence.write import write_json
from repro.launch import outcomes
from repro.launch.launchers import Launched, launch, needs_port, ranks_here, start_waiting
from repro.launch.ports import reserved_port
from repro.launch.process import (
    Exit,
    become_subreaper,
    descendants,
    die_with_parent,
    end_tree,
    reap,
    signal_all,
)
from repro.model import Ending, Node, TrialRecord, TrialSpec

POLL_S = 0.03
GRACE_S = 3.0
# After the first failing rank the others get this long to end by themselves: on hardware they hang in a collective.
SETTLE_S = 3.0
# msrun looks at its workers once a second; its scheduler is given this long after the last rank's end.
SCHEDULER_SETTLE_S = 2.5
LOG_LIMIT = 64 << 20
PORT_TAKEN = b"Failed to init the tcp server"
PORT_ATTEMPTS = 3
# Pid of the process that asks for the trial, where it is on this machine.
PARENT_VARIABLE = "HYPER_REPRO_PARENT"


class Supervisor:
    """Watches one trial from start to end.

    Args:
        spec: The trial.
        folder: Its evidence folder; ``trial.json`` is written there last.
        program: The case program.
        slots: How many unconnected ranks may run at a time.
        node: This host's part, where the trial runs across hosts.
    """

    def __init__(
        self, spec: TrialSpec, folder: TrialFolder, program: Path, slots: int, node: Node | None = None
    ) -> None:
        self._spec = spec
        self._folder = folder
        self._program = program
        self._slots = slots
        self._node = node
        self._ranks = ranks_here(spec, node)
        self._exits: dict[int, Exit] = {}
        self._interrupted = False
        self._cut_at: float | None = None
        self._failed_at: float | None = None
        self._launched = Launched()
        self._memory = MemorySeries(folder) if read_wants(folder).memory else None

    def interrupt(self, _signal: int, _frame: FrameType | None) -> None:
        """Signal handler: end the trial at the next poll."""
        self._interrupted = True

    def run(self) -> TrialRecord:
        """Run the trial and return its record."""
        start = time.time()
        if self._node:
            # The port is agreed upon among the hosts: whoever asks for the trial chooses another if it was taken.
            return self._attempt(start, self._node.port)
        taken: set[int] = set()
        for attempt in range(1, PORT_ATTEMPTS + 1):
            if not needs_port(self._spec):
                return self._attempt(start, None)
            with reserved_port(frozenset(taken)) as port:
                record = self._attempt(start, port)
            if record.ending is not Ending.LAUNCH_FAILED or attempt == PORT_ATTEMPTS:
                break
            taken.add(port)
            outcomes.clear(self._folder)
        return record

    def _attempt(self, start: float, port: int | None) -> TrialRecord:
        self._exits.clear()
        self._cut_at = self._failed_at = None
        try:
            self._launched = launch(self._spec, self._folder, self._program, port, self._slots, self._node)
            ending, detail = self._watch(port)
        except BaseException:
            # Half a trial may be running: the ranks that did start must not outlive the complaint.
            end_tree(0.2, self._note)
            raise
        if ending is Ending.DEADLINE:
            self._cut_at = time.time()
            self._ask_for_stacks()
        if self._cut_at is None and descendants():
            self._cut_at = time.time()
        # What still runs now is a scheduler, a straggler or a stray child; the verdict no longer depends on it.
        end_tree(GRACE_S if self._unfinished() else 0.2, self._note)
        ranks = outcomes.collect(self._ranks, self._folder, self._launched, self._exits, self._cut_at)
        manager = self._exits.get(self._launched.manager or -1)
        return TrialRecord(
            spec=self._spec,
            start=start,
            end=time.time(),
            ending=ending,
            detail=detail,
            ranks=ranks,
            launcher_code=(manager.code if manager.code is not None else -(manager.signal or 0)) if manager else None,
            first_failing=outcomes.first_failing(ranks),
        )

    def _note(self, ended: Exit) -> None:
        self._exits[ended.pid] = ended

    def _watch(self, port: int | None) -> tuple[Ending, str]:
        deadline = time.monotonic() + self._spec.timeout_s
        look_at_logs = 0.0
        while True:
            for ended in reap():
                self._note(ended)
            running = [rank for rank, pid in self._launched.ranks.items() if pid not in self._exits]
            if self._interrupted:
                return Ending.INTERRUPTED, "the supervisor was asked to stop"
            if self._launched.waiting and len(running) < self._slots:
                count = self._slots - len(running)
                start_waiting(self._spec, self._folder, self._program, port, self._launched, count, self._node)
            elif self._all_ended(running):
                return Ending.COMPLETED, ""
            now = time.monotonic()
            if now > deadline:
                return Ending.DEADLINE, f"the deadline of {self._spec.timeout_s:g} s passed"
            if port is not None and self._others_had_their_time(now):
                return Ending.COMPLETED, "ended after the first failure"
            if now >= look_at_logs:
                look_at_logs = now + 0.25
                if ending := self._look_further(port):
                    return ending
            time.sleep(POLL_S)

    def _others_had_their_time(self, now: float) -> bool:
        """True once a connected rank has failed and the others, which may wait for it for ever, were given a while."""
        failed = any(
            (ended := self._exits.get(pid)) is not None and ended.code != 0 for pid in self._launched.ranks.values()
        )
        if not failed:
            return False
        self._failed_at = self._failed_at or now
        if now - self._failed_at > SETTLE_S:
            self._cut_at = time.time()
            return True
        return False

    def _look_further(self, port: int | None) -> tuple[Ending, str] | None:
        """The looks that cost more than a poll may: memory, logs, and what msrun leaves waiting."""
        if self._memory is not None:
            self._memory.sample(outcomes.pids_by_rank(self._ranks, self._folder, self._launched))
        if port is not None and self._port_was_taken():
            return Ending.LAUNCH_FAILED, f"port {port} was taken by another program, {PORT_ATTEMPTS} times"
        if self._launched.manager is not None:
            self._end_scheduler_that_waits_in_vain()
        if flooded := outcomes.flooded_log(self._folder, LOG_LIMIT):
            return Ending.RUNAWAY_LOG, f"{flooded} grew past {LOG_LIMIT >> 20} MiB"
        return None

    def _all_ended(self, running: list[int]) -> bool:
        if self._launched.manager is not None:
            return self._launched.manager in self._exits
        if self._node and self._launched.scheduler is not None and self._launched.scheduler not in self._exits:
            # Ranks on other hosts may still need it; it leaves by itself after the last of them.
            return False
        return not running and not self._launched.waiting

    def _end_scheduler_that_waits_in_vain(self) -> None:
        # After a worker failed msrun kills the others, then waits for the scheduler, which waits for the lost workers.
        # Nothing more can come of it, so the scheduler is ended and msrun says its last words.
        alive = descendants()
        pids = set(outcomes.rank_pids(self._folder, self._launched))
        if len(pids) < len(self._ranks) or any(process.pid in pids for process in alive):
            return
        ends = outcomes.shim_exits(self._ranks, self._folder)
        if len(ends) == len(pids) and all(ended.code == 0 for ended in ends.values()):
            return  # msrun and its scheduler then come to their own end, which may take seconds
        if time.time() - max((ended.time for ended in ends.values()), default=0.0) > SCHEDULER_SETTLE_S:
            signal_all([process for process in alive if process.pid != self._launched.manager], signal.SIGKILL)

    def _unfinished(self) -> bool:
        return any(pid not in self._exits for pid in self._launched.ranks.values())

    def _port_was_taken(self) -> bool:
        logs = [self._folder.scheduler_log, self._folder.path / "msrun" / "scheduler.log"]
        return any(log.exists() and PORT_TAKEN in log.read_bytes()[-65536:] for log in logs)

    def _ask_for_stacks(self) -> None:
        python_ranks = [p for p in descendants() if p.pid in set(outcomes.rank_pids(self._folder, self._launched))]
        signal_all(python_ranks, signal.SIGUSR1)
        time.sleep(0.3)


def supervise(folder: TrialFolder, program: Path, slots: int) -> TrialRecord:
    """Run the trial that ``spec.json`` in the folder asks for and write its ``trial.json``.

    Raises:
        ReproError: The trial could not be run or its record not be written.
    """
    try:
        spec = TrialSpec.from_json(json.loads(folder.spec.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InfraError(f"{folder.spec}: not a trial specification: {error}") from error
    supervisor = Supervisor(spec, folder, program, slots, _node(folder))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, supervisor.interrupt)
    record = supervisor.run()
    outcomes.trim_logs(folder)
    if record.ending is not Ending.INTERRUPTED:
        gather(folder, record, read_wants(folder))
    write_json(folder.record, record.to_json())
    return record


def _node(folder: TrialFolder) -> Node | None:
    return Node.from_json(json.loads(folder.node.read_text(encoding="utf-8"))) if folder.node.exists() else None


def main(arguments: list[str]) -> int:
    """Entry point; returns 0 if the trial could be run, whatever came of it."""
    become_subreaper()
    die_with_parent(signal.SIGTERM)
    if os.environ.get(PARENT_VARIABLE, str(os.getppid())) != str(os.getppid()):
        return InfraError.exit_code  # Whoever asked was gone before the kernel was told to say so.
    folder, program, slots = arguments
    try:
        supervise(TrialFolder(Path(folder)), Path(program), int(slots))
    except ReproError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"{error.filename or folder}: {error.strerror}", file=sys.stderr)
        return InfraError.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
