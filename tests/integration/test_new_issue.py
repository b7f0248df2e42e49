"""A new report is a new folder: nothing else is touched, and every verb knows it."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
from harness import Cli

from repro.report import data


def test_a_folder_is_an_issue(cli: Cli) -> None:
    assert "9001  形状不符的矩阵相乘" in cli("list").out
    done = cli("run", "9001", "--json", "--out", str(cli.out))
    assert done.code == 0, done
    printed = json.loads(done.out)
    schema = Path(data.__file__).with_name("verdict.schema.json")
    jsonschema.validate(printed, json.loads(schema.read_text(encoding="utf-8")))
    [fault] = printed["faults"]
    assert (fault["verdict"], fault["hits"], fault["trials"]) == ("REPRODUCED", 1, 1)
    assert "9001/tiny.py" in fault["why"]
    assert fault["controls"] == ["shape (unfixed): 1 hit of 1", "well (clean): 1 miss of 1"]
    report = (cli.out / "report.md").read_text(encoding="utf-8")
    assert report.startswith("# Report 9001: 形状不符的矩阵相乘")


def test_a_chinese_folder_in_an_old_locale(cli: Cli) -> None:
    cli.out = cli.folder / "中文 目录" / "run"
    old = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    process = cli.start("run", "9001", "--json", "--out", str(cli.out), wrapper=(), **old)
    done = cli.finish(process)
    assert done.code == 0, done
    assert json.loads(done.out)["faults"][0]["verdict"] == "REPRODUCED"
    assert cli("judge", str(cli.out), "--json", **old).out == done.out


def test_without_the_variable_there_is_no_such_issue(cli: Cli) -> None:
    done = cli("run", "9001", HYPER_REPRO_ISSUES="")
    assert done.code == 2
    assert done.err.startswith("repro run: there is no issue 9001; known are 134")
