"""Checkouts for the tests: a package of ours, committed to a git repository of its own."""

from __future__ import annotations

import shutil
from pathlib import Path

from repro.upstream.checkout import Checkout, git, open_checkout

DATA = Path(__file__).parents[1] / "data"


def committed(layout: str, folder: Path) -> Path:
    """The package of a layout as a clean checkout."""
    shutil.copytree(DATA / layout, folder, ignore=shutil.ignore_patterns("__pycache__"))
    git(folder, "init", "--quiet")
    git(folder, "config", "user.name", "A Name")
    git(folder, "config", "user.email", "name@localhost")
    git(folder, "config", "commit.gpgsign", "false")
    commit(folder)
    return folder


def commit(folder: Path) -> None:
    """Commit all there is."""
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "as it is")


def opened(folder: Path) -> Checkout:
    """The checkout as the commands see it."""
    found = open_checkout(folder)
    assert found is not None
    return found
