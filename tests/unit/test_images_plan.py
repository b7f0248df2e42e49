"""What a build is told: arguments from the table, no guessed tags, and nothing of the site in them."""

from __future__ import annotations

import hashlib
import re
import subprocess
from pathlib import Path

import pytest

import repro
from repro.cli import main
from repro.errors import InfraError, UsageError
from repro.images import build
from repro.images.plan import Asked, Target, plan
from repro.images.versions import Wanted, load
from repro.upstream.checkout import ADDRESS, KNOWN_COMMIT

ROOT = Path(__file__).parents[2]
TABLE = load()


def made(target: Target, library: str = "none", **asked: object) -> dict[str, str]:
    wanted = Asked(target=target, **asked)  # type: ignore[arg-type]
    return dict(plan(wanted, TABLE, ROOT, repro.__version__, "abc", library).arguments)


def test_target_sim_stands_on_debian_and_has_no_chip() -> None:
    arguments = made(Target.SIM)
    assert (arguments["TARGET"], arguments["SIM_BASE"]) == ("sim", "debian:bookworm-slim")
    assert arguments["LOCK_SHA256"] == hashlib.sha256((ROOT / "images/requirements.lock").read_bytes()).hexdigest()
    assert "CHIP" not in arguments


@pytest.mark.parametrize("chip", ["910b", "a3"])
def test_target_ascend_takes_a_tag_that_was_seen(chip: str) -> None:
    arguments = made(Target.ASCEND, wanted=Wanted(chip=chip), registry="registry.example/cann")
    assert arguments["CANN_BASE"] == f"registry.example/cann:9.1.0-{chip}-ubuntu22.04-py3.12"
    assert arguments["CANN_WANTED"] == "9.1.0"


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        (Asked(Target.ASCEND), "needs --chip; one of 910b, a3"),
        (Asked(Target.ASCEND, Wanted(chip="a2")), "chip a2"),
        (Asked(Target.ASCEND, Wanted(chip="910b", cann="9.0.0")), "known is MindSpore 2.10.0 with CANN 9.1.0"),
        (Asked(Target.ASCEND, Wanted(cann="9.0.0", chip="a3"), allow_unlisted=True), "no base image for CANN 9.0.0"),
        (Asked(Target.SIM, Wanted(mindspore="2.9.0")), "pins MindSpore 2.10.0, not 2.9.0"),
    ],
)
def test_what_cannot_be_built_is_refused_before_anything_is_done(asked: Asked, complaint: str) -> None:
    with pytest.raises(UsageError, match=re.escape(complaint)):
        plan(asked, TABLE, ROOT, "0", None, "none")


def test_the_command_line_refuses_a_wrong_pair_with_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["image", "ascend", "--chip", "910b", "--mindspore", "2.10.0", "--cann", "9.0.0"]) == 2
    said = capsys.readouterr().err
    assert "known is MindSpore 2.10.0 with CANN 9.1.0" in said
    assert said.count("\n") == 1


def test_the_printed_command_has_the_arguments_and_no_secret(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["image", "sim", "--print", "--tag", "mine:1", "--offline"]) == 0
    said = capsys.readouterr().out
    for part in ("--target sim", "--tag mine:1", "PIP_FLAGS=--no-index", "MINDSPORE=2.10.0"):
        assert part in said
    assert "secret" not in said


def test_the_dockerfile_takes_every_argument_that_a_build_is_told() -> None:
    declared = set(re.findall(r"^ARG (\w+)", (ROOT / "images/Dockerfile").read_text(encoding="utf-8"), re.MULTILINE))
    told = made(Target.SIM, offline=True).keys() | made(Target.ASCEND, wanted=Wanted(chip="a3")).keys()
    assert told | {"ALLOW_UNLISTED"} <= declared
    assert declared - told == {"ALLOW_UNLISTED", "RUN_UID", "RUN_GID"}


def test_a_plain_docker_build_and_bake_have_the_table_s_defaults() -> None:
    row = TABLE.row_of(TABLE.default)
    assert row is not None
    dockerfile = (ROOT / "images/Dockerfile").read_text(encoding="utf-8")
    bake = (ROOT / "images/docker-bake.hcl").read_text(encoding="utf-8")
    assert f"ARG CANN_BASE=quay.io/ascend/cann:{row.base_tags['910b']}" in dockerfile
    assert row.hyper_parallel is not None
    assert (row.hyper_parallel.repository, row.hyper_parallel.commit) == (ADDRESS, KNOWN_COMMIT)
    library = f"{row.hyper_parallel.repository}#{row.hyper_parallel.commit}"
    for name, value in {"MINDSPORE": row.mindspore, "CANN": row.cann, "HYPER_PARALLEL": library}.items():
        assert f'variable "{name}" {{ default = "{value}" }}' in bake
    pattern = "${CANN_REGISTRY}:${CANN}-${chip}-ubuntu22.04-py3.12"
    assert pattern in bake
    for chip, tag in row.base_tags.items():
        assert f"{row.cann}-{chip}-ubuntu22.04-py3.12" == tag
        assert f'"{chip}"' in bake


def test_secrets_come_from_files_or_from_pip_s_own_variables_and_are_gone_afterwards(tmp_path: Path) -> None:
    bundle = tmp_path / "ca.pem"
    bundle.write_text("certificates", encoding="utf-8")
    environment = {"PIP_INDEX_URL": "https://user:word@index.example/simple", "PIP_CERT": str(bundle)}
    with build.secrets(build.Site(), environment) as told:
        files = dict(item.removeprefix("id=").split(",src=") for item in told if item != "--secret")
        conf = Path(files["pip_conf"]).read_text(encoding="utf-8")
        assert "index-url = https://user:word@index.example/simple" in conf
        assert "cert = /run/secrets/ca_bundle" in conf
        assert files["ca_bundle"] == str(bundle)
        assert not any("word" in item for item in told)
    assert not Path(files["pip_conf"]).exists()
    with (
        pytest.raises(UsageError, match="apt_sources: there is no file"),
        build.secrets(build.Site(apt_sources=tmp_path / "none"), {}),
    ):
        pass


def test_a_client_without_buildkit_is_passed_over(tmp_path: Path) -> None:
    for name, version in (("new", "28.2.2"), ("old", "20.10.24")):
        program = tmp_path / name / "docker"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "Docker version {version}, build x" || exit 1\n')
        program.chmod(0o755)
    assert build.client({"PATH": f"{tmp_path}/new:{tmp_path}/old"}) == f"{tmp_path}/old/docker"
    with pytest.raises(InfraError, match=r"28\.2\.2.*lacks the plugin buildx; apt-get install"):
        build.client({"PATH": f"{tmp_path}/new"})


def test_a_checkout_comes_in_unmodified_and_without_its_history(tmp_path: Path) -> None:
    source, context = tmp_path / "source", tmp_path / "context"
    (source / "hyper_parallel").mkdir(parents=True)
    context.mkdir()
    (context / ".gitkeep").touch()
    (context / "stale.py").touch()
    (source / "hyper_parallel" / "__init__.py").write_text("x = 1\n", encoding="utf-8")
    (source / ".gitignore").write_text("*.log\n", encoding="utf-8")
    (source / "big.log").touch()
    git = ["git", "-C", str(source), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *command], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout[:12]
    assert build.stage_library(str(source), context) == commit
    held = sorted(str(path.relative_to(context)) for path in context.rglob("*") if path.is_file())
    assert held == [".gitignore", ".gitkeep", "hyper_parallel/__init__.py"]
    assert build.stage_library(f"file://{source}#{commit}", context) == commit
    assert build.stage_library("", context) == "none"
    assert [path.name for path in context.iterdir()] == [".gitkeep"]
    with pytest.raises(UsageError, match="holds no package hyper_parallel"):
        build.stage_library(str(tmp_path), context)


def test_wheels_come_in_beside_those_that_are_there(tmp_path: Path) -> None:
    source, context = tmp_path / "source", tmp_path / "context"
    source.mkdir()
    context.mkdir()
    (source / "a-1-py3-none-any.whl").write_bytes(b"a")
    (source / "notes.txt").touch()
    assert build.stage_wheels(source, context) == 1
    assert build.stage_wheels(None, context) == 1
    with pytest.raises(UsageError, match="is not a folder"):
        build.stage_wheels(tmp_path / "none", context)
