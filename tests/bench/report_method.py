"""Report 301's own method for 301.1: one arm a process, 10,000 steps, anonymous memory at step 1,000 and 10,000."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import mindspore as ms

from repro.probes.memory import anonymous

PROGRAM = Path(__file__).resolve().parents[2] / "repro" / "issues" / "301" / "hook_handles.py"
FIRST, LAST = 1_000, 10_000


def main() -> None:
    """Run the arm that the command line names and print growth in bytes a call."""
    ms.set_device("CPU")
    spec = importlib.util.spec_from_file_location("hook_handles", PROGRAM)
    if spec is None or spec.loader is None:
        raise ImportError(str(PROGRAM))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    loop = module.series(SimpleNamespace())[sys.argv[1]]
    at: dict[int, int] = {}
    for step in range(1, LAST + 1):
        loop()
        if step in (FIRST, LAST):
            at[step] = anonymous()
    print(json.dumps({"bytes_a_call": (at[LAST] - at[FIRST]) / (LAST - FIRST)}))


if __name__ == "__main__":
    main()
