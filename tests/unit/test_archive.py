"""Archives: what is packed comes back, and what would leave its folder is refused before anything is written."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
import zstandard

from repro.collect.archive import pack, unpack
from repro.errors import InfraError

ROOMY = 1 << 20


def crafted(path: Path, **fields: object) -> Path:
    """An archive with one well-behaved member and one that is not."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        good = tarfile.TarInfo("run/good.txt")
        good.size = 2
        archive.addfile(good, io.BytesIO(b"ok"))
        bad = tarfile.TarInfo("run/bad.txt")
        for name, value in fields.items():
            setattr(bad, name, value)
        archive.addfile(bad, io.BytesIO(b"x" * bad.size))
    path.write_bytes(zstandard.ZstdCompressor().compress(raw.getvalue()))
    return path


def test_what_is_packed_comes_back_without_owner_and_time(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "deep").mkdir(parents=True)
    (source / "deep" / "名.txt").write_text("形状", encoding="utf-8")
    pack(source, "run", tmp_path / "a.tar.zst")
    unpack(tmp_path / "a.tar.zst", tmp_path / "out", ROOMY)
    assert (tmp_path / "out" / "run" / "deep" / "名.txt").read_text(encoding="utf-8") == "形状"
    plain = zstandard.ZstdDecompressor().stream_reader(io.BytesIO((tmp_path / "a.tar.zst").read_bytes())).read()
    with tarfile.open(fileobj=io.BytesIO(plain)) as archive:
        assert {(m.uid, m.gid, m.uname, m.gname, m.mtime) for m in archive} == {(0, 0, "", "", 0)}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": "/etc/passwd"}, "leads outside"),
        ({"name": "run/../../x"}, "leads outside"),
        ({"name": ".."}, "leads outside"),
        ({"type": tarfile.SYMTYPE, "linkname": "/etc"}, "a link or a device"),
        ({"type": tarfile.LNKTYPE, "linkname": "run/good.txt"}, "a link or a device"),
        ({"type": tarfile.CHRTYPE}, "a link or a device"),
        ({"type": tarfile.FIFOTYPE}, "a link or a device"),
        ({"size": 2 * ROOMY}, "unpacks to more than 1 MiB"),
    ],
)
def test_a_member_that_must_not_be_unpacked(fields: dict[str, object], words: str, tmp_path: Path) -> None:
    with pytest.raises(InfraError, match=words):
        unpack(crafted(tmp_path / "a.tar.zst", **fields), tmp_path / "out", ROOMY)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("share", [0.0, 0.5, 0.97])
def test_an_archive_that_is_cut_is_told(share: float, tmp_path: Path) -> None:
    whole = crafted(tmp_path / "a.tar.zst", size=70_000).read_bytes()
    cut = tmp_path / "cut.tar.zst"
    cut.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(InfraError, match=r"not a whole tar\.zst"):
        unpack(cut, tmp_path / "out", ROOMY)
