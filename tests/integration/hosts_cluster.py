"""A cluster of real sshd servers on this machine: each host is a network, process and host-name namespace of its own.

Everything is made under names with one prefix and taken away again by ``Cluster.close``, also after a test that failed.
A host shares this machine's files, but not its processes, its address, its host name, its /tmp or its host key. The
servers run as root because the namespaces need it, and let in the user who runs the tests by key alone, on a port and
with a ``known_hosts`` of the cluster's own: nothing of the machine's own SSH set-up is read or changed.
"""

from __future__ import annotations

import contextlib
import functools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import yaml

PORT = 2222
# 198.18.0.0/15 is set aside for tests of network equipment: no real network uses it.
NETWORK = "198.18"
NEEDED = {"sshd": "openssh-server", "ssh-keygen": "openssh-client", "ip": "iproute2", "unshare": "util-linux"}
PATIENCE_S = 60.0
# A user that the hosts alone know, and this machine does not.
PLAIN_USER, PLAIN_ID = "plain", 61_234

CONFIG = """
Port {port}
ListenAddress {address}
HostKey {folder}/host_key
PidFile none
AuthorizedKeysFile {keys}
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
UsePAM no
UseDNS no
PrintMotd no
MaxStartups 200:30:300
MaxSessions 100
Subsystem sftp internal-sftp
"""


@functools.cache
def lacking() -> str:
    """Why there can be no cluster here, with the command that mends it; empty if there can."""
    if os.geteuid() != 0:
        return "network namespaces need root: run the tests as root"
    missing = sorted({package for tool, package in NEEDED.items() if shutil.which(tool) is None})
    if missing:
        return f"apt-get install {' '.join(missing)}"
    made = subprocess.run(["unshare", "--net", "--pid", "--mount", "--fork", "true"], capture_output=True, check=False)
    return "" if made.returncode == 0 else "no namespaces here: in a container, run it with --privileged"


def _run(*command: str, given: str | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, input=given)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


@dataclass
class Host:
    """One host of the cluster."""

    name: str
    namespace: str
    address: str
    folder: Path
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def init(self) -> int:
        """Pid, as this machine sees it, of the first process of the host's own process namespace."""
        assert self.process is not None
        return psutil.Process(self.process.pid).children()[0].pid

    def processes(self) -> list[psutil.Process]:
        """All that runs on the host."""
        first = psutil.Process(self.init)
        return [first, *first.children(recursive=True)]

    def running(self, word: str) -> list[psutil.Process]:
        """What runs on the host with this word in its command line; one that has just ended does not."""
        found = []
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):  # also of a zombie
                found += [process] if word in process.cmdline() else []
        return found

    def run(self, *command: str) -> str:
        """Run a command on the host, past SSH."""
        return _run("nsenter", f"--target={self.init}", "--net", "--pid", "--mount", "--uts", *command)

    def freeze(self) -> None:
        """Stop everything on the host without a word, as a machine that hangs does."""
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen host go on."""
        for process in reversed(self.processes()):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGCONT)

    def die(self) -> None:
        """End the host at once, as a lost power supply does, but with its sockets closed by the kernel."""
        assert self.process is not None
        os.kill(self.init, signal.SIGKILL)
        self.process.wait(PATIENCE_S)


class Cluster:
    """Hosts ``h1`` to ``hN`` on a bridge, with a user key and a ``known_hosts`` that knows them all.

    Args:
        count: How many hosts.
    """

    def __init__(self, count: int) -> None:
        # Not below a test's own folder, which other users may not enter.
        self.folder = folder = Path(tempfile.mkdtemp(prefix="hyper-repro-hosts-"))
        folder.chmod(0o755)
        self._mark = uuid4().hex[:6]
        self._bridge = f"hr{self._mark}b"
        self.key = folder / "user_key"
        self.known_hosts = folder / "known_hosts"
        self._net = int(self._mark[:2], 16)
        self.hosts = [
            Host(
                f"h{number}", f"hr-{self._mark}-{number}", f"{NETWORK}.{self._net}.{number + 1}", folder / f"h{number}"
            )
            for number in range(1, count + 1)
        ]

    def __getitem__(self, name: str) -> Host:
        """A host by its name."""
        return next(host for host in self.hosts if host.name == name)

    @property
    def gateway(self) -> str:
        """This machine's own address on the hosts' network."""
        return f"{NETWORK}.{self._net}.1"

    def open(self) -> None:
        """Make the network and start every server."""
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.key))
        (self.folder / "authorized_keys").write_text(self.key.with_suffix(".pub").read_text(encoding="utf-8"))
        lines = [f"link add {self._bridge} type bridge", f"addr add {self.gateway}/24 dev {self._bridge}"]
        lines += [f"link set {self._bridge} up"]
        for number, host in enumerate(self.hosts):
            outer, inner = f"hr{self._mark}v{number}", f"hr{self._mark}i{number}"
            lines += [
                f"netns add {host.namespace}",
                f"link add {outer} type veth peer name {inner}",
                f"link set {outer} master {self._bridge} up",
                f"link set {inner} netns {host.namespace} name eth0",
            ]
        _run("ip", "-batch", "-", given="\n".join(lines) + "\n")
        for host in self.hosts:
            inside = ["link set lo up", f"addr add {host.address}/24 dev eth0", "link set eth0 up"]
            inside += [f"route add default via {self.gateway}"]
            _run("ip", "-netns", host.namespace, "-batch", "-", given="\n".join(inside) + "\n")
            host.folder.mkdir()
            self.new_host_key(host)
            self.configure(host)
            self.start(host)
        self.trust(self.hosts)
        for host in self.hosts:
            self.wait_for(host)

    def new_host_key(self, host: Host) -> None:
        """Give a host a key, another one if it has one."""
        for path in host.folder.glob("host_key*"):
            path.unlink()
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", host.name, "-f", str(host.folder / "host_key"))

    def configure(self, host: Host, more: str = "") -> None:
        """Write the server's configuration; ``more`` is put in front, where it has its way."""
        values = {"port": PORT, "address": host.address, "folder": host.folder, "keys": self.folder / "authorized_keys"}
        (host.folder / "sshd_config").write_text(more + CONFIG.format(**values), encoding="utf-8")

    def trust(self, hosts: Sequence[Host]) -> None:
        """Write ``known_hosts`` with the hosts' present keys."""
        lines = []
        for host in hosts:
            kind, key = (host.folder / "host_key.pub").read_text(encoding="utf-8").split()[:2]
            lines.append(f"[{host.address}]:{PORT} {kind} {key}\n")
        self.known_hosts.write_text("".join(lines), encoding="utf-8")

    def start(self, host: Host) -> None:
        """Start a host: its namespaces and its server."""
        # A user list of the host's own, with plain shells and empty home folders: what the machine's own users have in
        # theirs, such as a .bashrc that takes a second, has no part in a test.
        script = (
            'hostname "$1" && mkdir -p /run/sshd && mount --bind "$3/passwd" /etc/passwd && '
            'exec "$2" -D -e -f "$3/sshd_config"'
        )
        self._users(host)
        sshd = shutil.which("sshd") or "/usr/sbin/sshd"
        # A test that is killed takes its hosts along.
        bound = ["setpriv", "--pdeathsig", "KILL"]
        inside = ["unshare", "--uts", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc"]
        with (host.folder / "sshd.log").open("ab") as log:
            host.process = subprocess.Popen(
                [
                    *bound,
                    "ip",
                    "netns",
                    "exec",
                    host.namespace,
                    *inside,
                    "sh",
                    "-c",
                    script,
                    "sh",
                    host.name,
                    sshd,
                    host.folder,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _users(self, host: Host) -> None:
        users = [entry for entry in pwd.getpwall() if entry.pw_name != "root"]
        lines = [f"{u.pw_name}:x:{u.pw_uid}:{u.pw_gid}:{u.pw_gecos}:{u.pw_dir}:{u.pw_shell}" for u in users]
        for name, number in (("root", 0), (PLAIN_USER, PLAIN_ID)):
            home = host.folder / f"home-{name}"
            home.mkdir(exist_ok=True)
            os.chown(home, number, number)
            lines.append(f"{name}:x:{number}:{number}::{home}:/bin/sh")
        (host.folder / "passwd").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def wait_for(self, host: Host) -> None:
        """Wait until a host's server listens."""
        deadline = time.monotonic() + PATIENCE_S
        log = host.folder / "sshd.log"
        while "Server listening" not in log.read_text(encoding="utf-8", errors="replace"):
            assert host.process is not None
            if host.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{host.name}: sshd did not start: {log.read_text(encoding='utf-8')[-500:]}")
            time.sleep(0.02)

    def restart(self, host: Host) -> None:
        """End a host and start it again, with the key and configuration that it now has."""
        if host.process is not None and host.process.poll() is None:
            host.die()
        (host.folder / "sshd.log").unlink(missing_ok=True)
        self.start(host)
        self.wait_for(host)

    def inventory(self, path: Path, hosts: Sequence[Host] | None = None, **variables: Any) -> Path:
        """Write an Ansible inventory of the hosts.

        Args:
            path: The file.
            hosts: Which; None for all.
            **variables: Of the group; those that name a host, such as ``h1={...}``, are of that host.
        """
        chosen = self.hosts if hosts is None else hosts
        own = {host.name: variables.pop(host.name, {}) for host in chosen}
        group = {
            "hosts": {host.name: {"ansible_host": host.address, **own[host.name]} for host in chosen},
            "vars": {
                "ansible_port": PORT,
                "ansible_ssh_private_key_file": str(self.key),
                "ansible_ssh_common_args": f"-o UserKnownHostsFile={self.known_hosts}",
                **variables,
            },
        }
        path.write_text(yaml.safe_dump({"all": {"children": {"workers": group}}}, sort_keys=False), encoding="utf-8")
        return path

    def close(self) -> None:
        """Take everything away."""
        for host in self.hosts:
            if host.process is not None and host.process.poll() is None:
                host.process.kill()
                host.process.wait(PATIENCE_S)
        for host in self.hosts:
            subprocess.run(["ip", "netns", "del", host.namespace], capture_output=True, check=False)
        subprocess.run(["ip", "link", "del", self._bridge], capture_output=True, check=False)
        shutil.rmtree(self.folder)


@contextlib.contextmanager
def cluster(count: int) -> Iterator[Cluster]:
    """A cluster for as long as the block lasts."""
    made = Cluster(count)
    try:
        made.open()
        yield made
    finally:
        made.close()
