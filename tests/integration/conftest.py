"""Fixtures of the integration tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from docker_engine import EngineMissingError, build_arguments, engine
from harness import REPOSITORY, Cli

# A shell ignores Ctrl-C for what it starts in the background, and every program inherits that: tests that interrupt
# what they start would wait for ever. A handler of our own is not inherited, so they start with the default.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    """The command line in a folder of its own; whatever is left running when the test ends fails it."""
    command = Cli(tmp_path)
    yield command
    command.nothing_left()


@pytest.fixture(scope="session")
def docker_host() -> Iterator[str]:
    """The address of a Docker engine: what DOCKER_HOST is set to for those who shall use it."""
    try:
        with engine() as address:
            yield address
    except EngineMissingError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def docker_client(docker_host: str) -> Iterator[docker.DockerClient]:
    """A client of that engine."""
    client = docker.DockerClient(base_url=docker_host, timeout=600)
    yield client
    client.close()


@pytest.fixture(scope="session")
def sim_image(docker_host: str, docker_client: docker.DockerClient) -> str:
    """Name of the image ``sim``, built by the command that a user types."""
    command = [sys.executable, "-m", "repro.cli", "image", "sim", *build_arguments(docker_client)]
    environment = {**os.environ, "DOCKER_HOST": docker_host}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=REPOSITORY, check=False)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
    return "hyper-repro:sim"
