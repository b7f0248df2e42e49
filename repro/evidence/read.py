"""Reading evidence back, from runs that are whole, cut or edited: what does not fit is named, never guessed."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from repro.errors import InfraError
from repro.evidence.layout import RankFolder, RunFolder, TrialFolder
from repro.evidence.types import RaisedError, RankEvidence, TrialEvidence, Window
from repro.model import Phase, TrialRecord
from repro.model.wants import Wants

TAIL = 16_000
_RUN_KEYS = {"run": str, "issue": int, "trials": dict, "faults": dict, "packages": dict, "argv": list, "host": dict}


def tail(path: Path, size: int = TAIL) -> str:
    """The last ``size`` bytes of a log as text; empty if there is none."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - size))
        return file.read().decode("utf-8", "replace")


def read_events(path: Path) -> tuple[Mapping[str, Any], ...]:
    """The events of a rank; a last line that a kill cut short is left out.

    Raises:
        InfraError: A line before the last is not JSON: the file was edited or the disk is bad.
    """
    if not path.exists():
        return ()
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    events = []
    for number, line in enumerate(lines, 1):
        try:
            event = json.loads(line or "{}")
        except json.JSONDecodeError as error:
            if number < len(lines):
                raise InfraError(
                    f"{path}:{number}: not JSON: {error.msg}", "the evidence was edited or damaged"
                ) from error
            break
        if not isinstance(event, dict):
            raise InfraError(f"{path}:{number}: not an event: {line[:80]}", "the evidence was edited or damaged")
        events += [event] if event else []
    return tuple(events)


def last_phase(path: Path) -> Phase:
    """The last phase that a rank entered, by its own marks.

    Lines that do not parse are passed over: the supervisor asks, and must be able to record a trial on a bad disk.
    """
    if not path.exists():
        return Phase.BEFORE_BODY
    phase = Phase.BEFORE_BODY
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        try:
            event = json.loads(line or "{}")
            phase = Phase(event["phase"]) if event.get("event") == "phase" else phase
        except (ValueError, KeyError, AttributeError, TypeError):
            continue
    return phase


def read_error(path: Path) -> RaisedError | None:
    """The exception that a rank wrote down, or None.

    Raises:
        InfraError: The file is there but does not parse.
    """
    if not path.exists():
        return None
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        frames = tuple((str(f), int(n), str(name)) for f, n, name in data["frames"])
        issued = tuple((str(f), int(n), str(name)) for f, n, name in data["issued_at"])
        return RaisedError(data["type"], data["message"], frames, issued)
    except (ValueError, KeyError, TypeError) as error:
        raise InfraError(f"{path}: not an error record: {error}", "the rank was cut while writing it") from error


def read_windows(path: Path) -> tuple[Window, ...]:
    """The windows of samples.csv; a last row that a kill cut short is left out.

    Raises:
        InfraError: A whole row does not parse.
    """
    if not path.exists():
        return ()
    # A number that was cut short is still a number, so a line counts only with its end.
    text = path.read_text(encoding="utf-8", errors="replace")
    rows = list(csv.DictReader(text[: text.rfind("\n") + 1].splitlines()))
    windows = []
    for number, row in enumerate(rows, 1):
        try:
            windows.append(_window(row))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise InfraError(
                f"{path}:{number + 1}: not a sample: {error}", "the evidence was edited or damaged"
            ) from error
    return tuple(windows)


def _window(row: Mapping[str, str]) -> Window:
    edges: dict[str, dict[str, float]] = {"start": {}, "end": {}}
    for column, cell in row.items():
        measure, _, edge = column.rpartition("_")
        if edge in edges and cell != "":
            edges[edge][measure] = float(cell)
    return Window(
        int(row["block"]), row["series"], int(row["calls"]), float(row["seconds"]), edges["start"], edges["end"]
    )


def read_wants(folder: TrialFolder) -> Wants:
    """What is wanted of this trial; nothing where the file is missing or not readable."""
    try:
        return Wants.from_json(json.loads(folder.wants.read_text(encoding="utf-8")))
    except (OSError, ValueError, AttributeError):
        return Wants()


def read_crash(path: Path) -> tuple[str, ...]:
    """The innermost functions of a rank that died of a signal; empty where there was no core.

    Raises:
        InfraError: The file is there but does not parse.
    """
    if not path.exists():
        return ()
    try:
        return tuple(str(name) for name in json.loads(path.read_text(encoding="utf-8"))["top"])
    except (ValueError, KeyError, TypeError) as error:
        raise InfraError(f"{path}: not an account of a crash: {error}", "the evidence was edited or damaged") from error


def read_rank(rank: int, folder: RankFolder) -> RankEvidence:
    """All that a rank left behind."""
    return RankEvidence(
        rank=rank,
        events=read_events(folder.events),
        windows=read_windows(folder.samples),
        error=read_error(folder.error),
        stderr_tail=tail(folder.stderr),
        stdout_tail=tail(folder.stdout),
        crashed_in=read_crash(folder.crash),
    )


def read_trial(folder: TrialFolder) -> TrialEvidence:
    """A finished trial.

    Raises:
        InfraError: Its record is missing or does not parse.
    """
    try:
        record = TrialRecord.from_json(json.loads(folder.record.read_text(encoding="utf-8")))
    except OSError as error:
        raise InfraError(
            f"{folder.record}: {error.strerror}", "this trial is not whole; run again to finish it"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise InfraError(
            f"{folder.record}: not a trial record: {error}",
            "it was edited or cut; delete the trial's folder and run again",
        ) from error
    scheduler = tail(folder.scheduler_log) or tail(folder.path / "msrun" / "scheduler.log")
    ranks = {outcome.rank: read_rank(outcome.rank, folder.rank(outcome.rank)) for outcome in record.ranks}
    return TrialEvidence(record, ranks, scheduler, tail(folder.launcher_log))


def read_run_json(folder: RunFolder) -> dict[str, Any]:
    """run.json of a run.

    Raises:
        InfraError: There is no such run, or the file is damaged or of another version.
    """
    try:
        data: dict[str, Any] = json.loads(folder.run.read_text(encoding="utf-8"))
    except OSError as error:
        raise InfraError(f"{folder.run}: {error.strerror}", "name a folder that `repro run` wrote") from error
    except ValueError as error:
        raise InfraError(f"{folder.run}: not JSON: {error}", "it was edited or cut; restore it or run again") from error
    if not isinstance(data, dict) or data.get("schema_version") != 1:
        raise InfraError(f"{folder.run}: not a run of schema_version 1", "use the version of hyper-repro that wrote it")
    for key, kind in _RUN_KEYS.items():
        if not isinstance(data.get(key), kind):
            raise InfraError(f"{folder.run}: {key} is missing or no {kind.__name__}", "it was edited; restore it")
    return data


def finished_trials(folder: RunFolder) -> dict[str, TrialFolder]:
    """Finished trials by folder name; unfinished ones carry a leading dot and are left out."""
    if not folder.trials.is_dir():
        return {}
    return {path.name: TrialFolder(path) for path in sorted(folder.trials.iterdir()) if not path.name.startswith(".")}
