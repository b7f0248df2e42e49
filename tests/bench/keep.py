"""Keeps what was measured: a file with a section a part, of which only those that were measured again are replaced."""

from __future__ import annotations

import re
from pathlib import Path

TITLE = "# Measurements"
_SECTION = re.compile(r"^## (.+)\n", re.MULTILINE)


def replace(file: Path, part: str, text: str) -> None:
    """Put a part's text into its section; every other section stays as it is, with its own date.

    Args:
        file: A Markdown file; made if it is not there.
        part: The section's heading.
        text: What goes below it.
    """
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    pieces = _SECTION.split(before)
    sections = {name.strip(): body.strip() for name, body in zip(pieces[1::2], pieces[2::2], strict=True)}
    sections[part] = text.strip()
    whole = [TITLE, *(f"## {name}\n\n{body}" for name, body in sections.items())]
    file.write_text("\n\n".join(whole) + "\n", encoding="utf-8")
