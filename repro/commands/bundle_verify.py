"""Verify an archive of `make bundle`: every file against its manifest, before anything is unpacked or loaded.

With --load the image goes to the Docker engine here; no network is needed. Exit code: 0 whole, 2 usage, 4 cut, altered,
or for another processor.
"""

from __future__ import annotations

import argparse
from pathlib import Path


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``repro bundle-verify``."""
    parser.add_argument("archive", type=Path, metavar="FILE")
    parser.add_argument("--load", action="store_true", help="then load its image into the Docker engine")
    parser.add_argument("--json", action="store_true", help="print one JSON object on standard output")


def run(args: argparse.Namespace) -> int:
    """Verify, say what is in it, and load if asked to."""
    import json
    from dataclasses import asdict

    from repro.images.archive import verify

    found = verify(args.archive)
    if args.load:
        from repro.images.load_archive import load

        load(args.archive, found)
    if args.json:
        files = [asdict(entry) for entry in found.entries]
        print(json.dumps({"schema_version": 1, **asdict(found.about), "loaded": args.load, "files": files}))
        return 0
    about = found.about
    what = f"{about.target} {about.chip}".strip()
    print(f"whole: {what} for {about.architecture}, MindSpore {about.mindspore}, CANN {about.cann}, {about.image}")
    for entry in found.entries:
        print(f"{entry.size / 1e6:10,.1f} MB  {entry.path}")
    if args.load:
        print(f"loaded {about.image}")
    return 0
