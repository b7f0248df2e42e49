"""issue.yaml is read strictly: each mistake names file, line and key, in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from repro import catalogue
from repro.errors import UsageError
from repro.model import Arm, GrowthOracle, Launcher, Topology

GOOD = """\
schema_version: 1
issue: 7
title: 形状不符
url: https://example.org/7
faults:
  - id: "7.1"
    title: Shapes differ
    prefer: [cpu]
    oracle:
      kind: exception
      type: ValueError
      text: shapes
    cases:
      - name: shape
        says: the shape as it arrives
        arm: unfixed
        tiers: [cpu]
        launcher: ranks
        topology: dp=2
        program: tiny.py
      - name: well
        says: the right shape
        arm: clean
        tiers: [cpu]
        program: tiny.py
"""
SERIES = """\
        series: {case: a, clean: b, planted: c}
        calls: 100
        window: 10
"""
GROWTH = "      kind: growth\n      measure: malloc_in_use\n      unit: B/call\n      floor: 4\n      planted: 64\n"
ORACLE = "      kind: exception\n      type: ValueError\n      text: shapes\n"
NUMERIC = "      kind: numeric\n"
LAST = "        program: tiny.py\n"
OWN_GROWTH = "        oracle: {kind: growth, measure: a, unit: b, floor: 1, planted: 2}\n"

# What is replaced, by what, and the line, the key and the words of the complaint.
MISTAKES: dict[str, tuple[str, str, int, str, str]] = {
    "unknown key at the top": ("title: 形", "colour: red\ntitle: 形", 3, "colour", "unknown key; known are"),
    "unknown key of a case": (
        "arm: unfixed",
        "arm: unfixed\n        when: now",
        17,
        "faults.0.cases.0.when",
        "unknown",
    ),
    "unknown key of an oracle": ("text: shapes", "texts: shapes", 12, "faults.0.oracle.texts", "unknown key"),
    "bad value": ("arm: unfixed", "arm: broken", 16, "faults.0.cases.0.arm", "'broken' is not one of"),
    "wrong type": ("issue: 7", "issue: seven", 2, "issue", "is not of type 'integer'"),
    "unknown tier": ("prefer: [cpu]", "prefer: [tpu]", 8, "faults.0.prefer.0", "'tpu' is not one of"),
    "missing key": ("    title: Shapes differ\n", "", 6, "faults.0", "'title' is a required property"),
    "missing program": (LAST, "        program: gone.py\n", 20, "faults.0.cases.0.program", "no program"),
    "a program elsewhere": (LAST, "        program: ../tiny.py\n", 20, "faults.0.cases.0.program", "does not match"),
    "bad topology": ("topology: dp=2", "topology: pp=2", 19, "faults.0.cases.0.topology", "'pp=2' is not one of"),
    "topology in other digits": ("topology: dp=2", "topology: dp=²", 19, "faults.0.cases.0.topology", "is not one of"),
    "plain with two ranks": ("launcher: ranks", "launcher: plain", 19, "faults.0.cases.0.topology", "starts one rank"),
    "msrun on sim": (
        "        tiers: [cpu]\n        launcher: ranks",
        "        tiers: [cpu, sim]\n        launcher: msrun",
        18,
        "faults.0.cases.0.launcher",
        "msrun does not start simulated ranks",
    ),
    "fault of another issue": ('id: "7.1"', 'id: "8.1"', 6, "faults.0.id", "must begin with 7."),
    "fault id is a number": ('id: "7.1"', "id: 7.1", 6, "faults.0.id", "is not of type 'string'"),
    "case named twice": ("name: well", "name: shape", 21, "faults.0.cases.1.name", "given twice in fault 7.1"),
    "no clean control": ("arm: clean", "arm: planted", 13, "faults.0.cases", "no clean control on tier cpu"),
    "no unfixed case": ("arm: unfixed", "arm: clean", 8, "faults.0.prefer", "no unfixed case of 7.1"),
    "no case on the tier": ("prefer: [cpu]", "prefer: [cpu, npu]", 8, "faults.0.prefer", "runs on tier npu"),
    "growth without controls": (ORACLE, GROWTH, 16, "faults.0.cases.0", "needs series: case, clean and planted"),
    "series without growth": (LAST, LAST + SERIES, 21, "faults.0.cases.0.series", "exception does not measure"),
    "series without calls": (
        LAST,
        LAST + SERIES.splitlines()[0] + "\n",
        14,
        "faults.0.cases.0",
        "dependency of 'series'",
    ),
    "a case that measures": (
        LAST,
        LAST + OWN_GROWTH,
        21,
        "faults.0.cases.0.oracle",
        "growth cannot be judged in a fault whose oracle is exception",
    ),
    "an ablation of a case that is not there": (
        "    prefer: [cpu]",
        "    prefer: [cpu]\n    ablation: {cases: [gone]}",
        9,
        "faults.0.ablation.cases.0",
        "there is no unfixed case gone; there are shape",
    ),
    "key given twice": ("    prefer: [cpu]", "    prefer: [cpu]\n    prefer: [sim]", 9, "prefer", "given twice"),
    "not YAML": ("faults:", "faults: [", 6, "not YAML", ""),
    "a tab": ("    title: Shapes", "\ttitle: Shapes", 7, "not YAML", "cannot start any token"),
    "a control character": ("Shapes differ", "Shapes \x07 differ", 7, "not YAML", "control characters"),
    "a key that is a list": ("issue: 7", "? [a, b]\n: 7", 2, "not YAML", "a key must be a plain word"),
    "a date that is none": ("issue: 7", "issue: 2024-99-99", 1, "not YAML", "month must be in"),
    "an anchor in itself": ("issue: 7", "issue: &a [*a]", 1, "not YAML", "recursion"),
    "a Python object": ("issue: 7", "issue: !!python/object:os.system {}", 2, "not YAML", "constructor"),
}


def write(folder: Path, text: str | bytes, name: str = "7") -> Path:
    issue = folder / name
    issue.mkdir()
    (issue / "tiny.py").write_text('"""A program."""\n')
    (issue / "issue.yaml").write_bytes(text.encode() if isinstance(text, str) else text)
    return issue


def complaint(folder: Path) -> str:
    with pytest.raises(UsageError) as caught:
        catalogue.load(folder)
    text = str(caught.value)
    assert "\n" not in text
    assert caught.value.exit_code == 2
    return text


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_names_file_line_and_key(name: str, tmp_path: Path) -> None:
    old, new, line, key, words = MISTAKES[name]
    assert old in GOOD
    issue = write(tmp_path, GOOD.replace(old, new, 1))
    text = complaint(issue)
    assert text.startswith(f"{issue / 'issue.yaml'}:{line}: {key}"), text
    assert words in text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ":1: the file is empty"),
        ("# nothing but a comment\n", ":1: the file is empty"),
        ("[]\n", ":1: the file: [] is not of type 'object'"),
        (GOOD.encode("gbk"), ":3: not UTF-8"),
        (b"\xff\xfe", ":1: not UTF-8"),
    ],
)
def test_a_file_that_is_no_issue(text: str | bytes, words: str, tmp_path: Path) -> None:
    assert words in complaint(write(tmp_path, text))


def test_no_file(tmp_path: Path) -> None:
    assert complaint(tmp_path) == f"{tmp_path / 'issue.yaml'}: No such file or directory"


def test_the_folder_is_named_after_the_issue(tmp_path: Path) -> None:
    assert "7 stands in a folder named 8" in complaint(write(tmp_path, GOOD, "8"))


def test_calls_must_fill_a_window(tmp_path: Path) -> None:
    growth = GOOD.replace(ORACLE, GROWTH).replace(LAST, LAST + SERIES.replace("100", "9"))
    assert ":24: faults.0.cases.0.calls: 9 calls do not fill a window of 10" in complaint(write(tmp_path, growth))


def test_a_good_file(tmp_path: Path) -> None:
    issue = catalogue.load(write(tmp_path, GOOD))
    case = issue.faults[0].cases[0]
    assert (issue.number, issue.title) == (7, "形状不符")
    assert (case.arm, case.launcher, case.topology) == (Arm.UNFIXED, Launcher.RANKS, Topology(dp=2))


def test_growth_in_full(tmp_path: Path) -> None:
    issue = catalogue.load(write(tmp_path, GOOD.replace(ORACLE, GROWTH).replace(LAST, LAST + SERIES)))
    assert issue.faults[0].oracle == GrowthOracle("malloc_in_use", "B/call", 4, 64)


def test_the_digest_covers_the_programs(tmp_path: Path) -> None:
    folder = write(tmp_path, GOOD)
    before = catalogue.load(folder).digest
    (folder / "tiny.py").write_text('"""Another."""\n')
    assert catalogue.load(folder).digest != before


def test_own_issues_come_beside_and_before_the_built_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, GOOD)
    write(tmp_path, GOOD.replace("issue: 7", "issue: 134").replace('"7.1"', '"134.1"'), "134")
    monkeypatch.setenv(catalogue.SEARCH_VARIABLE, str(tmp_path))
    assert {7, 134, 301} <= {issue.number for issue in catalogue.load_all()}
    assert catalogue.find(134).title == "形状不符"
    with pytest.raises(UsageError, match="there is no issue 8; known are"):
        catalogue.find(8)
    monkeypatch.setenv(catalogue.SEARCH_VARIABLE, str(tmp_path / "gone"))
    with pytest.raises(UsageError, match=r"gone is not a folder"):
        catalogue.find(7)


def test_built_in_issues_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(catalogue.SEARCH_VARIABLE, raising=False)
    issues = catalogue.load_all()
    assert {134, 301} <= {issue.number for issue in issues}
    for issue in issues:
        for fault in issue.faults:
            assert set(fault.limits) >= set(fault.prefer), f"{fault.id} does not say what each tier cannot show"


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(json.loads(catalogue.SCHEMA.read_text(encoding="utf-8")))
