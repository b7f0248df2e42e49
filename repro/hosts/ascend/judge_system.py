"""Judges what was seen of the system: container engine, users, clock, disks, core dumps, limits, ports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .faults import UNKNOWN
from .finding import Finding, bad, good, spans

Data = Mapping[str, Any]
GIB = 1 << 30


def _engine(look: Data, _wanted: Data) -> Iterator[Finding]:
    engine = look["engine"]
    if engine["daemon_problem"]:
        yield bad("engine.json", engine["daemon_problem"])
    if engine["path"] is None:
        yield bad("engine.none", engine["problem"])
    elif engine["problem"]:
        denied = "permission denied" in engine["problem"].lower()
        yield bad("engine.denied", "permission denied") if denied else bad("engine.silent", engine["problem"])
    else:
        yield good("engine", f"docker {engine['version']}, default runtime {engine['default']}")
    if "ascend" in engine["runtimes"]:
        yield good("runtime", f"ascend, {'the default' if engine['default'] == 'ascend' else 'on request'}")
    elif engine["path"] is None or engine["problem"]:
        return  # an engine that says nothing says nothing of its runtimes either
    elif engine["ascend_runtime"]:
        yield bad("runtime.unused", f"runtimes: {', '.join(engine['runtimes']) or UNKNOWN}")
    else:
        yield bad("runtime.absent", f"runtimes: {', '.join(engine['runtimes']) or UNKNOWN}")


def _users(look: Data, _wanted: Data) -> Iterator[Finding]:
    users = look["users"]
    others = sorted(
        {name for name in (users["owner_of_1000"], users["group_of_1000"]) if name and name != "HwHiAiUser"}
    )
    if users["uid"] is None or users["gid"] is None:
        yield bad("users.none", "no user or group HwHiAiUser")
        if others:
            yield bad("users.taken", f"1000 is {', '.join(others)}")
        return
    if (users["uid"], users["gid"]) != (1000, 1000):
        yield bad("users.ids", f"{users['uid']}:{users['gid']}{'; 1000 is ' + ', '.join(others) if others else ''}")
    if not users["member"]:
        yield bad("users.group", f"{users['me']} is not in it")
    elif (users["uid"], users["gid"]) == (1000, 1000):
        yield good("users", f"HwHiAiUser 1000:1000, {users['me']} may use it")


def _clock(look: Data, wanted: Data) -> Iterator[Finding]:
    low, high = look["clock"].get("skew") or (None, None)
    service = {True: "a time service runs", None: "no time service seen", False: "not synchronised"}
    note = service[look["clock"]["synchronised"]]
    if low is None or high is None:
        yield bad("clock.unknown", f"{UNKNOWN}; {note}")
        return
    # The interval holds the true skew; a fault only if all of it is beyond the bound.
    least = 0.0 if low <= 0.0 <= high else min(abs(low), abs(high))
    seen = f"{low:+.1f} to {high:+.1f} s; {note}"
    key = "clock.far" if least > wanted["skew_fail_s"] else "clock.off" if least > wanted["skew_warn_s"] else ""
    yield bad(key, seen) if key else good("clock", seen)


def _rooms(look: Data, wanted: Data) -> Iterator[Finding]:
    for path, disk in look["disks"].items():
        if disk is None:
            yield bad("disk.unknown", f"{UNKNOWN}: {path}")
            continue
        free = disk["free"] / GIB
        seen = f"{path}: {free:.1f} of {disk['total'] / GIB:.1f} GiB free"
        if disk["inodes"] is not None and disk["inodes"] < 1000:  # noqa: PLR2004 -- one run's evidence
            yield bad("disk.full", f"{path}: {disk['inodes']} inodes free")
        elif free < wanted["disk_full_gib"]:
            yield bad("disk.full", seen)
        elif free < wanted["disk_low_gib"]:
            yield bad("disk.low", seen)
        else:
            yield good("disk", seen)
    shm = look["shm"]
    if shm is not None:
        seen = f"{shm['free'] / GIB:.1f} of {shm['total'] / GIB:.1f} GiB free"
        yield bad("shm.small", seen) if shm["free"] < wanted["shm_gib"] * GIB else good("shm", seen)


def _core(look: Data, _wanted: Data) -> Iterator[Finding]:
    pattern, (_, hard) = look["core_pattern"], look["limits"]["CORE"]
    if pattern is None:
        yield bad("core.unknown", UNKNOWN)
    elif not pattern.strip() or hard == 0:
        yield bad("core.off", "core_pattern is empty" if hard != 0 else "hard limit 0")
    elif pattern.startswith("|"):
        yield bad("core.pipe", pattern.strip())
    elif not pattern.startswith("/"):
        yield bad("core.relative", pattern.strip())
    else:
        yield good("core", pattern.strip())


def _limits(look: Data, wanted: Data) -> Iterator[Finding]:
    low = []
    for name, least in wanted["limits"].items():
        soft, _ = look["limits"][name]
        if soft is not None and soft < least:
            low.append(f"{name} {soft}, wanted {least}")
    yield bad("limits.low", "; ".join(low)) if low else good("limits", ", ".join(wanted["limits"]))


def ports_in(text: str) -> list[tuple[int, int]]:
    """``1,5-7`` as ranges."""
    ranges = []
    for part in filter(None, (word.strip() for word in text.split(","))):
        low, _, high = part.partition("-")
        if low.isdigit() and (high or low).isdigit():
            ranges.append((int(low), int(high or low)))
    return ranges


def _ports(look: Data, _wanted: Data) -> Iterator[Finding]:
    ports = look["ports"]
    if ports["taken"]:
        yield bad("ports.taken", f"{spans(ports['taken'])} listens")
    reserved = ports_in(ports["reserved"] or "")
    free = [port for port in range(60000, 60016) if not any(low <= port <= high for low, high in reserved)]
    bounds = [int(word) for word in ports["ephemeral"] if word.isdigit()]
    inside = [port for port in free if len(bounds) == 2 and bounds[0] <= port <= bounds[1]]  # noqa: PLR2004
    if len(bounds) != 2 or ports["reserved"] is None:  # noqa: PLR2004
        yield bad("ports.unknown", UNKNOWN)
    elif inside:
        yield bad("ports.unreserved", f"{spans(inside)}; reserved: {ports['reserved'] or 'none'}")
    elif not ports["taken"]:
        yield good("ports", f"60000-60015 {'reserved' if not free else 'outside the ephemeral range'}")


RULES = (_engine, _users, _clock, _rooms, _core, _limits, _ports)
