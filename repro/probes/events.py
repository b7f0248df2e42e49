"""events.jsonl: one JSON object a line, written with a single os.write so that a crash never loses what was said."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from repro.model import Phase


class Events:
    """An append-only event log of one rank.

    The file descriptor is opened once and each line is one ``write`` call: after a SIGSEGV the lines are in the page
    cache, so the last phase that a rank reached is known even if the interpreter never got to flush anything.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._pid = os.getpid()

    def write(self, event: str, **values: Any) -> None:
        """Append an event with the time in seconds since the epoch.

        A forked child shares the descriptor but is not the rank: what it says is dropped, lest it move the phase.
        """
        if os.getpid() == self._pid:
            line = json.dumps({"t": time.time(), "event": event, **values}, ensure_ascii=False, default=str)
            os.write(self._descriptor, line.encode() + b"\n")

    def phase(self, phase: Phase) -> None:
        """Mark that the rank is about to enter a phase."""
        self.write("phase", phase=phase.value)
