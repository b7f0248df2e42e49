"""One preflight for all: looks at the hosts of an inventory and judges them as the playbook does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from repro.errors import UsageError
from repro.hosts.ascend import across
from repro.hosts.ascend.finding import Finding
from repro.hosts.ask import Seen
from repro.hosts.inventory import Host

VERSIONS = Path("images") / "versions.yaml"


def rows(path: Path | None) -> list[dict[str, Any]]:
    """The table of versions that go together: of the file named, else of this checkout; empty if there is none.

    Raises:
        UsageError: The file that was named is not such a table.
    """
    usual = Path(__file__).resolve().parents[2] / VERSIONS
    file = path or (usual if usual.is_file() else None)
    if file is None:
        return []
    try:
        return across.compatibility_rows(yaml.safe_load(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise UsageError(f"{file}: {error}", "see images/versions.yaml") from error


def judge(
    hosts: Sequence[Host], seen: Mapping[str, Seen], table: list[dict[str, Any]]
) -> tuple[dict[str, list[Finding]], dict[str, Any]]:
    """Findings and looks of every host, in the inventory's order."""
    looks = {host.name: seen[host.name].look for host in hosts}
    expected = {host.name: {"chip": host.chip, "dies": host.dies or None, "rows": table} for host in hosts}
    reasons = {host.name: seen[host.name].reason for host in hosts}
    return across.judge_all(looks, expected, reasons), looks
