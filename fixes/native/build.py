"""Builds the library of mend 301.3 for the installed MindSpore, once its headers agree with what the source assumes."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import tempfile
from pathlib import Path

from fixes.mend import MendError
from repro.errors import InfraError
from repro.sim.build import cache_folder
from repro.sim.wheel import Wheel, find_wheel, run_tool

VERSION = "2.10.0"
_LIBRARY = "libhyper_repro_comm_handle.so"
_SOURCE = Path(__file__).parent
# MindSpore is built with the old ABI of libstdc++, which its headers must be read with, too.
_CXX = ["g++", "-std=c++17", "-D_GLIBCXX_USE_CXX11_ABI=0"]
_HEADERS = (
    "",
    "mindspore",
    "mindspore/ccsrc",
    "mindspore/core",
    "mindspore/core/include",
    "mindspore/core/mindrt/include",
    "mindspore/ops",
    "mindspore/ops/include",
    "third_party",
    "third_party/include",
)


def build() -> Path:
    """The library, built first if it is not there; about ten seconds, once a MindSpore.

    Raises:
        MendError: Another version of MindSpore, another processor, or headers that do not agree.
        ReproError: There is no MindSpore, no compiler, or no place to write.
    """
    wheel = find_wheel()
    if wheel.version != VERSION:
        raise MendError(
            f"mend 301.3 is for MindSpore {VERSION}, this is {wheel.version}",
            "leave it out of HYPER_REPRO_FIXES; docs/mends.md says what to look at in another version",
        )
    library = _place(wheel)
    if library.is_file():
        return library
    _check_layout(wheel)
    try:
        library.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=".building-", dir=library.parent))
    except OSError as error:
        raise InfraError(f"cannot write {library.parent}: {error.strerror}", "set HYPER_REPRO_CACHE") from error
    try:
        built = work / _LIBRARY
        options = ["-O1", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror", f"-Wl,-soname,{_LIBRARY}", "-pthread"]
        run_tool([*_CXX, *options, "-o", str(built), str(_SOURCE / "comm_handle_events.cc"), "-ldl"])
        # Two ranks may build at the same time: one rename comes last, and both files are as good.
        os.replace(built, library)  # noqa: PTH105 -- over an existing file on purpose
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return library


def _place(wheel: Wheel) -> Path:
    digest = hashlib.sha256(f"{wheel.version}\n{wheel.fingerprint}\n".encode())
    for path in sorted(_SOURCE.glob("*")):
        if path.suffix in {".cc", ".h", ".py"}:
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    folder = f"{wheel.version}-{platform.machine()}-{digest.hexdigest()[:16]}"
    return cache_folder().parent / "mends" / folder / _LIBRARY


def _check_layout(wheel: Wheel) -> None:
    headers = wheel.lib.parent / "include"
    paths = [f"-I{headers / path}" for path in _HEADERS]
    try:
        # -w: the headers of the wheel are not ours to warn about.
        run_tool([*_CXX, "-w", "-fsyntax-only", f"-I{_SOURCE}", *paths, str(_SOURCE / "layout_check.cc")])
    except InfraError as error:
        if "is missing" in error.message:
            raise
        raise MendError(
            f"mend 301.3 does not fit the headers in {headers}: {error.message[-600:]}",
            "it expects the layout in fixes/native/layout.h",
        ) from error
