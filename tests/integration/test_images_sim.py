"""The image ``sim``: small, closed, what is left out is not missed, and all three reports run in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import docker
import pytest
from docker_engine import build_arguments
from harness import REPOSITORY

from repro.images.build import stage_library
from repro.sim.build import build

GOAL_BYTES = 1_300_000_000
# The user's own, as a cluster hands them out: nobody in the image has it.
UID = 54321
CLOSED = ["--read-only", "--cap-drop", "ALL", "--network", "none", "--security-opt", "no-new-privileges"]


class Image:
    """``docker run`` of the image, by the command line that a user types."""

    def __init__(self, name: str, host: str) -> None:
        self.name = name
        self._environment = {**os.environ, "DOCKER_HOST": host}

    def __call__(self, *arguments: str, flags: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        """Run it to its end; ``--rm``, so that nothing stays."""
        command = ["docker", "run", "--rm", *CLOSED, *flags, self.name, *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=self._environment, check=False)


@pytest.fixture(scope="module")
def image(sim_image: str, docker_host: str) -> Image:
    return Image(sim_image, docker_host)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """The folder that evidence goes to, the user's own."""
    folder = tmp_path / "runs"
    folder.mkdir()
    os.chown(folder, UID, UID)
    return folder


def mounted(runs: Path) -> tuple[str, ...]:
    return ("--user", f"{UID}:{UID}", "--volume", f"{runs}:/workspace/runs")


def verdicts(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    assert done.stdout.count("\n") == 1, done
    return {fault["id"]: fault["verdict"] for fault in json.loads(done.stdout)["faults"]}


def test_it_is_smaller_than_the_goal_and_says_what_is_in_it(sim_image: str, docker_client: docker.DockerClient) -> None:
    found = docker_client.images.get(sim_image)
    assert found.attrs["Size"] < GOAL_BYTES
    labels = found.labels
    assert labels["hyper-repro.mindspore"] == "2.10.0"
    assert labels["hyper-repro.cann"] == "stand-in"
    assert len(labels["hyper-repro.lock"]) == 64
    assert labels["org.opencontainers.image.revision"]
    assert found.attrs["Config"]["User"] == "1000:1000"
    assert "Healthcheck" not in found.attrs["Config"]


def test_nothing_of_the_site_is_in_its_history_or_its_settings(
    sim_image: str, docker_client: docker.DockerClient
) -> None:
    found = docker_client.images.get(sim_image)
    told = json.dumps([found.history(), found.attrs["Config"]])
    secrets = [os.environ.get(name, "") for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "HTTPS_PROXY", "PIP_CERT")]
    for word in [*filter(None, secrets), "ca-certificates.crt", "pip.conf", "cert ="]:
        assert word not in told
    listed = "find / -xdev -name 'pip_conf' -o -xdev -name 'ca_bundle' -o -xdev -name 'pip.conf'"
    assert docker_client.containers.run(sim_image, ["bash", "-c", listed], remove=True, user="0") == b""


def test_report_134_shows_and_its_evidence_is_the_caller_s(image: Image, runs: Path) -> None:
    done = image("run", "134", "--json", "--timeout", "240", flags=mounted(runs))
    assert (done.returncode, verdicts(done)) == (0, {"134.1": "REPRODUCED", "134.2": "REPRODUCED"}), done.stderr
    (run,) = runs.iterdir()
    assert {path.lstat().st_uid for path in run.rglob("*")} == {UID}
    kept = json.loads((run / "run.json").read_text(encoding="utf-8"))
    assert kept["host"]["commit"] == docker_revision(image)


def docker_revision(image: Image) -> str:
    done = image("python", "-c", "import os; print(os.environ['HYPER_REPRO_COMMIT'])")
    return done.stdout.strip()


def test_report_219_shows(image: Image, runs: Path) -> None:
    done = image("run", "219.1", "--json", "--trials", "2", "--timeout", "240", flags=mounted(runs))
    assert verdicts(done) == {"219.1": "REPRODUCED"}, done.stderr


def test_report_301_has_the_host_s_verdicts(image: Image, runs: Path) -> None:
    done = image("run", "301", "--json", flags=mounted(runs))
    expected = {"301.1": "REPRODUCED", "301.2": "REPRODUCED", "301.3": "REPRODUCED", "301.4": "BOUNDED"}
    found = verdicts(done)
    assert {name: found[name] for name in expected} == expected, done.stderr


def test_an_opposite_verdict_and_a_refusal_keep_their_exit_codes(image: Image) -> None:
    assert image("run", "999").returncode == 2
    assert image("run", "134", "--tier", "npu").returncode == 5
    done = image("run", "134.2", flags=("--volume", "/usr:/workspace/runs:ro"))
    assert done.returncode == 4
    assert done.stderr.strip().count("\n") == 0
    assert "Read-only file system" in done.stderr


def test_the_stand_in_was_built_from_the_whole_wheel(image: Image) -> None:
    """What is left out serves no symbol: image and host, whose wheel is whole, have the same tables."""
    program = "import json; from repro.sim.build import build; print(json.dumps(build().symbols()))"
    done = image("python", "-c", program)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == build().symbols()


def test_the_library_of_mend_301_3_is_there_without_a_compiler(image: Image) -> None:
    program = "import shutil; from fixes.native.build import build; print(shutil.which('g++'), build().is_file())"
    done = image("python", "-c", program)
    assert done.stdout == "None True\n", done.stderr


def test_mends_are_installed_in_any_script_that_asks(image: Image) -> None:
    program = "import sys; print('fixes' in sys.modules)"
    assert image("python", "-c", program).stdout == "False\n"
    assert image("python", "-c", program, flags=("--env", "HYPER_REPRO_FIXES=301.1")).stdout == "True\n"


def test_what_was_left_out_is_listed_with_reasons_and_the_rest_in_a_bill_of_materials(image: Image) -> None:
    dropped = image("cat", "/opt/hyper-repro-sbom/dropped.txt").stdout.splitlines()
    sizes = {path: int(size) for size, path, _reason in (line.split("\t") for line in dropped)}
    assert sizes["mindspore/lib/plugin/gpu"] > 700 << 20
    assert sum(sizes.values()) > 1_500 << 20
    bill: dict[str, Any] = json.loads(image("cat", "/opt/hyper-repro-sbom/python.cdx.json").stdout)
    held = {item["name"]: item["version"] for item in bill["components"]}
    assert (bill["bomFormat"], held["mindspore"], held["numpy"]) == ("CycloneDX", "2.10.0", "1.26.4")
    assert "libc6" in image("cat", "/opt/hyper-repro-sbom/system.txt").stdout


def test_a_library_comes_in_unmodified_and_is_found(
    image: Image, docker_host: str, docker_client: docker.DockerClient, tmp_path: Path
) -> None:
    package = tmp_path / "library" / "hyper_parallel"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("# made up: 形状\nNAME = 'made up'\n", encoding="utf-8")
    tag = "hyper-repro:with-library"
    options = ["--hyper-parallel", str(package.parent), "--tag", tag, *build_arguments(docker_client)]
    command = [sys.executable, "-m", "repro.cli", "image", "sim", *options]
    try:
        subprocess.run(
            command, env={**os.environ, "DOCKER_HOST": docker_host}, cwd=REPOSITORY, check=True, capture_output=True
        )
    finally:
        stage_library("", REPOSITORY / "images" / "context" / "hyper-parallel")
    assert docker_client.images.get(tag).labels["hyper-repro.hyper-parallel"] == "no git commit"
    program = "import hyper_parallel as h; print(h.NAME, h.__file__)"
    said = Image(tag, docker_host)("python", "-c", program).stdout
    assert said == "made up /opt/hyper-parallel/hyper_parallel/__init__.py\n"
    kept = Image(tag, docker_host)("cat", "/opt/hyper-parallel/hyper_parallel/__init__.py").stdout
    assert kept == (package / "__init__.py").read_text(encoding="utf-8")
    assert "ModuleNotFoundError" in image("python", "-c", program).stderr


def test_the_archive_for_a_site_without_a_network_is_loaded_whole(
    sim_image: str, docker_host: str, docker_client: docker.DockerClient, tmp_path: Path
) -> None:
    environment = {**os.environ, "DOCKER_HOST": docker_host}
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    (wheels / "made_up-1-py3-none-any.whl").write_bytes(b"a wheel")
    make = [sys.executable, "-m", "repro.images.make_archive", "sim", "--wheels", str(wheels), "--output"]
    made = subprocess.run(
        [*make, str(tmp_path / "dist")], env=environment, cwd=REPOSITORY, check=True, capture_output=True, text=True
    )
    path = made.stdout.strip()
    assert f" MB  {path}" in made.stderr
    image = docker_client.images.get(sim_image)
    before = image.id
    image.tag("hyper-repro", "kept")  # the layers stay for the other tests, the name comes back by the archive alone
    docker_client.images.remove(sim_image)
    verify = [sys.executable, "-m", "repro.cli", "bundle-verify", path, "--load", "--json"]
    done = subprocess.run(verify, env=environment, capture_output=True, text=True, check=False)
    image.tag(*sim_image.split(":"))
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    held = [file["path"] for file in said["files"]]
    assert held == ["image.tar.zst", "project.tar", "versions.yaml", "wheels/made_up-1-py3-none-any.whl"]
    assert (said["target"], said["chip"], said["image_id"]) == ("sim", "", before)


def test_gdb_shows_python_frames(image: Image) -> None:
    program = "import os\ndef falls_here():\n    os.abort()\nfalls_here()\n"
    gdb = ["gdb", "-batch", "-nx", "-ex", "run", "-ex", "py-bt", "--args", "/opt/venv/bin/python", "-c", program]
    done = image(*gdb)
    assert "in falls_here" in done.stdout, done.stdout + done.stderr


def test_the_locks_of_images_are_the_project_s(image: Image) -> None:
    def pins(path: Path) -> dict[str, str]:
        lines = (line.split(" ")[0] for line in path.read_text(encoding="utf-8").splitlines() if "==" in line)
        return dict(line.split("==") for line in lines if not line.startswith((" ", "#")))

    project, own = pins(REPOSITORY / "requirements.lock"), pins(REPOSITORY / "images" / "requirements.lock")
    assert {name: project[name] for name in own} == own
    program = "import importlib.metadata as m; print(*(f'{d.name.lower()}=={d.version}' for d in m.distributions()))"
    held = dict(item.split("==") for item in image("python", "-c", program).stdout.split())
    assert {name: held.get(name) for name in ("mindspore", "memray", "wrapt")} == {
        name: own[name] for name in ("mindspore", "memray", "wrapt")
    }
