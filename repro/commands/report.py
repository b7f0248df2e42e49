"""Print the report of a run as Markdown, from its evidence."""

from __future__ import annotations

import argparse
from pathlib import Path


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``repro report``."""
    parser.add_argument("run", type=Path, metavar="RUN", help="a run folder")


def run(args: argparse.Namespace) -> int:
    """Render and print."""
    from repro.evidence.layout import RunFolder
    from repro.evidence.read import read_run_json
    from repro.report import markdown, mends, table
    from repro.review import kind_of, review, review_ablation, review_matrix

    match kind_of(args.run):
        case "matrix":
            print(table.markdown(*review_matrix(args.run)))
        case "ablation":
            print(mends.markdown(review_ablation(args.run)))
        case _:
            print(markdown.render(review(args.run), read_run_json(RunFolder(args.run))))
    return 0
