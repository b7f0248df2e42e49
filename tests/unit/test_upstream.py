"""A checkout as a subject: its identity, what its version can have, the plan that follows, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from checkouts import commit, committed, opened
from made import ERROR, case, fault

from repro import cli, matrix
from repro.catalogue import find, parse
from repro.errors import InfraError, UnsupportedError, UsageError
from repro.model import Arm, Issue, Subject, Tier, Upstream
from repro.plan import Options, plan
from repro.upstream import versions
from repro.upstream.checkout import VARIABLE, open_checkout

OURS = replace(case("library", Arm.UNFIXED), subjects=(Subject.UPSTREAM,))
OURS_CLEAN = replace(case("library-well", Arm.CLEAN), subjects=(Subject.UPSTREAM,))
WANTED = Upstream(("a/b.py::Mesh.convert", "c.py::Mesh"), "it has no mesh", ("c.py::step",), {Tier.CPU: "shims"})
BOTH = replace(fault(ERROR, *fault().cases, OURS, OURS_CLEAN), upstream=WANTED)
ISSUE = Issue(9001, "t", "https://example.org", (BOTH, replace(fault(), id="9001.2")), "folder", "digest")


@pytest.mark.parametrize("layout", ["later", "older"])
def test_a_checkout_is_known_by_commit_and_content(layout: str, tmp_path: Path) -> None:
    folder = committed(layout, tmp_path / "it")
    first = opened(folder)
    assert len(first.commit) == 40
    assert (first.changed, first.identity["dirty"], str(tmp_path) in str(first.identity)) == ((), False, False)
    (folder / "hyper_parallel" / "新.py").write_text("x = 1\n", encoding="utf-8")
    second = opened(folder)
    assert second.identity["dirty"] is True
    assert len(second.changed) == 1
    assert second.label == f"{first.commit[:12]}, changed"
    assert second.digest != first.digest
    commit(folder)
    assert opened(folder).commit != first.commit
    assert opened(folder).digest == second.digest


def test_a_folder_that_is_no_checkout_has_no_commit(tmp_path: Path) -> None:
    outer = committed("older", tmp_path / "outer")
    inner = outer / "inner" / "hyper_parallel"
    inner.mkdir(parents=True)
    (inner / "__init__.py").touch()
    found = opened(inner.parent)
    assert (found.commit, found.changed, found.label) == ("", (), "no git commit")


def test_a_checkout_that_git_refuses_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = committed("older", tmp_path / "it")
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    with pytest.raises(InfraError, match="dubious ownership"):
        opened(folder)


def test_who_names_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert open_checkout(None) is None
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with pytest.raises(UsageError, match=rf"{VARIABLE}: {tmp_path} holds no package hyper_parallel; for example: git"):
        open_checkout(None)
    with pytest.raises(UsageError, match=r"--upstream: .*/nowhere holds no package"):
        open_checkout(tmp_path / "nowhere")
    folder = committed("later", tmp_path / "it")
    monkeypatch.setenv(VARIABLE, str(folder))
    named = open_checkout(None)
    assert named is not None
    assert named.path == folder


@pytest.mark.parametrize(
    ("there", "why"),
    [
        ({"a/b.py::Mesh.convert", "c.py::step"}, ""),
        ({"c.py::Mesh", "c.py::step"}, ""),
        (
            {"c.py::step"},
            "this version cannot have it: it has no mesh (none of a/b.py::Mesh.convert, c.py::Mesh is there)",
        ),
        (
            {"c.py::Mesh"},
            "this version may have it, but the cases here cannot drive it: c.py::step is not there",
        ),
    ],
)
def test_what_a_version_lacks(there: set[str], why: str) -> None:
    found = versions.lacks(ISSUE, there.__contains__)
    assert found.get("9001.1", "") == why
    assert found["9001.2"].startswith("no case of it runs on hyper-parallel itself")


@pytest.mark.parametrize(("layout", "name"), [("later", "later (fully_shard)"), ("older", "unknown")])
def test_the_faults_of_our_own_packages(layout: str, name: str, tmp_path: Path) -> None:
    checkout = opened(committed(layout, tmp_path / "it"))
    assert versions.layout(checkout.has) == name
    missing = {each for number in (134, 219, 301) for each in versions.lacks(find(number), checkout.has)}
    every = {each.id for number in (134, 219, 301) for each in find(number).faults}
    # The other faults that they carry need a platform and an hsdp to be driven by.
    assert every - missing == {"134.1"}


def test_every_fault_with_a_mend_says_what_carries_it() -> None:
    for number in (134, 219, 301):
        for each in find(number).faults:
            if not each.on_request and each.id != "301.4":
                assert each.upstream is not None, each.id
                assert each.upstream.carried_by, each.id


def test_the_plan_holds_the_cases_of_one_subject() -> None:
    ours = plan(ISSUE, Options(), (Tier.CPU,))
    assert {spec.case for item in ours for spec in item.trials} == {"shape", "well", "known"}
    theirs = plan(ISSUE, Options(subject=Subject.UPSTREAM, lacks={"9001.2": "why"}), (Tier.CPU,))
    assert [item.tier for item in theirs] == [Tier.CPU, None]
    assert {spec.case for item in theirs for spec in item.trials} == {"library", "library-well"}
    assert {spec.subject for item in theirs for spec in item.trials} == {Subject.UPSTREAM}
    nothing = plan(ISSUE, Options(subject=Subject.UPSTREAM, lacks={"9001.1": "a", "9001.2": "b"}), (Tier.CPU,))
    assert [(item.tier, item.trials) for item in nothing] == [(None, ())] * 2


def test_a_version_with_nothing_to_show_is_unsupported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # main sets the variable for the ranks; the test takes it back.
    monkeypatch.setenv(VARIABLE, "")
    folder = committed("older", tmp_path / "it")
    arguments = ["run", "219", "--json", "--upstream", str(folder), "--out", str(tmp_path / "run")]
    assert cli.main(arguments) == UnsupportedError.exit_code
    (found,) = json.loads(capsys.readouterr().out)["faults"]
    assert (found["verdict"], found["subject"], found["limits"], found["trials"]) == ("UNSUPPORTED", "upstream", "", 0)
    assert found["why"].startswith("this version cannot have it: it queues no final callback of backward")
    record = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))
    assert record["upstream"]["commit"] == opened(folder).commit
    assert str(folder) not in json.dumps(record["upstream"])
    # The same state is taken up, another is refused.
    assert cli.main(arguments) == UnsupportedError.exit_code
    (folder / "hyper_parallel" / "more.py").touch()
    assert cli.main(arguments) == UsageError.exit_code
    assert "holds another run: its upstream differs" in capsys.readouterr().err
    assert cli.main(["matrix", "219", "--upstream", str(folder)]) == UsageError.exit_code
    assert "report 219 has no table of topologies" in capsys.readouterr().err


def test_the_table_on_the_library_asks_what_the_library_answers() -> None:
    issue = find(134)
    (column,) = matrix.plan(issue, None, [Tier.SIM], (), 0, Subject.UPSTREAM)
    assert column.fault.id == "134.1"
    assert {(spec.subject, spec.program) for spec in column.trials} == {(Subject.UPSTREAM, "upstream_mesh.py")}
    assert [row.reported for row in matrix.matrix_of(issue, Subject.UPSTREAM).rows] == [(True,)] * 3 + [(False,)]
    assert issue.matrix is not None
    bare = replace(issue, matrix=replace(issue.matrix, upstream=None))
    with pytest.raises(UsageError, match="the table of report 134 is found on our own subject alone"):
        matrix.plan(bare, None, [Tier.SIM], (), 0, Subject.UPSTREAM)


def test_limits_are_the_subjects_own() -> None:
    assert BOTH.limits_of(Subject.UPSTREAM, Tier.CPU) == "shims"
    assert BOTH.limits_of(Subject.DISTILLED, Tier.CPU) == "numbers are real"
    assert BOTH.limits_of(Subject.UPSTREAM, Tier.SIM) == ""


TEXT = """
schema_version: 1
issue: 9001
title: t
url: https://example.org/9001
faults:
  - id: "9001.1"
    title: t
    prefer: [cpu]
    oracle: {kind: numeric}
    cases:
      - {name: a, says: s, arm: unfixed, tiers: [cpu], program: p.py}
      - {name: b, says: s, arm: clean, tiers: [cpu], program: p.py}
      - {name: c, says: s, arm: unfixed, tiers: [cpu], program: p.py, subjects: [upstream]}
"""
CLEAN = "      - {name: d, says: s, arm: clean, tiers: [cpu], program: p.py, subjects: [upstream]}\n"
HAS = "    upstream: {carried_by: [a/b.py::C], lacks: nothing}\n"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("", "9001.1 has cases for upstream, so it needs upstream: carried_by, lacks"),
        (HAS, "9001.1 has no clean control on tier cpu"),
        (CLEAN + HAS.replace("a/b.py::C", "a/b.py"), "does not match"),
        (CLEAN + HAS.replace("lacks", "lack"), "unknown key"),
    ],
)
def test_mistakes_in_an_issue_are_told(more: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse(Path("issue.yaml"), TEXT + more, None)
    assert parse(Path("issue.yaml"), TEXT + CLEAN + HAS, None).faults[0].upstream is not None
