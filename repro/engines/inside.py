"""What a place where trials run says of itself, as one line of JSON: ``python -m repro.engines.inside``."""

from __future__ import annotations

import json

import repro
from repro import host


def main() -> int:
    """Print tiers, package versions, and which hyper-repro answers."""
    said = {
        "version": repro.__version__,
        "commit": host.commit(),
        "tiers": host.available_tiers(),
        "packages": host.package_versions(),
        "cores": host.facts()["cores"],
    }
    print(json.dumps(said))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
