"""One finding, and how to make one."""

from __future__ import annotations

from typing import NamedTuple

from .faults import FAIL, FAULTS, OK, WARN


class Finding(NamedTuple):
    """One line of the table.

    Attributes:
        fault: Key in FAULTS; empty if all is well.
        check: What was looked at.
        level: ok, warn or fail.
        seen: The value found.
        advice: What to do; empty if all is well.
    """

    fault: str
    check: str
    level: str
    seen: str
    advice: str


def good(check: str, seen: str) -> Finding:
    """All is well."""
    return Finding("", check, OK, seen, "")


def bad(key: str, seen: str, **values: str) -> Finding:
    """A fault of the table, with the value seen."""
    fault = FAULTS[key]
    return Finding(key, fault.check, fault.level, seen, fault.advice.format(**values) if values else fault.advice)


def worst(findings: list[Finding]) -> str:
    """The level of the worst one."""
    levels = {finding.level for finding in findings}
    return FAIL if FAIL in levels else WARN if WARN in levels else OK


def spans(numbers: list[int]) -> str:
    """``0-3, 7``."""
    parts: list[list[int]] = []
    for number in sorted(set(numbers)):
        if parts and parts[-1][1] + 1 == number:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in parts)
