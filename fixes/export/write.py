"""Exports a report's or a fault's mends: which apply to this checkout, the patch, and the requests beside it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import fixes
from fixes.export import Codemod, codemod, has_export, request
from fixes.export.patch import check_applies, check_clean, render
from fixes.export.source import Tree
from repro.catalogue import find
from repro.errors import InfraError, UnsupportedError, UsageError
from repro.upstream.checkout import Checkout
from repro.upstream.versions import why_not_there


@dataclass(frozen=True)
class Exported:
    """What was done.

    Attributes:
        written: One line a file.
        notes: What was left out, and why.
    """

    written: tuple[str, ...]
    notes: tuple[str, ...]


def export(number: int, fault: str, checkout: Checkout, output: Path) -> Exported:
    """Write the patch, and for faults of MindSpore a request.

    Args:
        number: The report.
        fault: One fault of it; empty for all that have a mend.
        checkout: Where the edits are made, in memory.
        output: The patch; a request goes beside it, named after it.

    Raises:
        UsageError: There is no such mend, or the checkout is not clean.
        MisfitError: A codemod does not fit the checkout.
        UnsupportedError: No fault of the report is in this version.
        InfraError: A file cannot be written.
    """
    faults = _faults(number, fault)
    check_clean(checkout)
    tree = Tree(checkout.path)
    mods: list[Codemod] = []
    notes = []
    for each in faults:
        mod = codemod(each)
        if mod is None:
            continue
        if why := why_not_there(find(number), each, checkout.has):
            notes.append(f"{each} is left out: {why}")
            continue
        mod.edit(tree)
        mods.append(mod)
    requests = {each: text for each in faults if (text := request(each))}
    if not mods and not requests:
        raise UnsupportedError("; ".join(notes))
    written = [_write_patch(checkout, tree, mods, output)] if mods else []
    return Exported((*written, *_write_requests(requests, output)), tuple(notes))


def _faults(number: int, fault: str) -> list[str]:
    known = [each for each in fixes.MODULES if each.startswith(f"{number}.") and has_export(each)]
    if fault and fault not in known:
        raise UsageError(f"there is no export of {fault}", f"there is one of {', '.join(_all())}")
    if not known:
        raise UsageError(f"there is no export of {number}", f"there is one of {', '.join(_all())}")
    return [fault] if fault else known


def _all() -> list[str]:
    return [each for each in fixes.MODULES if has_export(each)]


def _write_patch(checkout: Checkout, tree: Tree, mods: list[Codemod], output: Path) -> str:
    _write(output, render(checkout, tree, mods))
    check_applies(checkout, output)
    return f"wrote {output}: {', '.join(sorted(tree.changed))}; apply it with git am"


def _write_requests(requests: dict[str, str], output: Path) -> list[str]:
    written = []
    for fault, text in requests.items():
        path = output.with_name(f"{output.stem}-mindspore-{fault}.md")
        _write(path, text)
        written.append(f"wrote {path}: a change request to MindSpore, whose C++ no patch of ours can change")
    return written


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InfraError(f"cannot write {path}: {error.strerror}", "name another --output") from error
