"""Judges many machines beside each other: what must be alike, and what must not be twice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .finding import Finding, bad, good, spans
from .judge import judge

NOT_SEEN = "host.unreachable"


def judge_all(
    looks: Mapping[str, Mapping[str, Any] | None],
    expected: Mapping[str, Mapping[str, Any]],
    reasons: Mapping[str, str],
) -> dict[str, list[Finding]]:
    """Findings of every host, in the order of ``looks``.

    Args:
        looks: Host -> what was seen there, None if nothing was.
        expected: Host -> what is wanted of it.
        reasons: Host -> why nothing was seen.
    """
    findings = {
        host: judge(look, expected.get(host, {})) if look else [bad(NOT_SEEN, reasons.get(host, "no answer"))]
        for host, look in looks.items()
    }
    seen = {host: look for host, look in looks.items() if look}
    for host, more in _tls(seen) + _addresses(seen) + _alike(seen):
        findings[host].append(more)
    return findings


def _tls(looks: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, Finding]]:
    switches: dict[str, dict[bool | None, list[int]]] = {}
    for host, look in looks.items():
        for number, die in look["hccn"]["dies"].items():
            switches.setdefault(host, {}).setdefault(die["tls"], []).append(int(number))
    states = {state for of_host in switches.values() for state in of_host if state is not None}
    found = []
    for host, mine in switches.items():
        here = {state: dies for state, dies in mine.items() if state is not None}
        words = "; ".join(f"{'on' if state else 'off'} on die {spans(dies)}" for state, dies in sorted(here.items()))
        if len(here) > 1:
            found.append((host, bad("tls.mixed", words)))
        elif here and len(states) > 1:
            other = [name for name, its in switches.items() if not set(its) & set(here) - {None}]
            found.append(
                (host, bad("tls.mixed", f"{words}; otherwise on {', '.join(other) or 'a part of another host'}"))
            )
        elif here:
            found.append((host, good("tls", f"{'on' if True in here else 'off'} everywhere")))
    return found


def _addresses(looks: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, Finding]]:
    owners: dict[str, list[tuple[str, str]]] = {}
    for host, look in looks.items():
        for number, die in look["hccn"]["dies"].items():
            if die["ip"]["address"]:
                owners.setdefault(die["ip"]["address"], []).append((host, number))
    found = []
    for address, places in owners.items():
        if len(places) > 1:
            words = f"{address}: {', '.join(f'{host} die {number}' for host, number in places)}"
            found += [(host, bad("hccn.twice", words)) for host in dict.fromkeys(host for host, _ in places)]
    return found


def _alike(looks: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, Finding]]:
    found = []
    for key, fault in (("driver", "alike.driver"), ("cann", "alike.cann")):
        values: dict[str, list[str]] = {}
        for host, look in looks.items():
            files = look["versions"]
            driver = (files["driver"] or {}).get("package_version") or (files["driver"] or {}).get("Version")
            value = driver if key == "driver" else ", ".join(cann["version"] for cann in files["cann"])
            if value:
                values.setdefault(value, []).append(host)
        if len(values) > 1:
            # The ones that differ from the most are told, not everybody.
            most = max(values.values(), key=len)
            usual = next(value for value, hosts in values.items() if hosts is most)
            found += [
                (host, bad(fault, f"{value}, where {len(most)} of {sum(map(len, values.values()))} have {usual}"))
                for value, hosts in values.items()
                if hosts is not most
                for host in hosts
            ]
    return found


def compatibility_rows(data: Any) -> list[dict[str, Any]]:
    """The rows of images/versions.yaml, the default one first.

    Raises:
        ValueError: It has no such rows.
    """
    rows = data.get("rows") if isinstance(data, Mapping) else None
    if not isinstance(rows, list) or not all(
        isinstance(row, Mapping) and "cann" in row and "hdk" in row for row in rows
    ):
        raise ValueError("not a table of rows with cann and hdk")
    usual = str(data.get("default"))
    return sorted((dict(row) for row in rows), key=lambda row: str(row.get("mindspore")) != usual)
