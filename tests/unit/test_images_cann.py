"""Where CANN is looked for, which version it says it is, and that its script is sourced once, found in that order."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from repro.errors import InfraError, UsageError
from repro.images import cann

SCRIPT = Path(__file__).parents[2] / "images" / "cann-env.sh"
SET_ENV = "export STAND_IN_SOURCED=$((STAND_IN_SOURCED + 1))\nexport FROM_SCRIPT=$BASH_SOURCE\nfalse\n"


def lay_out(ascend: Path, *folders: str) -> None:
    for name in folders:
        (ascend / name).mkdir(parents=True)


@pytest.mark.parametrize(
    ("folders", "named", "found"),
    [
        (["cann", "cann-9.1.0", "ascend-toolkit/latest"], "elsewhere", "elsewhere"),
        (["cann", "cann-9.1.0", "ascend-toolkit/latest"], "", "cann"),
        (["cann-8.5.0", "cann-9.9.0", "cann-9.10.0", "ascend-toolkit/latest"], "", "cann-9.10.0"),
        (["ascend-toolkit/latest"], "", "ascend-toolkit/latest"),
        (["ascend-toolkit/latest"], "gone", "ascend-toolkit/latest"),
    ],
)
def test_python_and_shell_look_in_the_same_order(tmp_path: Path, folders: list[str], named: str, found: str) -> None:
    lay_out(tmp_path, *folders, *([named] if named == "elsewhere" else []))
    environment = {"ASCEND_HOME_PATH": str(tmp_path / named)} if named else {}
    assert cann.find(environment, tmp_path) == tmp_path / found
    (tmp_path / found / "set_env.sh").write_text(SET_ENV, encoding="utf-8")
    program = f'set -euo pipefail; . {SCRIPT}; . {SCRIPT}; echo "$HYPER_REPRO_CANN $STAND_IN_SOURCED $-"'
    said = subprocess.run(
        ["bash", "-c", program],
        env={**environment, "HYPER_REPRO_ASCEND": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert said[:2] == [str(tmp_path / found), "1"]
    assert set("eu") <= set(said[2])


def test_the_script_beside_latest_is_found(tmp_path: Path) -> None:
    lay_out(tmp_path, "cann-9.1.0", "ascend-toolkit/latest")
    script = tmp_path / "ascend-toolkit" / "set_env.sh"
    script.write_text(SET_ENV, encoding="utf-8")
    done = subprocess.run(
        ["bash", "-c", f'. {SCRIPT}; echo "$HYPER_REPRO_CANN $FROM_SCRIPT"'],
        env={"HYPER_REPRO_ASCEND": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [str(tmp_path / "cann-9.1.0"), str(script)]


def test_no_cann_names_every_place(tmp_path: Path) -> None:
    with pytest.raises(InfraError, match=r"there is no .*/cann, .*/ascend-toolkit/latest; build on a CANN image"):
        cann.find({}, tmp_path)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("x86_64-linux/ascend_toolkit_install.info", "package_name=x\nversion=9.1.0\ninnerversion=V100R001C25\n"),
        ("compiler/version.info", "Version=9.1.0\ncompatible_version=[V100R001C17]\n"),
        ("toolkit/version.info", 'version="9.1.0"\n'),
    ],
)
def test_the_version_is_read_from_any_layout(tmp_path: Path, file: str, text: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    assert cann.version_of(tmp_path) == "9.1.0"


def test_a_folder_without_a_version_is_told(tmp_path: Path) -> None:
    with pytest.raises(InfraError, match="no version of CANN in"):
        cann.version_of(tmp_path)


def test_another_cann_than_the_row_s_is_refused_with_the_right_row(tmp_path: Path) -> None:
    path = tmp_path / "cann" / "compiler" / "version.info"
    path.parent.mkdir(parents=True)
    path.write_text("Version=9.0.0\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"CANN 9\.0\.0; known is MindSpore 2\.10\.0 with CANN 9\.1\.0"):
        cann.check("910b", False, {}, tmp_path)
    assert cann.check("910b", True, {}, tmp_path).cann == "9.1.0"
    path.write_text("Version=9.1.0\n", encoding="utf-8")
    assert cann.check("910b", False, {}, tmp_path).mindspore == "2.10.0"
