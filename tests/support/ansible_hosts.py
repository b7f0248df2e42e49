"""Test hosts for the playbooks: containers with systemd, sshd, a Docker engine of their own and a made-up Ascend tree.

A host is what the playbooks meet at a site: a plain user with a key and sudo, host keys that are checked, real systemd,
a real engine, a real kernel; the NPUs, npu-smi and hccn_tool are stand-ins (ascend_tree). Its core_pattern is a file of
the container's own, since the real one is the whole machine's.
"""

from __future__ import annotations

import io
import shlex
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import ascend_tree
import docker
import yaml
from ascend_tree import Tree
from docker.models.containers import Container
from docker.models.networks import Network
from docker_engine import base_image

PACKAGES = (
    "ca-certificates", "dbus", "docker.io", "iproute2", "iptables", "libfaketime", "openssh-server", "procps",
    "python3", "python3-venv", "sudo", "systemd", "systemd-sysv",
)  # fmt: skip
USER = "ops"
# CAP_SYS_RESOURCE is not among them: machines that run tests may lack it, and `--privileged` fails there.
CAPABILITIES = (
    "SYS_ADMIN", "NET_ADMIN", "SYS_PTRACE", "MKNOD", "SYS_TIME", "AUDIT_CONTROL", "IPC_LOCK", "DAC_READ_SEARCH",
    "SYS_NICE", "SYSLOG", "SYS_BOOT",
)  # fmt: skip
BOOT_S = 60.0
# Writable mounts for systemd, the network's settings (which are each container's), a core_pattern of its own. The rest
# of /proc/sys stays read-only: it is the machine's.
INIT = """
mount -o remount,rw /sys
mount --bind /proc/sys/net /proc/sys/net
mount -o remount,rw,bind /proc/sys/net
echo '{reserved_ports}' >/proc/sys/net/ipv4/ip_local_reserved_ports
awk '$5 ~ "^/sys/fs/cgroup" {print $5}' /proc/self/mountinfo | while read -r m; do mount -o remount,rw,bind "$m"; done
printf '%s\\n' '{core_pattern}' >/run/core_pattern
mount --bind /run/core_pattern /proc/sys/kernel/core_pattern
exec {command}
"""
OPEN_EULER = 'NAME="openEuler"\nID="openEuler"\nVERSION_ID="24.03"\nPRETTY_NAME="openEuler 24.03 (LTS-SP2)"\n'


@dataclass(frozen=True)
class Spec:
    """A host to be made.

    Attributes:
        name: In the inventory.
        tree: Its Ascend files; None for a host without.
        systemd: Whether it boots systemd and Docker, or runs sshd alone.
        files: More files, path to text.
        clock_s: Seconds that the clock of its logins is off (libfaketime).
        full_disk: /var/lib/docker is a small disk with no room.
        core_pattern: What its kernel says at first.
        reserved_ports: What its kernel keeps for others at first.
        groups: More groups of the inventory.
    """

    name: str
    tree: Tree | None = ascend_tree.A2
    systemd: bool = True
    files: tuple[tuple[str, str], ...] = ()
    clock_s: int = 0
    full_disk: bool = False
    core_pattern: str = "core"
    reserved_ports: str = ""
    groups: tuple[str, ...] = ()


@dataclass(frozen=True)
class Hosts:
    """Hosts that run.

    Attributes:
        folder: Keys, known_hosts, inventory.
        containers: By name.
        inventory: File for ``-i``.
        network: What they are on.
        addresses: By name.
    """

    folder: Path
    containers: dict[str, Container]
    inventory: Path
    network: Network
    addresses: dict[str, str]

    def run(self, name: str, command: str) -> str:
        """Output of a shell command as root on a host."""
        code, text = execute(self.containers[name], command)
        assert code == 0, f"{name}: {command}: {code}: {text}"
        return text

    def tree(self, name: str) -> dict[str, str]:
        """Path -> kind, owner, mode and content of every file that a deployment could touch.

        Content is a hash; of the half gigabyte of programs below /usr it is size and time of change.
        """
        skip = " -o ".join(f"-path {shlex.quote(path)}" for path in (*UNSTABLE, "/usr"))
        find = f"find / -xdev \\( {skip} \\) -prune -o"
        listing = self.run(name, f"{find} -printf '%p\\t%y %u:%g %m %l\\n'")
        listing += self.run(name, "find /usr -xdev -printf '%p\\t%y %u:%g %m %l %s %T@\\n'")
        files = dict(line.split("\t", 1) for line in listing.splitlines() if "\t" in line)
        files = {path: state for path, state in files.items() if not path.startswith(UNSTABLE)}
        sums = self.run(name, f"{find} -type f -print0 | xargs -0 sha256sum")
        for line in sums.splitlines():
            digest, _, path = line.partition("  ")
            files[path] = f"{files.get(path, '')} {digest}"
        return files


# What changes without anybody deploying: run-time folders, logs, the engine's own storage, Ansible's temporary files,
# and the copies that passwd's tools keep of the former state (/etc/group- and the like).
UNSTABLE = (
    "/proc", "/sys", "/dev", "/run", "/tmp", "/var/log", "/var/tmp", "/var/lib/docker",  # noqa: S108 -- never written
    "/var/lib/containerd", "/var/lib/systemd", "/var/cache/ldconfig", "/home/ops/.ansible", "/root/.ansible",
    "/etc/group-", "/etc/gshadow-", "/etc/passwd-", "/etc/shadow-", "/etc/subuid-", "/etc/subgid-",
    "/usr/local/share/npu-smi", "/usr/local/Ascend/driver/share", "/etc/docker/key.json",
)  # fmt: skip


def execute(container: Container, script: str) -> tuple[int, str]:
    """Exit code and output of a shell script that stops at its first failure."""
    code, output = container.exec_run(["sh", "-ec", script])
    assert isinstance(output, bytes)
    return int(code or 0), output.decode(errors="replace")


def image(client: docker.DockerClient) -> str:
    """Name of the hosts' image, made once."""
    return base_image(client, PACKAGES)


@contextmanager
def hosts(client: docker.DockerClient, specs: Sequence[Spec], subnet: str = "172.31.76.0/22") -> Iterator[Hosts]:
    """Make hosts, and take them away in the end.

    Args:
        client: The engine.
        specs: What to make.
        subnet: Of their network.
    """
    name = image(client)
    folder = Path(tempfile.mkdtemp(prefix="hyper-repro-hosts-"))
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "key")], check=True)
    pool = docker.types.IPAMPool(subnet=subnet)
    network = client.networks.create(folder.name, ipam=docker.types.IPAMConfig(pool_configs=[pool]))
    containers: dict[str, Container] = {}
    try:
        for spec in specs:
            containers[spec.name] = _made(client, name, network, spec, (folder / "key.pub").read_text())
        for spec in specs:
            _ready(containers[spec.name], spec)
        addresses = {spec.name: _address(containers[spec.name], folder.name) for spec in specs}
        yield Hosts(folder, containers, _inventory(folder, specs, containers, addresses), network, addresses)
    finally:
        for container in containers.values():
            container.remove(force=True, v=True)
        network.remove()
        subprocess.run(["rm", "-rf", str(folder)], check=True)


def _made(client: docker.DockerClient, image_name: str, network: Network, spec: Spec, key: str) -> Container:
    start = "/sbin/init" if spec.systemd else "sh -c 'mkdir -p /run/sshd; exec /usr/sbin/sshd -D -e'"
    values = {"core_pattern": spec.core_pattern, "reserved_ports": spec.reserved_ports, "command": start}
    script = INIT
    for word, value in values.items():
        script = script.replace(f"{{{word}}}", value)
    container = client.containers.create(
        image_name,
        ["/bin/sh", "-ec", script],
        hostname=spec.name,
        network=network.name,
        cap_add=list(CAPABILITIES),
        security_opt=["seccomp=unconfined", "apparmor=unconfined"],
        cgroupns="private",
        tmpfs={
            "/run": "exec",
            "/tmp": "exec",  # noqa: S108 -- a mount of the container
            **({"/var/lib/docker": "size=4m"} if spec.full_disk else {}),
        },
        volumes=[] if spec.full_disk or not spec.systemd else ["/var/lib/docker"],
        environment={"container": "docker"},
        stop_signal="SIGRTMIN+3" if spec.systemd else "SIGTERM",
        init=not spec.systemd,
    )
    container.put_archive("/", _files(spec, key))
    container.start()
    return container


def _files(spec: Spec, key: str) -> bytes:
    """An archive with the user, its key and sudo, host keys, the Ascend tree, and more files."""
    buffer = io.BytesIO()
    with tempfile.TemporaryDirectory() as made, tarfile.open(fileobj=buffer, mode="w") as archive:
        root = Path(made)
        if spec.tree is not None:
            ascend_tree.write(spec.tree, root)
            # /dev is a mount that comes later: its nodes are made once the host runs.
            subprocess.run(["rm", "-rf", str(root / "dev")], check=True)
        for path, text in spec.files:
            file = root / path.lstrip("/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        (root / "etc/sudoers.d").mkdir(parents=True, exist_ok=True)
        (root / "etc/sudoers.d/ops").write_text(f"{USER} ALL=(ALL) NOPASSWD: ALL\n")
        (root / "root").mkdir(exist_ok=True)
        (root / "root/key.pub").write_text(key)
        for each in sorted(root.rglob("*")):
            if each.is_file():
                entry = archive.gettarinfo(each, str(each.relative_to(root)))
                entry.uid = entry.gid = 0
                entry.mode = 0o440 if "sudoers.d" in entry.name else entry.mode
                with each.open("rb") as content:
                    archive.addfile(entry, content)
    return buffer.getvalue()


def _ready(container: Container, spec: Spec) -> None:
    """Wait until it is up, then do what can only be done on a running host."""
    if spec.systemd:
        _wait(container, "systemctl is-system-running | grep -Eq 'running|degraded'")
    steps = [
        f"useradd --create-home --uid 2000 --shell /bin/bash {USER}",
        f"install -d -o {USER} -g {USER} -m 700 /home/{USER}/.ssh",
        f"install -o {USER} -g {USER} -m 600 /root/key.pub /home/{USER}/.ssh/authorized_keys",
    ]
    if spec.tree is not None:
        count = len(spec.tree.dies) if spec.tree.nodes is None else spec.tree.nodes
        names = [*ascend_tree.SHARED, *(f"davinci{number}" for number in range(count))]
        steps.append(f"for name in {' '.join(names)}; do : >/dev/$name; chmod 666 /dev/$name; done")
        steps += ["chmod 1777 /usr/local/share/npu-smi /usr/local/Ascend/driver/share/hccn_tool"]
    if spec.full_disk:
        steps.append("dd if=/dev/zero of=/var/lib/docker/filled bs=64k 2>/dev/null || test -s /var/lib/docker/filled")
    if spec.clock_s:
        # Into all that a login starts; sshd itself would not survive it in its sandbox.
        library = "$(find /usr/lib -name 'libfaketime.so.1' | head -n 1)"
        variables = f"LD_PRELOAD={library} FAKETIME={spec.clock_s:+d}s FAKETIME_DISABLE_SHM=1"
        steps.append(f'echo "SetEnv {variables}" >>/etc/ssh/sshd_config')
        steps.append("systemctl reload ssh")
    code, output = execute(container, "\n".join(steps))
    assert code == 0, f"{spec.name}: {output}"
    _wait(container, "ss -ltn | grep -q ':22 '")


def _wait(container: Container, command: str) -> None:
    deadline = time.monotonic() + BOOT_S
    while execute(container, command)[0] != 0:
        if time.monotonic() > deadline:
            raise AssertionError(f"{container.name} is not up: {container.logs(tail=20).decode(errors='replace')}")
        time.sleep(0.2)


def _address(container: Container, network: str) -> str:
    container.reload()
    return str(container.attrs["NetworkSettings"]["Networks"][network]["IPAddress"])


def _inventory(
    folder: Path, specs: Sequence[Spec], containers: dict[str, Container], addresses: dict[str, str]
) -> Path:
    groups: dict[str, dict[str, object]] = {}
    keys = []
    for spec in specs:
        address = addresses[spec.name]
        _, text = execute(containers[spec.name], "cat /etc/ssh/ssh_host_ed25519_key.pub")
        keys.append(f"{address} {text.strip()}")
        chip = spec.tree.chip if spec.tree else None
        group = {"910b": "a2", "a3": "a3", None: "plain"}[chip]
        for each in (group, *spec.groups):
            its = groups.setdefault(each, {"hosts": {}})
            hosts_of = its["hosts"]
            assert isinstance(hosts_of, dict)
            hosts_of[spec.name] = {"ansible_host": address} if each == group else {}
        if chip:
            groups[group]["vars"] = {"ascend_chip": chip}
    known = folder / "known_hosts"
    known.write_text("\n".join(keys) + "\n")
    variables = {
        "ansible_user": USER,
        "ansible_ssh_private_key_file": str(folder / "key"),
        "ansible_ssh_common_args": f"-o UserKnownHostsFile={known} -o IdentitiesOnly=yes",
        "ansible_python_interpreter": "/usr/bin/python3",
    }
    path = folder / "hosts.yml"
    path.write_text(yaml.safe_dump({"all": {"vars": variables, "children": groups}}, sort_keys=False))
    return path
