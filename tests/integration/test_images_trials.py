"""Engine docker: trials in containers end as they do without, and no container outlives its command."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import pytest
from harness import Cli, Done, until, verdict

from repro.engines.owner import LABEL


class InContainers(Cli):
    """``repro run --engine docker``."""

    def __init__(self, folder: Path, host: str, image: str) -> None:
        super().__init__(folder)
        self.host = host
        self.image = image

    def arguments(self, fault: str, *more: str) -> list[str]:
        """One fault's own case as JSON."""
        own = ["run", fault, "--arm", "unfixed", "--json", "--out", str(self.out)]
        return [*own, "--engine", "docker", "--image", self.image, *more]

    def run(self, fault: str, *more: str) -> Done:
        """Run it to its end."""
        return self(*self.arguments(fault, *more), DOCKER_HOST=self.host)

    def events(self) -> list[dict[str, Any]]:
        """What rank 0 wrote, wherever its trial is by now."""
        found = [*self.out.glob("trials/.*.part/rank-0/events.jsonl"), *self.out.glob("trials/*/rank-0/events.jsonl")]
        return [json.loads(line) for path in found for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def contained(tmp_path: Path, docker_host: str, sim_image: str) -> Iterator[InContainers]:
    """The command in a folder of its own."""
    made = InContainers(tmp_path, docker_host, sim_image)
    yield made
    made.nothing_left()


def containers(client: docker.DockerClient) -> list[Any]:
    found: list[Any] = client.containers.list(all=True, filters={"label": LABEL}, ignore_removed=True)
    return found


def test_a_fault_shows_in_a_container_as_it_does_without(
    contained: InContainers, docker_client: docker.DockerClient
) -> None:
    done = contained.run("134.2", "--timeout", "240")
    fault = verdict(done)
    assert (done.code, fault["verdict"], fault["tier"]) == (0, "REPRODUCED", "sim")
    run = json.loads((contained.out / "run.json").read_text(encoding="utf-8"))
    assert run["engine"]["image"] == "hyper-repro:sim"
    assert run["engine"]["image_id"] == docker_client.images.get("hyper-repro:sim").id
    written = [path for path in contained.out.rglob("*") if path.is_file()]
    assert {path.stat().st_uid for path in written} == {os.getuid()}
    assert containers(docker_client) == []


def test_want_of_memory_is_told_from_a_crash(contained: InContainers, docker_client: docker.DockerClient) -> None:
    done = contained.run("9010.1", "--memory-limit", "700m")
    fault = verdict(done)
    assert (done.code, fault["verdict"]) == (4, "INFRA_ERROR")
    assert "want of memory (limit: 700m; engine's flag)" in fault["why"]
    event = next(event for event in contained.events() if event.get("what") == "memory")
    assert event["uid"] == os.getuid()
    assert int(event["capabilities"], 16) == 0
    assert event["interfaces"] == ["lo"]
    assert containers(docker_client) == []


def test_a_crash_stays_a_crash_under_a_limit_of_memory(contained: InContainers) -> None:
    done = contained.run("9010.2", "--memory-limit", "2g", "--cpus", "1.5")
    fault = verdict(done)
    assert (done.code, fault["verdict"]) == (0, "REPRODUCED")
    assert "signal 11 (SIGSEGV), in body" in fault["why"]


def test_a_deadline_ends_a_trial_and_its_container(contained: InContainers, docker_client: docker.DockerClient) -> None:
    done = contained.run("9010.3", "--timeout", "8")
    fault = verdict(done)
    assert (done.code, fault["verdict"]) == (4, "INFRA_ERROR")
    assert "the deadline of 8 s passed with rank 0 in body still running" in fault["why"]
    assert containers(docker_client) == []


def test_what_a_killed_command_left_is_removed_by_the_next(
    contained: InContainers, docker_client: docker.DockerClient
) -> None:
    process = contained.start(*contained.arguments("9010.3"), DOCKER_HOST=contained.host)
    until(lambda: any(event.get("what") == "wait" for event in contained.events()), "the rank waits")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    left = containers(docker_client)
    assert [container.status for container in left] == ["running"]
    contained.out = contained.folder / "next"
    done = contained.run("9010.3", "--timeout", "3")
    assert verdict(done)["verdict"] == "INFRA_ERROR"
    assert containers(docker_client) == []


def test_ctrl_c_ends_containers_and_keeps_what_is_finished(
    contained: InContainers, docker_client: docker.DockerClient
) -> None:
    process = contained.start(*contained.arguments("9010.3"), DOCKER_HOST=contained.host)
    until(lambda: any(event.get("what") == "wait" for event in contained.events()), "the rank waits")
    process.send_signal(signal.SIGINT)
    done = contained.finish(process)
    assert done.code == 130
    assert "repeat the command with --out" in done.last
    assert containers(docker_client) == []


def test_a_missing_image_is_told_in_one_line(cli: Cli, docker_host: str) -> None:
    done = cli("run", "9010.2", "--engine", "docker", "--image", "hyper-repro:nowhere", DOCKER_HOST=docker_host)
    assert done.code == 4
    assert done.err.count("\n") == 1
    assert "has no image hyper-repro:nowhere; build it with `make image-sim`" in done.err


def test_an_image_of_something_else_is_refused(cli: Cli, docker_host: str, docker_client: docker.DockerClient) -> None:
    from docker_engine import base_image

    image = base_image(docker_client)
    done = cli("run", "9010.2", "--engine", "docker", "--image", image, DOCKER_HOST=docker_host)
    assert done.code == 4
    assert done.err.count("\n") == 1
    assert "/opt/venv/bin/python" in done.err
    assert containers(docker_client) == []


def test_an_engine_that_is_down_is_told_in_one_line(cli: Cli) -> None:
    nowhere = f"unix://{cli.folder}/docker.sock"
    done = cli("run", "9010.2", "--engine", "docker", "--image", "hyper-repro:sim", DOCKER_HOST=nowhere)
    assert done.code == 4
    assert done.err.count("\n") == 1
    assert f"no engine answers at {nowhere}; start it" in done.err
