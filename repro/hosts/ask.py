"""Preflight over SSH without Ansible: the look's own source is sent as one command, and what it saw comes back."""

from __future__ import annotations

import base64
import json
import shlex
import subprocess
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import repro.hosts.ascend
from repro.engines.ssh import fanout
from repro.engines.ssh.connection import Limits
from repro.hosts.inventory import Host

MARK = "hyper-repro-look:"
DISKS = ("/", "/var/lib/docker", "/var/lib/hyper-repro")
LOOK_S = 300.0
# What runs on the host: the package from memory, then one look.
_SCRIPT = """
import importlib.abc, importlib.util, json, sys
sources = {sources!r}
class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name in sources:
            return importlib.util.spec_from_loader(name, self, is_package=name == "ascend")
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        exec(compile(sources[module.__name__], module.__name__, "exec"), module.__dict__)
sys.meta_path.insert(0, Finder())
from ascend.look import look
from ascend.machine import Machine
print({mark!r} + json.dumps(look(Machine(), {disks!r})))
"""
# Judging stays here.
_SENT = ("__init__", "hccn", "look", "look_npu", "machine", "npu_smi", "versions")


@dataclass(frozen=True)
class Seen:
    """What came of asking one host.

    Attributes:
        look: What it saw; None if there is nothing.
        reason: Why there is nothing.
    """

    look: dict[str, Any] | None
    reason: str = ""


def command(python: str, disks: Sequence[str]) -> str:
    """A shell command that looks at the machine it runs on and prints one marked line."""
    folder = Path(repro.hosts.ascend.__file__).parent
    names = {name: "ascend" if name == "__init__" else f"ascend.{name}" for name in _SENT}
    sources = {module: (folder / f"{name}.py").read_text(encoding="utf-8") for name, module in names.items()}
    script = _SCRIPT.format(sources=sources, mark=MARK, disks=list(disks))
    packed = base64.b64encode(zlib.compress(script.encode(), 9)).decode()
    code = f"import base64, zlib; exec(zlib.decompress(base64.b64decode({packed!r})))"
    return f"{shlex.quote(python)} -c {shlex.quote(code)}"


def ask(hosts: Sequence[Host], limits: Limits, told: Callable[[str], None] | None = None) -> dict[str, Seen]:
    """Look at every host, all at once; each gives a look or a reason, in the order of the inventory.

    Args:
        hosts: Which.
        limits: Deadlines.
        told: Called with each host's name as its answer comes.
    """
    found: dict[str, Seen] = {}

    def take(result: fanout.HostResult) -> None:
        # Its own time began with connecting; both ends bound the skew.
        ended = time.time()
        found[result.host] = read(result, ended - result.seconds, ended)
        if told:
            told(result.host)

    groups: dict[str, list[Host]] = {}
    for host in hosts:
        if host.local:
            take(_here(host))
        else:
            groups.setdefault(_python(host), []).append(host)
    results = [
        result for python, some in groups.items() for result in fanout.run(some, command(python, DISKS), limits, take)
    ]
    for result in results:
        if result.same_as:
            found[result.host] = Seen(None, f"the same host as {result.same_as}, see there")
    return {host.name: found[host.name] for host in hosts}


def _python(host: Host) -> str:
    named = str(host.variables.get("ansible_python_interpreter") or "python3")
    return "python3" if named.startswith("auto") else named


def _here(host: Host) -> fanout.HostResult:
    began = time.monotonic()
    done = subprocess.run(
        ["sh", "-c", command("python3", DISKS)], capture_output=True, text=True, check=False, timeout=LOOK_S
    )
    return fanout.HostResult(host.name, done.returncode, done.stdout, done.stderr, time.monotonic() - began)


def read(result: fanout.HostResult, began: float, ended: float) -> Seen:
    """The look in a host's output, whatever its shell prints around it, with bounds of its clock's skew."""
    if result.error is not None:
        return Seen(None, str(result.error))
    line = next((line for line in result.out.splitlines() if line.startswith(MARK)), None)
    if line is None:
        last = [*result.err.strip().splitlines(), *result.out.strip().splitlines()][-1:]
        return Seen(None, f"the look ended with {result.code}: {last[0] if last else 'no output'}")
    try:
        look: dict[str, Any] = json.loads(line.removeprefix(MARK))
    except ValueError as error:
        return Seen(None, f"its answer was cut: {error}")
    clock = look["clock"]
    clock["skew"] = [clock["ended"] - ended, clock["began"] - began]
    return Seen(look)
