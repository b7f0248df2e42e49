"""Tries every line of operators.txt on the simulated tier: ``python -m repro.sim.operators [--write FILE]``.

Lines are tried many in one process, for speed. The process says which line it is at, so that a death is charged to that
line alone, and the rest goes on in a new process.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from repro.errors import ReproError
from repro.sim.environment import EXIT_UNSERVED, process_environment

TABLE = Path(__file__).with_name("operators.txt")
WORLD_SIZE = 8
TIMEOUT = 300  # seconds for one process; the line that it is at is charged


class Outcome(StrEnum):
    """What came of a line."""

    RUNS = "runs"
    CLEAR_ERROR = "clear error"
    UNSERVED = "unserved symbol"
    DIED = "died"


@dataclass(frozen=True)
class Usage:
    """A line of the table: Python code, its heading, and whether a clear error is what is expected."""

    group: str
    code: str
    expects_error: bool = False


@dataclass(frozen=True)
class Result:
    """What came of a usage, and the message that came with it."""

    usage: Usage
    outcome: Outcome
    message: str = ""

    @property
    def as_expected(self) -> bool:
        """Tells whether it ran, or ended in a clear error where one is expected."""
        return self.outcome == (Outcome.CLEAR_ERROR if self.usage.expects_error else Outcome.RUNS)


def parse(text: str) -> list[Usage]:
    """Returns the usages of a table; raises ValueError for a line before the first heading or one that stands twice."""
    usages: list[Usage] = []
    group = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]") and not _is_code(line):
            group = line[1:-1]
        elif line and not line.startswith("#"):
            usage = Usage(group, line.removeprefix("~ "), line.startswith("~ "))
            if not group or any(usage.code == other.code for other in usages):
                raise ValueError(f"{line!r} has no heading or stands twice")
            usages.append(usage)
    return usages


def _is_code(line: str) -> bool:
    """Tells a heading from a line of code that is a list: only code has a parenthesis."""
    return "(" in line


def try_all(usages: Sequence[Usage], processes: int = 2) -> list[Result]:
    """Tries usages on simulated rank 0 of a world of 8 and returns one result for each, in their order.

    Args:
        usages: What to try.
        processes: How many processes at a time.

    Raises:
        ReproError: The runtime can not be built, or a process can not even start MindSpore.
    """
    variables = {**process_environment(WORLD_SIZE, 0), "GLOG_v": "3"}
    shares = [list(range(start, len(usages), processes)) for start in range(processes)]
    with ThreadPoolExecutor(processes) as pool:
        done = [
            result
            for share in pool.map(lambda share: _try_share(usages, share, variables), shares)
            for result in share.items()
        ]
    return [result for _, result in sorted(done, key=lambda item: item[0])]


def _try_share(usages: Sequence[Usage], share: list[int], variables: dict[str, str]) -> dict[int, Result]:
    """Tries the usages with the given numbers, one process after the other until all are done."""
    results: dict[int, Result] = {}
    while left := [index for index in share if index not in results]:
        job = json.dumps([[index, usages[index].code] for index in left])
        with tempfile.TemporaryDirectory(prefix="hyper-repro-sim-") as folder:
            command = [sys.executable, "-m", "repro.sim.operators_rank"]
            try:
                done = subprocess.run(
                    command,
                    input=job,
                    capture_output=True,
                    text=True,
                    env=variables,
                    cwd=folder,
                    timeout=TIMEOUT,
                    check=False,
                )
                code, output, errors = done.returncode, done.stdout, done.stderr
            except subprocess.TimeoutExpired as timeout:
                code, errors = -9, f"no end within {TIMEOUT} s"
                output = timeout.stdout.decode() if isinstance(timeout.stdout, bytes) else timeout.stdout or ""
        current = None
        for line in output.splitlines():
            if line.startswith("{"):
                said = json.loads(line)
                current = said["index"]
                if "error" in said:
                    outcome = Outcome.CLEAR_ERROR if said["error"] else Outcome.RUNS
                    results[current] = Result(usages[current], outcome, said["error"])
                    current = None
        last_words = errors.strip().splitlines()[-1] if errors.strip() else ""
        if current is not None:
            results[current] = Result(usages[current], *_death(code, errors))
        elif left and left[0] not in results:
            raise ReproError(f"simulated rank did not start (exit code {code}): {last_words}")
        elif code != 0:  # every line said that it is done, and then the process died: the last one is charged
            last = max(index for index in left if index in results)
            results[last] = Result(usages[last], Outcome.DIED, f"after the last line: exit code {code}: {last_words}")
    return results


def _death(code: int, errors: str) -> tuple[Outcome, str]:
    """Says how a process ended that did not finish its line."""
    lines = [line for line in errors.splitlines() if line.strip()]
    if code == EXIT_UNSERVED:
        return Outcome.UNSERVED, next((line for line in reversed(lines) if "unserved CANN symbol" in line), "")
    cause = f"signal {-code}" if code < 0 else f"exit code {code}"
    return Outcome.DIED, f"{cause}: {lines[-1] if lines else ''}"


def markdown(results: Sequence[Result]) -> str:
    """Renders results as the page docs/operators-on-sim.md."""
    counts = {outcome: sum(result.outcome == outcome for result in results) for outcome in Outcome}
    lines = [
        "# Operators on the simulated tier",
        "",
        "Which usages of `mint`, `nn`, `ops` and `mint.distributed` run over the stand-in CANN libraries ",
        f"(MindSpore 2.10.0, world size {WORLD_SIZE}). *runs* means that the host code ran to the end; it says",
        "nothing about numbers. Written by",
        "`python -m repro.sim.operators --write docs/operators-on-sim.md` from `repro/sim/operators.txt`.",
        "",
        ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count) + f"; {len(results)} in all.",
    ]
    group = ""
    for result in results:
        if result.usage.group != group:
            group = result.usage.group
            lines += ["", f"## {group}", "", "| usage | result |", "|---|---|"]
        code = result.usage.code.replace("|", "\\|")
        message = f": {result.message}".replace("|", "\\|").replace("\n", " ") if result.message else ""
        lines.append(f"| `{code}` | {result.outcome}{message} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Tries the table, prints what is not as expected and writes the page; returns 1 if anything is not as expected."""
    parser = argparse.ArgumentParser(prog="python -m repro.sim.operators", description=__doc__)
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the results there as markdown")
    parser.add_argument("--table", type=Path, default=TABLE, help="the usages to try (default: %(default)s)")
    options = parser.parse_args(arguments)
    try:
        results = try_all(parse(options.table.read_text()))
    except ReproError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    if options.write:
        options.write.write_text(markdown(results))
    wrong = [result for result in results if not result.as_expected]
    for result in wrong:
        print(f"{result.outcome}: [{result.usage.group}] {result.usage.code}: {result.message}")
    print(f"{len(results)} usages, {len(results) - len(wrong)} as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
