"""The words that every rendering shares: a verdict's line, a measure with its interval, the last lines of a rank."""

from __future__ import annotations

import math

from repro.evidence.types import TrialEvidence
from repro.model import FaultVerdict, Measure, Verdict
from repro.review import Review

LAST_LINES = 12
# What MindSpore says at every start, and the list of modules that faulthandler appends to a crash.
NOTICES = ("[WARNING]", "[INFO]", "Extension modules:")


def measure_text(measure: Measure | None) -> str:
    """Such as ``104.2 B/call [98.1, 110.3]``; empty for no measure."""
    if measure is None:
        return ""
    if measure.unit == "of trials":
        return f"{measure.value:.0%} {measure.unit} [{measure.ci95[0]:.0%}, {measure.ci95[1]:.0%}]"
    low, high = (f"{end:,.2f}" if math.isfinite(end) else "open" for end in measure.ci95)
    value = f"{measure.value:,.2f}" if math.isfinite(measure.value) else "unknown"
    return f"{value} {measure.unit} [{low}, {high}]"


def count_text(verdict: FaultVerdict) -> str:
    """Such as ``5 of 5``; empty where nothing was run."""
    return f"{verdict.hits} of {verdict.trials}" if verdict.trials else ""


def failing_rank(review: Review, verdict: FaultVerdict) -> tuple[str, list[str]]:
    """Folder of the first failing rank and its last lines, without MindSpore's notices; empty if none failed."""
    if not verdict.first_failure:
        return "", []
    name, _, rank = verdict.first_failure.rpartition("/rank-")
    trial: TrialEvidence | None = review.trials.get(name)
    if trial is None or int(rank) not in trial.ranks:
        return verdict.first_failure, []
    said = trial.ranks[int(rank)].stderr_tail.strip().splitlines()
    lines = [line for line in said if line.strip() and not line.startswith(NOTICES)]
    return f"trials/{verdict.first_failure}", lines[-LAST_LINES:]


COLOUR = {
    Verdict.REPRODUCED: "bold red",
    Verdict.NOT_REPRODUCED: "green",
    Verdict.BOUNDED: "green",
    Verdict.FIXED: "bold green",
    Verdict.NOT_FIXED: "bold red",
    Verdict.INCONCLUSIVE: "yellow",
    Verdict.INFRA_ERROR: "bold yellow",
    Verdict.UNSUPPORTED: "cyan",
}
