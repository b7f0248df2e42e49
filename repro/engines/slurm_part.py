"""One node's part of a trial over several nodes: all meet in the shared folder, start together, and end together."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from repro.errors import InfraError
from repro.evidence.layout import TrialFolder
from repro.evidence.write import write_json
from repro.launch.ports import reserved_port
from repro.model import Ending, Node, TrialRecord, TrialSpec

LOOK_S = 0.2
MEET_S = 60.0
# After another node's part has ended badly, this one gets as long to end by itself.
SETTLE_S = 3.0
# Says that this node's part was ended because of another's.
STOPPED = "stopped"


def part_folder(attempt: Path, index: int) -> Path:
    """Where one node of an attempt writes."""
    return attempt / f"node-{index}"


def run_part(spec: TrialSpec, folder: TrialFolder, program: Path, slots: int, index: int, count: int) -> int:
    """Run this node's ranks under a supervisor of their own and return its exit code.

    Raises:
        InfraError: The other nodes did not come, or no port could be had.
    """
    attempt = folder.path.parent
    with _meeting(attempt, index) as (master, port):
        (attempt / f"here-{index}").touch()
        _until(lambda: all((attempt / f"here-{other}").exists() for other in range(count)), "the other nodes came")
        each = spec.topology.world // count
        ranks = tuple(range(index * each, (index + 1) * each))
        write_json(folder.node, Node(index, count, ranks, own_address(), master, port).to_json())
        return _supervise(folder, program, slots, attempt, [other for other in range(count) if other != index])


@contextmanager
def _meeting(attempt: Path, index: int) -> Iterator[tuple[str, int]]:
    """The first node chooses a port, keeps others off it, and says so; the others read it."""
    place = attempt / "meeting.json"
    if index == 0:
        with reserved_port() as port:
            write_json(place, {"address": own_address(), "port": port})
            yield own_address(), port
        return
    _until(place.exists, "the first node said its port")
    said = json.loads(place.read_text(encoding="utf-8"))
    yield str(said["address"]), int(said["port"])


def _until(happened: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + MEET_S
    while not happened():
        if time.monotonic() > deadline:
            raise InfraError(f"node {os.environ.get('SLURMD_NODENAME')} waited {MEET_S:g} s in vain until {what}")
        time.sleep(LOOK_S)


def own_address() -> str:
    """This node's address, as Slurm's controller has it.

    Raises:
        InfraError: Slurm does not tell.
    """
    name = os.environ.get("SLURMD_NODENAME", "")
    try:
        done = subprocess.run(
            ["scontrol", "show", "node", name, "--oneliner"], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise InfraError(
            f"scontrol does not tell the address of node {name}: {error}", "see `scontrol ping`"
        ) from error
    found = re.search(r"\bNodeAddr=(\S+)", done.stdout)
    return found[1] if found else name


def _supervise(folder: TrialFolder, program: Path, slots: int, attempt: Path, others: list[int]) -> int:
    words = [sys.executable, "-m", "repro.launch.supervisor", str(folder.path), str(program), str(slots)]
    # The same session: should Slurm kill this step, the supervisor hears of it and ends its ranks.
    with subprocess.Popen(words, stdin=subprocess.DEVNULL) as process:

        def pass_on(number: int, _frame: FrameType | None) -> None:
            process.send_signal(number)

        signal.signal(signal.SIGTERM, pass_on)
        failed_at: float | None = None
        while process.poll() is None:
            if failed_at is None and any(ended_badly(part_folder(attempt, other)) for other in others):
                failed_at = time.monotonic()
            if failed_at is not None and time.monotonic() - failed_at > SETTLE_S:
                (folder.path / STOPPED).touch()
                process.terminate()
                failed_at = float("inf")
            time.sleep(LOOK_S)
        return process.returncode


def ended_badly(part: Path) -> bool:
    """True if a node's part is over and a rank of it failed, or the trial was ended there."""
    path = TrialFolder(part).record
    if not path.exists():
        return False
    record = TrialRecord.from_json(json.loads(path.read_text(encoding="utf-8")))
    return record.ending is not Ending.COMPLETED or any(rank.failed for rank in record.ranks)
