"""Trials on a real Slurm: report 134's table; jobs that are lost, started again, cancelled, refused or taken up."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import slurm_cluster
from harness import Cli, Done, until, verdict
from slurm_cluster import SlurmCluster

pytestmark = pytest.mark.skipif(bool(slurm_cluster.missing()), reason=slurm_cluster.missing())
TRIAL = "9002.11-case-0-unfixed-single"
GATED = ("run", "9002.11", "--arm", "unfixed", "--json", "--engine", "slurm")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    folder = tmp_path_factory.mktemp("slurm")
    # munged asks for a way that others may walk to its socket.
    for part in (folder, *folder.parents[:2]):
        part.chmod(0o755)
    running = SlurmCluster(folder)
    try:
        running.start()
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="module", autouse=True)
def outlasted(
    cluster: SlurmCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Cli, subprocess.Popen[str]]]:
    """A run whose job is over its limit: Slurm counts in minutes, so it is started first and looked at last."""
    cli = Cli(tmp_path_factory.mktemp("outlasted"))
    options = ("--partition", "apart", "--time-limit", "1", "--no-requeue", "--out", str(cli.out))
    process = cli.start(*GATED, *options, wrapper=(), **cluster.environment)
    yield cli, process
    process.kill()
    process.communicate()


@pytest.fixture
def slurm(cli: Cli, cluster: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command line, as a user of the cluster has it."""
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
    return cli


def start_gated(cli: Cli, *more: str) -> subprocess.Popen[str]:
    process = cli.start(*GATED, "--out", str(cli.out), *more)
    cli.about_to("wait for gate")
    return process


def finish(cli: Cli, process: subprocess.Popen[str]) -> Done:
    cli.gate.touch()
    return cli.finish(process)


def job(cli: Cli) -> dict[str, Any]:
    """What is known of the one job, while it runs or after."""
    [path] = cli.out.glob("trials/*/slurm.json")
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return data


def node_of(cli: Cli) -> str:
    [path] = cli.out.glob("trials/.*.part/attempt-0/slurm.json")
    return str(json.loads(path.read_text(encoding="utf-8"))["node"])


def counted_once(done: Done) -> None:
    assert (done.code, verdict(done)["verdict"]) == (0, "REPRODUCED"), done
    assert (verdict(done)["hits"], verdict(done)["trials"]) == (1, 1)


def test_the_table_of_report_134(slurm: Cli) -> None:
    done = slurm(
        "matrix", "134", "--engine", "slurm", "--gres-name", "npu", "--ranks", "0,5", "--json", "--out", str(slurm.out)
    )
    assert done.code == 0, done
    cells = json.loads(done.out)["cells"]
    assert len(cells) == 8
    assert all(cell["found"] is cell["reported"] for cell in cells)
    jobs = [json.loads(path.read_text(encoding="utf-8")) for path in slurm.out.glob("trials/*/slurm.json")]
    assert len({each["job"] for each in jobs}) == 8
    assert len({each["job"].partition("_")[0] for each in jobs}) == 2, "two shapes of job, so two arrays"
    assert all(each["devices"] for each in jobs)
    run = json.loads((slurm.out / "run.json").read_text(encoding="utf-8"))
    assert run["engine"]["name"] == "slurm"
    assert "slurm" in run["engine"]["slurm"]


@pytest.mark.parametrize("how", ["requeued", "lost its node"])
def test_a_job_that_is_started_again_counts_once(how: str, slurm: Cli, cluster: SlurmCluster) -> None:
    process = start_gated(slurm)
    node = node_of(slurm)
    if how == "requeued":
        cluster.command("scontrol", "requeue", job(slurm)["job"])
    else:
        cluster.lose_node(node)
    until(lambda: list(slurm.out.glob("trials/.*.part/attempt-1/rank-0/events.jsonl")), "the second start")
    counted_once(finish(slurm, process))
    assert job(slurm)["restarts"] == 1
    assert not list(slurm.out.glob("trials/*/attempt-*"))
    if how != "requeued":
        assert job(slurm)["node"] != node
        cluster.revive_node(node)


def _lose(cli: Cli, cluster: SlurmCluster) -> None:
    cluster.lose_node(node_of(cli))


def _cancel(cli: Cli, cluster: SlurmCluster) -> None:
    cluster.command("scancel", job(cli)["job"])


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (_lose, "lost its node on n"),
        (_cancel, "was cancelled on n"),
    ],
)
def test_a_job_that_is_lost_is_infrastructure_and_finished_later(
    end: Callable[[Cli, SlurmCluster], None], words: str, slurm: Cli, cluster: SlurmCluster
) -> None:
    process = start_gated(slurm, "--no-requeue")
    node = node_of(slurm)
    end(slurm, cluster)
    done = slurm.finish(process)
    assert (done.code, done.out) == (4, ""), done
    assert f"trial {TRIAL}: Slurm job" in done.last
    assert words in done.last
    told = slurm("judge", str(slurm.out), "--json")
    assert (told.code, verdict(told)["verdict"]) == (4, "INFRA_ERROR")
    assert words in verdict(told)["why"]
    if end is _lose:
        cluster.revive_node(node)
        slurm.gate.touch()
        counted_once(slurm(*GATED, "--out", str(slurm.out)))


def test_a_job_that_takes_too_much_memory_is_infrastructure(slurm: Cli) -> None:
    done = slurm(*GATED, "--out", str(slurm.out), "--mem", "100M")
    assert (done.code, done.out) == (4, ""), done
    assert "was ended for want of memory" in done.last


def test_ctrl_c_cancels_the_jobs(slurm: Cli, cluster: SlurmCluster) -> None:
    process = start_gated(slurm)
    process.send_signal(signal.SIGINT)
    done = slurm.finish(process)
    assert (done.code, done.out) == (130, "")
    assert done.last.startswith("repro run: interrupted; 0 of 1 trials are kept")
    shown = cluster.command("squeue", "--noheader", "--states=all", "--format=%T", f"--jobs={job(slurm)['job']}")
    assert shown.strip() in ("CANCELLED", "COMPLETING")


def test_a_killed_controller_takes_its_job_up_again(slurm: Cli) -> None:
    process = start_gated(slurm)
    before = job(slurm)["job"]
    process.kill()
    process.communicate()
    again = slurm.start(*GATED, "--out", str(slurm.out))
    counted_once(finish(slurm, again))
    assert job(slurm)["job"] == before


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--partition", "none"), 2, "nvalid partition"),
        (("--gres-name", "tpu"), 2, "Slurm refuses the job: "),
        (("--mem", "1T"), 2, "Slurm refuses the job: "),
    ],
)
def test_what_slurm_refuses_is_said_in_one_line(options: tuple[str, ...], code: int, words: str, slurm: Cli) -> None:
    done = slurm(*GATED, "--out", str(slurm.out), *options)
    assert (done.code, done.out) == (code, "")
    assert words in done.last
    assert len(done.err.splitlines()) <= 2


def test_a_controller_that_is_down_is_said_in_one_line(slurm: Cli, cluster: SlurmCluster) -> None:
    cluster.stop_daemon("slurmctld")
    try:
        done = slurm(*GATED, "--out", str(slurm.out))
    finally:
        cluster.start_controller()
    assert (done.code, done.out) == (4, "")
    assert done.last.startswith("repro run: Slurm's controller does not answer")
    assert len(done.err.splitlines()) == 1


def test_a_job_over_its_time_limit_is_infrastructure(outlasted: tuple[Cli, subprocess.Popen[str]]) -> None:
    cli, process = outlasted
    done = cli.finish(process)
    assert (done.code, done.out) == (4, ""), done
    assert "ran into its time limit" in done.last
    assert "(TIMEOUT, TimeLimit); give a longer --time-limit" in done.last


def test_no_slurm_here(slurm: Cli, tmp_path: Path) -> None:
    done = slurm(*GATED, PATH=str(tmp_path))
    assert (done.code, done.out) == (5, "")
    assert done.last.startswith("repro run: sinfo is not installed here")


def test_a_rank_that_fails_ends_the_trial_on_every_node(slurm: Cli) -> None:
    options = ("--engine", "slurm", "--nodes", "2", "--gres-name", "npu", "--json", "--out", str(slurm.out))
    done = slurm("run", "9002.17", "--arm", "unfixed", *options)
    fault = verdict(done)
    assert (done.code, fault["verdict"]) == (0, "REPRODUCED"), done
    assert fault["why"].startswith("rank 1 on n")
    assert " in body: ValueError: asked to raise" in fault["why"]
    record = slurm.record("9002.17-case-0-unfixed-dp2")
    assert [host["ranks"] for host in record["hosts"]] == [[0], [1]]
    assert len({host["name"] for host in record["hosts"]}) == 2
    assert (record["ending"], record["detail"]) == ("completed", "ended after the first failure")
    assert [(rank["code"], rank["killed"]) for rank in record["ranks"]] == [(None, True), (1, False)]
