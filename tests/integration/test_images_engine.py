"""The engine that the tests start for themselves, and the base image they make for it."""

from __future__ import annotations

import docker
from docker_engine import base_image


def test_the_base_image_has_a_python_that_makes_environments_and_no_network(
    docker_client: docker.DockerClient,
) -> None:
    name = base_image(docker_client)
    program = "import ensurepip, os, ssl, sys; print(sys.version_info[:2], os.listdir('/sys/class/net'))"
    said = docker_client.containers.run(name, ["python3", "-c", program], remove=True, network_mode="none")
    assert said.decode() == "(3, 11) ['lo']\n"
    assert base_image(docker_client) == name


def test_containers_reach_each_other_by_name_on_a_network_of_their_own(docker_client: docker.DockerClient) -> None:
    name = base_image(docker_client)
    network = docker_client.networks.create("hyper-repro-test")
    served = None
    try:
        served = docker_client.containers.run(
            name, ["python3", "-m", "http.server", "8000"], network=network.name, name="hyper-repro-served", detach=True
        )
        program = (
            "import time, urllib.request\n"
            "for _ in range(100):\n"
            "    try:\n"
            "        print(urllib.request.urlopen('http://hyper-repro-served:8000/').status); break\n"
            "    except OSError: time.sleep(0.1)\n"
        )
        said = docker_client.containers.run(name, ["python3", "-c", program], network=network.name, remove=True)
        assert said == b"200\n"
    finally:
        if served is not None:
            served.remove(force=True)
        network.remove()
