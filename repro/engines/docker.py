"""Engine docker: every trial in a container of its own, under the same supervisor, on an engine that answers here."""

from __future__ import annotations

import argparse
import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import docker
import requests
from docker.errors import APIError, DockerException, ImageNotFound, NotFound

import repro
from repro.engines import owner
from repro.engines.base import Engine
from repro.errors import InfraError, UsageError
from repro.evidence.layout import TrialFolder
from repro.evidence.write import write_json
from repro.model import Ending, Tier, TrialRecord, TrialSpec

if TYPE_CHECKING:
    from docker.models.containers import Container

# Beyond the trial's own deadline, for starting, ending and recording it; then the container is taken for hung.
SLACK_S = 60.0
STOP_S = 15.0
PROBE_S = 120
# Inside a container.
TRIAL, ISSUE = "/trial", "/issue"
PYTHON = "/opt/venv/bin/python"
IMAGE_HELP = "build it with `make image-sim`, or name another with --image"


@dataclass(frozen=True)
class Limits:
    """What a container may take; None for no limit.

    Attributes:
        memory: As Docker reads it, such as ``4g``; no swap beyond it.
        cpus: Cores, a fraction is possible.
    """

    memory: str | None = None
    cpus: float | None = None


def create(args: argparse.Namespace) -> DockerEngine:
    """The engine: it answers, the image is there, and what an earlier command left behind is removed.

    Raises:
        UsageError: No image is named.
        InfraError: The engine does not answer, or has no such image.
    """
    if not args.image:
        raise UsageError("--engine docker needs --image", "for example --image hyper-repro:sim, from `make image-sim`")
    return DockerEngine(args.image, Limits(args.memory_limit, args.cpus))


class DockerEngine(Engine):
    """Runs trials in containers.

    Args:
        image: Name or digest of an image of this project.
        limits: Of each container.
    """

    name = "docker"

    def __init__(self, image: str, limits: Limits) -> None:
        self._limits = limits
        self._running: dict[str, Container] = {}
        self._lock = threading.Lock()
        self._stopped = False
        with _told("start"):
            self._client = docker.from_env(timeout=PROBE_S)
            self._client.ping()
            try:
                self._image = self._client.images.get(image)
            except ImageNotFound:
                raise InfraError(f"the Docker engine has no image {image}", IMAGE_HELP) from None
            self._name = image
            self._remove_left_behind()
            self._inside = self._ask()

    def available_tiers(self) -> list[Tier]:
        """The tiers of the image on this machine."""
        return [Tier(tier) for tier in self._inside["tiers"]]

    def package_versions(self) -> dict[str, str | None]:
        """Versions of the packages in the image."""
        return dict(self._inside["packages"])

    def describe(self) -> dict[str, Any]:
        """The image by name and digest, the engine's version, and the limits."""
        return {
            "name": self.name,
            "image": self._name,
            "image_id": self._image.id,
            "commit": self._inside["commit"],
            "engine": self._client.version()["Version"],
            "memory": self._limits.memory,
            "cpus": self._limits.cpus,
        }

    def slots(self, spec: TrialSpec) -> int:
        """A measurement has the machine to itself, as on this machine without containers."""
        return self.capacity if spec.calls else 1

    @property
    def capacity(self) -> int:
        """One trial a core of the engine and one more."""
        return int(self._inside["cores"]) + 1

    def run(self, spec: TrialSpec, program: Path, folder: TrialFolder) -> None:
        """Run the trial in a container that is removed whatever comes.

        Raises:
            InfraError: It could not be run: no container, a container that hung, no memory before a record was there.
        """
        cores = 1 if spec.calls else int(self._inside["cores"])
        command = ["-m", "repro.launch.supervisor", TRIAL, f"{ISSUE}/{program.name}", str(cores)]
        mounts = {
            str(folder.path): {"bind": TRIAL, "mode": "rw"},
            str(program.parent): {"bind": ISSUE, "mode": "ro"},
        }
        with _told(f"trial {spec.folder}"), self._container(command, mounts, spec.folder) as container:
            try:
                code = int(container.wait(timeout=spec.timeout_s + SLACK_S)["StatusCode"])
            except requests.exceptions.RequestException as error:
                # Either the wait took too long, or the engine is gone: asking again tells which.
                container.reload()
                if container.status != "running":
                    raise
                raise InfraError(
                    f"trial {spec.folder}: its container hung past the deadline of {spec.timeout_s:g} s"
                ) from error
            container.reload()
            self._conclude(spec, folder, code, container)

    def _conclude(self, spec: TrialSpec, folder: TrialFolder, code: int, container: Container) -> None:
        """Tell an OOM kill, which the engine's flag alone proves, from a crash of the code under test."""
        if self._stopped:
            return
        if container.attrs["State"]["OOMKilled"]:
            limit = self._limits.memory or "all memory of the machine"
            detail = f"the kernel killed a process of the container for want of memory (limit: {limit}; engine's flag)"
            if not folder.record.exists():
                raise InfraError(
                    f"trial {spec.folder}: {detail}", "give more with --memory-limit, or start fewer --ranks"
                )
            record = TrialRecord.from_json(json.loads(folder.record.read_text(encoding="utf-8")))
            write_json(folder.record, replace(record, ending=Ending.OUT_OF_MEMORY, detail=detail).to_json())
        elif code != 0:
            lines = container.logs(stdout=False, tail=5).decode(errors="replace").strip().splitlines()
            said = lines[-1] if lines else f"its supervisor ended with status {code}, without the engine's OOM flag"
            raise InfraError(f"trial {spec.folder}: {said}")

    def stop(self) -> None:
        """Ask every supervisor to end its tree; what does not is removed with its container."""
        with self._lock:
            self._stopped = True
            running = list(self._running.values())
        for container in running:
            with suppress(APIError, requests.exceptions.RequestException):  # it has just ended, or the engine has
                container.kill("SIGTERM")
        for container in running:
            with suppress(APIError, requests.exceptions.RequestException):
                container.wait(timeout=STOP_S)
                continue
            with suppress(APIError, requests.exceptions.RequestException):
                container.kill()

    @contextmanager
    def _container(
        self, command: list[str], mounts: Mapping[str, Mapping[str, str]], trial: str = ""
    ) -> Iterator[Container]:
        """A started container: no network, no capabilities, nothing writable but its mounts, the caller's own user."""
        with self._lock:
            if self._stopped:
                raise InfraError(f"trial {trial} was not started", "it was stopped; run again to finish")
            limits = self._limits
            container: Container = self._client.containers.create(
                self._image,
                command,
                entrypoint=[PYTHON, "-P"],
                environment={name: os.environ[name] for name in ("GLOG_v",) if name in os.environ},
                labels={owner.LABEL: owner.mine(), "hyper-repro.trial": trial},
                user=f"{os.getuid()}:{os.getgid()}",
                volumes={path: dict(how) for path, how in mounts.items()},
                tmpfs={"/tmp": "size=1g,mode=1777", "/workspace": "size=1g,mode=1777"},  # noqa: S108 -- the container's own
                working_dir="/workspace",
                network_mode="none",
                read_only=True,
                cap_drop=["ALL"],
                security_opt=["no-new-privileges"],
                shm_size="1g",
                mem_limit=limits.memory,
                memswap_limit=limits.memory,
                nano_cpus=round(limits.cpus * 1e9) if limits.cpus else None,
                # The most that is allowed: ranks write no core unless somebody asks for one (repro/launch/process.py).
                ulimits=[docker.types.Ulimit(name="core", soft=-1, hard=-1)],
            )
            self._running[str(container.id)] = container
        try:
            container.start()
            yield container
        finally:
            with self._lock:
                self._running.pop(str(container.id), None)
            with suppress(NotFound):
                container.remove(force=True, v=True)

    def _ask(self) -> dict[str, Any]:
        with self._container(["-m", "repro.engines.inside"], {}) as container:
            code = int(container.wait(timeout=PROBE_S)["StatusCode"])
            said = container.logs(stderr=False).decode(errors="replace").strip()
            if code != 0 or not said.startswith("{"):
                words = container.logs(tail=1).decode(errors="replace").strip()
                raise InfraError(f"{self._name} is no image of hyper-repro: {words or f'status {code}'}", IMAGE_HELP)
        inside: dict[str, Any] = json.loads(said)
        if inside["version"] != repro.__version__:
            raise InfraError(
                f"{self._name} holds hyper-repro {inside['version']}, this is {repro.__version__}",
                "build it again with `make image-sim`",
            )
        return inside

    def _remove_left_behind(self) -> None:
        """Containers of commands that are gone, as after kill -9."""
        for container in self._client.containers.list(all=True, filters={"label": owner.LABEL}, ignore_removed=True):
            if owner.is_gone(container.labels[owner.LABEL]):
                with suppress(NotFound):
                    container.remove(force=True, v=True)


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Turn what the SDK raises into one line."""
    try:
        yield
    except APIError as error:
        raise InfraError(f"Docker, {what}: {error.explanation or error}") from error
    except (DockerException, requests.exceptions.RequestException) as error:
        where = os.environ.get("DOCKER_HOST", "/var/run/docker.sock")
        raise InfraError(
            f"Docker, {what}: no engine answers at {where}", "start it, or name another with DOCKER_HOST"
        ) from error
