"""Version files of driver, firmware and CANN, and whether they fit each other and the table of known rows."""

from __future__ import annotations

import re
from typing import Any

Version = tuple[int, ...]
_NUMBER = re.compile(r"^(\d+)\.(\d+)(?:\.(\d+))?(?:\.?(?:rc|RC|beta|alpha)\.?(\d*))?((?:\.\d+)*)", re.IGNORECASE)
_BASELINE = re.compile(r"V\d+R\d+C(\d+)|^C(\d+)$")
_BRACKETS = re.compile(r"\[([^\]]*)\]")
RELEASE = 999  # a release comes after every candidate of the same number


def parse_keys(text: str) -> dict[str, str]:
    """``key=value`` lines; the last of a key wins, as when a shell reads the file."""
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line and not line.lstrip().startswith("#"))
    return {key.strip(): value.strip().strip('"') for key, _, value in pairs}


def number(text: str | None) -> Version | None:
    """Something that sorts: 26.0.RC1 < 26.0.0 < 26.1.0; None if it is no version."""
    match = _NUMBER.match((text or "").strip())
    if match is None:
        return None
    major, minor, patch, candidate, rest = match.groups()
    marks = re.search(r"rc|beta|alpha", text or "", re.IGNORECASE)
    tail = tuple(int(word) for word in rest.split(".") if word)
    return (int(major), int(minor), int(patch or 0), int(candidate or 0) if marks else RELEASE, *tail)


def brackets(text: str | None) -> list[list[str]]:
    """``[a,b],[c]`` as lists of words."""
    return [[word.strip() for word in inside.split(",")] for inside in _BRACKETS.findall(text or "")]


def dotted(text: str) -> Version | None:
    """Plain numbers of a firmware version: 7.5.0.1.129."""
    words = text.strip().split(".")
    return tuple(int(word) for word in words) if all(word.isdigit() for word in words) else None


def firmware_in_driver(driver: dict[str, str], firmware: str | None) -> bool | None:
    """Whether the firmware lies in a range of the driver's ``compatible_version_fw``; None if either is unreadable."""
    wanted, ranges = dotted(firmware or ""), brackets(driver.get("compatible_version_fw"))
    bounds = [(dotted(pair[0]), dotted(pair[1])) for pair in ranges if len(pair) == 2]  # noqa: PLR2004 -- low, high
    if wanted is None or not bounds or len(bounds) != len(ranges):
        return None
    answers = []
    for low, high in bounds:
        if low is None or high is None:
            return None
        # 7.7.99 stands for the whole of 7.7: compare as many numbers as the bound has.
        answers.append(low <= wanted[: len(low)] and wanted[: len(high)] <= high)
    return any(answers)


def driver_in_firmware(firmware: dict[str, str], driver: str | None) -> bool | None:
    """Whether the driver's version begins as the firmware's ``compatible_version_drv`` lists it."""
    groups = brackets(firmware.get("compatible_version_drv"))
    if not driver or not groups:
        return None
    for group in groups:
        for word in group:
            stem = word.rstrip(".")
            if stem and (driver == stem or driver.lower().startswith(f"{stem}.".lower())):
                return True
    return False


def baseline(text: str | None) -> int | None:
    """The nn of V100R001Cnn."""
    match = _BASELINE.search(text or "")
    return int(match.group(1) or match.group(2)) if match else None


def _baselines(text: str | None) -> list[int]:
    return [found for group in brackets(text) for word in group if (found := baseline(word)) is not None]


def cann_in_driver(driver: dict[str, str], cann: dict[str, str]) -> bool | None:
    """Whether driver and CANN name each other's baseline; None if neither has a list and a baseline to compare."""
    of_driver, of_cann = baseline(driver.get("Innerversion")), baseline(cann.get("innerversion"))
    theirs, ours = _baselines(driver.get("compatible_version")), _baselines(cann.get("compatible_version"))
    if of_driver is not None and of_driver == of_cann:
        return True
    answers = [of_cann in theirs] if of_cann is not None and theirs else []
    answers += [of_driver in ours] if of_driver is not None and ours else []
    return any(answers) if answers else None


def same(seen: str | None, wanted: str) -> bool | None:
    """Whether two versions are the same release; the row's may leave out its last number. None if unreadable."""
    mine, row = number(seen), number(wanted)
    return None if mine is None or row is None else mine[:4] == row[:4]


def row_for(rows: list[dict[str, Any]], cann: str | None) -> dict[str, Any] | None:
    """The known row of this CANN."""
    return next((row for row in rows if same(cann, str(row.get("cann"))) is True), None)
