"""report.md: the verdicts as a maintainer would want them in a report, with versions, controls and limits."""

from __future__ import annotations

import shlex
from typing import Any

from repro.report.wording import count_text, failing_rank, measure_text
from repro.review import Review


def render(review: Review, run: dict[str, Any]) -> str:
    """The report as Markdown text.

    Args:
        review: The judged run.
        run: run.json, for versions and the command.
    """
    issue = review.issue
    lines = [f"# Report {issue.number}: {issue.title}", "", f"<{issue.url}>", ""]
    lines += ["| fault | verdict | tier | subject | hits | measure [95%] |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {v.id} | **{v.verdict}** | {v.tier} | {v.subject} | {count_text(v)} | {measure_text(v.measure)} |"
        for v in review.verdicts
    ]
    titles = {fault.id: fault.title for fault in issue.faults}
    for verdict in review.verdicts:
        lines += ["", f"## {verdict.id} {titles[verdict.id]}: {verdict.verdict}", "", verdict.why, ""]
        lines += [f"- {control}" for control in verdict.controls]
        if verdict.limits:
            lines += ["", f"Limits: {verdict.limits}."]
        rank, tail = failing_rank(review, verdict)
        if rank:
            lines += ["", f"First failing rank: `{rank}`. Its last lines:", "", "```text", *tail, "```"]
    lines += ["", "## Environment", ""]
    lines += [f"- {name}: {value}" for name, value in _environment(run)]
    lines += ["", f"Command: `{shlex.join(run['argv'])}`", ""]
    if review.unread:
        lines += ["## Evidence that could not be used", "", *(f"- {why}" for why in review.unread.values()), ""]
    return "\n".join(lines)


def _environment(run: dict[str, Any]) -> list[tuple[str, object]]:
    host = dict(run["host"])
    packages = host.pop("packages")
    upstream = run.get("upstream")
    library = [("hyper-parallel", _library(upstream))] if upstream else []
    return [*library, *packages.items(), *host.items()]


def _library(upstream: dict[str, Any]) -> str:
    changed = f", changed: {', '.join(upstream['changed'])}" if upstream["dirty"] else ""
    return (
        f"{upstream['commit'] or 'no git commit'}, layout {upstream['layout']}, sources {upstream['digest']}{changed}"
    )
