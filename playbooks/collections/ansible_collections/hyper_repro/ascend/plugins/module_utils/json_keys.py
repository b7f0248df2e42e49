"""Keys of nested JSON objects by their steps: which are wanted, how to put one and how to take it back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

# Stands for a key that was not there; JSON has no such value of its own.
ABSENT = {"hyper-repro": "absent"}


class Key(NamedTuple):
    """A leaf: its steps, what was there, and what is put there."""

    steps: list[str]
    was: Any
    value: Any


def leaves(data: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[list[str], Any]]:
    """Every leaf; an empty object is one."""
    for key, value in data.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, (*above, key))
        else:
            yield [*above, key], value


def get(data: Any, steps: list[str]) -> Any:
    """The value there, or ABSENT."""
    for step in steps:
        if not isinstance(data, Mapping) or step not in data:
            return ABSENT
        data = data[step]
    return data


def wanted(data: Mapping[str, Any], settings: Mapping[str, Any], replace: bool) -> tuple[list[Key], list[list[str]]]:
    """What has to be put, and the steps of what differs and stays."""
    keys, kept = [], []
    for steps, value in leaves(settings):
        was = get(data, steps)
        if was == value:
            continue
        blocked = any(not isinstance(get(data, steps[:n]), Mapping) for n in range(1, len(steps))) and any(
            get(data, steps[:n]) != ABSENT and not isinstance(get(data, steps[:n]), Mapping)
            for n in range(1, len(steps))
        )
        if blocked or (was != ABSENT and not replace):
            kept.append(steps)
        else:
            keys.append(Key(steps, was, value))
    return keys, kept


def put(data: dict[str, Any], steps: list[str], value: Any) -> None:
    """Set a leaf, making the objects on the way."""
    for step in steps[:-1]:
        data = data.setdefault(step, {})
    data[steps[-1]] = value


def take(data: dict[str, Any], steps: list[str], was: Any) -> None:
    """Set a leaf back; objects that are empty afterwards go too."""
    if was != ABSENT:
        put(data, steps, was)
        return
    way = [data]
    for step in steps[:-1]:
        way.append(way[-1][step])
    for holder, step in zip(reversed(way), reversed(steps), strict=False):
        if step == steps[-1] or not holder[step]:
            del holder[step]
