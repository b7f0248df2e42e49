"""Ranks that really leak: the native site is named, with the count and the size, in one table for all ranks."""

from __future__ import annotations

import csv
import re

from harness import Cli

TRIAL = "9003.2-case-0-unfixed-dp2"


def test_the_native_trace_names_the_leaking_site_of_every_rank(cli: Cli) -> None:
    done = cli.run("9003.2", "--memory")
    assert done.code == 1, done
    trial = cli.trial(TRIAL)
    table = (trial / "memory.md").read_text(encoding="utf-8")
    [row] = [line for line in table.splitlines() if "strdup" in line]
    assert "leak_a_copy" in row, "native and Python frames in one stack"
    # 300 copies of 1,001 bytes in each of two ranks.
    assert len(re.findall(r"\b300 of 1001 B", row)) == 2
    assert "600,600" in row
    for rank in (0, 1):
        folder = trial / f"rank-{rank}"
        assert (folder / "memray.bin").stat().st_size > 0
        assert "<malloc version=" in (folder / "malloc_info.xml").read_text(encoding="utf-8")
        rows = list(csv.DictReader((folder / "memory.csv").read_text(encoding="ascii").splitlines()))
        assert rows
        assert all(int(row["Rss"]) >= int(row["Anonymous"]) > 0 for row in rows)
    assert cli("judge", str(cli.out), "--json").out == done.out


def test_nothing_is_traced_unless_it_is_asked_for(cli: Cli) -> None:
    assert cli.run("9003.2").code == 1
    assert not list(cli.trial(TRIAL).rglob("mem*"))
