"""Every verdict can be rendered: JSON that validates, Markdown, a table for the terminal, and one exit code."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from made import died, fault, raised, rank, trial

from repro.model import CeilingOracle, FaultVerdict, Issue, Measure, Subject, Tier, Verdict
from repro.report import console, data, exit_code, markdown
from repro.report.wording import failing_rank, measure_text
from repro.review import Review

SCHEMA = Path(data.__file__).with_name("verdict.schema.json")
FAILED = trial(rank(0, 1), evidence=raised(0, stderr="Traceback\nValueError: [red]形状[/red] `不符` \\"))
MEASURES = [
    None,
    Measure("malloc_in_use a call", 104.25, (98.1, 110.3), "B/call"),
    Measure("crash rate", 0.8, (0.563, 0.943), "of trials"),
    Measure("malloc_in_use a call", math.nan, (-math.inf, math.inf), "B/call"),
]
RUN = {
    "argv": ["repro", "run", "9001", "--out", "中文 目录/a run"],
    "host": {"packages": {"mindspore": "2.10.0"}, "python": "3.11"},
}


def reviewed(verdict: Verdict, measure: Measure | None = None, first: str = "", trials: int = 3) -> Review:
    of = fault()
    issue = Issue(9001, "形状不符, a title with [brackets] and | a bar", "https://example.org", (of,), "", "")
    why = "rank 0: ValueError: [/] 张量不连续 \\"
    made = FaultVerdict("9001.1", verdict, Tier.CPU, Subject.DISTILLED, trials, 1, "limits [x]", why, measure)
    made = replace(made, controls=("well (clean): 1 miss of 1 \\",), first_failure=first)
    unread = {"9001.1-well-0-clean-single": "stderr.log was changed after the trial; restore it"}
    return Review("20260101T000000Z-9001-abcdef", issue, (made,), {FAILED.record.spec.folder: FAILED}, unread)


@pytest.mark.parametrize("verdict", list(Verdict))
@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("first", ["", f"{FAILED.record.spec.folder}/rank-0", "gone/rank-3"])
def test_every_verdict_can_be_rendered(
    verdict: Verdict, measure: Measure | None, first: str, capsys: pytest.CaptureFixture[str]
) -> None:
    review = reviewed(verdict, measure, first)
    text = json.dumps(data.to_json(review), ensure_ascii=False, allow_nan=False)
    Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8"))).validate(json.loads(text))
    assert "张量不连续" in text

    report = markdown.render(review, RUN)
    for words in (
        "形状不符",
        f"**{verdict}**",
        "张量不连续",
        "limits [x]",
        "mindspore: 2.10.0",
        "changed after the trial",
    ):
        assert words in report
    assert ("形状[/red] `不符`" in report) == first.startswith("9001.1")

    console.render(review, "runs/x")
    shown = capsys.readouterr().out
    for words in ("形状不符", verdict, "张量不连续", "limits [x]", "well (clean)", "runs/x/report.md"):
        assert words in shown
    assert ("[red]形状[/red]" in shown) == first.startswith("9001.1")


def test_the_schema_is_one_and_refuses_more() -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    verdicts = schema["properties"]["faults"]["items"]["properties"]["verdict"]["enum"]
    assert set(verdicts) == {verdict.value for verdict in Verdict}
    good = data.to_json(reviewed(Verdict.FIXED))
    assert not list(Draft202012Validator(schema).iter_errors(good))
    assert list(Draft202012Validator(schema).iter_errors({**good, "more": 1}))


def test_a_table_of_markdown_is_not_broken_by_what_it_holds() -> None:
    report = markdown.render(reviewed(Verdict.REPRODUCED, MEASURES[1]), RUN)
    row = next(line for line in report.splitlines() if line.startswith("| 9001.1"))
    assert row.count("|") == 7


def test_the_command_can_be_pasted() -> None:
    assert "Command: `repro run 9001 --out '中文 目录/a run'`" in markdown.render(reviewed(Verdict.REPRODUCED), RUN)


CODES = {
    Verdict.REPRODUCED: 0,
    Verdict.FIXED: 0,
    Verdict.NOT_REPRODUCED: 1,
    Verdict.NOT_FIXED: 1,
    Verdict.BOUNDED: 1,
    Verdict.INCONCLUSIVE: 3,
    Verdict.INFRA_ERROR: 4,
    Verdict.UNSUPPORTED: 5,
}


def code_of(verdicts: Sequence[Verdict], of_ceiling: bool = False) -> int:
    review = reviewed(Verdict.REPRODUCED)
    issue = review.issue
    if of_ceiling:
        issue = replace(issue, faults=(replace(issue.faults[0], oracle=CeilingOracle("m", "B", 1, 2)),))
    return exit_code.exit_code([replace(review.verdicts[0], verdict=verdict) for verdict in verdicts], issue)


@pytest.mark.parametrize("verdict", list(Verdict))
def test_each_verdict_has_its_exit_code(verdict: Verdict) -> None:
    assert code_of([verdict]) == CODES[verdict]


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        ([], 3),
        ([Verdict.REPRODUCED, Verdict.REPRODUCED], 0),
        ([Verdict.REPRODUCED, Verdict.NOT_REPRODUCED], 1),
        ([Verdict.REPRODUCED, Verdict.UNSUPPORTED], 5),
        ([Verdict.NOT_REPRODUCED, Verdict.UNSUPPORTED], 1),
        ([Verdict.INCONCLUSIVE, Verdict.NOT_REPRODUCED], 3),
        ([Verdict.INFRA_ERROR, Verdict.INCONCLUSIVE, Verdict.REPRODUCED], 4),
    ],
)
def test_the_most_pressing_verdict_decides(verdicts: list[Verdict], code: int) -> None:
    assert code_of(verdicts) == code


def test_for_a_bounded_cache_bounded_is_what_was_asked() -> None:
    assert code_of([Verdict.BOUNDED], of_ceiling=True) == 0
    assert code_of([Verdict.REPRODUCED], of_ceiling=True) == 1
    assert code_of([Verdict.INFRA_ERROR], of_ceiling=True) == 4


def test_measures_in_words() -> None:
    assert [measure_text(measure) for measure in MEASURES] == [
        "",
        "104.25 B/call [98.10, 110.30]",
        "80% of trials [56%, 94%]",
        "unknown B/call [open, open]",
    ]


def test_the_first_failing_ranks_last_lines() -> None:
    review = reviewed(Verdict.REPRODUCED, first=f"{FAILED.record.spec.folder}/rank-0")
    name, lines = failing_rank(review, review.verdicts[0])
    assert name == f"trials/{FAILED.record.spec.folder}/rank-0"
    assert lines[0] == "Traceback"


def test_a_line_of_progress_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    died_of = trial(died(0, 11, reason="signal 11 (SIGSEGV) " + "and a long story " * 20)).record
    with console.Watch(2, 0) as watch:
        watch(died_of.spec, None, "")
        watch(died_of.spec, died_of, "")
        watch(died_of.spec, None, "cannot write x: No space left on device; free space there " + "x " * 80)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(f"1/2 {died_of.spec.folder} (cpu) ")
    assert lines[0].endswith("and a long story " * 20)
    assert "2/2" in lines[1]
    assert "No space left" in lines[1]
