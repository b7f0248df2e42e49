"""What the image ``sim`` costs: size by layer, time to build it, and time to verdict beside the same run without it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import docker

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "support"))

from docker_engine import build_arguments, engine  # noqa: E402 -- the tests' own engine

Row = tuple[str, str, str]
NAME = "hyper-repro:sim"
SMALLEST = 1_000_000
PAIRS = 3


def images(work: Path) -> Iterator[Row]:
    """Build cold and warm, weigh, and run report 134 in turns on the host and in a container."""
    work.mkdir(parents=True)
    with engine() as host:
        client = docker.DockerClient(base_url=host, timeout=600)
        environment = {**os.environ, "DOCKER_HOST": host}
        build = [sys.executable, "-m", "repro.cli", "image", "sim", *build_arguments(client)]
        cold = _timed([*build, "--no-cache"], environment)
        warm = _timed(build, environment)
        yield "image sim, cold build", f"{cold:.0f} s", "with downloads, without the engine's cache; the base was there"
        yield "image sim, warm build", f"{warm:.1f} s", "nothing changed"
        yield from _layers(client)
        yield from _verdict(work, host, environment)


def _timed(command: list[str], environment: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def _layers(client: docker.DockerClient) -> Iterator[Row]:
    image = client.images.get(NAME)
    yield "image sim, unpacked", f"{image.attrs['Size'] / 1e6:,.0f} MB", "goal under 1,300 MB"
    for layer in image.history():
        if layer["Size"] >= SMALLEST:
            made = layer["CreatedBy"].split("# buildkit")[0].split(" -c ")[-1].strip()[:60] or "the base image"
            yield "layer", f"{layer['Size'] / 1e6:,.1f} MB", f"`{made.replace('|', '/')}`"
    listed = client.containers.run(NAME, ["cat", "/opt/hyper-repro-sbom/dropped.txt"], remove=True)
    dropped = [line.split("\t") for line in listed.decode().splitlines()]
    yield "left out", f"{sum(int(size) for size, *_ in dropped) / 1e6:,.0f} MB", "by images/drop.yaml"


def _verdict(work: Path, host: str, environment: dict[str, str]) -> Iterator[Row]:
    inside, outside = [], []
    for turn in range(PAIRS):
        own = [sys.executable, "-m", "repro.cli", "run", "134", "--out", str(work / f"host-{turn}")]
        closed = ["--rm", "--read-only", "--cap-drop", "ALL", "--network", "none", "--tmpfs", "/tmp"]  # noqa: S108
        outside.append(_timed(own, environment))
        inside.append(_timed(["docker", "--host", host, "run", *closed, NAME, "run", "134"], environment))
    ratio = median(one / other for one, other in zip(inside, outside, strict=True))
    yield (
        "report 134, `docker run` to verdict",
        f"{ratio:.2f} times the host's",
        f"{median(inside):.1f} s and {median(outside):.1f} s, {PAIRS} pairs; goal 1.15",
    )
