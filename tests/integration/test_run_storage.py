"""Disks that are full, folders that are read-only or not ours: one line says so, and what was finished is kept."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import Cli, verdict

NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


def need_root(tool: str, package: str) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root: sudo make test")
    if shutil.which(tool) is None:
        pytest.skip(f"needs {tool}: apt-get install {package}")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB."""
    need_root("mount", "mount")
    where = tmp_path / "disk"
    where.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(where)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount here ({mounted.stderr.strip()}): run in a container with --privileged")
    yield where
    subprocess.run(["umount", str(where)], check=True)


def fill(disk: Path, leave: int) -> Path:
    """Take up all of a disk but some bytes."""
    free = os.statvfs(disk)
    ballast = disk / "ballast"
    ballast.write_bytes(b"x" * (free.f_bavail * free.f_bsize - leave))
    return ballast


def test_a_disk_that_is_full_from_the_start(cli: Cli, small_disk: Path) -> None:
    fill(small_disk, 0)
    cli.out = small_disk / "run"
    done = cli("run", "9002.1", "--json", "--out", str(cli.out))
    assert (done.code, done.out) == (4, "")
    assert len(done.err.splitlines()) == 1
    assert f"cannot write {cli.out}" in done.last
    assert "No space left on device; free space there or choose another folder with --out" in done.last


def test_a_disk_that_fills_up_while_a_trial_runs(cli: Cli, small_disk: Path) -> None:
    cli.out = small_disk / "run"
    process = cli.start("run", "9002.11", "--json", "--out", str(cli.out))
    cli.about_to("wait for gate")
    fill(small_disk, 0)
    cli.gate.touch()
    done = cli.finish(process)
    assert (done.code, done.out) == (4, "")
    assert "No space left on device" in done.last
    assert "trials are kept; repeat the command with --out" in done.last
    # Room again: the run goes on where it was.
    (small_disk / "ballast").unlink()
    again = cli("run", "9002.11", "--json", "--out", str(cli.out))
    assert (again.code, verdict(again)["verdict"]) == (0, "REPRODUCED")


def test_a_rank_that_fills_the_disk(cli: Cli, small_disk: Path) -> None:
    """The rank's output alone fills it: the rank gets the error, and the one line names the disk."""
    cli.out = small_disk / "run"
    done = cli.run("9002.5")
    assert done.code == 4
    assert "No space left on device" in done.err + done.out or "the disk is full" in done.out
    assert len(done.err.splitlines()) <= 2


def test_a_read_only_file_system(cli: Cli, small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    done = cli("run", "9002.1", "--json", "--out", str(small_disk / "run"))
    assert (done.code, done.out) == (4, "")
    assert len(done.err.splitlines()) == 1
    assert "Read-only file system; free space there or choose another folder with --out" in done.last


def test_a_finished_run_on_a_read_only_file_system_is_told(cli: Cli, small_disk: Path) -> None:
    assert cli("run", "9002.1", "--json", "--out", str(small_disk / "run")).code == 0
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    report = cli("report", str(small_disk / "run"))
    assert (report.code, report.err) == (0, "")
    judged = cli("judge", str(small_disk / "run"))
    assert judged.code == 4
    assert "REPRODUCED" in judged.out
    assert len(judged.err.splitlines()) == 1
    assert "Read-only file system" in judged.last


def as_nobody(cli: Cli, *arguments: str) -> tuple[int, str, str]:
    """Run as a user to whom nothing belongs; whoever is not root needs no other user to be refused."""
    home = cli.folder / "home"
    home.mkdir(exist_ok=True)
    wrapper: tuple[str, ...] = ()
    if os.getuid() == 0:
        need_root("setpriv", "util-linux")
        shutil.chown(home, 65534, 65534)
        wrapper = NOBODY
    done = cli.finish(cli.start(*arguments, wrapper=wrapper, HOME=str(home), PYTHONDONTWRITEBYTECODE="1"))
    return done.code, done.out, done.err


def readable_by_nobody(folder: Path) -> None:
    """The temporary folders of pytest are kept to their owner."""
    for parent in (folder, *folder.parents):
        if parent.stat().st_uid == os.getuid() and "pytest" in str(parent):
            parent.chmod(0o755)


def test_a_folder_of_somebody_else(cli: Cli) -> None:
    readable_by_nobody(cli.folder)
    cli.out.mkdir(mode=0o555)
    code, out, err = as_nobody(cli, "run", "9002.1", "--json", "--out", str(cli.out))
    if "No module named" in err or "Permission denied: " in err:
        pytest.skip("another user cannot read this Python: make setup in a folder that all may read")
    assert (code, out) == (4, "")
    assert len(err.splitlines()) == 1
    assert "Permission denied; free space there or choose another folder with --out" in err


def test_evidence_that_cannot_be_read(cli: Cli) -> None:
    readable_by_nobody(cli.folder)
    assert cli("run", "9002.1", "--json", "--out", str(cli.out)).code == 0
    log = cli.trial("9002.1-case-0-unfixed-single") / "rank-0" / "stderr.log"
    log.chmod(0o600 if os.getuid() == 0 else 0)
    code, out, err = as_nobody(cli, "report", str(cli.out))
    if "No module named" in err:
        pytest.skip("another user cannot read this Python: make setup in a folder that all may read")
    assert (code, out) == (4, "")
    assert err == f"repro report: {log}: Permission denied\n"


def test_a_file_where_the_folder_should_be(cli: Cli) -> None:
    cli.out.write_text("not a folder")
    done = cli("run", "9002.1", "--out", str(cli.out))
    assert (done.code, done.out) == (4, "")
    assert len(done.err.splitlines()) == 1
    assert cli.out.read_text() == "not a folder"


def test_a_broken_issue_file_is_told_before_anything_runs(cli: Cli) -> None:
    folder = cli.folder / "issues" / "9001"
    shutil.copytree(Path(cli.environment["HYPER_REPRO_ISSUES"]) / "9001", folder)
    text = (folder / "issue.yaml").read_text(encoding="utf-8")
    (folder / "issue.yaml").write_text(text.replace("arm: unfixed", "arm: [unfixed"), encoding="utf-8")
    for verb in (("run", "9001"), ("list",)):
        done = cli(*verb, HYPER_REPRO_ISSUES=str(folder.parent))
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith(f"repro {verb[0]}: {folder / 'issue.yaml'}:")
        assert "not YAML" in done.err
        assert len(done.err.splitlines()) == 1
    assert not (cli.folder / "runs").exists()
