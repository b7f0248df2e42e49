"""Trials on four real sshd servers: the report's table, lost hosts, a killed controller, and one trial across hosts."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from harness import GATE, MARKER, Cli, kill, until, verdict
from hosts_cluster import Cluster, Host, cluster, lacking
from sim_support import require_sim

from repro.engines.ssh.connection import Limits, Remote
from repro.engines.ssh.deadline import Deadline
from repro.engines.ssh.part import Job, Run, carry_out
from repro.engines.ssh.readiness import work_of
from repro.engines.ssh.session import session
from repro.hosts import inventory as inventories
from repro.model import Arm, Launcher, Subject, Tier, Topology, TrialSpec

pytestmark = pytest.mark.skipif(bool(lacking()), reason=lacking())


@pytest.fixture(scope="module")
def hosts() -> Iterator[Cluster]:
    with cluster(4) as made:
        yield made


@pytest.fixture
def inventory(hosts: Cluster, cli: Cli) -> Path:
    """The hosts as they are, for this test's command line: what runs on them carries its marker and knows its gate."""
    for host in hosts.hosts:
        shutil.rmtree(host.folder / "home-root" / ".cache", ignore_errors=True)
        prepare(hosts, host, cli)
    hosts.trust(hosts.hosts)
    return hosts.inventory(cli.folder / "hosts.yml", hyper_repro_python=sys.executable, hyper_repro_slots=2)


def prepare(hosts: Cluster, host: Host, cli: Cli, **variables: str) -> None:
    values = {MARKER: cli.environment[MARKER], GATE: str(cli.gate), "GLOG_v": "3", **variables}
    hosts.configure(host, "SetEnv " + " ".join(f"{name}={value}" for name, value in values.items()) + "\n")
    hosts.restart(host)


def about_to(hosts: Cluster, cli: Cli, what: str, count: int = 1) -> list[str]:
    """Wait until ranks on the hosts have said that they are about to do something; the names of their hosts."""

    def said() -> list[str]:
        found = []
        for host in hosts.hosts:
            for path in host.folder.glob("home-root/.cache/hyper-repro/hosted/trials/*/*/rank-*/events.jsonl"):
                found += [host.name] if f'"what": "{what}"' in path.read_text(encoding="utf-8") else []
        return found if len(found) >= count else []

    found: list[str] = until(said, f"{count} ranks about to {what}")
    assert cli.alive("repro.probes.rank")
    return found


def left_on(hosts: Cluster) -> list[Path]:
    """What trials left on the hosts."""
    return [path for host in hosts.hosts for path in host.folder.glob("home-root/.cache/hyper-repro/hosted/trials/*/*")]


def records(cli: Cli) -> dict[str, dict[str, Any]]:
    return {path.parent.name: cli.record(path.parent.name) for path in cli.out.glob("trials/[!.]*/trial.json")}


def test_the_reports_table_over_four_hosts(hosts: Cluster, inventory: Path, cli: Cli) -> None:
    """And the smallest topology of each problem, found on the same hosts."""
    require_sim()
    command = (
        "matrix",
        "134",
        "--ranks",
        "0",
        "--minimise",
        "--hosts",
        str(inventory),
        "--json",
        "--out",
        str(cli.out),
    )
    done = cli(*command, HYPER_REPRO_ISSUES="")
    assert done.code == 0, done
    assert done.err.splitlines()[-2:] == [
        "problem 1: the smallest is ep2 (world 2), of 8 run; not in single, dp2",
        "problem 2: the smallest is ep2-fsdp2 (world 4), of 8 run; not in single, ep2, fsdp2, fsdp4",
    ]
    again = cli("judge", str(cli.out), "--json", HYPER_REPRO_ISSUES="")
    assert (again.code, again.out, again.err.splitlines()) == (0, done.out, done.err.splitlines()[-2:])
    found = records(cli)
    ran_on = {record["hosts"][0]["name"] for record in found.values()}
    assert (len(found), ran_on) == (8, {"h1", "h2", "h3", "h4"})
    assert {rank["host"] for record in found.values() for rank in record["ranks"]} == ran_on
    engine = json.loads((cli.out / "run.json").read_text(encoding="utf-8"))["engine"]
    assert [host["name"] for host in engine["hosts"]] == ["h1", "h2", "h3", "h4"]
    assert left_on(hosts) == []
    for seal in cli.out.glob("trials/*/SHA256SUMS"):
        subprocess.run(["sha256sum", "--check", "--strict", "--quiet", seal.name], cwd=seal.parent, check=True)


def start_gated(hosts: Cluster, inventory: Path, cli: Cli) -> subprocess.Popen[str]:
    """A run whose control has finished and whose case waits on a host for its gate."""
    process = cli.start("run", "9002.11", "--json", "--hosts", str(inventory), "--out", str(cli.out))
    about_to(hosts, cli, "wait for gate")
    until((cli.trial("9002.11-well-0-clean-single") / "trial.json").exists, "the control's end")
    return process


def test_a_killed_controller_leaves_nothing_running_and_is_resumed(hosts: Cluster, inventory: Path, cli: Cli) -> None:
    process = start_gated(hosts, inventory, cli)
    kill([psutil.Process(process.pid)])
    assert cli.finish(process).code == -9  # and nothing runs on, here or there
    before = cli.record("9002.11-well-0-clean-single")
    cli.gate.touch()
    done = cli("run", "9002.11", "--json", "--hosts", str(inventory), "--out", str(cli.out))
    assert (done.code, verdict(done)["verdict"]) == (0, "REPRODUCED")
    assert cli.record("9002.11-well-0-clean-single") == before, "a finished trial was run again"


def test_ctrl_c_ends_what_runs_on_the_hosts(hosts: Cluster, inventory: Path, cli: Cli) -> None:
    process = start_gated(hosts, inventory, cli)
    process.terminate()
    done = cli.finish(process)
    assert (done.code, done.last.startswith("repro run: interrupted; 1 of 2 trials are kept")) == (130, True)


def test_another_host_takes_over_from_one_that_dies(hosts: Cluster, inventory: Path, cli: Cli) -> None:
    process = start_gated(hosts, inventory, cli)
    [name] = about_to(hosts, cli, "wait for gate")
    cli.gate.touch()
    hosts[name].freeze()
    hosts[name].die()
    done = cli.finish(process)
    assert (done.code, verdict(done)["verdict"]) == (0, "REPRODUCED"), done
    assert f"note: lost: host {name}: the connection closed while a trial ran" in done.err
    record = cli.record("9002.11-case-0-unfixed-single")
    assert record["hosts"][0]["name"] != name
    assert len(record["given_up"]) == 1
    assert record["given_up"][0].startswith(f"host {name}: the connection closed")


@pytest.mark.usefixtures("inventory")
def test_another_host_takes_over_from_one_that_hangs(hosts: Cluster, inventory: Path, cli: Cli) -> None:
    fault = ("run", "9002.11", "--arm", "unfixed", "--json", "--host-silence", "5")
    process = cli.start(*fault, *on(inventory, cli))
    [name] = about_to(hosts, cli, "wait for gate")
    hosts[name].freeze()
    try:
        until(lambda: len(about_to(hosts, cli, "wait for gate")) == 2, "another host's turn")
    finally:
        hosts[name].thaw()
    cli.gate.touch()
    done = cli.finish(process)
    assert (done.code, verdict(done)["verdict"]) == (0, "REPRODUCED"), done
    assert f"note: lost: host {name}: nothing was heard for 5 s while a trial ran" in done.err
    assert cli.record("9002.11-case-0-unfixed-single")["hosts"][0]["name"] != name


def test_the_runs_deadline_ends_trials_everywhere(inventory: Path, cli: Cli) -> None:
    fault = ("run", "9002.16", "--arm", "unfixed", "--json", "--run-timeout", "15")
    done = cli(*fault, *on(inventory, cli))
    assert (done.code, done.out) == (4, "")
    assert "trial 9002.16-case-0-unfixed-dp2: the run's deadline of 15 s passed; run again to finish" in done.last


def test_a_finished_trial_that_was_not_fetched_is_not_run_again(inventory: Path, cli: Cli) -> None:
    """As after a connection that was cut, or a controller that died, between a trial's end and its evidence."""
    spec = TrialSpec(
        issue=9002,
        fault="9002.1",
        case="well",
        arm=Arm.CLEAN,
        tier=Tier.CPU,
        subject=Subject.DISTILLED,
        launcher=Launcher.PLAIN,
        topology=Topology(),
        program="misbehave.py",
        args={"what": "behave"},
        series={},
        calls=0,
        window=0,
        calls_per_step=1,
        index=0,
        timeout_s=60.0,
        collectives=False,
        environment={},
        seed=0,
    )
    case = Path(cli.environment["HYPER_REPRO_ISSUES"]) / "9002"
    job = Job(spec, "run/trial", case, spec.program, (0,), 1)
    remote = Remote(inventories.read(inventory).hosts[0], Limits())
    with session(remote, "trial", job.request(work_of(remote.host)), Deadline()) as talk:
        while "files" not in (message := talk.next()):
            if "want" in message:
                talk.give_case(case, message["want"])
    begun = time.time()
    run = Run()
    record = carry_out(remote, job, cli.out, Deadline(), run)
    remote.close()
    assert record.end < begun
    assert (record.ranks[0].code, run.record) == (0, record)
    assert (cli.out / "rank-0" / "stdout.log").read_text(encoding="utf-8").endswith("well\n")


def test_a_full_disk_is_named_and_another_host_takes_over(hosts: Cluster, cli: Cli) -> None:
    small = hosts["h1"].folder / "small"
    small.mkdir()
    hosts["h1"].run("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(small))
    own = {"hyper_repro_work": str(small)}
    path = hosts.inventory(
        cli.folder / "hosts.yml", hosts.hosts[:2], hyper_repro_python=sys.executable, h1=own, hyper_repro_slots=1
    )
    done = cli("run", "9002.1", "--json", "--hosts", str(path), "--out", str(cli.out))
    assert (done.code, verdict(done)["verdict"]) == (0, "REPRODUCED"), done
    assert "note: lost: host h1: " in done.err
    assert "less than 64 MiB are free; free space there, or set hyper_repro_work" in done.err
    assert {record["hosts"][0]["name"] for record in records(cli).values()} == {"h2"}


def test_one_trial_across_hosts_under_msrun(hosts: Cluster, inventory: Path, cli: Cli) -> None:
    """And on a host whose clock is 100 s ahead: the failing rank's time is told on our clock."""
    compiler = shutil.which("gcc") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C compiler to make a clock that is off: apt-get install g++")
    library = cli.folder / "clock_off.so"
    source = Path(__file__).with_name("clock_off.c")
    subprocess.run([compiler, "-x", "c", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    prepare(hosts, hosts["h2"], cli, LD_PRELOAD=str(library), CLOCK_OFF_S="100")
    done = cli("run", "9002.10", "--arm", "unfixed", "--json", "--nodes", "2", "--limit", "h1,h2", *on(inventory, cli))
    fault = verdict(done)
    assert (done.code, fault["verdict"]) == (0, "REPRODUCED"), done
    assert "rank 1 on h2 passed its body, then died of signal 11 (SIGSEGV), finalising" in fault["why"]
    assert "note: host h2: its clock is +100" in done.err
    record = cli.record("9002.10-case-0-unfixed-dp2")
    assert [(host["name"], host["ranks"]) for host in record["hosts"]] == [("h1", [0]), ("h2", [1])]
    assert abs(record["hosts"][1]["skew_s"] - 100) < 1
    assert (record["first_failing"], [rank["host"] for rank in record["ranks"]]) == (1, ["h1", "h2"])
    # What was gathered on h2 came too.
    assert (cli.trial("9002.10-case-0-unfixed-dp2") / "rank-1" / "backtrace.txt").stat().st_size > 0
    # By its own clock the rank on h2 ended 100 s later.
    assert record["start"] < record["ranks"][1]["end"] < record["end"] < record["start"] + 90


def on(inventory: Path, cli: Cli) -> tuple[str, ...]:
    return "--hosts", str(inventory), "--out", str(cli.out)


def test_a_rank_that_fails_ends_the_trial_on_every_host(inventory: Path, cli: Cli) -> None:
    done = cli("run", "9002.17", "--arm", "unfixed", "--json", "--nodes", "2", *on(inventory, cli))
    fault = verdict(done)
    assert (done.code, fault["verdict"]) == (0, "REPRODUCED"), done
    assert fault["why"].startswith("rank 1 on h2 in body: ValueError: asked to raise")
    record = cli.record("9002.17-case-0-unfixed-dp2")
    assert (record["ending"], record["detail"]) == ("completed", "ended after the first failure")
    assert [(rank["code"], rank["killed"]) for rank in record["ranks"]] == [(None, True), (1, False)]


def test_a_host_that_dies_ends_the_trial_on_every_host(hosts: Cluster, inventory: Path, cli: Cli) -> None:
    options = ("--arm", "unfixed", "--json", "--nodes", "2", "--limit", "h1,h2")
    process = cli.start("run", "9002.16", *options, *on(inventory, cli))
    assert sorted(about_to(hosts, cli, "hang", 2)) == ["h1", "h2"]
    hosts["h2"].die()
    done = cli.finish(process)  # nothing runs on, on h1 either
    assert (done.code, done.out) == (4, "")
    assert "no host is left for it: host h2: the connection closed while a trial ran" in done.last


def test_hosts_that_cannot_reach_each_other_are_told(hosts: Cluster, inventory: Path, cli: Cli) -> None:
    hosts["h1"].run("ip", "route", "add", "unreachable", f"{hosts['h2'].address}/32")
    try:
        options = ("--arm", "unfixed", "--json", "--nodes", "2", "--limit", "h1,h2")
        done = cli("run", "9002.14", *options, *on(inventory, cli))
    finally:
        hosts["h1"].run("ip", "route", "del", "unreachable", f"{hosts['h2'].address}/32")
    assert (done.code, done.out) == (4, "")
    assert f"host h2: it cannot reach {hosts['h1'].address}:" in done.last


def test_a_world_that_does_not_fit_is_told(inventory: Path, cli: Cli) -> None:
    done = cli("run", "9002.16", "--arm", "unfixed", "--topology", "dp=6", "--nodes", "4", *on(inventory, cli))
    assert (done.code, done.out) == (4, "")
    assert "6 ranks do not fit on 4 hosts with [2, 2, 2, 2] places, as many on each; name more hosts" in done.last


def test_no_host_that_will_do(inventory: Path, cli: Cli) -> None:
    inventory.write_text(inventory.read_text(encoding="utf-8").replace(sys.executable, "/nowhere"), encoding="utf-8")
    done = cli("run", "9002.1", *on(inventory, cli))
    assert (done.code, done.out) == (4, "")
    assert done.last.startswith("repro run: none of 4 hosts will do: host h1: the project there ended with status 127")
