"""Finds the issue folders and reads issue.yaml strictly: every mistake names file, line and key."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from repro.errors import UsageError
from repro.model import (
    Ablation,
    Arm,
    Beside,
    Case,
    CeilingOracle,
    CrashOracle,
    ExceptionOracle,
    Fault,
    GrowthOracle,
    Issue,
    Launcher,
    Matrix,
    MatrixColumn,
    MatrixOnUpstream,
    MatrixRow,
    NumericOracle,
    Oracle,
    Phase,
    Subject,
    Tier,
    Topology,
    Upstream,
)
from repro.yaml_lines import Marks, Step, parse_with_lines, read

BUILT_IN = Path(__file__).parent / "issues"
SCHEMA = BUILT_IN / "issue.schema.json"
FILE_NAME = "issue.yaml"
# Folders of the user's own issues, separated like PATH; they come before the built-in ones.
SEARCH_VARIABLE = "HYPER_REPRO_ISSUES"


def folders() -> list[Path]:
    """Every issue folder, the user's own first."""
    extra = [Path(entry) for entry in os.environ.get(SEARCH_VARIABLE, "").split(os.pathsep) if entry]
    found: dict[str, Path] = {}
    for root in [*extra, BUILT_IN]:
        if not root.is_dir():
            raise UsageError(f"{SEARCH_VARIABLE}: {root} is not a folder", "name folders that hold issue folders")
        for path in sorted(root.glob(f"*/{FILE_NAME}")):
            found.setdefault(path.parent.name, path.parent)
    return list(found.values())


def load_all() -> list[Issue]:
    """All issues, by number.

    Raises:
        UsageError: One of the files has a mistake.
    """
    return sorted((load(folder) for folder in folders()), key=lambda issue: issue.number)


def find(number: int) -> Issue:
    """The issue with this number.

    Raises:
        UsageError: There is none, or its file has a mistake.
    """
    for folder in folders():
        if folder.name == str(number):
            return load(folder)
    known = ", ".join(sorted(folder.name for folder in folders()))
    raise UsageError(f"there is no issue {number}", f"known are {known}; see `repro list`")


def load(folder: Path) -> Issue:
    """Read and check one issue folder.

    Raises:
        UsageError: The first mistake, with file, line and key.
    """
    path = folder / FILE_NAME
    issue = parse(path, read(path), folder)
    if folder.name != str(issue.number):
        raise UsageError(f"{path}: issue: {issue.number} stands in a folder named {folder.name}; name them alike")
    return issue


def parse(path: Path, text: str, folder: Path | None) -> Issue:
    """Check the text of an issue file.

    Args:
        path: Where the text is from, for messages.
        text: YAML.
        folder: Where its programs are; None to judge a finished run, which needs none.

    Raises:
        UsageError: The first mistake, with file, line and key.
    """
    data, marks = parse_with_lines(path, text)
    _check_schema(data, marks)
    digest = hashlib.sha256(text.encode())
    for program in sorted(folder.glob("*.py")) if folder else ():
        digest.update(program.read_bytes())
    faults = tuple(_fault(fault, ("faults", i), marks, folder) for i, fault in enumerate(data["faults"]))
    matrix = _matrix(data["matrix"], marks, folder, [fault.id for fault in faults]) if "matrix" in data else None
    issue = Issue(data["issue"], data["title"], data["url"], faults, str(folder or ""), digest.hexdigest(), matrix)
    _check_meaning(issue, marks)
    return issue


@cache
def _validator() -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))


def _check_schema(data: Any, marks: Marks) -> None:
    from jsonschema.exceptions import relevance

    errors = list(_validator().iter_errors(data))
    if not errors:
        return
    # A mistyped key is also a missing one; what was typed says more.
    error = next((each for each in errors if each.validator == "additionalProperties"), max(errors, key=relevance))
    while error.context:
        error = max(error.context, key=relevance)
    steps = list(error.absolute_path)
    if error.validator == "additionalProperties":
        unknown = next(key for key in error.instance if key not in error.schema.get("properties", {}))
        raise marks.error([*steps, unknown], f"unknown key; known are {', '.join(error.schema['properties'])}")
    raise marks.error(steps, error.message)


def _oracle(data: Mapping[str, Any]) -> Oracle:
    values = {key: value for key, value in data.items() if key != "kind"}
    match data["kind"]:
        case "exception":
            return ExceptionOracle(**{**values, "frames": tuple(values.get("frames", ()))})
        case "numeric":
            return NumericOracle()
        case "crash":
            if "phases" in values:
                values["phases"] = tuple(Phase(phase) for phase in values["phases"])
            if "signals" in values:
                values["signals"] = tuple(values["signals"])
            return CrashOracle(**values)
        case "growth":
            beside = {role: Beside(**more) for role, more in values.pop("beside", {}).items()}
            return GrowthOracle(**values, beside=beside)
        case _:
            return CeilingOracle(**values)


def _case(data: Mapping[str, Any], steps: tuple[Step, ...], marks: Marks, folder: Path | None) -> Case:
    _check_program(data["program"], steps, marks, folder)
    topology = _topology(data.get("topology", ""), (*steps, "topology"), marks)
    changed = {
        "arm": Arm(data["arm"]),
        "tiers": tuple(Tier(tier) for tier in data["tiers"]),
        "launcher": Launcher(data.get("launcher", "plain")),
        "topology": topology,
        "ranks": tuple(data.get("ranks", ())),
        "subjects": tuple(Subject(subject) for subject in data.get("subjects", [Subject.DISTILLED])),
        "mends": tuple(data.get("mends", ())),
        "keep": tuple(data.get("keep", ())),
        "oracle": _oracle(data["oracle"]) if "oracle" in data else None,
    }
    case = Case(**{**data, **changed})
    if case.launcher is Launcher.PLAIN and topology.world > 1:
        raise marks.error([*steps, "topology"], f"launcher plain starts one rank, not {topology.world}")
    if case.launcher is Launcher.MSRUN and Tier.SIM in case.tiers:
        raise marks.error([*steps, "launcher"], "msrun does not start simulated ranks; use ranks")
    return case


def _fault(data: Mapping[str, Any], steps: tuple[Step, ...], marks: Marks, folder: Path | None) -> Fault:
    cases = tuple(_case(case, (*steps, "cases", i), marks, folder) for i, case in enumerate(data["cases"]))
    return Fault(
        id=data["id"],
        title=data["title"],
        oracle=_oracle(data["oracle"]),
        prefer=tuple(Tier(tier) for tier in data["prefer"]),
        cases=cases,
        on_request=data.get("on_request", False),
        ablation=_ablation(data["ablation"], cases, (*steps, "ablation"), marks) if "ablation" in data else None,
        limits=_limits(data),
        upstream=_upstream(data["upstream"]) if "upstream" in data else None,
    )


def _ablation(data: Mapping[str, Any], cases: Sequence[Case], steps: tuple[Step, ...], marks: Marks) -> Ablation:
    names = [case.name for case in cases if case.arm is Arm.UNFIXED]
    for i, name in enumerate(data["cases"]):
        if name not in names:
            raise marks.error([*steps, "cases", i], f"there is no unfixed case {name}; there are {', '.join(names)}")
    return Ablation(**{**data, "cases": tuple(data["cases"])})


def _limits(data: Mapping[str, Any]) -> dict[Tier, str]:
    return {Tier(tier): text for tier, text in data.get("limits", {}).items()}


def _upstream(data: Mapping[str, Any]) -> Upstream:
    driven_by = tuple(data.get("driven_by", ()))
    return Upstream(tuple(data["carried_by"]), data["lacks"], driven_by, _limits(data))


def _matrix(data: Mapping[str, Any], marks: Marks, folder: Path | None, faults: Sequence[str]) -> Matrix:
    _check_program(data["program"], ("matrix",), marks, folder)
    columns = []
    for i, column in enumerate(data["columns"]):
        if column["fault"] not in faults:
            raise marks.error(["matrix", "columns", i, "fault"], f"there is no fault {column['fault']}")
        columns.append(MatrixColumn(**{**column, "oracle": _oracle(column["oracle"])}))
    rows = []
    for i, row in enumerate(data["rows"]):
        at: tuple[Step, ...] = ("matrix", "rows", i)
        if len(row["reported"]) != len(columns):
            raise marks.error([*at, "reported"], f"{len(columns)} columns want as many answers")
        topology = _topology(row["topology"], (*at, "topology"), marks)
        rows.append(MatrixRow(row["name"], topology, tuple(row["reported"])))
    tiers = tuple(Tier(tier) for tier in data["tiers"])
    timeout_s = data.get("timeout_s", Case.timeout_s)
    upstream = None
    if "upstream" in data:
        more = data["upstream"]
        _check_program(more["program"], ("matrix", "upstream"), marks, folder)
        upstream = MatrixOnUpstream(tuple(Tier(tier) for tier in more["tiers"]), more["program"], more["says"])
    return Matrix(tiers, data["program"], timeout_s, tuple(columns), tuple(rows), data["says"], upstream)


def _check_program(name: str, steps: tuple[Step, ...], marks: Marks, folder: Path | None) -> None:
    if folder and not (folder / name).is_file():
        raise marks.error([*steps, "program"], f"there is no program {folder / name}")


def _topology(text: str, steps: tuple[Step, ...], marks: Marks) -> Topology:
    try:
        return Topology.parse(text)
    except ValueError as error:
        raise marks.error(steps, str(error)) from error


def _check_meaning(issue: Issue, marks: Marks) -> None:
    """What a schema cannot say: names that must be unique, controls that must be there."""
    seen: set[str] = set()
    for i, fault in enumerate(issue.faults):
        at = ("faults", i)
        if not fault.id.startswith(f"{issue.number}.") or fault.id in seen:
            raise marks.error([*at, "id"], f"{fault.id} must begin with {issue.number}. and be given once")
        seen.add(fault.id)
        names: set[str] = set()
        for j, case in enumerate(fault.cases):
            if case.name in names:
                raise marks.error([*at, "cases", j, "name"], f"{case.name} is given twice in fault {fault.id}")
            names.add(case.name)
            _check_series(fault, case, (*at, "cases", j), marks)
        for tier in fault.prefer:
            _check_arms(fault, Subject.DISTILLED, tier, at, marks)
        _check_upstream(fault, at, marks)


def _check_series(fault: Fault, case: Case, at: tuple[Step, ...], marks: Marks) -> None:
    oracle, roles = fault.oracle_of(case), set(case.series)
    measures = isinstance(oracle, GrowthOracle | CeilingOracle)
    if measures and oracle.kind != fault.oracle.kind:
        raise marks.error(
            [*at, "oracle"], f"{oracle.kind} cannot be judged in a fault whose oracle is {fault.oracle.kind}"
        )
    if isinstance(oracle, GrowthOracle) and not roles >= {"case", "clean", "planted"}:
        raise marks.error(at, "a growth verdict needs series: case, clean and planted")
    if isinstance(oracle, CeilingOracle) and roles != {"case"}:
        raise marks.error(at, "a ceiling verdict needs series: case alone; its controls are cases of their own")
    if not measures and roles:
        raise marks.error([*at, "series"], f"oracle {oracle.kind} does not measure; its program defines case()")
    if measures and case.calls < case.window:
        raise marks.error([*at, "calls"], f"{case.calls} calls do not fill a window of {case.window}")


def _check_upstream(fault: Fault, at: tuple[Step, ...], marks: Marks) -> None:
    cases = fault.cases_of(Subject.UPSTREAM)
    if cases and fault.upstream is None:
        raise marks.error([*at, "cases"], f"{fault.id} has cases for upstream, so it needs upstream: carried_by, lacks")
    for tier in fault.prefer:
        if any(tier in case.tiers for case in cases):
            _check_arms(fault, Subject.UPSTREAM, tier, at, marks)


def _check_arms(fault: Fault, subject: Subject, tier: Tier, at: tuple[Step, ...], marks: Marks) -> None:
    arms = {case.arm for case in fault.cases_of(subject) if tier in case.tiers}
    if Arm.UNFIXED not in arms:
        raise marks.error([*at, "prefer"], f"no unfixed case of {fault.id} runs on tier {tier}")
    if not isinstance(fault.oracle, GrowthOracle) and Arm.CLEAN not in arms:
        raise marks.error([*at, "cases"], f"{fault.id} has no clean control on tier {tier}")
    if isinstance(fault.oracle, CeilingOracle) and Arm.PLANTED not in arms:
        raise marks.error([*at, "cases"], f"{fault.id} has no planted control on tier {tier}")
