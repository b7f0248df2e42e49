"""The table of versions is read strictly; a combination that no row has is refused with the row that would be right."""

from __future__ import annotations

from pathlib import Path

import pytest

from repro.errors import UsageError
from repro.images.versions import Wanted, choose, file, load

TABLE = load()
TEXT = file().read_text(encoding="utf-8")


def test_the_default_row_is_what_the_project_is_locked_to() -> None:
    lock = (Path(__file__).parents[2] / "requirements.lock").read_text(encoding="utf-8")
    assert f"\nmindspore=={TABLE.default} " in lock
    row = choose(TABLE, Wanted())
    assert (row.mindspore, row.cann, row.hdk, row.python[0]) == ("2.10.0", "9.1.0", "26.1.0", "3.12")
    assert row.hyper_parallel is not None
    assert set(row.base_tags) == {"910b", "a3"}


@pytest.mark.parametrize(
    ("wanted", "row"),
    [
        (Wanted(mindspore="2.10.0", cann="9.1.0", chip="910b", architecture="aarch64"), "2.10.0"),
        (Wanted(chip="a3", architecture="x86_64", python="3.11"), "2.10.0"),
        (Wanted(cann="9.0.0"), "2.9.0"),
        (Wanted(mindspore="2.7.2", driver="25.5.0", python="3.12"), "2.7.2"),
    ],
)
def test_a_listed_combination_is_its_row(wanted: Wanted, row: str) -> None:
    assert choose(TABLE, wanted).mindspore == row


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (Wanted(mindspore="2.10.0", cann="9.0.0"), ["MindSpore 2.10.0, CANN 9.0.0", "CANN 9.1.0", "MindSpore 2.9.0"]),
        (Wanted(mindspore="2.10.0", python="3.10"), ["Python 3.10", "Python 3.12 or 3.11"]),
        (Wanted(mindspore="3.0.0"), ["MindSpore 3.0.0", "MindSpore 2.10.0"]),
        (Wanted(mindspore="2.6.0rc1", chip="a3"), ["chip a3", "MindSpore 2.6.0rc1 with CANN 8.1.RC1"]),
        (Wanted(chip="910c"), ["chip 910c"]),
        (Wanted(driver="25.5.0"), ["driver 25.5.0", "driver 26.1.0"]),
    ],
)
def test_any_other_is_refused_with_the_row_that_would_be_right(wanted: Wanted, said: list[str]) -> None:
    with pytest.raises(UsageError) as refused:
        choose(TABLE, wanted)
    text = str(refused.value)
    for part in [*said, "--allow-unlisted", "excerpt"]:
        assert part in text
    assert "\n" not in text
    assert choose(TABLE, wanted, allow_unlisted=True) in TABLE.rows


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        ('default: "2.10.0"', 'default: "2.10.1"', "default: there is no row for MindSpore 2.10.1"),
        ('cann: "9.1.0"', "cann: 9.1", "9.1 is not of type 'string'"),
        ("sure: excerpt", "sure: certain", "'certain' is not one of"),
        ('mindspore: "2.11.0"', 'mindspore: "2.10.0"', "2.10.0 has a row already"),
        ("      a3: 9.1.0-a3", "      310p: 9.1.0-a3", "'310p' is not one of"),
        ('hdk: "26.1.0"', 'hdk: "26.1.0"\n    drivers: "1"', "drivers"),
        ('hdk: "26.1.0"', 'hdk: "26.1.0"\n    hdk: "26.1.1"', "hdk: given twice"),
    ],
)
def test_a_mistake_in_the_table_names_line_and_key(tmp_path: Path, before: str, after: str, complaint: str) -> None:
    path = tmp_path / "versions.yaml"
    assert before in TEXT
    path.write_text(TEXT.replace(before, after, 1), encoding="utf-8")
    with pytest.raises(UsageError, match=complaint) as wrong:
        load(path)
    assert str(wrong.value).startswith(f"{path}:")
