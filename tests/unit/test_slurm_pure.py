"""Job scripts as they are rendered, and what is made of Slurm's words: pure, no Slurm."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from made import SPEC

from repro.engines.slurm_client import refusal
from repro.engines.slurm_script import Shape, Wishes, render, shape_of
from repro.engines.slurm_states import LOST, JobState, complaint, parse
from repro.engines.slurm_task import devices_of
from repro.errors import InfraError, UsageError
from repro.model import Tier, Topology

GOLDEN = Path(__file__).parents[1] / "data" / "slurm"
EIGHT = replace(SPEC, topology=Topology(tp=2, dp=4), timeout_s=300.0)
COMMAND = ["env", "PYTHONPATH=/shared/hyper repro", "/shared/venv/bin/python", "-m", "repro.engines.slurm_task", "run"]


@pytest.mark.parametrize(
    ("name", "shape", "wishes", "count"),
    [
        ("plain", Shape(2, "", False, 3), Wishes(), 1),
        (
            "npu",
            Shape(8, "npu:910b:8", True, 95),
            Wishes("debug", "proj one", "low", "npu:910b", "64G", 5700.0, requeue=False),
            12,
        ),
        ("nodes", Shape(4, "npu:4", False, 7, nodes=2), Wishes(nodes=2), 3),
    ],
)
def test_the_script_is_the_golden_one(name: str, shape: Shape, wishes: Wishes, count: int) -> None:
    text = render("hyper-repro", "/shared/runs/r1/slurm", "/shared/runs/r1/slurm/a.json", count, shape, wishes, COMMAND)
    assert text == (GOLDEN / f"{name}.sh").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("spec", "wishes", "shape"),
    [
        (replace(EIGHT, tier=Tier.CPU), Wishes(), Shape(8, "", False, 7)),
        (replace(EIGHT, tier=Tier.SIM), Wishes(), Shape(2, "", False, 7)),
        (replace(EIGHT, tier=Tier.SIM, ranks=(0,)), Wishes(gres="npu"), Shape(1, "npu:1", False, 7)),
        (replace(EIGHT, tier=Tier.NPU), Wishes(), Shape(8, "npu:8", False, 7)),
        (replace(EIGHT, tier=Tier.NPU), Wishes(gres="npu:910b"), Shape(8, "npu:910b:8", False, 7)),
        (replace(EIGHT, collectives=True), Wishes(nodes=2, gres="npu"), Shape(4, "npu:4", False, 7, 2)),
        (replace(EIGHT, tier=Tier.SIM, collectives=True), Wishes(nodes=2), Shape(2, "", False, 7)),
        (replace(EIGHT, calls=100), Wishes(time_limit_s=30.0), Shape(1, "", True, 1)),
    ],
)
def test_what_a_trial_asks_for(spec: object, wishes: Wishes, shape: Shape) -> None:
    assert shape_of(spec, wishes) == shape  # type: ignore[arg-type]


def test_ranks_that_cannot_be_spread_evenly() -> None:
    with pytest.raises(UsageError, match=r"--nodes 3: the 8 ranks of .* cannot be spread evenly"):
        shape_of(replace(EIGHT, collectives=True), Wishes(nodes=3))


def test_squeue_is_read_and_what_is_no_job_left_out() -> None:
    text = "12_0|RUNNING|None|n1\n12_1|PENDING|Resources|\n\nslurm_load_jobs error: x\n12_2|NODE_FAIL|NodeDown|n2\n"
    seen = parse(text)
    assert list(seen) == ["12_0", "12_1", "12_2"]
    assert [job.over for job in seen.values()] == [False, False, True]


@pytest.mark.parametrize("state", LOST)
def test_every_end_without_a_record_is_one_line(state: str) -> None:
    text, step = complaint(JobState("7_1", state, "None", "n3"), "")
    assert "Slurm job 7_1" in text
    assert state in text
    assert "n3" in text
    assert step
    assert "\n" not in text


@pytest.mark.parametrize("state", ["RUNNING", "PENDING", "COMPLETING", "REQUEUED", "SUSPENDED", "CONFIGURING", "NEW"])
def test_a_state_that_may_go_on_ends_nothing(state: str) -> None:
    job = JobState("7", state, "Resources", "")
    assert not job.over
    assert not job.hopeless


@pytest.mark.parametrize(
    ("state", "reason"),
    [("PENDING", "BadConstraints"), ("PENDING", "launch failed requeued held"), ("REQUEUE_HOLD", "JobHoldMaxRequeue")],
)
def test_what_no_waiting_cures(state: str, reason: str) -> None:
    job = JobState("7", state, reason, "")
    assert job.hopeless
    assert reason in complaint(job, "")[0]


def test_a_job_that_failed_says_its_last_words() -> None:
    job = JobState("7", "FAILED", "NonZeroExitCode", "n1")
    log = "a\nnumpy is missing\nsrun: error: n1: task 0: Exited with exit code 4\n"
    assert complaint(job, log)[0].endswith("(FAILED, NonZeroExitCode): numpy is missing")
    starved = "slurmstepd-n1: error: StepId=12.0 exceeded memory limit (337235968 > 104857600), being killed\n"
    assert "was ended for want of memory on n1 (FAILED" in complaint(job, starved)[0]
    assert "do the nodes share this file system?" in complaint(job, "")[0]


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        (
            "sbatch: error: bad: x\nsbatch: error: Batch job submission failed: Invalid partition name specified\n",
            UsageError,
            "Slurm refuses the job: Invalid partition name specified",
        ),
        (
            "srun: error: Unable to allocate resources: Unable to contact slurm controller (connect failure)\n",
            InfraError,
            "Slurm's controller does not answer: Unable to contact slurm controller (connect failure)",
        ),
        ("", InfraError, "sbatch: it said nothing"),
    ],
)
def test_a_refusal_is_told_from_silence(said: str, kind: type[Exception], words: str) -> None:
    error = refusal("sbatch", said)
    assert isinstance(error, kind)
    assert error.message == words


SHOWN = """\
JobId=3 ArrayJobId=3 ArrayTaskId=0 JobName=hyper-repro
   NumNodes=2 NumCPUs=4
     Nodes=n1 CPU_IDs=0-1 Mem=0 GRES=npu:4(IDX:0-2,5)
     Nodes=n2 CPU_IDs=0-1 Mem=0 GRES=npu:910b:2(IDX:6-7)
     Nodes=n3 CPU_IDs=0-1 Mem=0 GRES=
"""


@pytest.mark.parametrize(("node", "devices"), [("n1", [0, 1, 2, 5]), ("n2", [6, 7]), ("n3", []), ("n4", [])])
def test_the_devices_of_a_job(node: str, devices: list[int]) -> None:
    assert devices_of(SHOWN, node) == devices
