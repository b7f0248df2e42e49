"""Preflight and a no-change deploy over many test hosts: seconds and how they grow, against Ansible as it comes.

The hosts are containers on the same machine, so its cores do the hosts' work as well as Ansible's.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import docker

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

import ansible_hosts  # noqa: E402 -- after the path to it
from ansible_hosts import Hosts, Spec  # noqa: E402
from docker_engine import engine  # noqa: E402

Row = tuple[str, str, str]
SIZES = tuple(int(word) for word in os.environ.get("HOSTS", "10,25,50").split(","))
# Plain Ansible is asked no more than this many: it takes minutes where nothing is to be learned from it any more.
PLAIN_MOST = int(os.environ.get("PLAIN_MOST", "25"))
# What Ansible does where nobody tells it anything: 5 forks, a file copied for each task, facts gathered by each play.
PLAIN = {"ANSIBLE_CONFIG": "plain.cfg"}
OURS = {"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}
GATHER = "- hosts: all\n  gather_facts: true\n"
VARIABLES = ("-e", "preflight_strict=false", "-e", "deploy_max_fail_percentage=100")


class Site:
    """Hosts, and how long a playbook takes on some of them."""

    def __init__(self, hosts: Hosts, folder: Path) -> None:
        self._hosts = hosts
        self._folder = folder
        (folder / "gather.yml").write_text(GATHER)
        (folder / "plain.cfg").write_text("[defaults]\n")

    def seconds(self, playbook: str, size: int, environment: dict[str, str], gather: bool = False) -> float:
        """Wall time of a playbook on the first ``size`` hosts.

        Raises:
            RuntimeError: It failed.
        """
        program = str(Path(sys.executable).with_name("ansible-playbook"))
        first = [str(self._folder / "gather.yml")] if gather else []
        limit = f"all[0:{size - 1}]"
        command = [program, *first, f"playbooks/{playbook}.yml", "-i", str(self._hosts.inventory), "--limit", limit]
        # An absolute name stays as it is.
        config = {"ANSIBLE_CONFIG": str(self._folder / environment["ANSIBLE_CONFIG"])}
        control = {"ANSIBLE_SSH_CONTROL_PATH_DIR": str(self._hosts.folder / "cp")}
        variables = {**os.environ, **control, **environment, **config}
        begin = time.monotonic()
        done = subprocess.run(
            [*command, *VARIABLES], cwd=ROOT, env=variables, capture_output=True, text=True, check=False
        )
        took = time.monotonic() - begin
        if done.returncode != 0 or "unreachable=1" in done.stdout:
            raise RuntimeError(f"{playbook} on {size} hosts: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        return took

    def doctor(self) -> float:
        """Wall time of ``repro doctor --hosts`` on all of them."""
        begin = time.monotonic()
        command = [sys.executable, "-m", "repro.cli", "doctor", "--hosts", str(self._hosts.inventory)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            raise RuntimeError(f"doctor ended with {done.returncode}: {done.stdout[-1000:]}{done.stderr[-1000:]}")
        return time.monotonic() - begin


@contextlib.contextmanager
def site(size: int) -> Iterator[Site]:
    """As many hosts, deployed once."""
    with tempfile.TemporaryDirectory() as folder, engine() as address:
        client = docker.DockerClient(base_url=address, timeout=600)
        specs = [Spec(f"h{number:03}", systemd=False) for number in range(size)]
        with ansible_hosts.hosts(client, specs, "172.31.68.0/23") as hosts:
            made = Site(hosts, Path(folder))
            made.seconds("deploy", size, OURS)
            yield made
        client.close()


def measure(sizes: tuple[int, ...] = SIZES, plain_most: int = PLAIN_MOST) -> Iterator[Row]:
    """The rows of the table."""
    with site(max(sizes)) as made:
        for playbook in ("preflight", "deploy"):
            for size in sizes:
                ours = made.seconds(playbook, size, OURS)
                beside = "not measured"
                if size <= plain_most:
                    theirs = made.seconds(playbook, size, PLAIN, gather=True)
                    beside = f"plain Ansible defaults {theirs:.0f} s, {theirs / ours:.1f} times as long"
                name = "preflight" if playbook == "preflight" else "no-change deploy"
                yield f"{name}, {size} hosts", f"{ours:.0f} s, {ours / size:.2f} s a host", beside
        yield f"`repro doctor --hosts`, {max(sizes)} hosts", f"{made.doctor():.0f} s", "the same checks, one connection"


def choices(size: int = 10) -> Iterator[Row]:
    """Each setting alone taken back from ours, on one size."""
    with site(size) as made:
        base = made.seconds("deploy", size, OURS)
        yield f"deploy, {size} hosts, ansible.cfg", f"{base:.1f} s", "1.00"
        for name, change in (
            ("without pipelining", {"ANSIBLE_PIPELINING": "False"}),
            ("5 forks", {"ANSIBLE_FORKS": "5"}),
            ("20 forks", {"ANSIBLE_FORKS": "20"}),
        ):
            took = made.seconds("deploy", size, {**OURS, **change})
            yield f"deploy, {size} hosts, {name}", f"{took:.1f} s", f"{took / base:.2f}"
        took = made.seconds("deploy", size, OURS, gather=True)
        yield f"deploy, {size} hosts, facts gathered", f"{took:.1f} s", f"{took / base:.2f}"
        folder = os.environ.get("MITOGEN")
        if folder:
            mitogen = {"ANSIBLE_STRATEGY_PLUGINS": f"{folder}/ansible_mitogen/plugins/strategy", "PYTHONPATH": folder}
            took = made.seconds("deploy", size, {**OURS, **mitogen, "ANSIBLE_STRATEGY": "mitogen_linear"})
            yield f"deploy, {size} hosts, mitogen", f"{took:.1f} s", f"{took / base:.2f}"
