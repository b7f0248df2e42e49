"""One exit code for all verdicts of a run."""

from __future__ import annotations

from collections.abc import Sequence

from repro.model import CeilingOracle, FaultVerdict, Issue, Verdict

SHOWN, OPPOSITE, INCONCLUSIVE, INFRASTRUCTURE, UNSUPPORTED = 0, 1, 3, 4, 5

_CODES = {
    Verdict.REPRODUCED: SHOWN,
    Verdict.FIXED: SHOWN,
    Verdict.NOT_REPRODUCED: OPPOSITE,
    Verdict.NOT_FIXED: OPPOSITE,
    Verdict.BOUNDED: OPPOSITE,
    Verdict.INCONCLUSIVE: INCONCLUSIVE,
    Verdict.INFRA_ERROR: INFRASTRUCTURE,
    Verdict.UNSUPPORTED: UNSUPPORTED,
}
# What a caller must hear of first.
_ORDER = (INFRASTRUCTURE, INCONCLUSIVE, OPPOSITE, UNSUPPORTED, SHOWN)


def exit_code(verdicts: Sequence[FaultVerdict], issue: Issue) -> int:
    """The most pressing code among the verdicts.

    For a fault that is said to be bounded, BOUNDED is the verdict the command is for. No verdict at all shows nothing.
    """
    bounded = {fault.id for fault in issue.faults if isinstance(fault.oracle, CeilingOracle)}
    codes = set()
    for verdict in verdicts:
        if verdict.id in bounded and verdict.verdict in (Verdict.BOUNDED, Verdict.REPRODUCED):
            codes.add(SHOWN if verdict.verdict is Verdict.BOUNDED else OPPOSITE)
        else:
            codes.add(_CODES[verdict.verdict])
    return next((code for code in _ORDER if code in codes), INCONCLUSIVE)
