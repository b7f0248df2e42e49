"""Target ``ascend`` on a base that has the layout of a CANN image and nothing of CANN: every step but CANN itself.

No NPU and no real CANN image was ever touched by these tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import docker
import pytest
from docker.models.containers import Container
from docker_engine import base_image
from harness import REPOSITORY

NAME = "hyper-repro:ascend-910b"
LATEST = "/usr/local/Ascend/ascend-toolkit/latest"
SEEN = "import os; print(os.environ.get('STAND_IN_SOURCED'), os.environ.get('ASCEND_HOME_PATH'))"


def stand_in(host: str, client: docker.DockerClient, cann: str) -> str:
    name = f"hyper-repro-cann:{cann}"
    arguments = ["--build-arg", f"BASE={base_image(client)}", "--build-arg", f"CANN={cann}", "--network", "host"]
    command = ["docker", "build", "--quiet", *arguments, "--tag", name, str(REPOSITORY / "tests/data/cann-base")]
    # Without BuildKit: any client has this builder, and the file needs no more.
    environment = {**os.environ, "DOCKER_HOST": host, "DOCKER_BUILDKIT": "0"}
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return name


def build(host: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "repro.cli", "image", "ascend", "--chip", "910b", "--network", "host", *arguments]
    environment = {**os.environ, "DOCKER_HOST": host}
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=REPOSITORY, check=False)


@pytest.fixture(scope="module")
def image(docker_host: str, docker_client: docker.DockerClient, sim_image: str) -> str:
    """The image; after ``sim``, whose downloads it finds in the engine's cache."""
    assert sim_image
    done = build(docker_host, "--base", stand_in(docker_host, docker_client, "9.1.0"))
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
    return NAME


@pytest.fixture(scope="module")
def running(image: str, docker_client: docker.DockerClient) -> Iterator[Container]:
    """A container that waits, for ways in that no entry point sees."""
    container = docker_client.containers.run(image, ["sleep", "600"], detach=True, network_mode="none")
    yield container
    container.remove(force=True)


def within(container: Container, *command: str) -> tuple[int, str]:
    """``docker exec``: status and output."""
    code, said = container.exec_run(list(command))
    assert isinstance(said, bytes)
    assert code is not None
    return code, said.decode()


def test_a_base_with_another_cann_is_refused_before_anything_is_installed(
    docker_host: str, docker_client: docker.DockerClient
) -> None:
    done = build(docker_host, "--base", stand_in(docker_host, docker_client, "9.0.0"))
    assert done.returncode == 4
    said = "holds CANN 9.0.0 in /usr/local/Ascend/cann-9.0.0, and the row of images/versions.yaml asks for CANN 9.1.0"
    assert said in done.stdout + done.stderr


def test_the_entry_point_sources_cann_once(image: str, docker_client: docker.DockerClient) -> None:
    said = docker_client.containers.run(image, ["python", "-c", SEEN], remove=True, network_mode="none")
    assert said.decode().split() == ["1", LATEST]


@pytest.mark.parametrize(
    "command",
    [
        ["python", "-c", SEEN],
        ["bash", "-c", f'python -c "{SEEN}"'],
        ["bash", "-lc", f'python -c "{SEEN}"'],
        ["bash", "-ic", f'python -c "{SEEN}"'],
    ],
    ids=["program", "shell", "login", "interactive"],
)
def test_exec_and_shells_source_cann_once(running: Container, command: list[str]) -> None:
    code, said = within(running, *command)
    assert (code, said.split()[-2:]) == (0, ["1", LATEST])


def test_cann_s_own_modules_are_there_by_path_or_by_wheel(running: Container) -> None:
    program = "import stand_in_tbe as t, hccl.sys_version as v; print(t.__file__, v.__file__)"
    code, said = within(running, "python", "-c", program)
    assert code == 0, said
    tbe, hccl = said.split()
    assert tbe.startswith("/usr/local/Ascend/")
    assert "/opt/venv/" in hccl


def test_the_user_is_the_driver_s_and_the_bill_is_there(running: Container) -> None:
    assert within(running, "id", "-u", "-n") == (0, "HwHiAiUser\n")
    assert within(running, "id", "-u") == (0, "1000\n")
    _, dropped = within(running, "cat", "/opt/hyper-repro-sbom/dropped.txt")
    assert "lib/plugin/gpu" in dropped
    assert "ms_kernels_internal" not in dropped


def test_a_report_runs_on_tier_sim_over_the_stand_in_of_the_image(
    image: str, docker_client: docker.DockerClient
) -> None:
    command = ["run", "134.2", "--tier", "sim", "--json", "--timeout", "240"]
    said = docker_client.containers.run(image, command, remove=True, network_mode="none", read_only=True)
    assert b'"verdict": "REPRODUCED"' in said
