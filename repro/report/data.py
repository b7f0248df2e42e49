"""A reviewed run as the JSON object of verdict.json; its schema lies beside this file."""

from __future__ import annotations

import math
from typing import Any

from repro.model import FaultVerdict
from repro.review import Review


def to_json(review: Review) -> dict[str, Any]:
    """The verdicts as plain JSON data."""
    return {
        "schema_version": 1,
        "run": review.run,
        "issue": review.issue.number,
        "faults": [_fault(verdict) for verdict in review.verdicts],
    }


def _fault(verdict: FaultVerdict) -> dict[str, Any]:
    data: dict[str, Any] = {
        "id": verdict.id,
        "verdict": verdict.verdict.value,
        "tier": verdict.tier.value,
        "subject": verdict.subject.value,
        "trials": verdict.trials,
        "hits": verdict.hits,
    }
    if verdict.measure is not None:
        measure = verdict.measure
        data["measure"] = {
            "name": measure.name,
            "value": _number(measure.value),
            "ci95": [_number(end) for end in measure.ci95],
            "unit": measure.unit,
        }
    data |= {"why": verdict.why, "limits": verdict.limits, "controls": list(verdict.controls)}
    if verdict.first_failure:
        data["first_failure"] = verdict.first_failure
    return data


def _number(value: float) -> float | None:
    # JSON has no infinity; an open end of an interval is null.
    return round(value, 4) if math.isfinite(value) else None
