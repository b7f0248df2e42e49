"""Which faults a version of hyper-parallel can have, and why not the others. Pure: told by the names it defines."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from repro.model import Fault, Issue, Subject

Has = Callable[[str], bool]
# The folders by which the layouts are told, newest first: what each version is called in messages.
LAYOUTS = (
    ("hyper_parallel/platform/mindspore/fully_shard/scheduler.py::MindSporeHSDPSchedulerV2", "later (fully_shard)"),
    ("hyper_parallel/platform/mindspore/hsdp/scheduler.py::MindSporeHSDPScheduler", "2026-03 (hsdp)"),
)


def layout(has: Has) -> str:
    """The name of the layout, or ``unknown``."""
    return next((name for sign, name in LAYOUTS if has(sign)), "unknown")


def lacks(issue: Issue, has: Has) -> dict[str, str]:
    """Why this version cannot be judged, for each fault of which that is so."""
    return {fault.id: why for fault in issue.faults if (why := _why_not(issue, fault, has))}


def why_not_there(issue: Issue, fault: str, has: Has) -> str:
    """Why this version cannot have the fault; empty if it can, or if nothing tells."""
    wanted = next((each.upstream for each in issue.faults if each.id == fault), None)
    if wanted is None or not wanted.carried_by or any(map(has, wanted.carried_by)):
        return ""
    return f"this version cannot have it: {wanted.lacks} (none of {_listed(wanted.carried_by)} is there)"


def _why_not(issue: Issue, fault: Fault, has: Has) -> str:
    wanted = fault.upstream
    if wanted is None:
        return "no case of it runs on hyper-parallel itself; `repro run` without --upstream shows it"
    if why := why_not_there(issue, fault.id, has):
        return why
    if missing := [name for name in wanted.driven_by if not has(name)]:
        return f"this version may have it, but the cases here cannot drive it: {_listed(missing)} is not there"
    if not fault.cases_of(Subject.UPSTREAM):
        return "this version may have it, but no case here drives it"
    return ""


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)
