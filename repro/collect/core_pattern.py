"""Where the kernel puts the core of a process, from core_pattern: a file by whatever pattern, or a collector."""

from __future__ import annotations

import glob
import re
from dataclasses import dataclass
from pathlib import Path

PATTERN_FILE = Path("/proc/sys/kernel/core_pattern")
USES_PID_FILE = Path("/proc/sys/kernel/core_uses_pid")
# Collectors that are known, by the program that the kernel pipes into.
COLLECTORS = {"systemd-coredump": "coredumpctl", "apport": "apport", "abrt-hook-ccpp": "abrt"}


@dataclass(frozen=True)
class CorePattern:
    """``/proc/sys/kernel/core_pattern`` and ``core_uses_pid`` of a host.

    Attributes:
        text: The pattern; a leading ``|`` means that a program is given the core.
        uses_pid: Whether the kernel appends the pid where the pattern has none.
    """

    text: str
    uses_pid: bool = False

    @property
    def collector(self) -> str:
        """The program that takes the core; empty where the kernel writes a file."""
        return Path(self.text[1:].split()[0]).name if self.text.startswith("|") and self.text[1:].split() else ""

    @property
    def in_working_directory(self) -> bool:
        """True if the file goes where the process works, so that two in one folder may overwrite each other's."""
        return not self.collector and not self.text.startswith("/")

    def globs(self, pid: int, folder: Path) -> str:
        """A glob of the files that a process may have left.

        Args:
            pid: Of the process, in its own namespace; the other specifiers are not known here and match anything.
            folder: Where it worked.
        """
        parts = re.split(r"(%.?)", self.text)
        shown = [_specifier(part, pid) if part.startswith("%") else glob.escape(part) for part in parts]
        with_pid = "".join(shown) + (f".{pid}" if self.uses_pid and "%p" not in self.text else "")
        return with_pid if self.text.startswith("/") else f"{glob.escape(str(folder))}/{with_pid}"


def _specifier(text: str, pid: int) -> str:
    match text:
        case "%%":
            return "%"
        case "%p":
            return str(pid)
        case "%":  # at the very end; the kernel drops it
            return ""
        case _:
            return "*"


def of_this_host() -> CorePattern:
    """The pattern of the kernel that runs here, which in a container is the host's."""
    uses_pid = USES_PID_FILE.read_text(encoding="ascii").strip() != "0"
    return CorePattern(PATTERN_FILE.read_text(encoding="utf-8", errors="replace").strip(), uses_pid)
