"""What CANN an image holds, looked for in the documented order of places; run while an image is built.

``python -m repro.images.cann --chip 910b`` refuses a CANN that does not go with the installed MindSpore.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from repro.errors import InfraError, ReproError
from repro.host import package_versions
from repro.images.versions import ALLOW, Row, Wanted, choose, load

ASCEND = Path("/usr/local/Ascend")
# Where a version stands, newest layout first; the toolkit's own file says ``version=``, the compiler's ``Version=``.
_VERSION_FILES = ("*-linux/ascend_toolkit_install.info", "compiler/version.info", "toolkit/version.info")
_VERSION = re.compile(r"^version=\s*\"?([0-9][0-9A-Za-z.\-]*)\"?\s*$", re.IGNORECASE | re.MULTILINE)


def candidates(environment: Mapping[str, str], ascend: Path = ASCEND) -> list[Path]:
    """Where CANN may be: ``$ASCEND_HOME_PATH``, ``cann``, the newest ``cann-*``, ``ascend-toolkit/latest``."""
    named = environment.get("ASCEND_HOME_PATH", "")
    versioned = sorted(ascend.glob("cann-*"), key=lambda path: _sortable(path.name))
    places = [Path(named)] if named else []
    return [*places, ascend / "cann", *versioned[-1:], ascend / "ascend-toolkit" / "latest"]


def _sortable(name: str) -> list[tuple[int, str]]:
    """Version order: 9.10 after 9.9."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"[.\-]", name)]


def find(environment: Mapping[str, str], ascend: Path = ASCEND) -> Path:
    """The folder of CANN.

    Raises:
        InfraError: There is none; the message names every place looked at.
    """
    places = candidates(environment, ascend)
    for place in places:
        if place.is_dir():
            return place
    looked = ", ".join(str(place) for place in places)
    raise InfraError(f"no CANN: there is no {looked}", "build on a CANN image, or set ASCEND_HOME_PATH")


def version_of(root: Path) -> str:
    """The version of the CANN in a folder.

    Raises:
        InfraError: No file there names one.
    """
    for pattern in _VERSION_FILES:
        for path in sorted(root.glob(pattern)):
            if found := _VERSION.search(path.read_text(encoding="utf-8", errors="replace")):
                return found.group(1)
    raise InfraError(f"no version of CANN in {root}", f"looked at {', '.join(_VERSION_FILES)}")


def check(chip: str, allow_unlisted: bool, environment: Mapping[str, str], ascend: Path = ASCEND) -> Row:
    """The row that the CANN here, the installed MindSpore and this Python are one of.

    Raises:
        UsageError: They go together by no row; the message names the row that would be right.
        InfraError: There is no CANN, no version of it, or no MindSpore.
    """
    mindspore = package_versions()["mindspore"]
    if mindspore is None:
        raise InfraError("no MindSpore is installed", "install it first")
    wanted = Wanted(
        mindspore=mindspore,
        cann=version_of(find(environment, ascend)),
        python=".".join(platform.python_version_tuple()[:2]),
        chip=chip,
        architecture=platform.machine(),
    )
    return choose(load(), wanted, allow_unlisted)


def main(arguments: list[str]) -> int:
    """Entry point of a build step."""
    parser = argparse.ArgumentParser(prog="repro.images.cann")
    parser.add_argument("--chip", default="")
    parser.add_argument(ALLOW, action="store_true")
    options = parser.parse_args(arguments)
    try:
        print(f"known to go together: {check(options.chip, options.allow_unlisted, os.environ)}")
    except ReproError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
