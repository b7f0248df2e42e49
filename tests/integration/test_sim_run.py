"""``repro sim``: environment, exit codes, output, and what is left after an interrupt."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sim_support import TIMEOUT, explain, require_sim

from repro.commands import sim

SIM = """
import argparse, sys
from repro.commands import sim
from repro.errors import ReproError
parser = argparse.ArgumentParser()
sim.prepare_parser(parser)
try:
    sys.exit(sim.run(parser.parse_args()))
except ReproError as error:
    sys.exit(f"error: {error}")
"""
REPOSITORY = str(Path(__file__).resolve().parents[2])


@pytest.fixture(scope="module", autouse=True)
def _sim() -> None:
    require_sim()


def repro_sim(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Starts ``repro sim`` as a user would."""
    return subprocess.Popen(
        [sys.executable, "-c", SIM, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": REPOSITORY, "GLOG_v": "3"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    """Waits for the end."""
    stdout, stderr = process.communicate(timeout=TIMEOUT)
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def test_a_users_script_runs_as_the_ranks_it_names(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import mindspore as ms\n"
        "from mindspore import mint\n"
        "import mindspore.mint.distributed as dist\n"
        "ms.set_device('Ascend')\n"
        "dist.init_process_group()\n"
        "dist.all_reduce(mint.ones((4,)))\n"
        "ms.runtime.synchronize()\n"
        "print('rank', dist.get_rank(), 'of', dist.get_world_size())\n"
    )
    done = finish(repro_sim(tmp_path, "--world", "16", "--ranks", "0,3,15", "--", "python", "train.py"))
    assert done.returncode == 0, explain(done)
    said = sorted(line for line in done.stdout.splitlines() if "of 16" in line)
    assert said == ["[rank 0] rank 0 of 16", "[rank 15] rank 15 of 16", "[rank 3] rank 3 of 16"]
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]  # no offload, no rank_0/execute_order


@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("kill -SEGV $$", 139), ("exit 0", 0)])
def test_the_exit_code_of_the_script_passes_through(script: str, code: int, tmp_path: Path) -> None:
    done = finish(repro_sim(tmp_path, "--ranks", "all", "--", "bash", "-c", script))
    assert done.returncode == code, explain(done)


def test_only_so_many_run_at_once(tmp_path: Path) -> None:
    script = "touch running.$RANK_ID; ls running.* | wc -l; sleep 0.3; rm running.$RANK_ID"
    done = finish(repro_sim(tmp_path, "--ranks", "0-5", "--at-once", "2", "--", "bash", "-c", script))
    counts = [int(line.split()[-1]) for line in done.stdout.splitlines()]
    assert len(counts) == 6
    assert max(counts) == 2


@pytest.mark.parametrize("chosen", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_no_process(chosen: signal.Signals, tmp_path: Path) -> None:
    # A script that ignores the polite signal and has a child of its own.
    script = "trap '' TERM; sleep 600 & echo $! > child.$RANK_ID; echo $$ > leader.$RANK_ID; wait; sleep 600"
    process = repro_sim(tmp_path, "--ranks", "0,1", "--", "bash", "-c", script)
    deadline = time.monotonic() + TIMEOUT
    while sum(bool(file.read_text()) for file in tmp_path.glob("leader.*")) < 2:  # a shell makes the file, then writes
        assert process.poll() is None, explain(finish(process))
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(chosen)
    done = finish(process)
    assert done.returncode == 130, explain(done)
    for file in [*tmp_path.glob("leader.*"), *tmp_path.glob("child.*")]:
        pid = int(file.read_text())
        alive = Path(f"/proc/{pid}/stat")
        assert not alive.exists() or alive.read_text().split()[2] == "Z", f"{file.name} {pid} still runs"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--ranks", "8", "--", "true"], "ranks are 0 to 7"),
        (["--ranks", "a", "--", "true"], "'a' is no rank"),
        ([], "there is no command to run"),
        (["--", "no-such-program"], "cannot run 'no-such-program'"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(arguments: list[str], said: str, tmp_path: Path) -> None:
    done = finish(repro_sim(tmp_path, *arguments))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("error: ")
    assert said in done.stderr


def test_the_command_follows_the_convention() -> None:
    assert (sim.__doc__ or "").splitlines()[0] == "Run your own script as simulated Ascend ranks, without an NPU."
    parser = argparse.ArgumentParser()
    sim.prepare_parser(parser)
    assert parser.parse_args(["--world", "4", "--", "python", "x.py", "--world", "9"]).world == 4
