"""Looks at a whole machine without changing anything and without root: plain data, judged elsewhere."""

from __future__ import annotations

import json
import os
import platform
import pwd
import resource
import time
from collections.abc import Iterator
from typing import Any

from . import look_npu, versions
from .machine import Machine

SCHEMA_VERSION = 1
DRIVER_USER = "HwHiAiUser"
ENGINE_S = 20.0
# HCCL's own default: 16 ports from HCCL_IF_BASE_PORT on.
HCCL_PORTS = range(60000, 60016)
_LIMITS = ("NOFILE", "NPROC", "MEMLOCK", "CORE", "STACK")
_LISTENING = "0A"
_RUNTIME = "/usr/local/Ascend/Ascend-Docker-Runtime"


def look(machine: Machine, disks: list[str]) -> dict[str, Any]:
    """Everything preflight wants to know.

    Args:
        machine: The machine, or a tree that stands for one.
        disks: Folders whose room matters; of one that is not there, its nearest parent's.
    """
    began = time.time()
    nodes = look_npu.devices(machine)
    smi = look_npu.smi(machine)
    found = {
        "schema_version": SCHEMA_VERSION,
        "system": system(machine),
        "devices": nodes,
        "npu_smi": smi,
        "hccn": look_npu.network(machine, _logic_numbers(smi, nodes)),
        "versions": look_npu.installed(machine),
        "engine": engine(machine),
        "users": users(machine),
        "disks": {path: room(machine, path) for path in disks},
        "shm": room(machine, "/dev/shm"),  # noqa: S108 -- looked at, not written
        "core_pattern": machine.read("/proc/sys/kernel/core_pattern"),
        "limits": {name: _limit(name) for name in _LIMITS},
        "ports": ports(machine),
    }
    found["clock"] = {"began": began, "ended": time.time(), "synchronised": _synchronised(machine)}
    return found


def _logic_numbers(smi: dict[str, Any], nodes: dict[str, Any]) -> list[int]:
    """hccn_tool counts dies by logic number; without a mapping the numbers of the device nodes."""
    logic = sorted(die["logic"] for die in smi["mapping"])
    return logic or list(nodes["dies"])


def system(machine: Machine) -> dict[str, Any]:
    """Distribution, kernel, architecture and who looks; no host name, so that it can be shown around."""
    release = versions.parse_keys(machine.read("/etc/os-release") or "")
    return {
        "id": release.get("ID", "unknown"),
        "version": release.get("VERSION_ID", ""),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "uid": os.getuid(),
    }


def engine(machine: Machine) -> dict[str, Any]:
    """The container engine, its runtimes and storage, its daemon.json, and the Ascend runtime's files."""
    path = machine.program("docker")
    text = machine.read("/etc/docker/daemon.json")
    found: dict[str, Any] = {
        "path": path,
        "version": None,
        "runtimes": [],
        "default": None,
        "root": None,
        "problem": "",
    }
    found["ascend_runtime"] = machine.program("ascend-docker-runtime", f"{_RUNTIME}") is not None
    found["daemon_json"], found["daemon_problem"] = _json(text)
    if path is None:
        return dict(found, problem="docker is not installed")
    code, output = machine.run([path, "info", "--format", "{{json .}}"], ENGINE_S)
    info, problem = _json(next((line for line in output.splitlines() if line.startswith("{")), ""))
    version = (info or {}).get("ServerVersion")
    if code != 0 or not version:
        lines = (info or {}).get("ServerErrors") or output.strip().splitlines() or [problem]
        return dict(found, problem=str(lines[-1]))
    runtimes = sorted((info or {}).get("Runtimes") or {})
    return dict(
        found,
        version=version,
        runtimes=runtimes,
        default=(info or {}).get("DefaultRuntime"),
        root=(info or {}).get("DockerRootDir"),
    )


def _json(text: str | None) -> tuple[dict[str, Any] | None, str]:
    if not text or not text.strip():
        return None, ""
    try:
        data = json.loads(text)
    except ValueError as error:
        return None, f"not JSON: {error}"
    return (data, "") if isinstance(data, dict) else (None, "not an object")


def users(machine: Machine) -> dict[str, Any]:
    """The driver's user and group, who has uid and gid 1000, and whether we are in the group."""
    accounts = list(_accounts(machine.read("/etc/passwd") or ""))
    groups = list(_accounts(machine.read("/etc/group") or ""))
    driver = next((words for words in accounts if words[0] == DRIVER_USER), None)
    group = next((words for words in groups if words[0] == DRIVER_USER), None)
    return {
        "uid": int(driver[2]) if driver else None,
        "gid": int(group[2]) if group else None,
        "owner_of_1000": next((words[0] for words in accounts if words[2] == "1000"), None),
        "group_of_1000": next((words[0] for words in groups if words[2] == "1000"), None),
        "member": _member(group[2] if group else None),
        "me": _me(),
    }


def _accounts(text: str) -> Iterator[list[str]]:
    for line in text.splitlines():
        words = line.split(":")
        if len(words) > 3 and words[2].isdigit():  # noqa: PLR2004 -- name, password, id, the rest
            yield words


def _member(gid: str | None) -> bool:
    return os.getuid() == 0 or (gid is not None and int(gid) in {*os.getgroups(), os.getgid()})


def _me() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def room(machine: Machine, path: str) -> dict[str, Any] | None:
    """Bytes free for us and in all, free inodes, and the folder that was measured."""
    place = path
    while place not in ("", "/") and not os.path.isdir(machine.at(place)):
        place = place.rpartition("/")[0]
    try:
        stat = os.statvfs(machine.at(place or "/"))
    except OSError:
        return None
    inodes = stat.f_favail if stat.f_files else None
    return {
        "place": place or "/",
        "free": stat.f_bavail * stat.f_frsize,
        "total": stat.f_blocks * stat.f_frsize,
        "inodes": inodes,
    }


def _limit(name: str) -> list[int | None]:
    """Soft and hard; None is unlimited."""
    pair = resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))
    return [None if value == resource.RLIM_INFINITY else value for value in pair]


def ports(machine: Machine) -> dict[str, Any]:
    """Reserved and ephemeral ports, and which of HCCL's are taken."""
    taken = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in (machine.read(table) or "").splitlines()[1:]:
            words = line.split()
            if len(words) > 3 and words[3] == _LISTENING:  # noqa: PLR2004
                taken.add(int(words[1].rpartition(":")[2], 16))
    reserved = machine.read("/proc/sys/net/ipv4/ip_local_reserved_ports")
    return {
        "reserved": None if reserved is None else reserved.strip(),
        "ephemeral": (machine.read("/proc/sys/net/ipv4/ip_local_port_range") or "").split(),
        "taken": sorted(taken & set(HCCL_PORTS)),
    }


def _synchronised(machine: Machine) -> bool | None:
    """Whether a time service says so; None where none is asked that easily."""
    if os.path.exists(machine.at("/run/systemd/timesync/synchronized")):
        return True
    running = any(machine.glob(pattern) for pattern in ("/run/chrony/chronyd.pid", "/run/ntpd.pid", "/run/chronyd.pid"))
    return True if running else None
