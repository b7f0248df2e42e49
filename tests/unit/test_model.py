"""Topologies, and specifications and records that survive JSON unchanged."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from made import SPEC, died, rank, trial

from repro.model import Arm, Ending, Tier, Topology, TrialRecord, TrialSpec


@pytest.mark.parametrize(
    ("text", "topology", "world", "label"),
    [
        ("", Topology(), 1, "single"),
        ("tp=1", Topology(), 1, "single"),
        ("dp=2", Topology(dp=2), 2, "dp2"),
        ("tp=2,ep=2,fsdp=2", Topology(2, 2, 2), 8, "tp2-ep2-fsdp2"),
        (" fsdp=4 , tp=2,", Topology(tp=2, fsdp=4), 8, "tp2-fsdp4"),
    ],
)
def test_a_topology_is_read(text: str, topology: Topology, world: int, label: str) -> None:
    read = Topology.parse(text)
    assert (read, read.world, read.label) == (topology, world, label)


@pytest.mark.parametrize(
    "text", ["tp", "tp=", "tp=0", "tp=-1", "tp=1.5", "tp=²", "tp=\uff12", "pp=2", "tp=2,tp=2", "2", "tp=2;ep=2"]
)
def test_what_is_no_topology_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="is not one of tp=N") as caught:
        Topology.parse(text)
    assert repr(text) in str(caught.value)


def through_json(data: object) -> object:
    return json.loads(json.dumps(data))


SPECS = [
    SPEC,
    replace(SPEC, tier=Tier.SIM, arm=Arm.FIXED, fixes="9001.1", ranks=(0, 3), topology=Topology(tp=4)),
    replace(
        SPEC, series={"case": "a"}, calls=100, window=10, timeout_s=60, args={"n": 1, "x": 0.5, "yes": True, "s": "中"}
    ),
]


@pytest.mark.parametrize("spec", SPECS)
def test_a_specification_survives_json(spec: TrialSpec) -> None:
    data = through_json(spec.to_json())
    assert isinstance(data, dict)
    back = TrialSpec.from_json(data)
    assert back == spec
    assert back.key == spec.key


@pytest.mark.parametrize(
    "change",
    [{"seed": 1}, {"args": {}}, {"tier": Tier.SIM}, {"arm": Arm.CLEAN}, {"index": 1}, {"calls": 5}, {"ranks": (1,)}],
)
def test_any_change_makes_another_trial(change: dict[str, object]) -> None:
    assert replace(SPEC, **change).key != SPEC.key  # type: ignore[arg-type]


def test_the_order_of_arguments_makes_no_other_trial() -> None:
    one, other = replace(SPEC, args={"a": 1, "b": 2}), replace(SPEC, args={"b": 2, "a": 1})
    assert one.key == other.key


@pytest.mark.parametrize("ending", list(Ending))
def test_a_record_survives_json(ending: Ending) -> None:
    record = trial(rank(0, 1), died(1, 11, killed=True), ending=ending, detail="why", launcher_code=1).record
    data = through_json(record.to_json())
    assert isinstance(data, dict)
    assert TrialRecord.from_json(data) == record
    assert data["schema_version"] == 1


@pytest.mark.parametrize(
    "change", [{"schema_version": 2}, {"ending": "tired"}, {"ranks": [{}]}, {"more": 1}, {"spec": {}}]
)
def test_what_is_no_record_is_refused(change: dict[str, object]) -> None:
    with pytest.raises((ValueError, TypeError, KeyError)):
        TrialRecord.from_json({**trial().record.to_json(), **change})


@pytest.mark.parametrize(
    ("outcome", "failed"),
    [
        (rank(0), False),
        (rank(0, 1), True),
        (died(0, 11), True),
        (died(0, 9, killed=True), False),
        (rank(0, None, killed=True), False),
        (rank(0, None), True),
    ],
)
def test_who_failed_by_itself(outcome: object, failed: bool) -> None:
    assert getattr(outcome, "failed") is failed  # noqa: B009 -- one table for all outcomes
