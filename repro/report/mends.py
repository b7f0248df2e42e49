"""The table of mends against faults: for a terminal, as Markdown, as JSON."""

from __future__ import annotations

import sys
from typing import Any

from repro.ablation import Cell, Table
from repro.model import Verdict
from repro.report.exit_code import INCONCLUSIVE, INFRASTRUCTURE, OPPOSITE, SHOWN, UNSUPPORTED
from repro.report.wording import measure_text

_DECIDED = (Verdict.FIXED, Verdict.NOT_FIXED)


def _faults(table: Table) -> list[str]:
    return list(dict.fromkeys(cell.fault for cell in table.cells))


def to_json(run: str, table: Table) -> dict[str, Any]:
    """The table as plain JSON data."""
    return {
        "schema_version": 1,
        "run": run,
        "mends": list(table.mends),
        "cells": [
            {
                "fault": cell.fault,
                "row": table.name(cell.mends),
                "mends": list(cell.mends),
                "verdict": cell.found.verdict.value,
                "wanted": cell.wanted.value,
                "tier": cell.found.tier.value,
                "trials": cell.found.trials,
                "hits": cell.found.hits,
                "why": cell.found.why,
            }
            for cell in table.cells
        ],
        "missing": dict(table.missing),
        "lost": dict(table.lost),
    }


def exit_code(table: Table) -> int:
    """0 all cells as wanted, 1 one is the opposite, 3 one is undecided, 4 one was kept from running, 5 none is here."""
    odd = [cell for cell in table.cells if not cell.as_wanted]
    if table.lost or any(cell.found.verdict is Verdict.INFRA_ERROR for cell in odd):
        return INFRASTRUCTURE
    if any(cell.found.verdict not in _DECIDED for cell in odd):
        return INCONCLUSIVE
    if odd:
        return OPPOSITE
    return UNSUPPORTED if table.missing else SHOWN


def summary(table: Table) -> str:
    """One sentence on how the table compares with what it should be."""
    good = sum(cell.as_wanted for cell in table.cells)
    return (
        f"{good} of {len(table.cells)} cells are as they should be: FIXED with the fault's own mend, and only with it"
    )


def _text(cell: Cell | None) -> str:
    return "" if cell is None else cell.found.verdict.value


def markdown(table: Table) -> str:
    """The table as Markdown text."""
    faults = _faults(table)
    lines = [
        "# Every mend against every fault",
        "",
        f"| mends on | {' | '.join(faults)} |",
        "|---" * (len(faults) + 1) + "|",
    ]
    for choice in table.choices:
        cells = [table.cell(fault, choice) for fault in faults]
        shown = [text if cell is None or cell.as_wanted else f"**{text}**" for cell in cells for text in [_text(cell)]]
        lines.append(f"| {table.name(choice)} | {' | '.join(shown)} |")
    lines += ["", f"{summary(table)}.", "", "## What each cell rests on", ""]
    for cell in table.cells:
        measure = f" ({measure_text(cell.found.measure)})" if cell.found.measure else ""
        lines.append(f"- {cell.fault}, {table.name(cell.mends)}, tier {cell.found.tier}: {cell.found.why}{measure}")
    lines += [f"- {fault}: {why}" for fault, why in {**table.missing, **table.lost}.items()]
    return "\n".join([*lines, ""])


def render(table: Table, folder: str) -> None:
    """Print the table on standard output."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table as Grid

    console = Console(width=None if sys.stdout.isatty() else 150, highlight=False)
    faults = _faults(table)
    grid = Grid(title="every mend against every fault", title_justify="left")
    for column in ("mends on", *faults):
        grid.add_column(column, overflow="fold")
    for choice in table.choices:
        row = [table.name(choice)]
        for fault in faults:
            cell = table.cell(fault, choice)
            colour = "green" if cell is not None and cell.as_wanted else "bold red"
            row.append(f"[{colour}]{_text(cell)}[/]")
        grid.add_row(*row)
    console.print(grid)
    for cell in table.cells:
        if not cell.as_wanted:
            said = f"{cell.fault}, {table.name(cell.mends)}: {cell.found.verdict}, not {cell.wanted}: {cell.found.why}"
            console.print(escape(said), soft_wrap=True)
    for fault, why in {**table.missing, **table.lost}.items():
        console.print(escape(f"{fault}: {why}"), soft_wrap=True)
    console.print(f"{summary(table)}   evidence: {escape(folder)}   report: {escape(folder)}/report.md", soft_wrap=True)
