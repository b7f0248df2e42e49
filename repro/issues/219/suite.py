"""219's regression: the report's suite, both of its tests in one worker, one after the other."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

from repro.probes.context import Context

# Which of them crashes the worker comes last: the report's came after its own test, and nothing ran behind it.
TESTS = ("hsdp_state_visible", "replicate_prefetch")
# What is still queued must come to its end while the rank exits, as in the report.
WAIT_FOR_DEVICE = False


def case(context: Context) -> None:
    """Run both tests and print as pytest would."""
    context.init_collectives()
    for name in TESTS:
        _load(name).test(context)
    print(f"{len(TESTS)} passed")


def _load(name: str) -> ModuleType:
    path = Path(__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"hyper_repro_test_{name}", path)
    if spec is None or spec.loader is None:
        raise ImportError(str(path))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
