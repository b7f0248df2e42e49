"""The distilled trainer of 301.5 makes what the report's trainer makes in a step."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from repro.evidence.layout import TrialFolder
from repro.evidence.read import read_events
from repro.model import Arm, Launcher, Subject, Tier, Topology, TrialSpec
from repro.sim.build import status

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM = REPOSITORY / "repro" / "issues" / "301" / "trainer.py"


@pytest.mark.skipif(
    not status().ready, reason=f"tier sim is not built: {status().detail}; {status().mend or 'make sim'}"
)
def test_a_step_has_the_reports_counts(tmp_path: Path) -> None:
    folder = TrialFolder(tmp_path / "trial")
    folder.path.mkdir()
    spec = TrialSpec(
        issue=301,
        fault="301.5",
        case="trainer",
        arm=Arm.UNFIXED,
        tier=Tier.SIM,
        subject=Subject.DISTILLED,
        launcher=Launcher.RANKS,
        topology=Topology(dp=8),
        program=PROGRAM.name,
        args={"steps": 3},
        series={},
        calls=0,
        window=0,
        calls_per_step=1,
        index=0,
        timeout_s=300,
        collectives=True,
        environment={},
        seed=0,
        ranks=(5,),
    )
    folder.spec.write_text(json.dumps(spec.to_json()), encoding="utf-8")
    command = [sys.executable, "-m", "repro.launch.supervisor", str(folder.path), str(PROGRAM), "1"]
    subprocess.run(command, cwd=REPOSITORY, check=True)
    made = [event for event in read_events(folder.rank(5).events) if event["event"] == "made"]
    assert made, folder.rank(5).stderr.read_text(encoding="utf-8")[-2000:]
    # Report 301: 182 hooks, 122 PostBackwardFunction, 10 scalers and 1 chunked cross entropy a step.
    assert {what: made[0][what] for what in ("hooks", "post_backward", "others", "collectives")} == {
        "hooks": 182,
        "post_backward": 122,
        "others": 11,
        "collectives": 37,
    }
