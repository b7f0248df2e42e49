"""Leave out of a virtual environment what drop.yaml names: ``slim.py TARGET DROP_YAML SITE_PACKAGES RECORD``."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import yaml


def main(target: str, table: str, packages: str, record: str) -> int:
    """Drop, and write down what was dropped: bytes, path, reason."""
    root = Path(packages)
    lines = []
    for entry in yaml.safe_load(Path(table).read_text(encoding="utf-8")):
        if target not in entry["targets"]:
            continue
        for pattern in entry["paths"]:
            found = sorted(path for path in root.glob(pattern) if path.exists())
            if not found:
                print(f"slim: {table}: nothing here fits {pattern}", file=sys.stderr)
                return 1
            for path in found:
                size = _size(path)
                shutil.rmtree(path) if path.is_dir() else path.unlink()
                lines.append(f"{size}\t{path.relative_to(root)}\t{entry['reason']}")
    Path(record).write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"slim: {sum(int(line.split()[0]) for line in lines) >> 20} MiB left out of {root}")
    return 0


def _size(path: Path) -> int:
    if not path.is_dir():
        return path.stat().st_size
    return sum(file.lstat().st_size for file in path.rglob("*") if not file.is_dir())


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
