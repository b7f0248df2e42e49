"""Objects counted by who owns them, and measurements kept part by part."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

from repro.probes.owned import Owned

KEEP = Path(__file__).resolve().parents[1] / "bench" / "keep.py"


def made(count: int) -> list[tuple[int, ...]]:
    return [tuple([number, number]) for number in range(count)]  # noqa: C409 -- a literal would be a constant


def test_what_somebody_else_owns_is_counted() -> None:
    owned = Owned()
    kept = made(5)
    for each in kept:
        owned.watch(each)
    del each
    for other in made(7):
        owned.watch(other)
    del other
    assert owned.count() == 5
    del kept[1:3]
    assert owned.count() == 3
    # What was let go of does not come back, what is kept is counted again.
    assert owned.count() == 3
    kept.clear()
    assert owned.count() == 0


def test_watching_hands_the_object_back() -> None:
    one = made(1)[0]
    assert Owned().watch(one) is one


def keep() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_keep", KEEP)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_only_what_was_measured_again_is_replaced(tmp_path: Path) -> None:
    file, write = tmp_path / "measurements.md", keep().replace
    write(file, "one", "Measured today.\n\n| a |")
    write(file, "two", "Measured today too.")
    write(file, "one", "Measured tomorrow.\n")
    assert file.read_text(encoding="utf-8") == (
        "# Measurements\n\n## one\n\nMeasured tomorrow.\n\n## two\n\nMeasured today too.\n"
    )
