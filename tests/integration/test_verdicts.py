"""The three reports, run as a user runs them: every fault gets the verdict that the README promises."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from repro.sim.build import status

PROMISED = {
    "134": {"134.1": "REPRODUCED", "134.2": "REPRODUCED"},
    "219": {"219.1": "REPRODUCED"},
    "301": {"301.1": "REPRODUCED", "301.2": "REPRODUCED", "301.3": "REPRODUCED", "301.4": "BOUNDED"},
}
needs_sim = pytest.mark.skipif(
    not status().ready, reason=f"tier sim is not built: {status().detail}; {status().mend or 'make sim'}"
)


REPOSITORY = Path(__file__).resolve().parents[2]
# Only ends a test that would never end: nothing is judged by time.
PATIENCE_S = 1200


def run_cli(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run one command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "repro.cli", *arguments],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )


def verdicts(out: Path, *arguments: str) -> dict[str, dict[str, Any]]:
    """Run the command and return its verdicts by fault."""
    done = run_cli("run", *arguments, "--json", "--out", str(out))
    assert done.returncode in (0, 1), done.stderr
    return {fault["id"]: fault for fault in json.loads(done.stdout)["faults"]}


@needs_sim
@pytest.mark.parametrize("issue", PROMISED)
def test_a_report_gets_the_promised_verdicts(issue: str, tmp_path: Path) -> None:
    found = verdicts(tmp_path / "run", issue)
    assert {fault: data["verdict"] for fault, data in found.items()} == PROMISED[issue], json.dumps(found, indent=1)


def test_report_134_on_cpu_raises_and_loses_the_sum(tmp_path: Path) -> None:
    found = verdicts(tmp_path / "run", "134", "--tier", "cpu")
    assert {fault: data["verdict"] for fault, data in found.items()} == PROMISED["134"], json.dumps(found, indent=1)
    assert "Not support copy between src:meta and dst:CPU" in found["134.1"]["why"]
    assert "unreduced value" in found["134.2"]["why"]


def test_collectives_on_cpu_are_a_clean_control_with_a_bound(tmp_path: Path) -> None:
    found = verdicts(tmp_path / "run", "301.3", "--tier", "cpu")["301.3"]
    assert found["verdict"] == "NOT_REPRODUCED", json.dumps(found, indent=1)
    assert "is excluded at 95%" in found["why"]
    assert "tier sim or npu" in found["limits"]


@needs_sim
def test_134_2_names_the_line_it_surfaces_in_and_the_call_at_fault(tmp_path: Path) -> None:
    why = verdicts(tmp_path / "run", "134.2", "--tier", "sim")["134.2"]["why"]
    assert "DistCommAllReduce does not support not-contiguous tensor. Please call tensor.contiguous() firstly." in why
    assert "in param_info, common/parameter.py" in why
    assert "issued earlier, in all_reduce, 134/reduce_refused.py" in why


@needs_sim
def test_events_are_counted_exactly_and_their_site_is_named(tmp_path: Path) -> None:
    found = verdicts(tmp_path / "run", "301.3", "--tier", "sim")["301.3"]
    assert found["measure"]["value"] == 1.0
    assert found["measure"]["unit"] == "events/call"
    assert any("500 of 500 allocations are alive at AscendResManager::" in line for line in found["controls"])


@needs_sim
def test_the_table_of_report_134_is_as_reported(tmp_path: Path) -> None:
    done = run_cli("matrix", "134", "--tier", "sim", "--ranks", "0,7", "--json", "--out", str(tmp_path / "run"))
    cells = json.loads(done.stdout)["cells"]
    assert done.returncode == 0, done.stderr
    assert len(cells) == 8
    assert all(cell["found"] is cell["reported"] for cell in cells), cells
    again = run_cli("judge", str(tmp_path / "run"), "--json")
    assert json.loads(again.stdout) == json.loads(done.stdout)


def test_tier_npu_without_an_npu_is_one_clear_line(tmp_path: Path) -> None:
    if list(Path("/dev").glob("davinci[0-9]*")):
        pytest.skip("this host has NPUs, so the tier is there: run `repro run 134 --tier npu`")
    done = run_cli("run", "134", "--tier", "npu", "--out", str(tmp_path / "run"))
    assert done.returncode == 5
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "tier npu" in done.stderr
    assert "repro doctor" in done.stderr
