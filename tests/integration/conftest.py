"""Fixtures of the integration tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import Cli


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    """The command line in a folder of its own; whatever is left running when the test ends fails it."""
    command = Cli(tmp_path)
    yield command
    command.nothing_left()
