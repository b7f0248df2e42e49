"""A report's table of topologies as found, beside the report's own: for a terminal, as Markdown, as JSON."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from repro.judge.trial import Kind
from repro.matrix import Cell
from repro.model import Issue

AS_REPORTED, OTHERWISE, UNDECIDED, INFRASTRUCTURE = 0, 1, 3, 4


def _answer(shows: bool | None) -> str:
    return "undecided" if shows is None else "shows" if shows else "does not"


def _ranks(cell: Cell) -> str:
    world = cell.row.topology.world
    return str(world) if cell.ran == world else f"{cell.ran} of {world}"


def to_json(run: str, issue: Issue, cells: Sequence[Cell]) -> dict[str, Any]:
    """The table as plain JSON data."""
    return {
        "schema_version": 1,
        "run": run,
        "issue": issue.number,
        "cells": [
            {
                "row": cell.row.name,
                "topology": cell.row.topology.label,
                "world": cell.row.topology.world,
                "ranks_run": cell.ran,
                "column": cell.column.name,
                "fault": cell.column.fault,
                "reported": cell.reported,
                "found": cell.shows,
                "why": cell.why,
            }
            for cell in cells
        ],
    }


def exit_code(cells: Sequence[Cell]) -> int:
    """0 all cells as reported, 1 one is not, 3 one is undecided, 4 one was kept from running."""
    undecided = [cell for cell in cells if cell.agrees is None]
    if any(cell.finding is None or cell.finding.kind is Kind.INFRA for cell in undecided):
        return INFRASTRUCTURE
    if undecided:
        return UNDECIDED
    return AS_REPORTED if all(cell.agrees for cell in cells) else OTHERWISE


def summary(cells: Sequence[Cell]) -> str:
    """One sentence on how the table compares."""
    agreeing = sum(cell.agrees is True for cell in cells)
    return f"{agreeing} of {len(cells)} cells are as the report has them"


def markdown(issue: Issue, cells: Sequence[Cell]) -> str:
    """The table as Markdown text."""
    lines = [f"# Report {issue.number}: the table of topologies", "", issue.matrix.says if issue.matrix else "", ""]
    lines += ["| configuration | ranks | fault | found | reported | why |", "|---|---|---|---|---|---|"]
    for cell in cells:
        found, reported = _answer(cell.shows), _answer(cell.reported)
        why = cell.why.replace("|", "\\|")
        lines.append(f"| {cell.row.name} | {_ranks(cell)} | {cell.column.name} | {found} | {reported} | {why} |")
    return "\n".join([*lines, "", f"{summary(cells)}.", ""])


def render(issue: Issue, cells: Sequence[Cell], folder: str) -> None:
    """Print the table on standard output."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else 150, highlight=False)
    table = Table(
        title=f"report {issue.number}: {escape(issue.matrix.says if issue.matrix else '')}", title_justify="left"
    )
    for column in ("configuration", "ranks", "fault", "found", "reported", "why"):
        table.add_column(column, overflow="fold")
    for cell in cells:
        colour = {True: "green", False: "bold red", None: "yellow"}[cell.agrees]
        found = f"[{colour}]{_answer(cell.shows)}[/]"
        table.add_row(
            escape(cell.row.name), _ranks(cell), cell.column.name, found, _answer(cell.reported), escape(cell.why)
        )
    console.print(table)
    console.print(f"{summary(cells)}   evidence: {escape(folder)}", soft_wrap=True)
