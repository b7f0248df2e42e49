"""Flags of `docker run`, for trees that stand for hosts; no real Ascend host was looked at."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from repro.cli import main
from repro.errors import InfraError, UnsupportedError, UsageError
from repro.images.docker_args import Asked, Flags, flags
from repro.images.host_tree import look
from repro.images.plan import Target

HOSTS = Path(__file__).parents[1] / "data" / "hosts"
NPU = Asked(Target.ASCEND, "/home/u/runs", "1234:1235")
RUNTIME = {"runtimes": {"ascend": {"path": "/usr/local/Ascend/Ascend-Docker-Runtime/ascend-docker-runtime"}}}
Grow = Callable[..., Path]


@pytest.fixture
def grow(tmp_path: Path) -> Grow:
    """Lay out the files of a host."""

    def lay_out(name: str, daemon: Any = None, without: Sequence[str] = ()) -> Path:
        host = json.loads((HOSTS / f"{name}.json").read_text(encoding="utf-8"))
        paths = [*host["paths"], *(f"dev/davinci{die}" for die in range(host["dies"]))]
        texts = dict(host["texts"]) | ({"etc/docker/daemon.json": json.dumps(daemon)} if daemon else {})
        for path, text in {**dict.fromkeys(paths, ""), **texts}.items():
            if not path.startswith(tuple(without)) or not without:
                (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / path).write_text(text, encoding="utf-8")
        return tmp_path

    return lay_out


def values(found: Flags, name: str) -> list[str]:
    """All values of one flag."""
    pairs = zip(found.arguments, found.arguments[1:], strict=False)
    return [value for flag, value in pairs if flag == name]


def test_an_a2_without_the_runtime_gets_its_dies_and_its_driver(grow: Grow) -> None:
    found = flags(look(grow("a2")), NPU)
    shared = ["/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc"]
    assert values(found, "--device") == [*(f"/dev/davinci{die}" for die in range(8)), *shared]
    driver = ["/usr/local/dcmi", "/usr/local/bin/npu-smi", "/usr/local/Ascend/driver", "/etc/ascend_install.info"]
    assert values(found, "--volume") == ["/home/u/runs:/workspace/runs", *(f"{path}:{path}:ro" for path in driver)]
    assert values(found, "--ulimit") == ["core=0", "memlock=-1", "stack=67108864"]
    assert (values(found, "--user"), values(found, "--group-add")) == (["1234:1235"], ["1000"])
    assert (values(found, "--shm-size"), values(found, "--network"), values(found, "--runtime")) == (["16g"], [], [])
    assert "--privileged" not in found.arguments


def test_an_a3_s_card_is_two_dies(grow: Grow) -> None:
    host = look(grow("a3"))
    assert (host.chip, len(host.dies)) == ("a3", 16)
    devices = values(flags(host, replace(NPU, cards=(1, 7))), "--device")
    assert devices[:4] == ["/dev/davinci2", "/dev/davinci3", "/dev/davinci14", "/dev/davinci15"]
    mounts = values(flags(host, NPU), "--volume")
    assert "/usr/local/sbin/npu-smi:/usr/local/sbin/npu-smi:ro" in mounts
    assert "/etc/hccn.conf:/etc/hccn.conf:ro" in mounts
    with pytest.raises(UsageError, match=r"--cards 8: there is no /dev/davinci16; cards here: 0, 1, 2, 3, 4, 5, 6, 7"):
        flags(host, replace(NPU, cards=(8,)))


@pytest.mark.parametrize("name", ["a2", "a3"])
@pytest.mark.parametrize("default", [True, False])
def test_the_runtime_brings_devices_and_driver(grow: Grow, name: str, default: bool) -> None:
    host = look(grow(name, {**RUNTIME, **({"default-runtime": "ascend"} if default else {})}))
    found = flags(host, replace(NPU, cards=(0,)))
    assert values(found, "--device") == []
    assert values(found, "--volume") == ["/home/u/runs:/workspace/runs"]
    assert values(found, "--env") == ["ASCEND_VISIBLE_DEVICES=0" if name == "a2" else "ASCEND_VISIBLE_DEVICES=0,1"]
    assert values(found, "--runtime") == ([] if default else ["ascend"])
    by_hand = flags(host, replace(NPU, direct=True))
    assert len(values(by_hand, "--device")) == len(host.dies) + 3
    assert values(by_hand, "--runtime") == (["runc"] if default else [])


def test_several_hosts_and_cores(grow: Grow) -> None:
    found = flags(look(grow("a3")), replace(NPU, multi_node=True, cores=True))
    assert values(found, "--network") == ["host"]
    assert "core=-1" in values(found, "--ulimit")
    assert values(found, "--env") == ["ASCEND_COREDUMP_SIGNAL=none"]
    assert "go to the host's own handler (/usr/lib/systemd/systemd-coredump)" in found.notes[-1]


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("core", "the working folder of the rank"),
        ("/var/cores/%e.%p", "to /var/cores inside"),
        ("/core", "to / inside"),
    ],
)
def test_where_a_core_goes_is_said(grow: Grow, pattern: str, said: str) -> None:
    root = grow("a2")
    (root / "proc/sys/kernel/core_pattern").write_text(f"{pattern}\n", encoding="utf-8")
    assert said in flags(look(root), replace(NPU, cores=True)).notes[-1]


@pytest.mark.parametrize(
    ("without", "complaint"),
    [
        (["dev/davinci_manager", "dev/hisi"], r"no /dev/davinci_manager, /dev/hisi_hdc; install its driver whole"),
        (["usr/local/Ascend/driver"], "no /usr/local/Ascend/driver; install"),
        (["dev/"], r"no /dev/davinci\*; for an image that needs no NPU"),
    ],
)
def test_half_a_driver_is_told(grow: Grow, without: list[str], complaint: str) -> None:
    with pytest.raises(UnsupportedError, match=complaint):
        flags(look(grow("a2", without=without)), NPU)


def test_a_host_without_the_group_is_noted(grow: Grow) -> None:
    root = grow("a2")
    (root / "etc/group").write_text("root:x:0:\nbroken\n", encoding="utf-8")
    found = flags(look(root), NPU)
    assert values(found, "--group-add") == []
    assert "only root may open the devices" in found.notes[0]


def test_a_broken_daemon_json_is_told(grow: Grow) -> None:
    root = grow("a2")
    (root / "etc/docker").mkdir()
    (root / "etc/docker/daemon.json").write_text("{", encoding="utf-8")
    with pytest.raises(InfraError, match=r"daemon\.json is not JSON"):
        look(root)


def test_target_sim_is_closed(grow: Grow) -> None:
    found = flags(look(grow("a2", without=["dev/", "usr/", "etc/"])), replace(NPU, target=Target.SIM))
    for flag in ("--read-only", "--cap-drop", "--tmpfs"):
        assert flag in found.arguments
    assert values(found, "--network") == ["none"]
    assert values(found, "--device") == []


def test_the_command_prints_one_line(grow: Grow, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    evidence = tmp_path / "kept"
    assert main(["docker-args", "--root", str(grow("a3")), "--cards", "0", "--evidence", str(evidence)]) == 0
    said = capsys.readouterr().out
    assert said.count("\n") == 1
    assert f"--volume {evidence}:/workspace/runs" in said
    assert "--device /dev/davinci1 " in said
    assert evidence.is_dir()
    assert main(["docker-args", "--root", str(tmp_path / "nothing"), "--json"]) == 0
    assert "--read-only" in json.loads(capsys.readouterr().out)["arguments"]
    assert main(["docker-args", "ascend", "--root", str(tmp_path / "nothing")]) == 5
    assert main(["docker-args", "sim", "--evidence", str(tmp_path / "a b")]) == 2
