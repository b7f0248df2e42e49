"""`repro verify` as a user runs it: both arms, the verdict FIXED, and the same verdict again from the evidence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness import REPOSITORY, Cli, verdict
from sim_support import require_sim

OWN = {"HYPER_REPRO_ISSUES": str(REPOSITORY / "repro" / "issues")}


@pytest.mark.parametrize(
    "arguments",
    [
        ("134.1", "--tier", "cpu", "--trials", "1"),
        ("134.2", "--tier", "sim", "--ranks", "0", "--trials", "1"),
        ("219.1", "--tier", "cpu", "--trials", "2"),
        ("301.1", "--steps", "1000"),
        ("301.2", "--steps", "1330"),
        ("301.3", "--tier", "sim", "--steps", "2500"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_verify(arguments: tuple[str, ...], tmp_path: Path) -> None:
    if "sim" in arguments:
        require_sim()
    cli = Cli(tmp_path)
    done = cli("verify", *arguments, "--json", "--out", str(cli.out), **OWN)
    found = verdict(done)
    assert (done.code, found["verdict"], found["hits"]) == (0, "FIXED", 0), found
    assert verdict(cli("judge", str(cli.out), "--json", **OWN)) == found


def test_each_mend_is_for_its_own_fault(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    asked = ("134", "301.2", "--tier", "cpu", "--mends", "134.1,301.2")
    done = cli("ablation", *asked, "--json", "--out", str(cli.out), **OWN)
    cells = json.loads(done.out)["cells"]
    found = {(cell["fault"], cell["row"]): cell["verdict"] for cell in cells}
    assert found == {
        ("134.1", "134.1 alone"): "FIXED",
        ("134.1", "301.2 alone"): "NOT_FIXED",
        ("134.1", "all"): "FIXED",
        # Its own mend is not among them.
        ("134.2", "134.1 alone"): "NOT_FIXED",
        ("134.2", "301.2 alone"): "NOT_FIXED",
        ("134.2", "all"): "NOT_FIXED",
        ("301.2", "134.1 alone"): "NOT_FIXED",
        ("301.2", "301.2 alone"): "FIXED",
        ("301.2", "all"): "FIXED",
    }, cells
    assert done.code == 0
    again = cli("judge", str(cli.out), "--json", **OWN)
    assert json.loads(again.out)["cells"] == cells
    assert "| 134.1 alone | FIXED | NOT_FIXED | NOT_FIXED |" in cli("report", str(cli.out), **OWN).out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("301.4",), "there is no mend for 301.4; `repro fixes list` says what is mended"),
        (("134.1", "--arm", "fixed"), "--arm: verify always runs both arms"),
        (("all",), "'all' is not an issue or a fault"),
        (("ablation", "301.4"), "301.4 is not run against every mend"),
        (("ablation", "--mends", "none"), "--mends: none are named"),
        (("ablation", "134.1", "134.2"), "a report is named twice"),
    ],
)
def test_what_cannot_be_verified_is_said(arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:
    verb = () if arguments[0] == "ablation" else ("verify",)
    done = Cli(tmp_path)(*verb, *arguments, **OWN)
    assert (done.code, words in done.err) == (2, True), done
