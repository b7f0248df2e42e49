"""Between msrun and a rank: runs the rank, writes down its real wait status, and ends the same way.

msrun prints only the first failing worker's code and kills the others; the truth for each rank is its wait status, so
this small parent (no MindSpore in it) records that and then dies of the same signal or leaves with the same code.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path


def main() -> int:
    """Run the rank that the environment names."""
    # msrun starts this file by path, which puts its folder first on the path: drop it, so that nothing is shadowed.
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != Path(__file__).resolve().parent]
    from repro.collect.after_trial import working_folder
    from repro.evidence.layout import TrialFolder
    from repro.evidence.read import read_wants
    from repro.launch.process import Exit, spawn

    folder = TrialFolder(Path(os.environ["HYPER_REPRO_TRIAL"]))
    command = [sys.executable, "-m", "repro.probes.rank"]
    if os.environ.get("MS_ROLE") == "MS_SCHED":
        os.execv(sys.executable, command)  # noqa: S606 -- an argument list, no shell
    rank = folder.rank(int(os.environ.get("RANK_ID", "0")))
    rank.path.mkdir(parents=True, exist_ok=True)
    start = time.time()
    # In this process group: msrun kills the group, and the rank must go with it.
    wants = read_wants(folder)
    worked = working_folder(folder, int(os.environ.get("RANK_ID", "0")), wants)
    pid = spawn(command, os.environ, worked, rank.stdout, rank.stderr, keep_group=True, dump_core=wants.dump)
    _write(rank.exit, {"pid": pid, "start": start})
    ended = Exit.of_status(*os.waitpid(pid, 0))
    _write(rank.exit, {"pid": pid, "start": start, "end": ended.time, "code": ended.code, "signal": ended.signal})
    if ended.signal is not None:
        if ended.signal != signal.SIGKILL:
            signal.signal(ended.signal, signal.SIG_DFL)
        os.kill(os.getpid(), ended.signal)
    return ended.code or 0


def _write(path: Path, values: dict[str, object]) -> None:
    temporary = path.with_suffix(".part")
    temporary.write_text(json.dumps(values), encoding="utf-8")
    temporary.rename(path)


if __name__ == "__main__":
    sys.exit(main())
