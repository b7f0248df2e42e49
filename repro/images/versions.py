"""Which versions go together: reads images/versions.yaml strictly, and refuses a combination that no row has."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from repro.errors import InfraError, UsageError
from repro.yaml_lines import Step, parse_with_lines, read

SCHEMA = Path(__file__).with_name("versions.schema.json")
ALLOW = "--allow-unlisted"


@dataclass(frozen=True)
class HyperParallel:
    """Where the library comes from by default."""

    repository: str
    commit: str


@dataclass(frozen=True)
class Row:
    """Versions that go together.

    Attributes:
        hdk: The driver's version, and that of its package with the firmware; None where no source was found.
        python: The best first.
        base_tags: By chip, a tag of CANN's image that was seen by name.
        source: Where the row was seen.
        sure: ``read`` or ``excerpt``: how well.
    """

    mindspore: str
    cann: str
    hdk: str | None
    firmware: str | None
    python: tuple[str, ...]
    mindformers: str | None
    chips: tuple[str, ...]
    architectures: tuple[str, ...]
    hyper_parallel: HyperParallel | None
    source: str
    sure: str
    note: str = ""
    base_tags: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """The row in one line, as a refusal names it."""
        python = " or ".join(self.python)
        return f"MindSpore {self.mindspore} with CANN {self.cann}, driver {self.hdk or '?'}, Python {python}"


@dataclass(frozen=True)
class Versions:
    """The table.

    Attributes:
        default: The MindSpore version of the row that is taken when none is named.
    """

    default: str
    rows: tuple[Row, ...]

    def row_of(self, mindspore: str) -> Row | None:
        """The row of a MindSpore version."""
        return next((row for row in self.rows if row.mindspore == mindspore), None)


@dataclass(frozen=True)
class Wanted:
    """A combination somebody asks for; an empty string asks for whatever the row says."""

    mindspore: str = ""
    cann: str = ""
    python: str = ""
    chip: str = ""
    architecture: str = ""
    driver: str = ""


def file() -> Path:
    """images/versions.yaml of this checkout, or of the image.

    Raises:
        InfraError: It is not there.
    """
    path = Path(__file__).resolve().parents[2] / "images" / "versions.yaml"
    if not path.is_file():
        raise InfraError(f"there is no {path}", "run from a checkout of hyper-repro")
    return path


def load(path: Path | None = None) -> Versions:
    """The table.

    Raises:
        UsageError: The file has a mistake; the message names line and key.
    """
    from jsonschema import Draft202012Validator

    path = path or file()
    data, marks = parse_with_lines(path, read(path))
    problems = Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8"))).iter_errors(data)
    for problem in sorted(problems, key=lambda found: list(map(str, found.absolute_path))):
        raise marks.error(list(problem.absolute_path), problem.message.splitlines()[0])
    rows = tuple(_row(item) for item in data["rows"])
    versions = Versions(data["default"], rows)
    for index, row in enumerate(rows):
        where: list[Step] = ["rows", index]
        if versions.row_of(row.mindspore) is not row:
            raise marks.error([*where, "mindspore"], f"{row.mindspore} has a row already")
        for chip in row.base_tags.keys() - set(row.chips):
            raise marks.error([*where, "base_tags", chip], "a tag for a chip that the row does not have")
    if versions.row_of(versions.default) is None:
        raise marks.error(["default"], f"there is no row for MindSpore {versions.default}")
    return versions


def _row(item: Mapping[str, Any]) -> Row:
    values = dict(item)
    for name in ("python", "chips", "architectures"):
        values[name] = tuple(values[name])
    source = values["hyper_parallel"]
    values["hyper_parallel"] = HyperParallel(**source) if source else None
    return Row(**values)


def choose(versions: Versions, wanted: Wanted, allow_unlisted: bool = False) -> Row:
    """The row that a combination is one of.

    Args:
        versions: The table.
        wanted: What is asked for.
        allow_unlisted: Return the nearest row even where the combination is none of its.

    Raises:
        UsageError: No row has this combination; the message names the row that would be right.
    """
    nearest = _nearest(versions, wanted)
    wrong = differences(nearest, wanted)
    if not wrong or allow_unlisted:
        return nearest
    asked = ", ".join(wrong)
    rows = [row for row in (versions.row_of(wanted.mindspore), _by_cann(versions, wanted.cann)) if row]
    right = " and ".join(dict.fromkeys(f"{row} ({row.sure}: {row.source})" for row in rows or [nearest]))
    raise UsageError(
        f"images/versions.yaml has no row with {asked}", f"known is {right}; to build all the same, give {ALLOW}"
    )


def _nearest(versions: Versions, wanted: Wanted) -> Row:
    known = versions.row_of(wanted.mindspore) if wanted.mindspore else _by_cann(versions, wanted.cann)
    fallback = versions.row_of(versions.default)
    if fallback is None:
        raise UsageError(f"there is no row for MindSpore {versions.default}")
    return known or fallback


def _by_cann(versions: Versions, cann: str) -> Row | None:
    return next((row for row in versions.rows if row.cann == cann), None) if cann else None


def differences(row: Row, wanted: Wanted) -> list[str]:
    """What of a combination the row does not have, each as ``CANN 9.0.0``; empty if it has it all."""
    asked: list[tuple[str, str, Sequence[str]]] = [
        ("MindSpore", wanted.mindspore, [row.mindspore]),
        ("CANN", wanted.cann, [row.cann]),
        ("Python", wanted.python, row.python),
        ("chip", wanted.chip, row.chips),
        ("architecture", wanted.architecture, row.architectures),
        ("driver", wanted.driver, [row.hdk] if row.hdk else []),
    ]
    wrong = [f"{name} {value}" for name, value, known in asked if value and value not in known]
    if wrong and wanted.mindspore and not wrong[0].startswith("MindSpore"):
        return [f"MindSpore {wanted.mindspore}", *wrong]
    return wrong
