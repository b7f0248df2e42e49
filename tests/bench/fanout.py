"""Many hosts at once: time, memory and throughput of the fan-out, beside what others do with the same hosts.

The hosts are real sshd servers in namespaces of this machine, so both ends share its cores: absolute times say nothing
of a cluster, the comparison does.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))

from hosts_cluster import PORT, Cluster, Host, cluster, lacking

from repro.hosts import inventory

Row = tuple[str, str, str]
HOSTS, HUNG, SENDERS, MEGABYTES = 100, 10, 20, 100
COMMAND = "sleep 2"
DEADLINE_S = 10
LIMIT_S = 180.0
ROUNDS = 3

GROUP = """
import sys
from fabric import Config, ThreadingGroup
key, port, *hosts = sys.argv[1:]
group = ThreadingGroup(*hosts, port=int(port), connect_kwargs={{"key_filename": key}}, config=Config())
print(len(group.run({command!r}, hide=True)))
"""


def fanout(work: Path, run: Callable[..., tuple[float, str, int]]) -> Iterator[Row]:
    """All figures of this part.

    Args:
        work: A folder to work in.
        run: Runs a command; gives seconds, standard output and the largest resident memory of its process.
    """
    if lacking():
        yield "fan-out", "not measured", lacking()
        return
    work.mkdir(parents=True)
    with cluster(HOSTS) as hosts:
        path = hosts.inventory(work / "hosts.yml", hyper_repro_python=sys.executable)
        yield from _ours_and_fabrics(hosts, path, run)
        yield from _others(path, run)
        yield from _pyinfra(hosts, work)
        yield from _hung(hosts, path, run)
        yield from _collect(hosts, work, run)


def _repro(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "repro.cli", "hosts", *arguments]


def _ours_and_fabrics(hosts: Cluster, path: Path, run: Callable[..., tuple[float, str, int]]) -> Iterator[Row]:
    """Ours and Fabric's own group take turns; the middle one of each counts."""
    script = GROUP.format(command=COMMAND)
    group = [sys.executable, "-c", script, str(hosts.key), str(PORT), *(host.address for host in hosts.hosts)]
    rounds = [(run(_repro("run", "--json", str(path), "--", *COMMAND.split())), run(group)) for _ in range(ROUNDS)]
    seconds, out, largest = sorted(ours for ours, _ in rounds)[ROUNDS // 2]
    results = [json.loads(line) for line in out.splitlines()]
    whole, slowest = sum(each["code"] == 0 for each in results), max(each["seconds"] for each in results)
    in_order = [each["host"] for each in results] == [host.name for host in inventory.read(path).hosts]
    yield (
        f"{COMMAND} on {HOSTS} hosts",
        f"{seconds:.1f} s, {whole} whole, {'' if in_order else 'NOT '}in order",
        f"slowest host {slowest:.1f} s; goal under 1.2 times that plus 3 s, {1.2 * slowest + 3:.1f} s",
    )
    yield f"memory of the controller at {HOSTS} hosts", f"{largest / 1e6:.0f} MB", "goal under 150 MB"
    theirs, out, largest = sorted(group for _, group in rounds)[ROUNDS // 2]
    told = f"{out.strip() or 'none'} whole, {largest / 1e6:.0f} MB; no deadline, takes any host key"
    yield "the same by Fabric's ThreadingGroup", f"{theirs:.1f} s", told


def _others(path: Path, run: Callable[..., tuple[float, str, int]]) -> Iterator[Row]:
    ansible = str(Path(sys.executable).with_name("ansible"))
    environment = {**os.environ, "ANSIBLE_PYTHON_INTERPRETER": "/usr/bin/python3", "ANSIBLE_NOCOLOR": "1"}
    for forks in (5, HOSTS):
        command = [ansible, "all", "-i", str(path), "-f", str(forks), "-m", "command", "-a", COMMAND]
        seconds, out, _ = run(command, environment)
        whole = out.count("| CHANGED |")
        yield f"the same by ansible, {forks} forks", f"{seconds:.1f} s", f"{whole} whole"


def _pyinfra(hosts: Cluster, work: Path) -> Iterator[Row]:
    """In an environment of its own: nothing of the project needs it."""
    place = work / "pyinfra"
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "pyinfra"]
    if subprocess.run(pip, check=False).returncode != 0:
        yield "the same by pyinfra", "not measured", "it could not be installed"
        return
    data = {
        "ssh_port": PORT,
        "ssh_user": "root",
        "ssh_key": str(hosts.key),
        "ssh_known_hosts_file": str(hosts.known_hosts),
    }
    listed = work / "pyinfra_hosts.py"
    listed.write_text(f"hosts = {[(host.address, data) for host in hosts.hosts]!r}\n", encoding="utf-8")
    command = [str(place / "bin" / "pyinfra"), "-y", "--parallel", str(HOSTS), str(listed), "exec", "--", COMMAND]
    with (work / "pyinfra.log").open("w+", encoding="utf-8") as log:
        start = time.perf_counter()
        code = subprocess.run(command, stdout=log, stderr=log, check=False, timeout=LIMIT_S).returncode
        seconds = time.perf_counter() - start
    yield "the same by pyinfra", f"{seconds:.1f} s", f"exit code {code}"


def _hung(hosts: Cluster, path: Path, run: Callable[..., tuple[float, str, int]]) -> Iterator[Row]:
    frozen: list[Host] = hosts.hosts[:: HOSTS // HUNG]
    for host in frozen:
        host.freeze()
    try:
        command = _repro("run", "--json", "--host-timeout", str(DEADLINE_S), str(path), "--", *COMMAND.split())
        seconds, out, _ = run(command)
    finally:
        for host in frozen:
            host.thaw()
    results = [json.loads(line) for line in out.splitlines()]
    whole = sum(each["code"] == 0 for each in results)
    named = sum(each["error"] is not None for each in results)
    yield (
        f"{len(frozen)} of {HOSTS} hosts hung, deadline {DEADLINE_S} s",
        f"{seconds:.1f} s, {whole} whole, {named} named",
        f"goal under {DEADLINE_S + 5} s",
    )


def _collect(hosts: Cluster, work: Path, run: Callable[..., tuple[float, str, int]]) -> Iterator[Row]:
    """Three rounds of each, taking turns; the middle one counts."""
    senders = hosts.hosts[:SENDERS]
    for host in senders:
        folder = host.folder / "evidence"
        folder.mkdir()
        with (folder / "core").open("wb") as file:
            for _ in range(MEGABYTES):
                file.write(os.urandom(1_000_000))
    names = ",".join(host.name for host in senders)
    script = work / "all_scp.sh"
    lines = [
        f"scp -q -P {PORT} -i {hosts.key} -o UserKnownHostsFile={hosts.known_hosts} "
        f"root@{host.address}:{host.folder}/evidence/core {work}/scp/{host.name} &"
        for host in senders
    ]
    script.write_text("\n".join([*lines, "wait", ""]), encoding="utf-8")
    # Each host's own folder, under one name: a link in its home.
    for host in senders:
        (host.folder / "home-root" / "evidence").symlink_to(host.folder / "evidence")
    path = work / "hosts.yml"
    took: dict[str, list[float]] = {"scp": [], "ours": []}
    for _ in range(ROUNDS):
        for name, command in (
            ("scp", ["sh", str(script)]),
            (
                "ours",
                _repro("get", "--host-timeout", "170", "--limit", names, str(path), "~/evidence", str(work / "ours")),
            ),
        ):
            (work / name).mkdir()
            seconds, _, largest = run(command)
            got = sum(file.stat().st_size for file in (work / name).rglob("*") if file.is_file())
            took[name].append(seconds if got == SENDERS * MEGABYTES * 1_000_000 else float("inf"))
            shutil.rmtree(work / name)
    scp, ours = (sorted(took[name])[ROUNDS // 2] for name in ("scp", "ours"))
    total = SENDERS * MEGABYTES
    yield (
        f"{MEGABYTES} MB from each of {SENDERS} hosts, by digest",
        f"{total / ours:.0f} MB/s, {scp / ours:.0%} of scp",
        f"scp {total / scp:.0f} MB/s, all at once, no digest; controller {largest / 1e6:.0f} MB; goal at least 80%",
    )
