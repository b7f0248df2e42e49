"""Preflight on trees of hosts that do not exist: every fault is found, named as documented, and no guess is made."""

from __future__ import annotations

import ast
import copy
import json
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import ascend_tree
import pytest
from ascend_tree import Tree, variant

import repro.hosts.ascend
from repro.engines.ssh import fanout
from repro.hosts import ask, preflight
from repro.hosts.ascend import across, faults, finding, judge, look, look_npu, render
from repro.hosts.ascend.machine import Machine

ROWS = preflight.rows(None) or [{"mindspore": "2.10.0", "cann": "9.1.0", "hdk": "26.1.0"}]
CANN = "/usr/local/Ascend/cann-"
REPOSITORY = Path(__file__).parents[2]
# What a well host has besides its NPUs.
SYSTEM = {
    "etc/passwd": "root:x:0:0::/root:/bin/sh\nHwHiAiUser:x:1000:1000::/:/bin/false\n",
    "etc/group": "root:x:0:\nHwHiAiUser:x:1000:\n",
    "proc/sys/kernel/core_pattern": "/cores/core.%e\n",
    "proc/sys/net/ipv4/ip_local_reserved_ports": "60000-60015\n",
    "proc/sys/net/ipv4/ip_local_port_range": "32768\t60999\n",
    "etc/os-release": 'ID="openEuler"\nVERSION_ID="24.03"\n',
}


def seen(tmp_path: Path, tree: Tree | None = ascend_tree.A2, **files: str) -> dict[str, Any]:
    """The look at a well host of this kind, but for some files; without a tree it has no NPUs."""
    if tree is not None:
        ascend_tree.write(tree, tmp_path)
    for path, text in {**SYSTEM, **{key.replace("__", "/"): text for key, text in files.items()}}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    found = look.look(Machine(str(tmp_path)), ["/"])
    # The machine that runs the tests is not the subject.
    room = {"place": "/", "free": 100 << 30, "total": 200 << 30, "inodes": 10**6}
    found["disks"], found["shm"] = {"/": room}, room
    found["clock"]["skew"] = [-0.1, 0.2]
    found["limits"] = {name: [None, None] for name in found["limits"]}
    return json.loads(json.dumps(found))  # type: ignore[no-any-return]


def named(look: dict[str, Any], **expected: object) -> dict[str, str]:
    """Fault -> value seen."""
    found = judge.judge(look, {"rows": ROWS, **expected})
    return {one.fault: one.seen for one in found if one.fault}


# On a tree there is no Docker; that is not what these are about.
USUAL = {"engine.none"}


@pytest.mark.parametrize("tree", [ascend_tree.A2, ascend_tree.A3], ids=["a2", "a3"])
def test_a_well_host_has_no_fault(tree: Tree, tmp_path: Path) -> None:
    found = seen(tmp_path, tree)
    assert set(named(found, chip=tree.chip, dies=len(tree.dies))) == USUAL
    assert found["system"]["id"] == "openEuler"
    assert not list(tmp_path.rglob("ran-twice-at-once"))


@pytest.mark.parametrize(
    ("tree", "fault", "value"),
    [
        (ascend_tree.ALARM, "health.alarm", "die 5 Alarm"),
        (ascend_tree.ALARM, "ecc.errors", "die 5: 3 double-bit, 3 isolated pages"),
        (variant(ascend_tree.A3, health={3: "Warning"}), "health.warning", "die 1/1 (davinci3) Warning"),
        (variant(ascend_tree.A2, health={1: "Seltsam"}), "health.unknown", "unknown: die 1 Seltsam"),
        (ascend_tree.HELD, "holders.some", "die 0: VLLMWorker_TP (pid 4711); die 1: VLLMWorker_TP (pid 4712)"),
        (
            variant(ascend_tree.A2, held={die: (die + 1, "p", 9) for die in range(8)}),
            "holders.all",
            "; ".join(f"die {die}: p (pid {die + 1})" for die in range(8)),
        ),
        (
            ascend_tree.MISMATCH,
            "cann.driver",
            "9.1.0 in /usr/local/Ascend/cann-9.1.0, driver 24.1.rc3, needs 26.1.0",
        ),
        (variant(ascend_tree.A2, baselines=(20, 26)), "cann.unfit", f"9.1.0 in {CANN}9.1.0, driver 26.1.0"),
        (variant(ascend_tree.A2, cann="9.3.0"), "cann.unlisted", f"9.3.0 in {CANN}9.3.0, driver 26.1.0"),
        (variant(ascend_tree.A2, cann=None), "cann.none", "none in /usr/local/Ascend"),
        (
            variant(ascend_tree.A2, firmware="9.9.0.1"),
            "firmware.range",
            "9.9.0.1 with driver 26.1.0; driver lists it: no, it lists the driver: yes",
        ),
        (variant(ascend_tree.A2, nodes=7), "dies.differ", "npu-smi lists 8, /dev has 7"),
        (variant(ascend_tree.A2, nodes=0), "dies.none", "no /dev/davinci*"),
        (variant(ascend_tree.A2, down=(2, 3)), "hccn.down", "die 2-3"),
        (
            variant(ascend_tree.A2, broken="dcmi model initialized failed, because the device is used. ret is -8020\n"),
            "smi.failed",
            "another container or process owns the device (dcmi -8020) (npu-smi ended with 1)",
        ),
        (
            variant(ascend_tree.A2, broken="| 1 | 2 |\n"),
            "smi.unknown",
            "unknown: not an NPU's line: | 1 | 2 | (npu-smi ended with 1)",
        ),
    ],
)  # fmt: skip
def test_faults_of_npus(tree: Tree, fault: str, value: str, tmp_path: Path) -> None:
    found = seen(tmp_path, tree)
    assert named(found)[fault] == value


@pytest.mark.parametrize(
    ("files", "fault", "value"),
    [
        ({"proc__sys__kernel__core_pattern": "|/usr/lib/apport %p\n"}, "core.pipe", "|/usr/lib/apport %p"),
        ({"proc__sys__kernel__core_pattern": "core\n"}, "core.relative", "core"),
        ({"proc__sys__kernel__core_pattern": "\n"}, "core.off", "core_pattern is empty"),
        ({"etc__passwd": "ubuntu:x:1000:1000::/:/bin/sh\n"}, "users.taken", "1000 is ubuntu"),
        ({"etc__passwd": "HwHiAiUser:x:1001:1000::/:/bin/sh\n"}, "users.ids", "1001:1000"),
        ({"etc__group": ""}, "users.none", "no user or group HwHiAiUser"),
        ({"etc__docker__daemon.json": "{not json"}, "engine.json", "not JSON: "),
        (
            {"proc__sys__net__ipv4__ip_local_reserved_ports": "8080\n"},
            "ports.unreserved",
            "60000-60015; reserved: 8080",
        ),
        ({"proc__sys__net__ipv4__ip_local_port_range": ""}, "ports.unknown", "unknown"),
        (
            {"proc__net__tcp": "  sl\n   0: 00000000:EA61 00000000:0000 0A 0 0\n   1: 0:EA62 0:0 01 0\n"},
            "ports.taken",
            "60001 listens",
        ),
        ({"etc__hccn.conf": "address_4=10.9.9.9\n"}, "hccn.conf", "die 4"),
    ],
)
def test_faults_of_the_system(files: dict[str, str], fault: str, value: str, tmp_path: Path) -> None:
    tree = ascend_tree.A2 if "hccn" in fault else None
    assert named(seen(tmp_path, tree, **files))[fault].startswith(value)


@pytest.fixture(scope="module")
def well(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return seen(tmp_path_factory.mktemp("well"))


ENGINE: dict[str, Any] = {
    "path": "/d",
    "problem": "",
    "version": "2",
    "default": "runc",
    "daemon_problem": "",
    "runtimes": ["runc"],
    "ascend_runtime": False,
}


def edited(well: dict[str, Any], *steps: str | int, value: object) -> dict[str, Any]:
    """A well host's look with one value changed."""
    found = copy.deepcopy(well)
    place: Any = found
    for step in steps[:-1]:
        place = place[step]
    place[steps[-1]] = value
    return found


@pytest.mark.parametrize(
    ("steps", "value", "fault"),
    [
        (("clock", "skew"), [1.5, 2.5], "clock.off"),
        (("clock", "skew"), [-41.0, -40.0], "clock.far"),
        (("clock", "skew"), [-60.0, 60.0], ""),
        (("clock", "skew"), None, "clock.unknown"),
        (("disks", "/", "free"), 10 << 20, "disk.full"),
        (("disks", "/", "free"), 5 << 30, "disk.low"),
        (("disks", "/", "inodes"), 3, "disk.full"),
        (("disks", "/"), None, "disk.unknown"),
        (("shm", "free"), 64 << 20, "shm.small"),
        (("limits", "NOFILE"), [1024, None], "limits.low"),
        (("limits", "CORE"), [0, 0], "core.off"),
        (("core_pattern",), None, "core.unknown"),
        (("devices", "missing"), ["hisi_hdc"], "dies.shared"),
        (("devices", "closed"), [0], "dies.closed"),
        (("npu_smi", "boards", "0", "driver"), "25.0.0", "driver.reboot"),
        (("npu_smi", "boards", "0", "compatibility"), "NOT OK", "firmware.unfit"),
        (("npu_smi", "info", "warnings"), ["WARNING: Driver_Install_Status"], "driver.half"),
        (("npu_smi", "info", "dies", 0, "hbm_used"), 30000, "hbm.used"),
        (("npu_smi", "info", "dies", 0, "hbm_total"), None, "hbm.unknown"),
        (("npu_smi", "ecc", "0"), None, "ecc.unknown"),
        (("npu_smi", "problem"), "/x was in use by somebody else for 30 s", "smi.busy"),
        (("npu_smi", "path"), None, "smi.missing"),
        (("versions", "driver"), None, "driver.unknown cann.unlisted"),
        (("engine",), {**ENGINE, "problem": "permission denied"}, "engine.denied"),
        (("engine",), {**ENGINE, "problem": "no daemon"}, "engine.silent"),
        (("engine",), ENGINE, "runtime.absent"),
        (("engine",), {**ENGINE, "ascend_runtime": True}, "runtime.unused"),
        (("users", "member"), False, "users.group"),
        (("hccn", "problem"), "hccn_tool: needs root", "hccn.unknown"),
        (("hccn", "dies", "0", "ip", "address"), None, "hccn.address"),
        (("hccn", "dies", "0", "net_health"), "Fail", "hccn.health"),
    ],
)  # fmt: skip
def test_each_value_that_is_a_fault(
    steps: tuple[str | int, ...], value: object, fault: str, well: dict[str, Any]
) -> None:
    assert set(named(edited(well, *steps, value=value))) - USUAL == set(fault.split())


def test_what_the_inventory_says_is_held_against_it(well: dict[str, Any]) -> None:
    assert set(named(well, chip="a3", dies=16)) - USUAL == {"dies.chip", "dies.count"}


def test_firmware_that_cannot_be_compared_is_unknown(well: dict[str, Any]) -> None:
    found = copy.deepcopy(well)
    found["versions"]["firmware"] = None
    found["versions"]["driver"].pop("compatible_version_fw")
    for board in found["npu_smi"]["boards"].values():
        board["compatibility"] = None
    assert "firmware.unknown" in named(found)


def test_hosts_beside_each_other(tmp_path: Path) -> None:
    trees = {
        "one": ascend_tree.A2,
        "two": variant(ascend_tree.A2, subnet="10.20.2"),
        "on": ascend_tree.TLS_ON,
        "old": ascend_tree.MISMATCH,
        "cann": variant(ascend_tree.A2, subnet="10.20.1", cann="9.0.0"),
    }
    looks: dict[str, Any] = {name: seen(tmp_path / name, tree) for name, tree in trees.items()}
    looks["lost"] = None
    looks["two"]["hccn"]["dies"]["7"]["tls"] = True
    found = across.judge_all(looks, {}, {"lost": "no route"})
    by_host = {host: {one.fault: one.seen for one in some if one.fault} for host, some in found.items()}
    assert list(found) == list(looks)
    assert by_host["lost"] == {"host.unreachable": "no route"}
    assert by_host["on"]["tls.mixed"].startswith("on on die 0-7; otherwise on one")
    assert by_host["two"]["tls.mixed"] == "off on die 0-6; on on die 7"
    assert by_host["one"]["hccn.twice"] == "10.20.1.8: one die 7, cann die 7"
    assert by_host["old"]["alike.driver"] == "24.1.rc3, where 4 of 5 have 26.1.0"
    assert by_host["cann"]["alike.cann"] == "9.0.0, where 4 of 5 have 9.1.0"


def test_every_fault_is_provoked_by_a_test_above() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    assert [key for key in faults.FAULTS if not re.search(rf'["\s]{re.escape(key)}["\s]', text)] == []


def test_the_table_of_the_documentation_is_the_one_of_the_code() -> None:
    text = (REPOSITORY / "docs" / "hosts.md").read_text(encoding="utf-8")
    rows = [f"| `{key}` | {one.what} | {one.check}: {one.level} | {one.advice} |" for key, one in faults.FAULTS.items()]
    assert [row for row in rows if row not in text] == []
    listed = [
        line
        for line in text.splitlines()
        if line.startswith("| `") and ("| " in line) and (": ok |" in line or ": warn |" in line or ": fail |" in line)
    ]
    assert listed == rows


def test_table_json_and_page_have_the_same_rows(tmp_path: Path) -> None:
    looks = {"a<b": seen(tmp_path, ascend_tree.ALARM)}
    found = across.judge_all(looks, {}, {})
    table, page, data = render.table(found), render.page(found, "T"), render.to_json(found, looks)
    assert data["hosts"]["a<b"]["level"] == "fail"
    for one in found["a<b"]:
        if one.level != "ok":
            assert one.seen in " ".join(table.split())
        assert one.seen.replace("'", "&#x27;") in page
    assert "a&lt;b" in page
    assert "a<b" not in page
    assert table.splitlines()[-1] == "1 hosts: 0 ok, 0 warn, 1 fail"
    assert json.loads(json.dumps(data)) == data


def test_npu_smi_is_never_run_twice_at_once(tmp_path: Path) -> None:
    ascend_tree.write(variant(ascend_tree.A2, seconds=0.05), tmp_path)
    found: list[dict[str, Any]] = []
    threads = [threading.Thread(target=lambda: found.append(look_npu.smi(Machine(str(tmp_path))))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one["problem"] for one in found] == ["", "", ""]
    assert not list(tmp_path.rglob("ran-twice-at-once"))


def test_a_tool_that_hangs_or_is_in_use_costs_its_deadline_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ascend_tree.write(variant(ascend_tree.A2, seconds=30), tmp_path)
    machine = Machine(str(tmp_path))
    assert machine.run(["/usr/local/sbin/npu-smi", "info"], 0.3)[0] == 124
    with subprocess.Popen(["flock", str(tmp_path / "usr/local/sbin/npu-smi"), "sleep", "30"]) as holder:
        while (
            subprocess.run(["flock", "-n", str(tmp_path / "usr/local/sbin/npu-smi"), "true"], check=False).returncode
            == 0
        ):
            pass
        code, text = machine.run(["/usr/local/sbin/npu-smi", "info"], 0.3, alone=True)
        subprocess.run(["pkill", "-P", str(holder.pid)], check=False)
        holder.kill()
    assert (code, "was in use by somebody else" in text) == (75, True)
    monkeypatch.setattr(look_npu, "TOOL_S", 0.3)
    ascend_tree.write(variant(ascend_tree.A2, seconds=30), tmp_path / "other")
    assert look_npu.smi(Machine(str(tmp_path / "other")))["problem"] == "/usr/local/sbin/npu-smi gave no answer in 0 s"


def test_what_runs_on_hosts_is_python_3_9_and_the_standard_library() -> None:
    folder = Path(repro.hosts.ascend.__file__).parent
    plugins = REPOSITORY / "playbooks/collections/ansible_collections/hyper_repro/ascend/plugins"
    files = [*folder.glob("*.py"), *plugins.glob("modules/*.py"), *plugins.glob("module_utils/*.py")]
    assert len(files) > 20
    for path in files:
        tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9))
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            outside = {name.split(".")[0] for name in names} - set(sys.stdlib_module_names) - {"ansible"}
            assert not outside, f"{path}: {outside}"
    # The shared folder is one folder, not a copy.
    assert (plugins / "module_utils" / "ascend").resolve() == folder.resolve()


def test_the_look_that_is_sent_is_one_command_that_stands_alone() -> None:
    line = ask.command("python3", ["/"])
    assert len(line) < 100_000
    done = subprocess.run(
        ["sh", "-c", f"cd / && {line}"], capture_output=True, text=True, check=True, env={"PATH": "/usr/bin:/bin"}
    )
    found = ask.read(fanout.HostResult("here", 0, f"Welcome!\n{done.stdout}bye\n", "", 1.0), 0.0, 0.0)
    assert found.look is not None
    assert found.look["schema_version"] == look.SCHEMA_VERSION


def test_an_answer_without_a_look_is_a_reason() -> None:
    result = fanout.HostResult("h", 127, "", "sh: python3: not found\n", 1.0)
    assert ask.read(result, 0, 0).reason == "the look ended with 127: sh: python3: not found"
    cut = fanout.HostResult("h", 0, f"{ask.MARK}{{", "", 1.0)
    assert ask.read(cut, 0, 0).reason.startswith("its answer was cut: ")


def test_worst_and_spans() -> None:
    assert finding.worst([finding.good("a", "b")]) == "ok"
    assert finding.spans([3, 1, 2, 7, 7]) == "1-3, 7"
