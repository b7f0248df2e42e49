"""The terminal: progress with time left while trials run, then a table of faults and the first failing rank."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from repro.model import TrialRecord, TrialSpec
from repro.report.wording import COLOUR, count_text, failing_rank, measure_text
from repro.review import Review


class Watch:
    """Shows how a run gets on, on standard error: a bar in a terminal, a line a trial elsewhere.

    Args:
        total: How many trials the run has.
        done: How many of them were finished before.
        quiet: Show nothing.
    """

    def __init__(self, total: int, done: int, quiet: bool = False) -> None:
        self._console = Console(stderr=True, quiet=quiet)
        self._total = total
        self._done = done
        self._seconds: list[float] = []
        self._running: dict[str, float] = {}
        self._began = time.monotonic()
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Watch:
        if self._console.is_terminal and not self._console.quiet:
            columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
            self._bar = Progress(*columns, console=self._console, transient=True)
            self._task = self._bar.add_task("starting", total=self._total, completed=self._done)
            self._bar.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _tb: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, spec: TrialSpec, record: TrialRecord | None, problem: str) -> None:
        """Take note of a trial that started (no record, no problem), ended, or could not be run."""
        if record is None and not problem:
            self._running[spec.folder] = time.monotonic()
        else:
            self._done += 1
            took = time.monotonic() - self._running.pop(spec.folder, time.monotonic())
            self._seconds.append(took)
            self._say(spec, record, problem, took)
        if self._bar is not None and self._task is not None:
            names = ", ".join(self._running) or "judging"
            self._bar.update(self._task, completed=self._done, description=f"{self._left()}{names}")

    def say(self, text: str) -> None:
        """Print a line as it is, above the bar."""
        self._console.print(escape(text), highlight=False, soft_wrap=True)

    def _say(self, spec: TrialSpec, record: TrialRecord | None, problem: str, took: float) -> None:
        ended = problem or "every rank exited 0"
        if record is not None and record.first_failing is not None:
            first = next(outcome for outcome in record.ranks if outcome.rank == record.first_failing)
            ended = f"{first.label} {first.phase}: {first.reason}"
        elif record is not None and record.detail:
            ended = record.detail
        text = f"{self._done}/{self._total} {spec.folder} ({spec.tier}) {took:.1f} s: {ended}"
        if self._console.is_terminal:
            self._console.print(escape(text), highlight=False, overflow="ellipsis", no_wrap=True)
        else:
            self._console.print(escape(text), highlight=False, soft_wrap=True)

    def _left(self) -> str:
        done_here = len(self._seconds)
        if not done_here:
            return ""
        rate = (time.monotonic() - self._began) / done_here
        return f"about {rate * (self._total - self._done):.0f} s left; "


def render(review: Review, folder: str) -> None:
    """Print the table of faults and what a reader looks at next, on standard output."""
    # A pipe or a CI log has no width of its own; the table should not be folded at 80 there.
    console = Console(width=None if sys.stdout.isatty() else 150, highlight=False)
    table = Table(
        title=f"report {review.issue.number}: {escape(review.issue.title)}", title_justify="left", show_lines=True
    )
    for column in ("fault", "verdict", "tier", "hits", "measure [95%]", "why and what it rests on"):
        table.add_column(column, overflow="fold", no_wrap=column in ("fault", "verdict", "tier", "hits"))
    titles = {fault.id: fault.title for fault in review.issue.faults}
    for verdict in review.verdicts:
        lines = [f"[bold]{escape(titles[verdict.id])}[/]", escape(verdict.why)]
        lines += [f"[dim]{escape(control)}[/]" for control in verdict.controls]
        lines += [f"[italic]limits: {escape(verdict.limits)}[/]"] if verdict.limits else []
        state = f"[{COLOUR[verdict.verdict]}]{verdict.verdict}[/]"
        measure = escape(measure_text(verdict.measure))
        table.add_row(verdict.id, state, verdict.tier.value, count_text(verdict), measure, "\n".join(lines))
    console.print(table)
    for verdict in review.verdicts:
        rank, lines = failing_rank(review, verdict)
        if rank:
            console.print(f"\n[bold]{verdict.id}: first failing rank, {escape(rank)}[/], its last lines:")
            console.print(escape("\n".join(f"  {line}" for line in lines)), soft_wrap=True)
    console.print(f"\nevidence: {escape(folder)}   report: {escape(folder)}/report.md", soft_wrap=True)
