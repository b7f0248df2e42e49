"""``repro fixes enable`` in an environment of its own: a plain script gets the mends, and none after ``disable``."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from harness import REPOSITORY

SCRIPT = """
import sys
import mindspore.common._grad_function as functions
from hyper_parallel.platform.mindspore.fully_shard.param import HSDPParamV2
entry = vars(HSDPParamV2)["_to_local_unsharded_grad"]
print("__del__" in vars(functions._Function), hasattr(entry, "__wrapped__"), "fixes" in sys.modules)
"""
PARAM = "class HSDPParamV2:\n    def _to_local_unsharded_grad(self, grad):\n        return grad\n"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment that has what this one has, but site-packages of its own."""
    folder = tmp_path_factory.mktemp("user") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (packages,) = folder.glob("lib/python3.*/site-packages")
    # A plain path in a .pth file is searched, but .pth files in it are not read: ours is not here yet.
    (packages / "ours.pth").write_text(sysconfig.get_paths()["purelib"] + "\n", encoding="utf-8")
    fully_shard = folder.parent / "hyper_parallel" / "platform" / "mindspore" / "fully_shard"
    fully_shard.mkdir(parents=True)
    for path in (fully_shard, *list(fully_shard.parents)[:3]):
        (path / "__init__.py").touch()
    (fully_shard / "param.py").write_text(PARAM, encoding="utf-8")
    (folder.parent / "train.py").write_text(SCRIPT, encoding="utf-8")
    return folder


def call(environment: Path, *arguments: str, fixes: str = "", path: str = "") -> subprocess.CompletedProcess[str]:
    variables = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "HYPER_REPRO_FIXES")}
    return subprocess.run(
        [environment / "bin" / "python", *arguments],
        cwd=environment.parent,
        env={**variables, "HYPER_REPRO_FIXES": fixes, "PYTHONPATH": path, "GLOG_v": "3"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def repro(environment: Path, *arguments: str, fixes: str = "") -> str:
    done = call(environment, "-m", "repro.cli", "fixes", *arguments, fixes=fixes, path=str(REPOSITORY))
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_plain_script_gets_the_mends_and_loses_them_again(environment: Path) -> None:
    def train(fixes: str) -> str:
        return call(environment, "train.py", fixes=fixes).stdout.strip()

    assert train("134.2,301.2") == "False False False"
    assert "but `repro fixes enable` was not run here" in repro(environment, "list", fixes="301.2")
    assert f"wrote {environment}" in repro(environment, "enable")
    assert train("134.2,301.2") == "True True True"
    assert train("134.2") == "False True True"
    # Nothing is loaded where none is asked for.
    assert train("none") == train("") == "False False False"
    listed = repro(environment, "list", fixes="301.2").split("\n134.2")[1]
    assert "here:  active in scripts" in listed.partition("301.2  ")[2].partition("301.3  ")[0]
    assert "not active: HYPER_REPRO_FIXES does not name it" in listed.partition("219.1  ")[0]
    mistaken = call(environment, "train.py", fixes="134.9")
    assert (mistaken.returncode, mistaken.stdout) == (2, "")
    assert "there is no mend '134.9'" in mistaken.stderr
    assert f"removed {environment}" in repro(environment, "disable")
    assert train("134.2,301.2") == "False False False"
    assert "there was no hyper_repro_fixes.pth" in repro(environment, "disable")
