"""Reads what hccn_tool prints of a die's network port, and /etc/hccn.conf."""

from __future__ import annotations

import re
from typing import Any

BUSY = "hccn_tool is busy"
_LINK = re.compile(r"link status:\s*(\S+)", re.IGNORECASE)
_IP = re.compile(r"ipaddr:\s*(\S+)", re.IGNORECASE)
_MASK = re.compile(r"netmask:\s*(\S+)", re.IGNORECASE)
_HEALTH = re.compile(r"net health status:\s*(.+?)\s*$", re.IGNORECASE | re.MULTILINE)
_TLS = re.compile(r"\btls switch\s*\[\s*([01])\s*\]", re.IGNORECASE)
_CONF = re.compile(r"^\s*(address|netmask|gateway|netdetect)_(\d+)\s*=\s*(\S+)\s*$")


def parse_link(text: str) -> str | None:
    """``UP`` or ``DOWN``; None if neither is said."""
    match = _LINK.search(text)
    word = match.group(1).upper() if match else ""
    return word if word in ("UP", "DOWN") else None


def parse_ip(text: str) -> dict[str, str | None]:
    """Address and netmask; None where not said."""
    address, mask = _IP.search(text), _MASK.search(text)
    return {"address": address.group(1) if address else None, "netmask": mask.group(1) if mask else None}


def parse_net_health(text: str) -> str | None:
    """The word the tool gives; ``Init`` is no fault where no detection address is set."""
    match = _HEALTH.search(text)
    return match.group(1) if match else None


def parse_tls(text: str) -> bool | None:
    """Whether TLS is on; None unless exactly one switch is printed."""
    switches = set(_TLS.findall(text))
    return switches == {"1"} if len(switches) == 1 else None


def parse_conf(text: str) -> dict[str, dict[str, str]]:
    """``/etc/hccn.conf``: die -> address, netmask, gateway, netdetect."""
    dies: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        match = _CONF.match(line)
        if match:
            dies.setdefault(match.group(2), {})[match.group(1)] = match.group(3)
    return dies


# Argument -> where the answer goes in a die's record, and its reader.
QUESTIONS: tuple[tuple[str, str, Any], ...] = (
    ("-link", "link", parse_link),
    ("-ip", "ip", parse_ip),
    ("-net_health", "net_health", parse_net_health),
    ("-tls", "tls", parse_tls),
)
