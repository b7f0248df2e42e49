"""A checkout of hyper-parallel: where it is, which commit, whether it was changed, and its names read without running.

Nothing here imports or changes the checkout; git and the syntax of its files are all that is looked at.
"""

from __future__ import annotations

import ast
import hashlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from repro.errors import InfraError, UsageError

VARIABLE = "HYPER_PARALLEL_SRC"
PACKAGE = "hyper_parallel"
# The public repository and the state of 2026-03-05 that docs/upstream.md was made with.
ADDRESS = "https://github.com/mindspore-ai/hyper-parallel.git"
KNOWN_COMMIT = "fdd0a808423ac220f66a5009fdd827429b6fb82f"
BRING = f"git clone {ADDRESS} hyper-parallel && git -C hyper-parallel checkout {KNOWN_COMMIT}"


@dataclass(frozen=True)
class Checkout:
    """What is known of a checkout.

    Attributes:
        path: Its root, absolute.
        commit: Full hash; empty if it is no git checkout.
        changed: Paths that differ from the commit, untracked ones included.
        digest: Of all Python files of the package, so that a changed tree is told from another changed tree.
    """

    path: Path
    commit: str
    changed: tuple[str, ...]
    digest: str

    @property
    def identity(self) -> dict[str, object]:
        """What run.json holds: enough to refuse another state, no path of this machine."""
        changed = list(self.changed)
        return {"commit": self.commit, "dirty": bool(changed), "changed": changed, "digest": self.digest}

    @property
    def label(self) -> str:
        """The commit as a reader wants it, such as ``fdd0a808423a, changed``."""
        return (self.commit[:12] or "no git commit") + (", changed" if self.changed else "")

    def has(self, name: str) -> bool:
        """True if ``file::qualified.name`` is defined there."""
        file, _, qualified = name.partition("::")
        return qualified in names_in(self.path / file)


def open_checkout(asked: Path | None, option: str = "--upstream") -> Checkout | None:
    """The checkout that the command line or the environment names; None if neither does.

    Args:
        asked: What the command line says; None to ask the environment.
        option: How the command line says it.

    Raises:
        UsageError: The folder is not there or holds no hyper-parallel.
    """
    named = str(asked) if asked is not None else os.environ.get(VARIABLE, "")
    if not named:
        return None
    path = Path(named).expanduser().resolve()
    if not (path / PACKAGE / "__init__.py").is_file():
        who = option if asked is not None else VARIABLE
        raise UsageError(f"{who}: {path} holds no package {PACKAGE}", f"for example: {BRING}")
    commit, changed = _git_state(path)
    return Checkout(path, commit, changed, _digest(path))


def _git_state(path: Path) -> tuple[str, tuple[str, ...]]:
    """Commit and changed paths; nothing where the folder is not the top of a git checkout.

    Raises:
        InfraError: git refuses to look at it, because it belongs to another user, for example.
    """
    # A folder inside another project's checkout is none of its own; one that git refuses to look at is told.
    if not (path / ".git").exists():
        return "", ()
    said = git(path, "status", "--porcelain", "-z", "--no-renames")
    return git(path, "rev-parse", "HEAD").strip(), tuple(entry[3:] for entry in said.split("\0") if entry)


def git(path: Path, *arguments: str, fails_with: str | None = None) -> str:
    """What a git command prints.

    Args:
        path: Where to run it.
        arguments: The command's own.
        fails_with: What to return where git says no; None raises.

    Raises:
        InfraError: git is missing, or said no.
    """
    command = ["git", "-C", str(path), *arguments]
    # The answers are parsed, and no hook or pager of the user's may run.
    environment = {**os.environ, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="surrogateescape", timeout=60, check=False, env=environment
        )
    except FileNotFoundError as error:
        raise InfraError("git is missing", "on Debian: apt-get install git") from error
    except subprocess.TimeoutExpired as error:
        raise InfraError(f"git {arguments[0]} in {path} did not answer within 60 s") from error
    if done.returncode == 0:
        return done.stdout
    if fails_with is not None:
        return fails_with
    raise InfraError(f"git {arguments[0]} in {path}: {done.stderr.strip() or f'status {done.returncode}'}")


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    for file in sorted((path / PACKAGE).rglob("*.py")):
        digest.update(str(file.relative_to(path)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


@lru_cache(maxsize=64)
def names_in(file: Path) -> frozenset[str]:
    """Qualified names of classes, functions and methods that a file defines; empty if there is no such file.

    Raises:
        InfraError: The file is not Python that this Python can read.
    """
    if not file.is_file():
        return frozenset()
    try:
        return frozenset(_names(ast.parse(file.read_bytes(), str(file)), ""))
    except SyntaxError as error:
        raise InfraError(f"{file}:{error.lineno}: not Python: {error.msg}", "look at the checkout") from error


def _names(node: ast.AST, prefix: str) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + child.name
            if isinstance(child, ast.ClassDef):
                yield from _names(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.If | ast.Try):
            yield from _names(child, prefix)
