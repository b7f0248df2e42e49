"""Reads what npu-smi prints, by the shape of its rows and not their width; an unknown layout is said, not guessed."""

from __future__ import annotations

import re
from typing import Any

# What the driver's library says when it cannot be used; from public reports, see docs/hosts.md.
ERRORS = {
    "-8020": "another container or process owns the device (dcmi -8020)",
    "-8005": "the driver's library could not start (dcmi -8005)",
}
HEALTH = ("OK", "Warning", "Alarm", "Critical", "UNKNOWN")
_BANNER = re.compile(r"npu-smi\s+(\S+)\s+Version:\s*(\S+)")
_BUS = re.compile(r"^(?:[0-9A-Fa-f]{4}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]$|^NA$")
_FIRST = re.compile(r"^(\d+)\s+(\S+)$")
_CHIP = re.compile(r"^(\d+)(?:\s+(\d+))?$")
_USAGE = re.compile(r"(\d+)\s*/\s*(\d+)")
_IDLE = re.compile(r"No running processes found in NPU\s+(\d+)")
_PAIR = re.compile(r"^(\d+)\s+(\d+)$")
_ERROR_CODE = re.compile(r"ret(?:urn)?(?:\s+(?:value|code))?\s*(?:is|=|:)?\s*(-\d{4})")
_LABELLED = re.compile(r"^\s*([^:|]+?)\s*:\s*(.*?)\s*$")

DEVICE_CELLS = 3
PROCESS_CELLS = (4, 5)


def parse_info(text: str) -> dict[str, Any]:
    """The table of ``npu-smi info``.

    Returns:
        ``layout`` is ``"a2"`` (one die an NPU), ``"a3"`` (with Phy-ID) or ``"unknown"``; if unknown, ``why`` says which
        line was not understood and ``dies`` is empty. ``dies`` has npu, chip, phy, name, health, bus, hbm_used,
        hbm_total (MB, None where the tool prints none). ``processes`` has npu, chip, pid, name, memory. ``idle`` are
        the NPUs that the tool says have no process. ``version`` and ``driver`` are None where there is no banner.
    """
    found: dict[str, Any] = {"layout": "unknown", "why": "", "version": None, "driver": None}
    found.update(dies=[], processes=[], idle=[], warnings=[])
    code = _ERROR_CODE.search(text)
    if code:
        return dict(found, why=ERRORS.get(code.group(1), f"the driver's library returned {code.group(1)}"))
    banner = _BANNER.search(text)
    if banner:
        found["version"], found["driver"] = banner.group(1), banner.group(2)
    found["warnings"] = [line.strip() for line in text.splitlines() if line.strip().startswith("WARNING")]
    why = _rows(text, found)
    if not why and not found["dies"]:
        why = "no row of a die" if text.strip() else "no output"
    if not why and len({die["phy"] is None for die in found["dies"]}) > 1:
        why = "some dies have a Phy-ID and some have none"
    keys = [(die["npu"], die["chip"]) for die in found["dies"]]
    if not why and len(set(keys)) != len(keys):
        why = "one die is listed twice"
    if why:
        return dict(found, why=why, dies=[], processes=[], idle=[])
    return dict(found, layout="a2" if found["dies"][0]["phy"] is None else "a3")


def _rows(text: str, found: dict[str, Any]) -> str:
    """Fill in dies and processes; the reason if a row is not understood."""
    first: dict[str, Any] | None = None
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        idle = _IDLE.search(line)
        if idle:
            found["idle"].append(int(idle.group(1)))
        elif not line.lstrip().startswith("|") or not cells[0][:1].isdigit():
            if first is not None and line.lstrip().startswith(("|", "+")):
                return f"the second line of NPU {first['npu']} is missing"
        elif first is not None:
            die = _second(cells)
            if die is None:
                return f"not a chip's line: {line.strip()}"
            found["dies"].append(dict(first, **die))
            first = None
        elif len(cells) in PROCESS_CELLS and _PAIR.match(cells[0]):
            process = _process(cells)
            if process is None:
                return f"not a process's line: {line.strip()}"
            found["processes"].append(process)
        else:
            first = _first(cells)
            if first is None:
                return f"not an NPU's line: {line.strip()}"
    return f"cut after the first line of NPU {first['npu']}" if first else ""


def _first(cells: list[str]) -> dict[str, Any] | None:
    match = _FIRST.match(cells[0])
    if len(cells) != DEVICE_CELLS or match is None or not cells[1]:
        return None
    health = next((word for word in HEALTH if word.lower() == cells[1].lower()), None)
    return {"npu": int(match.group(1)), "name": match.group(2), "health": health or "unknown", "health_text": cells[1]}


def _second(cells: list[str]) -> dict[str, Any] | None:
    match = _CHIP.match(cells[0])
    if len(cells) != DEVICE_CELLS or match is None or not _BUS.match(cells[1]):
        return None
    usages = _USAGE.findall(cells[2])
    # The last pair is HBM; where it is the only one, or missing, nothing is said of HBM.
    used, total = (int(number) for number in usages[-1]) if len(usages) > 1 else (None, None)
    phy = int(match.group(2)) if match.group(2) else None
    return {"chip": int(match.group(1)), "phy": phy, "bus": cells[1], "hbm_used": used, "hbm_total": total}


def _process(cells: list[str]) -> dict[str, Any] | None:
    place, numbers = _PAIR.match(cells[0]), [cell for cell in cells[1:] if cell.isdigit()]
    if place is None or len(numbers) < 2 or not cells[1].isdigit() or not cells[-1].isdigit():  # noqa: PLR2004
        return None
    name = next((cell for cell in cells[2:-1] if not cell.isdigit()), "?")
    npu, chip = int(place.group(1)), int(place.group(2))
    return {"npu": npu, "chip": chip, "pid": int(cells[1]), "name": name, "memory": int(cells[-1])}


def parse_mapping(text: str) -> list[dict[str, int | None]]:
    """``npu-smi info -m``: npu, chip, logic and phy (None where there is no such column) of every die; MCUs left out.

    An unknown header gives an empty list.
    """
    lines = [line.split() for line in text.splitlines() if line.strip()]
    if not lines:
        return []
    header = " ".join(lines[0])
    columns = ["npu", "chip", "logic"]
    if re.fullmatch(r"NPU ID Chip ID Chip Logic ID Chip Phy-ID Chip Name", header):
        columns.append("phy")
    elif header != "NPU ID Chip ID Chip Logic ID Chip Name":
        return []
    dies = []
    for words in lines[1:]:
        if len(words) > len(columns) and all(word.isdigit() for word in words[: len(columns)]):
            die: dict[str, int | None] = {"phy": None}
            die.update(zip(columns, (int(word) for word in words)))
            dies.append(die)
    return dies


def parse_labelled(text: str) -> list[tuple[str, str]]:
    """``label : value`` lines, as of ``npu-smi info -t board`` and ``-t ecc``, in their order."""
    matches = (_LABELLED.match(line) for line in text.splitlines())
    return [(match.group(1), match.group(2)) for match in matches if match]


def parse_board(text: str) -> dict[str, str | None]:
    """Software (driver), firmware and the driver's own verdict on the two; None where not printed."""
    labels = dict(parse_labelled(text))
    names = {"driver": "Software Version", "firmware": "Firmware Version", "compatibility": "Compatibility"}
    return {key: labels.get(label) or None for key, label in names.items()}


def parse_ecc(text: str) -> dict[int, dict[str, int] | None]:
    """Chip -> counters of ``npu-smi info -t ecc``: double-bit errors and isolated pages; None if it has neither."""
    chips: dict[int, dict[str, int] | None] = {}
    counters: dict[str, int] = {}
    for label, value in parse_labelled(text):
        words = label.lower()
        if words == "chip id" and value.isdigit():
            chips[int(value)] = counters or None
            counters = {}
        elif value.isdigit() and "next-isolated" not in words and "aggregate" not in words:
            kind = "isolated_pages" if "isolated pages" in words else "double_bit" if "double bit" in words else ""
            if kind:
                counters[kind] = counters.get(kind, 0) + int(value)
    return chips
