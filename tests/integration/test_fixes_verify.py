"""`repro verify` as a user runs it: both arms, the verdict FIXED, and the same verdict again from the evidence."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import REPOSITORY, Cli, verdict
from sim_support import require_sim

OWN = {"HYPER_REPRO_ISSUES": str(REPOSITORY / "repro" / "issues")}


@pytest.mark.parametrize(
    "arguments",
    [("134.1", "--tier", "cpu", "--trials", "1"), ("134.2", "--tier", "sim", "--ranks", "0", "--trials", "1")],
)
def test_verify(arguments: tuple[str, ...], tmp_path: Path) -> None:
    if "sim" in arguments:
        require_sim()
    cli = Cli(tmp_path)
    done = cli("verify", *arguments, "--json", "--out", str(cli.out), **OWN)
    found = verdict(done)
    assert (done.code, found["verdict"], found["hits"]) == (0, "FIXED", 0), found
    assert verdict(cli("judge", str(cli.out), "--json", **OWN)) == found


def test_verify_of_growth(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    found = verdict(cli("verify", "301.2", "--steps", "1330", "--json", "--out", str(cli.out), **OWN))
    # So short a run may want more blocks on a busy machine; what it may never do is find the leak with the mend.
    assert found["verdict"] in ("FIXED", "INCONCLUSIVE"), found
    assert abs(found["measure"]["value"]) < 0.5, found
    assert found["controls"][0].startswith("function (unfixed): +"), found


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("301.4",), "there is no mend for 301.4; `repro fixes list` says what is mended"),
        (("134.1", "--arm", "fixed"), "--arm: verify always runs both arms"),
        (("all",), "'all' is not an issue or a fault"),
    ],
)
def test_what_cannot_be_verified_is_said(arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:
    done = Cli(tmp_path)("verify", *arguments, **OWN)
    assert (done.code, words in done.err) == (2, True), done
