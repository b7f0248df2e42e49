"""The real library, where a checkout is present: verdicts without and with the mends, and with the exported patch."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from harness import REPOSITORY, Cli, verdict
from sim_support import require_sim

from repro.upstream.checkout import BRING, VARIABLE, Checkout, git, open_checkout

OWN = {"HYPER_REPRO_ISSUES": str(REPOSITORY / "repro" / "issues")}


@pytest.fixture
def checkout() -> Checkout:
    """The caller's checkout of hyper-parallel."""
    if not os.environ.get(VARIABLE):
        pytest.skip(f"{VARIABLE} names no checkout of hyper-parallel: {BRING}; export {VARIABLE}=$PWD/hyper-parallel")
    found = open_checkout(None)
    assert found is not None
    return found


def test_the_mends_on_the_real_library(checkout: Checkout, tmp_path: Path) -> None:
    require_sim()
    cli = Cli(tmp_path)
    arguments = ("verify", "134", "--tier", "sim", "--upstream", str(checkout.path), "--json", "--out", str(cli.out))
    done = cli(*arguments, **OWN)
    faults = json.loads(done.out)["faults"]
    assert {(f["id"], f["verdict"], f["subject"]) for f in faults} <= {
        ("134.1", "FIXED", "upstream"),
        ("134.2", "FIXED", "upstream"),
        # A version whose hsdp is gone, or that keeps its rank maps on the host itself.
        ("134.2", "UNSUPPORTED", "upstream"),
        ("134.1", "INCONCLUSIVE", "upstream"),
    }, faults
    record = json.loads((cli.out / "run.json").read_text(encoding="utf-8"))
    assert (record["upstream"]["commit"], record["upstream"]["dirty"]) == (checkout.commit, bool(checkout.changed))
    assert open_checkout(checkout.path) == checkout
    # Another state of the checkout is another run.
    clone = _clone(checkout, tmp_path / "clone")
    (clone / "hyper_parallel" / "other.py").touch()
    refused = cli(*arguments[:5], str(clone), *arguments[6:], **OWN)
    assert (refused.code, "holds another run: its upstream differs" in refused.err) == (2, True), refused


@pytest.mark.parametrize(("fault", "tier"), [("134.1", "sim"), ("134.2", "cpu")])
def test_the_exported_tree_alone(fault: str, tier: str, checkout: Checkout, tmp_path: Path) -> None:
    if tier == "sim":
        require_sim()
    cli = Cli(tmp_path)
    clone = _clone(checkout, tmp_path / "clone")
    exported = cli("fixes", "export", fault, "--checkout", str(clone), "--output", "it.patch", **OWN)
    if exported.code == 5:
        pytest.skip(f"this version of hyper-parallel has nothing to export for {fault}: {exported.last}")
    assert exported.code == 0, exported
    git(clone, "-c", "user.name=A", "-c", "user.email=a@localhost", "am", "--quiet", str(tmp_path / "it.patch"))
    done = cli("run", fault, "--tier", tier, "--upstream", str(clone), "--json", "--out", str(cli.out), **OWN)
    found = verdict(done)
    assert (done.code, found["verdict"], found["hits"]) == (1, "NOT_REPRODUCED", 0), found


def test_the_rank_says_what_it_ran_on(checkout: Checkout, tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    arguments = ("--arm", "clean", "--tier", "cpu", "--upstream", str(checkout.path), "--out", str(cli.out))
    assert cli("run", "134.1", *arguments, **OWN).code == 3
    (folder,) = (cli.out / "trials").iterdir()
    lines = (folder / "rank-0" / "events.jsonl").read_text(encoding="utf-8").splitlines()
    (said,) = (event for event in map(json.loads, lines) if event["event"] == "upstream")
    assert said["file"] == str(checkout.path / "hyper_parallel" / "__init__.py")
    assert "MindSporePlatform.init_process_group" in said["shims"]
    assert not list(checkout.path.rglob("__pycache__"))


def _clone(checkout: Checkout, folder: Path) -> Path:
    git(checkout.path, "clone", "--quiet", str(checkout.path), str(folder))
    git(folder, "checkout", "--quiet", checkout.commit)
    return folder
