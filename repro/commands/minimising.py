"""What ``--minimise`` adds to run and matrix: smaller topologies, level by level, until the smallest is known.

Each level is a run folder of its own under ``RUN/minimise/``, so it is resumed and judged again like any other.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repro.minimise import Smallest, conclude, next_level
from repro.model import Topology, Verdict

if TYPE_CHECKING:
    from repro.engines.base import Engine
    from repro.model import Issue, MatrixColumn
    from repro.plan import FaultPlan, Options

FOLDER = "minimise"
_SHOWS = {Verdict.REPRODUCED: True, Verdict.NOT_REPRODUCED: False, Verdict.BOUNDED: False}


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add ``--minimise``."""
    parser.add_argument(
        "--minimise", action="store_true", help="then find the smallest world and topology in which it still shows"
    )


def of_matrix(
    folder: Path,
    issue: Issue,
    engine: Engine,
    plan: Callable[[Issue], list[FaultPlan]],
    upstream: dict[str, Any] | None,
) -> list[Smallest]:
    """Minimise each column of a table that has been run.

    Args:
        folder: The table's run.
        issue: Its report.
        engine: Where trials run.
        plan: Plans a report's table as the run was asked to.
        upstream: What identifies the checkout that is run; None for our own subject.
    """
    from repro import matrix
    from repro.commands.run import run_plans
    from repro.model import MatrixRow

    table = matrix.matrix_of(issue)
    for column in table.columns:

        def run_level(level: Sequence[Topology], column: MatrixColumn = column) -> None:
            rows = tuple(MatrixRow(each.label, each, (True,)) for each in level)
            part = replace(issue, matrix=replace(table, columns=(column,), rows=rows))
            out = folder / FOLDER / f"{_word(column.name)}-world-{level[0].world}"
            run_plans(part, plan(part), out, engine, keep_going=True, kind="minimise", upstream=upstream)

        _search(partial(_answers, matrix_answers, folder, column.name), run_level)
    return read_matrix(folder)


def of_run(
    folder: Path, issue: Issue, engine: Engine, options: Options, upstream: dict[str, Any] | None
) -> list[Smallest]:
    """Minimise each fault of a run that has been judged, with the options of that run."""
    from repro.commands.run import run_plans
    from repro.plan import plan

    for fault in fault_answers(folder):

        def run_level(level: Sequence[Topology], fault: str = fault) -> None:
            for topology in level:
                part = replace(options, faults=(fault,), topology=topology)
                plans = plan(issue, part, engine.available_tiers())
                out = folder / FOLDER / f"{fault}-{topology.label}"
                run_plans(issue, plans, out, engine, keep_going=True, upstream=upstream)

        _search(partial(_answers, fault_answers, folder, fault), run_level)
    return read_run(folder)


def _answers(
    read: Callable[[Path], dict[str, dict[Topology, bool | None]]], folder: Path, subject: str
) -> dict[Topology, bool | None]:
    return read(folder)[subject]


def _search(
    answers: Callable[[], dict[Topology, bool | None]], run_level: Callable[[Sequence[Topology]], None]
) -> None:
    while level := next_level(answers()):
        known = len(answers())
        run_level(level)
        if len(answers()) == known:
            return  # Nothing of it could be run: what is known is told.


def matrix_answers(folder: Path) -> dict[str, dict[Topology, bool | None]]:
    """By column: in which topologies it shows, from the table and from what was run to minimise it."""
    from repro import matrix
    from repro.review import review_cells, review_matrix

    issue, cells = review_matrix(folder)
    table = matrix.matrix_of(issue)
    found: dict[str, dict[Topology, bool | None]] = {column.name: {} for column in table.columns}
    for cell in cells:
        if cell.finding is not None:
            found[cell.column.name][cell.row.topology] = cell.shows
    for column in table.columns:
        for part in sorted((folder / FOLDER).glob(f"{_word(column.name)}-world-*")):
            found[column.name] |= review_cells(part, column)
    return found


def fault_answers(folder: Path) -> dict[str, dict[Topology, bool | None]]:
    """By fault that has cases with several ranks: in which topologies it shows."""
    from repro.model import Arm
    from repro.review import review

    found: dict[str, dict[Topology, bool | None]] = {}
    for part in (folder, *sorted(path for path in (folder / FOLDER).glob("*") if path.is_dir())):
        judged = review(part)
        for verdict in judged.verdicts:
            worlds = [
                trial.record.spec.topology
                for trial in judged.trials.values()
                if trial.record.spec.fault == verdict.id and trial.record.spec.arm is Arm.UNFIXED
            ]
            if worlds:
                largest = max(worlds, key=lambda topology: topology.world)
                found.setdefault(verdict.id, {})[largest] = _SHOWS.get(verdict.verdict)
    return found


def read_matrix(folder: Path) -> list[Smallest]:
    """What minimising a table came to, from its evidence."""
    return [conclude(name, answers) for name, answers in matrix_answers(folder).items()]


def read_run(folder: Path) -> list[Smallest]:
    """What minimising a run came to, from its evidence."""
    return [conclude(name, answers) for name, answers in fault_answers(folder).items()]


def tell(folder: Path, found: Sequence[Smallest], *, as_json: bool) -> None:
    """Say it, on standard error where standard output holds JSON, and write minimise.json."""
    from repro.evidence.write import write_json

    for each in found:
        print(each.line(), file=sys.stderr if as_json else sys.stdout)
    (folder / FOLDER).mkdir(exist_ok=True)
    write_json(folder / FOLDER / "minimise.json", [each.to_json() for each in found])


def _word(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
