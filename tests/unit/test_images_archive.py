"""The archive for a site without a network: whole, or refused with the name of what is wrong."""

from __future__ import annotations

import io
import json
import platform
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from repro.cli import main
from repro.errors import InfraError
from repro.images import archive

ABOUT = archive.About("0.1.0", "abc", "ascend", "910b", "riscv64", "hyper-repro:x", "sha256:1", "2.10.0", "9.1.0")
Members = list[tuple[tarfile.TarInfo, bytes]]


@pytest.fixture
def made(tmp_path: Path) -> Path:
    for name, text in {"a": b"image" * 1000, "b": b"wheel"}.items():
        (tmp_path / name).write_bytes(text)
    path = tmp_path / "made.tar"
    archive.write(path, ABOUT, {"image.tar.zst": tmp_path / "a", "wheels/b.whl": tmp_path / "b"})
    return path


def members(path: Path) -> Members:
    with tarfile.open(path) as opened:
        return [(item, getattr(opened.extractfile(item), "read", bytes)()) for item in opened]


def rewrite(path: Path, change: Callable[[Members], Members]) -> None:
    held = change(members(path))
    with tarfile.open(path, "w") as opened:
        for item, text in held:
            item.size = len(text)
            opened.addfile(item, io.BytesIO(text))


def linked(held: Members) -> Members:
    held[1][0].type, held[1][0].linkname = tarfile.SYMTYPE, "/etc/passwd"
    return [(item, b"" if item.issym() else text) for item, text in held]


def renamed(held: Members) -> Members:
    held[1][0].name = "../image.tar.zst"
    return held


CHANGES: dict[str, tuple[Callable[[Members], Members], str]] = {
    "altered": (lambda held: [*held[:1], (held[1][0], b"IMAGE" * 1000), *held[2:]], "image.tar.zst is not what its"),
    "missing": (lambda held: held[:2], "wheels/b.whl is missing"),
    "added twice": (lambda held: [*held, held[1]], "image.tar.zst is not in its manifest, or twice"),
    "no manifest": (lambda held: held[1:], "its first file is no MANIFEST.json"),
    "manifest cut": (lambda held: [(held[0][0], held[0][1][:20]), *held[1:]], "MANIFEST.json cannot be read"),
    "a link": (linked, "is no plain file below the archive; do not unpack it"),
    "a path out of it": (renamed, r"\.\./image.tar.zst is no plain file below the archive"),
    "another version": (
        lambda held: [(held[0][0], held[0][1].replace(b'"schema_version": 1', b'"schema_version": 2')), *held[1:]],
        "this version reads schema_version 1",
    ),
}


def test_what_was_written_is_whole_and_the_same_files_give_the_same_bytes(made: Path, tmp_path: Path) -> None:
    found = archive.verify(made)
    assert found.about == ABOUT
    assert [(entry.path, entry.size) for entry in found.entries] == [("image.tar.zst", 5000), ("wheels/b.whl", 5)]
    again = tmp_path / "again.tar"
    archive.write(again, ABOUT, {"wheels/b.whl": tmp_path / "b", "image.tar.zst": tmp_path / "a"})
    assert again.read_bytes() == made.read_bytes()


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_found_and_named(made: Path, name: str) -> None:
    change, complaint = CHANGES[name]
    rewrite(made, change)
    with pytest.raises(InfraError, match=complaint):
        archive.verify(made)


@pytest.mark.parametrize("kept", [0, 700, 3000, 6000])
def test_a_cut_copy_is_refused(made: Path, kept: int) -> None:
    made.write_bytes(made.read_bytes()[:kept])
    with pytest.raises(InfraError, match=r"copy it again|not written by|is missing|is not what"):
        archive.verify(made)


def test_the_command_says_what_is_in_it(made: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["bundle-verify", str(made)]) == 0
    assert "whole: ascend 910b for riscv64, MindSpore 2.10.0, CANN 9.1.0" in capsys.readouterr().out
    assert main(["bundle-verify", str(made), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"][0]["path"] == "image.tar.zst"
    assert main(["bundle-verify", str(tmp_path / "none.tar")]) == 4
    assert main(["bundle-verify", str(made), "--load"]) == 4
    assert f"this is {platform.machine()}; take the other archive" in capsys.readouterr().err.splitlines()[-1]


def test_nothing_half_written_stays(tmp_path: Path) -> None:
    with pytest.raises(InfraError, match="cannot write"):
        archive.write(tmp_path / "made.tar", ABOUT, {"image.tar.zst": tmp_path / "none"})
    assert list(tmp_path.iterdir()) == []
