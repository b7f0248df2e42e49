"""Findings as a table for a terminal, as JSON data and as an HTML page; the same rows in each."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Mapping
from typing import Any

from .faults import FAIL, OK, WARN
from .finding import Finding, worst

SCHEMA_VERSION = 1
COLUMNS = ("host", "", "check", "seen", "what to do")
_WIDTHS = (22, 4, 9, 58, 52)


def count(findings: list[Finding]) -> str:
    """``12 ok, 2 warn, 1 fail``."""
    return ", ".join(f"{sum(one.level == level for one in findings)} {level}" for level in (OK, WARN, FAIL))


def to_json(findings: Mapping[str, list[Finding]], looks: Mapping[str, Any]) -> dict[str, Any]:
    """Plain data: findings and looks of every host."""
    hosts = {
        host: {"level": worst(some), "findings": [one._asdict() for one in some], "look": looks.get(host)}
        for host, some in findings.items()
    }
    return {"schema_version": SCHEMA_VERSION, "hosts": hosts}


def rows(findings: Mapping[str, list[Finding]], everything: bool) -> list[tuple[str, str, str, str, str]]:
    """Cells, host by host; what is well is one line a host unless everything is asked for."""
    cells = []
    for host, some in findings.items():
        shown = some if everything else [one for one in some if one.level != OK]
        cells.append((host, worst(some), "", count(some), ""))
        cells += [("", one.level, one.check, one.seen, one.advice) for one in shown]
    return cells


def table(findings: Mapping[str, list[Finding]], everything: bool = False) -> str:
    """The table as text, folded at 150 columns."""
    lines = ["  ".join(title.ljust(width) for title, width in zip(COLUMNS, _WIDTHS)).rstrip()]
    lines.append("  ".join("-" * width for width in _WIDTHS))
    for cells in rows(findings, everything):
        folded = [textwrap.wrap(cell, width) or [""] for cell, width in zip(cells, _WIDTHS)]
        for index in range(max(len(part) for part in folded)):
            parts = [part[index] if index < len(part) else "" for part in folded]
            lines.append("  ".join(part.ljust(width) for part, width in zip(parts, _WIDTHS)).rstrip())
    return "\n".join([*lines, "", summary(findings)])


def summary(findings: Mapping[str, list[Finding]]) -> str:
    """One line on all hosts."""
    levels = [worst(some) for some in findings.values()]
    return f"{len(levels)} hosts: {', '.join(f'{levels.count(level)} {level}' for level in (OK, WARN, FAIL))}"


_STYLE = (
    "body{font:14px/1.4 sans-serif;margin:2em}table{border-collapse:collapse}"
    "td,th{border:1px solid #ccc;padding:.25em .6em;text-align:left;vertical-align:top}"
    ".ok{background:#e6f4ea}.warn{background:#fff4ce}.fail{background:#fde0dd}tr.host td{font-weight:bold}"
)


def page(findings: Mapping[str, list[Finding]], title: str) -> str:
    """The same table, with everything in it, as one HTML page without any link or script."""
    body = []
    for host, level, check, seen, advice in rows(findings, everything=True):
        kind = ' class="host"' if host else ""
        cells = "".join(f"<td>{html.escape(cell)}</td>" for cell in (check, seen, advice))
        body.append(f'<tr{kind}><td>{html.escape(host)}</td><td class="{level}">{level}</td>{cells}</tr>')
    head = "".join(f"<th>{title}</th>" for title in COLUMNS)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f"<style>{_STYLE}</style><h1>{html.escape(title)}</h1><p>{summary(findings)}</p>"
        f"<table><tr>{head}</tr>{''.join(body)}</table></html>\n"
    )
