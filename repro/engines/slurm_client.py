"""Slurm's commands, each failure one line: which command, what Slurm said, what to do next."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from repro.engines.slurm_states import FORMAT, JobState, parse
from repro.errors import InfraError, ReproError, UnsupportedError, UsageError

COMMAND_TIMEOUT_S = 60.0
# What Slurm says -> what the user can do, where it is the request that is wrong.
_REFUSED = (
    ("nvalid partition", "name one of `sinfo --summarize` with --partition"),
    ("nvalid account", "name an account of yours with --account; `sacctmgr show associations` lists them"),
    ("nvalid qos", "name another --qos"),
    ("nvalid generic resource", "see the Gres of `scontrol show node`, then --gres"),
    ("node configuration is not available", "no node has that many cores, devices or that much memory"),
    ("time limit", "give a shorter --time-limit"),
)
# A step of another allocation, or directives of another job, are not ours.
_FOREIGN = ("SLURM_", "SBATCH_", "SALLOC_", "SRUN_")


def environment() -> dict[str, str]:
    """The caller's environment without what an allocation around the harness has set."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
    if "SLURM_CONF" in os.environ:
        kept["SLURM_CONF"] = os.environ["SLURM_CONF"]
    return kept


def refusal(command: str, said: str) -> ReproError:
    """The error for what a command of Slurm's wrote to standard error before it failed."""
    lines = [line.strip() for line in said.splitlines() if "error:" in line] or said.strip().splitlines()
    text = re.sub(r"^\w+: (error: )?", "", lines[-1]) if lines else "it said nothing"
    text = text.removeprefix("Batch job submission failed: ").removeprefix("Unable to allocate resources: ")
    for words, step in _REFUSED:
        if words in text:
            return UsageError(f"Slurm refuses the job: {text}", step)
    if "ontact slurm controller" in text or "onnect" in text:
        return InfraError(f"Slurm's controller does not answer: {text}", "see `scontrol ping` and `sinfo`")
    return InfraError(f"{command}: {text}", "see `sinfo` and `scontrol show config`")


def _program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise UnsupportedError(f"{name} is not installed here", "run on a host of the cluster where `sinfo` works")
    return path


def _run(words: Sequence[str], *, stdin: str | None = None) -> str:
    try:
        done = subprocess.run(
            [_program(words[0]), *words[1:]],
            input=stdin,
            env=environment(),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise InfraError(f"{words[0]} did not answer within {COMMAND_TIMEOUT_S:g} s", "see `scontrol ping`") from error
    if done.returncode:
        raise refusal(words[0], done.stderr)
    return done.stdout


def submit(script: Path) -> str:
    """Hand a job script to Slurm and return the job's id.

    Raises:
        UsageError: Slurm refuses what it asks for.
        InfraError: Slurm does not answer.
        UnsupportedError: There is no Slurm here.
    """
    printed = _run(["sbatch", "--parsable", str(script)])
    return printed.strip().partition(";")[0]


def states(ids: Sequence[str]) -> dict[str, JobState]:
    """What squeue knows of these jobs and all elements of these arrays; what it has forgotten is left out.

    Raises:
        InfraError: Slurm does not answer.
    """
    if not ids:
        return {}
    arrays = sorted({each.partition("_")[0] for each in ids})
    try:
        text = _run(
            ["squeue", "--noheader", "--array", "--states=all", f"--format={FORMAT}", f"--jobs={','.join(arrays)}"]
        )
    except InfraError as error:
        if "nvalid job id" in str(error):
            return {}
        raise
    return parse(text)


def cancel(ids: Sequence[str]) -> None:
    """Cancel jobs; one that is over already is passed over by Slurm.

    Raises:
        InfraError: Slurm does not answer.
    """
    if ids:
        _run(["scancel", "--quiet", *ids])


def version() -> str:
    """Such as ``slurm-wlm 22.05.8``."""
    return _run(["sinfo", "--version"]).strip()


def on_a_node(options: Sequence[str], command: Sequence[str], patience_s: float | None) -> str:
    """Run a short command on a node, waiting in the queue for one, and return what it printed.

    Raises:
        UsageError: Slurm refuses the options.
        InfraError: Slurm does not answer, the command failed, or no node came free in time.
    """
    words = [_program("srun"), "--job-name=hyper-repro-look", "--nodes=1", "--ntasks=1", "--quiet", *options, *command]
    with subprocess.Popen(
        words,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        # Ctrl-C reaches the harness alone; srun would ask for a second one.
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=patience_s)
        except BaseException as error:
            process.send_signal(signal.SIGTERM)  # srun takes its job along
            process.communicate()
            if isinstance(error, subprocess.TimeoutExpired):
                raise InfraError(
                    f"no node came free within {patience_s:g} s", "see `squeue --start`; give a longer --queue-timeout"
                ) from None
            raise
    if process.returncode:
        raise refusal("srun", err or out)
    return out
