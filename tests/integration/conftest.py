"""Fixtures of the integration tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from docker_engine import EngineMissingError, engine
from harness import Cli


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
