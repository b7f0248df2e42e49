"""Judge a finished run again from its evidence, without running anything."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``repro judge``."""
    parser.add_argument("run", type=Path, metavar="RUN", help="a run folder")
    parser.add_argument("--json", action="store_true", help="print one JSON object on standard output")


def run(args: argparse.Namespace) -> int:
    """Judge and print."""
    from repro.commands import ablation, matrix, minimising
    from repro.review import kind_of

    kind = kind_of(args.run)
    judge = {"matrix": matrix.conclude, "ablation": ablation.conclude}.get(kind, conclude)
    code = judge(args.run, as_json=args.json)
    if (args.run / minimising.FOLDER).is_dir():
        again = minimising.read_matrix if kind == "matrix" else minimising.read_run
        minimising.tell(args.run, again(args.run), as_json=args.json)
    return code


def conclude(folder: Path, *, as_json: bool) -> int:
    """Judge a run, write verdict.json and report.md, print, and return the exit code of the verdicts."""
    import json

    from repro.evidence.layout import RunFolder
    from repro.evidence.read import read_run_json
    from repro.evidence.write import write_json, write_text
    from repro.report import console, data, markdown
    from repro.report.exit_code import exit_code
    from repro.review import review

    run = RunFolder(folder)
    judged = review(folder)
    verdict = data.to_json(judged)
    if as_json:
        print(json.dumps(verdict, ensure_ascii=not sys.stdout.encoding.lower().startswith("utf")))
    else:
        console.render(judged, str(folder))
    # Last: a verdict on evidence that cannot be written to, such as an archive, is told all the same.
    write_json(run.verdict, verdict)
    write_text(run.report, markdown.render(judged, read_run_json(run)))
    return exit_code(judged.verdicts, judged.issue)
