"""Writes edits of a checkout as a patch that ``git am`` takes, once the checkout is seen to be as committed."""

from __future__ import annotations

import tempfile
import textwrap
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path

from fixes.export import Codemod
from fixes.export.source import Tree
from repro.errors import InfraError, UsageError
from repro.upstream.checkout import Checkout, git

_NOBODY = ("hyper-repro", "hyper-repro@localhost")


def check_clean(checkout: Checkout) -> None:
    """Refuse what a patch cannot be made against.

    Raises:
        UsageError: No git checkout, or one with changes.
    """
    if not checkout.commit:
        raise UsageError(f"--checkout {checkout.path} is not the top of a git checkout", "name one that is")
    if checkout.changed:
        seen = ", ".join(checkout.changed[:3]) + (", ..." if len(checkout.changed) > 3 else "")  # noqa: PLR2004
        raise UsageError(f"--checkout {checkout.path} has changes: {seen}", "commit, stash or remove them first")


def render(checkout: Checkout, tree: Tree, mods: Sequence[Codemod]) -> str:
    """The patch as text, by the identity that git has for the checkout.

    Raises:
        InfraError: git is missing, or refuses its own patch.
    """
    diff = _diff(tree)
    name = git(checkout.path, "config", "user.name", fails_with="").strip() or _NOBODY[0]
    mail = git(checkout.path, "config", "user.email", fails_with="").strip() or _NOBODY[1]
    first, *others = mods
    title = first.title if not others else f"{first.title}, and {len(others)} more"
    parts = [_wrapped(f"{mod.title}\n\n{mod.cause}\n\nEvidence: {mod.evidence}") for mod in mods]
    # The one title stands in the subject already.
    message = parts[0].partition("\n\n")[2] if not others else "\n\n".join(parts)
    head = [
        f"From {checkout.commit} Mon Sep 17 00:00:00 2001",
        f"From: {name} <{mail}>",
        f"Date: {format_datetime(datetime.now(UTC))}",
        f"Subject: [PATCH] {title}",
    ]
    return "\n".join(
        [*head, "", message, "---", f"Made against {checkout.commit}.", "", diff, "-- ", "hyper-repro", ""]
    )


def _wrapped(message: str) -> str:
    """Paragraphs as narrow as commit messages are."""
    return "\n\n".join(textwrap.fill(part, 72) for part in message.split("\n\n"))


def check_applies(checkout: Checkout, patch: Path) -> None:
    """Let git try it, without applying it.

    Raises:
        InfraError: git refuses.
    """
    git(checkout.path, "apply", "--check", str(patch.resolve()))


def _diff(tree: Tree) -> str:
    """Git's own diff of the changed files, so that names, modes and line ends are as git wants them."""
    with tempfile.TemporaryDirectory(prefix="hyper-repro-export-") as folder:
        root = Path(folder)
        for path, text in tree.changed.items():
            before = tree.before(path)
            versions = {"a": before, "b": text.encode()}
            for side, content in versions.items():
                file = root / side / path
                file.parent.mkdir(parents=True, exist_ok=True)
                if content is not None:
                    file.write_bytes(content)
        # Differences are what is wanted, so git's answer 1 is no failure here; an empty answer is.
        diff = _no_index(root)
    if not diff:
        raise InfraError("git found no difference in the edited files", "report this as a bug")
    return diff


def _no_index(root: Path) -> str:
    import subprocess

    command = [
        "git",
        "-C",
        str(root),
        "diff",
        "--no-index",
        "--no-color",
        "--no-ext-diff",
        "--src-prefix=",
        "--dst-prefix=",
    ]
    done = subprocess.run([*command, "a", "b"], capture_output=True, check=False, timeout=60)
    if done.returncode > 1:
        raise InfraError(f"git diff: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout.decode("utf-8")
