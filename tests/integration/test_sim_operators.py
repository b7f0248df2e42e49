"""The table of operators: what should run runs, the rest ends in a clear error, a death is charged to its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from sim_support import require_sim

from repro.sim.operators import TABLE, Outcome, Usage, markdown, parse, try_all

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operators-on-sim.md"


@pytest.fixture(scope="module", autouse=True)
def _sim() -> None:
    require_sim()


def test_the_whole_table_is_as_expected() -> None:
    usages = parse(TABLE.read_text(encoding="utf-8"))
    assert len(usages) >= 150
    results = try_all(usages)
    assert [result.usage for result in results] == usages
    wrong = [f"{result.usage.code}: {result.outcome}: {result.message}" for result in results if not result.as_expected]
    assert not wrong, "\n".join(wrong)
    # The committed page says the same; rewrite it with python -m repro.sim.operators --write docs/operators-on-sim.md
    assert markdown(results) == PAGE.read_text(encoding="utf-8")


def test_a_death_is_charged_to_its_line_and_the_rest_goes_on() -> None:
    codes = {
        "mint.ones((2,))": Outcome.RUNS,
        "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)": Outcome.DIED,
        "mint.zeros((2,))": Outcome.RUNS,
        "import ctypes; ctypes.CDLL('libascendcl.so').HcclAllReduce()": Outcome.UNSERVED,
        "raise ValueError('so it is')": Outcome.CLEAR_ERROR,
        "import os; os._exit(3)": Outcome.DIED,
        "mint.eye(2)": Outcome.RUNS,
    }
    results = try_all([Usage("deaths", code) for code in codes], processes=1)
    assert [result.outcome for result in results] == list(codes.values()), results
    messages = [result.message for result in results]
    assert messages[1].startswith("signal 11")
    assert "unserved CANN symbol HcclAllReduce was called" in messages[3]
    assert messages[4] == "ValueError: so it is"
    assert messages[5].startswith("exit code 3")


def test_an_error_that_comes_after_the_call_is_charged_to_its_line() -> None:
    late, after = try_all([Usage("late", "dist.all_reduce(f(2, 3).T)"), Usage("late", "mint.ones((2,))")], processes=1)
    assert (late.outcome, after.outcome) == (Outcome.CLEAR_ERROR, Outcome.RUNS)
    assert "not-contiguous" in late.message
