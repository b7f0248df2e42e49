"""Looks at a machine's NPUs: device nodes, npu-smi, hccn_tool, and the version files of driver, firmware and CANN."""

from __future__ import annotations

import os
import re
from typing import Any

from . import hccn, npu_smi, versions
from .machine import BUSY, MISSING, TOO_LONG, Machine

ASCEND = "/usr/local/Ascend"
SHARED_NODES = ("davinci_manager", "devmm_svm", "hisi_hdc")
TOOL_S = 30.0
_BUSY_TRIES = 3
_DIE = re.compile(r"/dev/davinci(\d+)$")


def devices(machine: Machine) -> dict[str, Any]:
    """Numbers of the /dev/davinciN nodes, shared nodes that are missing, and nodes this user may not open."""
    nodes = {int(match.group(1)): path for path in machine.glob("/dev/davinci*") if (match := _DIE.search(path))}
    missing = [name for name in SHARED_NODES if not os.path.exists(machine.at(f"/dev/{name}"))]
    closed = [number for number in sorted(nodes) if not os.access(machine.at(nodes[number]), os.R_OK | os.W_OK)]
    return {"dies": sorted(nodes), "missing": missing if nodes else list(SHARED_NODES), "closed": closed}


def smi(machine: Machine) -> dict[str, Any]:
    """Everything asked of npu-smi, one call after the other: the table, the mapping, and of each NPU board and ECC."""
    path = machine.program("npu-smi")
    found: dict[str, Any] = {"path": path, "info": None, "mapping": [], "boards": {}, "ecc": {}, "problem": ""}
    if path is None:
        return dict(found, problem="npu-smi is not installed")
    code, text = machine.run([path, "info"], TOOL_S, alone=True)
    if code in (BUSY, MISSING, TOO_LONG):
        return dict(found, problem=text)
    info = npu_smi.parse_info(text)
    found["info"] = info
    if info["layout"] == "unknown":
        # Only the reason, not a whole page; the page stays on the host, one command away.
        return dict(found, problem=info["why"] if code == 0 else f"{info['why']} (npu-smi ended with {code})")
    code, text = machine.run([path, "info", "-m"], TOOL_S, alone=True)
    found["mapping"] = npu_smi.parse_mapping(text) if code == 0 else []
    for npu in sorted({die["npu"] for die in info["dies"]}):
        for kind, read, into in (("board", npu_smi.parse_board, "boards"), ("ecc", npu_smi.parse_ecc, "ecc")):
            code, text = machine.run([path, "info", "-t", kind, "-i", str(npu)], TOOL_S, alone=True)
            found[into][str(npu)] = read(text) if code == 0 else None
    # JSON has no numbers as keys: the same shape before and after a journey.
    for npu, chips in found["ecc"].items():
        found["ecc"][npu] = None if chips is None else {str(chip): counters for chip, counters in chips.items()}
    return found


def network(machine: Machine, numbers: list[int]) -> dict[str, Any]:
    """What hccn_tool says of each die's port, and /etc/hccn.conf."""
    path = machine.program("hccn_tool", f"{ASCEND}/driver/tools")
    conf = machine.read("/etc/hccn.conf")
    found: dict[str, Any] = {"path": path, "dies": {}, "problem": "", "conf": hccn.parse_conf(conf or "")}
    if path is None:
        return dict(found, problem="hccn_tool is not installed" if numbers else "")
    for number in numbers:
        die: dict[str, Any] = {"problem": ""}
        for argument, key, read in hccn.QUESTIONS:
            code, text = _ask(machine, [path, "-i", str(number), argument, "-g"])
            die[key] = read(text)
            if code != 0 and not die["problem"]:
                die["problem"] = (
                    f"{argument}: {text.strip().splitlines()[-1] if text.strip() else f'ended with {code}'}"
                )
            if code != 0 and _refused(text):
                return dict(found, problem=f"hccn_tool: {text.strip()}", dies={})
        found["dies"][str(number)] = die
    return found


def _refused(text: str) -> bool:
    """It says so once; asking for every die would only say it more often."""
    words = text.lower()
    return "permission" in words or "root" in words or "not permitted" in words


def _ask(machine: Machine, command: list[str]) -> tuple[int, str]:
    for _ in range(_BUSY_TRIES):
        code, text = machine.run(command, TOOL_S, alone=True)
        if hccn.BUSY not in text:
            break
    return code, text


def _info(machine: Machine, path: str) -> dict[str, str] | None:
    text = machine.read(path)
    return None if text is None else versions.parse_keys(text)


def installed(machine: Machine) -> dict[str, Any]:
    """The version files of driver, firmware and every CANN, and how the driver was installed; None where missing."""
    cann = []
    roots = [f"{ASCEND}/cann", *reversed(machine.glob(f"{ASCEND}/cann-*")), f"{ASCEND}/ascend-toolkit/latest"]
    seen = set()
    for root in roots:
        real = os.path.realpath(machine.at(root))
        if real in seen or not os.path.isdir(real):
            continue
        seen.add(real)
        for pattern in ("*-linux/ascend_toolkit_install.info", "ascend_toolkit_install.info", "toolkit/version.info"):
            path = next(iter(machine.glob(f"{root}/{pattern}")), None)
            keys = _info(machine, path) if path else None
            version = (keys or {}).get("version") or (keys or {}).get("Version")
            if keys and version:
                cann.append({"root": root, "version": version, "keys": keys})
                break
    return {
        "driver": _info(machine, f"{ASCEND}/driver/version.info"),
        "firmware": _info(machine, f"{ASCEND}/firmware/version.info"),
        "install": _info(machine, "/etc/ascend_install.info"),
        "cann": cann,
    }
