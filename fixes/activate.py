"""Switches the mends on in a user's own scripts: by a .pth file in site-packages, which every start of Python reads."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from pathlib import Path

from repro.errors import InfraError

FILE_NAME = "hyper_repro_fixes.pth"
# One line that starts with `import` is run at every start of Python, so it must cost nothing where no mend is wanted.
_LINE = (
    "import os, sys; "
    "os.environ.get('HYPER_REPRO_FIXES', 'none') not in ('', 'none') and "
    "(sys.path.append({root!r}) or __import__('fixes.activate').activate.at_start())\n"
)


def at_start() -> None:
    """Install what the environment names; called by the .pth file.

    A script without the mends that its user asked for would show nothing, so a failure ends the process.
    """
    import fixes

    try:
        fixes.install()
    except Exception as error:  # noqa: BLE001 -- site.py would print a traceback and go on without the mends
        print(f"hyper-repro: {error}", file=sys.stderr)
        sys.stderr.flush()
        os._exit(getattr(error, "exit_code", 4))


def _path() -> Path:
    return Path(sysconfig.get_paths()["purelib"]) / FILE_NAME


def is_enabled() -> bool:
    """True if the .pth file is in this environment."""
    return _path().is_file()


def enable() -> Path:
    """Write the .pth file and return where.

    Raises:
        InfraError: site-packages is not ours to write, or this Python reads no .pth files there.
    """
    path = _path()
    if str(path.parent) not in [*site.getsitepackages(), *sys.path]:
        raise InfraError(f"this Python does not read .pth files in {path.parent}", "use a virtual environment")
    try:
        path.write_text(_LINE.format(root=str(Path(__file__).resolve().parents[1])), encoding="utf-8")
    except OSError as error:
        raise InfraError(f"cannot write {path}: {error.strerror}", "use an environment of your own") from error
    return path


def disable() -> Path | None:
    """Remove the .pth file; None if there was none."""
    path = _path()
    if not path.is_file():
        return None
    try:
        path.unlink()
    except OSError as error:
        raise InfraError(f"cannot remove {path}: {error.strerror}", "remove it as its owner") from error
    return path
