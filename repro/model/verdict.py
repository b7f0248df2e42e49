"""A judged fault, ready to print."""

from __future__ import annotations

from dataclasses import dataclass

from repro.model.words import Subject, Tier, Verdict


@dataclass(frozen=True)
class Measure:
    """A quantity with its 95% interval."""

    name: str
    value: float
    ci95: tuple[float, float]
    unit: str


@dataclass(frozen=True)
class FaultVerdict:
    """The judgement of one fault, ready to print."""

    id: str
    verdict: Verdict
    tier: Tier
    subject: Subject
    trials: int
    hits: int
    limits: str
    why: str
    measure: Measure | None = None
    controls: tuple[str, ...] = ()
    first_failure: str = ""
