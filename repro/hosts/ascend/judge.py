"""Judges one machine's look: pure, from data to findings; what is not known is called unknown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import judge_npu, judge_system
from .finding import Finding

# What is wanted of a host unless a caller says otherwise; roles/preflight/defaults has the same names and values.
EXPECTED: dict[str, Any] = {
    "chip": None,
    "dies": 0,
    "disk_low_gib": 20,
    "disk_full_gib": 1,
    "shm_gib": 8,
    # Idle dies of A2 and A3 hold about 2.9 to 3.4 GB.
    "hbm_idle_mb": 4608,
    "skew_warn_s": 1.0,
    "skew_fail_s": 30.0,
    "limits": {"NOFILE": 65536, "NPROC": 10240},
    "rows": [],
}


def judge(look: Mapping[str, Any], expected: Mapping[str, Any]) -> list[Finding]:
    """Every finding on one machine, in the order of the table.

    Args:
        look: What ``look.look`` returned.
        expected: What is wanted, over EXPECTED.
    """
    wanted = {**EXPECTED, **{key: value for key, value in expected.items() if value is not None}}
    return [finding for rule in (*judge_npu.RULES, *judge_system.RULES) for finding in rule(look, wanted)]
