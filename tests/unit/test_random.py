"""Made at random, from fixed seeds: no issue file, evidence or trial may end in anything but an answer or one line."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from made import case, checked, fault, raised, rank, said, trial

from repro import catalogue
from repro.errors import InfraError, UsageError
from repro.evidence.read import last_phase, read_error, read_events, read_windows
from repro.evidence.types import TrialEvidence
from repro.judge.fault import judge_fault
from repro.judge.trial import Kind, judge_trial
from repro.model import Arm, CrashOracle, Ending, NumericOracle, Oracle, Phase, RankOutcome, Tier, Topology, Verdict

ISSUES = Path(__file__).parents[1] / "data" / "issues"
RECORDED = Path(__file__).parents[1] / "data" / "recorded"
PIECES = [
    b"",
    b"\x00",
    b"\xff",
    b"\n",
    b"  ",
    b": ",
    b"- ",
    b"[",
    b"}",
    b"&a ",
    b"*a",
    b"!!map",
    b"<<: ",
    b"0x9",
    b"~",
    b".nan",
]


def spoilt(rng: random.Random, text: bytes) -> bytes:
    """The text with a stretch of it lost, doubled, or replaced."""
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(text) + 1)
        to = min(len(text), at + rng.choice([0, 1, 1, 5, 40]))
        text = text[:at] + rng.choice([*PIECES, text[at:to] * 2]) + text[to:]
    return text


def refusal(read: Callable[[Path], object], path: Path) -> str | None:
    """The one line with which a file is refused; None if it is read."""
    try:
        read(path)
    except (UsageError, InfraError) as error:
        text = str(error)
    else:
        return None
    assert "\n" not in text
    return text


@pytest.mark.parametrize("seed", range(8))
def test_any_issue_file_is_read_or_refused_in_one_line(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    folder = tmp_path / "9001"
    shutil.copytree(ISSUES / "9001", folder)
    text = (folder / "issue.yaml").read_bytes()
    refused = 0
    for _ in range(60):
        (folder / "issue.yaml").write_bytes(spoilt(rng, text))
        said_of_it = refusal(catalogue.load, folder)
        refused += said_of_it is not None
        assert said_of_it is None or said_of_it.startswith(str(folder / "issue.yaml"))
    assert refused


@pytest.mark.parametrize("seed", range(8))
def test_any_evidence_is_read_or_refused_in_one_line(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    events = b"".join(
        json.dumps({"t": 1.5, "event": "phase", "phase": phase.value}).encode() + b"\n" for phase in Phase
    )
    error = json.dumps({"type": "E", "message": "m", "frames": [["f", 1, "g"]], "issued_at": []}).encode()
    samples = (RECORDED / "collective_on_cpu.csv").read_bytes()[:600]
    path = tmp_path / "file"
    for text, reader in ((events, read_events), (error, read_error), (samples, read_windows), (events, last_phase)):
        for _ in range(60):
            path.write_bytes(spoilt(rng, text))
            said_of_it = refusal(reader, path)
            assert said_of_it is None or said_of_it.startswith(str(path))


def some_rank(rng: random.Random, number: int) -> RankOutcome:
    signal = rng.choice([None, None, None, 6, 9, 11, 40])
    code = None if signal else rng.choice([0, 0, 0, 0, 1, 3, None])
    phase = rng.choice([*Phase, Phase.FINALISING, Phase.FINALISING, Phase.FINALISING])
    return rank(number, code, signal, phase=phase, killed=rng.random() < 0.15, end=rng.uniform(1, 9))


def some_trial(rng: random.Random, name: str, arm: Arm, index: int) -> TrialEvidence:
    ranks = [some_rank(rng, number) for number in range(rng.choice([1, 2, 3]))]
    ending = rng.choice([Ending.COMPLETED] * 8 + list(Ending))
    texts = [raised(0), raised(0, "OSError", "[Errno 28]"), said(0, "MemoryError"), checked(0, ("a", False, True))]
    texts += [checked(0, ("a", True, False)), checked(0, ("a", False, False)), {}]
    world = Topology(dp=len(ranks) + rng.choice([0, 0, 0, 1]))
    evidence = rng.choice(texts)
    return trial(*ranks, evidence=evidence, ending=ending, case=name, arm=arm, index=index, topology=world)


@pytest.mark.parametrize("oracle", [fault().oracle, NumericOracle(), CrashOracle()])
@pytest.mark.parametrize("seed", range(10))
def test_no_verdict_claims_more_than_its_trials(seed: int, oracle: Oracle) -> None:
    rng = random.Random(seed)
    cases = (case("shape", Arm.UNFIXED), case("well", Arm.CLEAN), case("known", Arm.PLANTED))
    seen = set()
    for _ in range(300):
        names = [("shape", Arm.UNFIXED)] * rng.choice([0, 1, 2, 3]) + [("well", Arm.CLEAN)] * rng.choice([0, 1])
        names += [("known", Arm.PLANTED)] * rng.choice([0, 0, 0, 1])
        trials = [some_trial(rng, name, arm, index) for index, (name, arm) in enumerate(names)]
        found = judge_fault(fault(oracle, *cases), Tier.CPU, trials)
        kinds = {arm: [judge_trial(t, oracle).kind for t in trials if t.record.spec.arm is arm] for arm in Arm}
        seen.add(found.verdict)
        controls_hold = all(kind is Kind.MISS for kind in kinds[Arm.CLEAN])
        controls_hold = controls_hold and all(kind is Kind.HIT for kind in kinds[Arm.PLANTED])
        if found.verdict is Verdict.REPRODUCED:
            assert controls_hold
            assert Kind.HIT in kinds[Arm.UNFIXED]
        if found.verdict is Verdict.NOT_REPRODUCED:
            assert controls_hold
            assert set(kinds[Arm.UNFIXED]) == {Kind.MISS}
            assert all(t.record.ending is Ending.COMPLETED for t in trials)
        if found.verdict is Verdict.INFRA_ERROR:
            assert any(Kind.INFRA in some for some in kinds.values())
        assert found.why
        assert "\n" not in found.why
    assert {Verdict.INCONCLUSIVE, Verdict.INFRA_ERROR} <= seen
