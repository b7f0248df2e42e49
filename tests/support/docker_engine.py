"""A Docker engine for tests, and a Debian base image for it: no registry, and no engine of anybody else touched."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import docker
from docker.errors import DockerException, ImageNotFound

from repro.launch.process import die_with_parent

REPOSITORY = Path(__file__).resolve().parents[2]
CACHE = REPOSITORY / ".cache" / "base-image"
INSTALL = "as root: apt-get install docker.io mmdebstrap"
SUITE = "bookworm"
BASE = "hyper-repro-base"
INCLUDE = ("ca-certificates", "python3", "python3-venv")
DIGEST_LABEL = "hyper-repro.base"
# Only ends a start that would never end.
START_S = 60.0
STOP_S = 60.0


class EngineMissingError(Exception):
    """There is no engine and none can be started; the message is the reason and the command that mends it."""


@contextmanager
def engine() -> Iterator[str]:
    """The address of a Docker engine (what DOCKER_HOST is set to): one that answers, else one of our own.

    An engine of our own has its folders, its socket and its name in containerd for itself, sets no firewall rule and
    has no default bridge: a container is on no network unless a test creates one (``docker network create``; host and
    containers reach each other there by address, containers each other by name) or asks for the host's. It is stopped
    afterwards, with every container in it, and its folder is removed.

    Raises:
        EngineMissingError: None answers, and we are not root or have no dockerd.
    """
    address = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    if _answers(address):
        yield address
        return
    if os.geteuid() != 0:
        raise EngineMissingError(f"no Docker engine answers at {address}, and only root can start one; start it first")
    daemon = shutil.which("dockerd", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
    if daemon is None:
        raise EngineMissingError(f"no Docker engine answers at {address} and there is no dockerd; {INSTALL}")
    folder = Path(tempfile.mkdtemp(prefix="hyper-repro-docker-"))
    try:
        with _started(daemon, folder) as own:
            yield own
    finally:
        _unmount_below(folder)
        shutil.rmtree(folder)


@contextmanager
def _started(daemon: str, folder: Path) -> Iterator[str]:
    address = f"unix://{folder}/docker.sock"
    name = f"hyper-repro-{uuid4().hex}"  # not the folder's name: containerd refuses an underscore at an end of it
    command = [
        *(daemon, "--host", address, "--pidfile", str(folder / "dockerd.pid")),
        *("--data-root", str(folder / "data"), "--exec-root", str(folder / "exec")),
        # The file of the engine that belongs to the machine is not read; an empty one is.
        *("--config-file", str(folder / "daemon.json")),
        # Where the machine has a containerd that serves another engine too, names keep them apart.
        *("--containerd-namespace", name, "--containerd-plugins-namespace", f"{name}-plugins"),
        *("--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-masq=false"),
    ]
    (folder / "daemon.json").write_text("{}\n")
    log = folder / "dockerd.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            # Ctrl-C in the terminal is for the tests; they stop the engine, or the kernel does once they are gone.
            start_new_session=True,
            preexec_fn=lambda: die_with_parent(signal.SIGTERM),  # noqa: PLW1509 -- no thread of ours runs yet
        )
    try:
        deadline = time.monotonic() + START_S
        while not _answers(address):
            if process.poll() is not None or time.monotonic() > deadline:
                last = "\n".join(log.read_text(errors="replace").splitlines()[-5:])
                raise EngineMissingError(f"dockerd did not start here: {last}")
            time.sleep(0.1)
        try:
            yield address
        finally:
            with _client(address) as client:
                for container in client.containers.list(all=True, ignore_removed=True):
                    container.remove(force=True, v=True)
                client.networks.prune()  # a bridge is the machine's, and outlives its engine
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def _client(address: str) -> Iterator[docker.DockerClient]:
    client = docker.DockerClient(base_url=address, timeout=int(STOP_S))
    try:
        yield client
    finally:
        client.close()


def _answers(address: str) -> bool:
    try:
        with _client(address) as client:
            return bool(client.ping())
    except DockerException:
        return False
    except OSError:  # the socket's folder is there, the socket not yet
        return False


def _unmount_below(folder: Path) -> None:
    """Take away what a dockerd that had to be killed left mounted; afterwards the folder can be removed."""
    mounted = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    for point in reversed([point for point in mounted if point.startswith(f"{folder}/")]):
        subprocess.run(["umount", "--lazy", point], check=True)


def build_arguments(client: docker.DockerClient) -> list[str]:
    """What every build in the tests is told: our base image, and the host's network to reach packages by."""
    return ["--base", base_image(client), "--network", "host"]


def base_image(client: docker.DockerClient, include: Sequence[str] = INCLUDE) -> str:
    """Name of a Debian base image in the engine, made from Debian's packages: ``hyper-repro-base:bookworm``.

    The root file system is kept as ``.cache/base-image/<digest of its arguments>.tar``; to make it takes 20 s.

    Args:
        client: The engine.
        include: Packages beside those of the smallest Debian; another choice than the usual has the digest in its tag.

    Raises:
        EngineMissingError: There is no mmdebstrap.
    """
    # Like Debian's own slim image: no manuals, no translations.
    slim = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("doc", "info", "locale", "man")]
    arguments = ["--variant=minbase", *slim, f"--include={','.join(sorted(include))}", SUITE]
    digest = hashlib.sha256("\n".join(arguments).encode()).hexdigest()[:12]
    tag = SUITE if sorted(include) == sorted(INCLUDE) else f"{SUITE}-{digest}"
    name = f"{BASE}:{tag}"
    try:
        if client.images.get(name).labels.get(DIGEST_LABEL) == digest:
            return name
    except ImageNotFound:
        pass  # made below
    archive = CACHE / f"{digest}.tar"
    _make_root(arguments, archive)
    client.api.import_image_from_file(
        str(archive),
        repository=BASE,
        tag=tag,
        changes=[f"LABEL {DIGEST_LABEL}={digest}", 'CMD ["/bin/bash"]'],
    )
    return name


def _make_root(arguments: Sequence[str], archive: Path) -> None:
    archive.parent.mkdir(parents=True, exist_ok=True)
    with archive.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if archive.exists():
            return
        program = shutil.which("mmdebstrap")
        if program is None:
            raise EngineMissingError(f"no mmdebstrap to make a base image with; {INSTALL}")
        part = archive.with_suffix(".part.tar")
        done = subprocess.run([program, *arguments, str(part)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            part.unlink(missing_ok=True)
            raise RuntimeError(f"mmdebstrap ended with {done.returncode}: {done.stderr[-2000:]}")
        part.rename(archive)
