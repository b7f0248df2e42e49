"""What the modules of the playbooks are made of: merged JSON and back, lists of ports, the ledger; and the drawing."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from repro import cli
from repro.hosts import draw, inventory

REPOSITORY = Path(__file__).parents[2]
UTILS = REPOSITORY / "playbooks/collections/ansible_collections/hyper_repro/ascend/plugins/module_utils"
EXAMPLE = REPOSITORY / "playbooks" / "inventories" / "example.yml"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"hyper_repro_{name}", UTILS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


json_keys, port_list, ledger = load("json_keys"), load("port_list"), load("ledger")


@pytest.mark.parametrize(
    ("data", "settings", "after", "kept"),
    [
        ({}, {"a": {"b": 1}}, {"a": {"b": 1}}, []),
        ({"a": {"c": 2}}, {"a": {"b": 1}}, {"a": {"c": 2, "b": 1}}, []),
        ({"a": {"b": 2}}, {"a": {"b": 1}, "d": []}, {"a": {"b": 2}, "d": []}, [["a", "b"]]),
        ({"a": 7}, {"a": {"b": {"c": 1}}}, {"a": 7}, [["a", "b", "c"]]),
        ({"a": {"b": 1}}, {"a": {"b": 1}}, {"a": {"b": 1}}, []),
        ({"a": None}, {"a": False}, {"a": None}, [["a"]]),
        ({}, {"a": {}}, {"a": {}}, []),
    ],
)
def test_merging_keeps_theirs_and_can_be_taken_back(
    data: dict[str, Any], settings: dict[str, Any], after: dict[str, Any], kept: list[list[str]]
) -> None:
    before = json.loads(json.dumps(data))
    keys, left = json_keys.wanted(data, settings, replace=False)
    for steps, _, value in keys:
        json_keys.put(data, steps, value)
    assert data == after
    assert left == kept
    # Through the ledger's JSON and back.
    for steps, was, _ in json.loads(json.dumps(keys)):
        json_keys.take(data, steps, was)
    assert data == before


def test_replacing_remembers_what_was_there() -> None:
    data = {"a": {"b": 2}}
    keys, left = json_keys.wanted(data, {"a": {"b": 1}}, replace=True)
    assert ([tuple(key) for key in keys], left) == ([(["a", "b"], 2, 1)], [])
    json_keys.take(data, ["a", "b"], 2)
    assert data == {"a": {"b": 2}}


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ("", "60000-60015", "60000-60015"),
        ("8080,9000-9002", "60000-60015", "8080,9000-9002,60000-60015"),
        ("59999,60010-60020", "60000-60015", "59999-60020"),
        ("60000-60015", "60000-60015", "60000-60015"),
        ("5,3", "4", "3-5"),
    ],
)
def test_lists_of_ports(one: str, other: str, both: str) -> None:
    assert port_list.union(one, other) == both


def test_the_ledger_remembers_the_first_state_and_goes_when_it_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "ledger.json"
    book = ledger.Ledger(str(path))
    book.remember("sysctl", "a.b", "1", "2")
    book.remember("sysctl", "a.b", "2", "3")
    again = ledger.Ledger(str(path))
    assert again.entries["sysctl:a.b"] == {"kind": "sysctl", "target": "a.b", "before": "1", "after": "3"}
    again.entries.clear()
    again.write()
    assert not path.parent.exists()


def test_a_ledger_of_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    path.write_text('{"schema_version": 2, "entries": {}}')
    with pytest.raises(ValueError, match="schema 2, this playbook knows 1"):
        ledger.Ledger(str(path))


def test_a_file_is_replaced_whole_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o640)
    ledger.write(str(path), "new")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", 0o640)
    assert list(tmp_path.iterdir()) == [path]


def test_the_example_inventory_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["inventory", str(EXAMPLE)]) == 0
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert lines[0] == "rack A: 4 hosts, 32 dies"
    assert lines[1].split() == ["├─", "a2-01", "910b", *["▮"] * 8, "ranks", "0-7", "ops@a2-01"]
    assert lines[-2].split()[-3:] == ["ranks", "48-61", "ops@192.0.2.32"]
    assert lines[-1] == "6 hosts, 2 racks, chips 910b, a3, world of 62 ranks"
    assert "a3-02: 14 dies, where a full a3 host has 16" in shown.err
    assert cli.main(["inventory", str(EXAMPLE), "--limit", "a3", "--json"]) == 0
    hosts = json.loads(capsys.readouterr().out)["hosts"]
    assert [(host["name"], host["ranks"][0]) for host in hosts] == [("a3-01", 0), ("a3-02", 16)]


def test_every_inventory_here_can_be_used() -> None:
    for path in EXAMPLE.parent.glob("*.yml"):
        hosts = inventory.read(path).hosts
        assert draw.ranks(hosts)[hosts[0].name].start == 0


def test_an_inventory_that_cannot_be_used_is_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "hosts.yml"
    path.write_text("all:\n  hosts:\n    a:\n      ascend_chip: a4\n")
    for verb in (["inventory", str(path)], ["doctor", "--hosts", str(path)]):
        assert cli.main(verb) == 2
        assert ":4: a: ascend_chip: 'a4' is not one of 910b, a3" in capsys.readouterr().err
    assert cli.main(["doctor", "--html", "x.html"]) == 2
    assert capsys.readouterr().err == "repro doctor: --html is for --hosts; name an inventory too\n"


def test_doctor_looks_at_this_machine_by_an_inventory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "hosts.yml"
    path.write_text("all:\n  hosts:\n    here: {ansible_connection: local}\n")
    cli.main(["doctor", "--hosts", str(path), "--json", "--all"])
    data = json.loads(capsys.readouterr().out)["hosts"]["here"]
    assert data["look"]["system"]["machine"]
    assert {"npu-smi", "disk", "clock"} <= {one["check"] for one in data["findings"]}
