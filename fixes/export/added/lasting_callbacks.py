"""One bound method an object and name, the same at every reading, for queues that may drop it on any thread."""

from __future__ import annotations

from typing import Any

# A queue that drops references without the interpreter's lock may lose count; these keep the count far from zero.
_RESERVE = 1000


def lasting(owner: Any, name: str) -> Any:
    """The bound method ``owner.name``: one object, held by its owner."""
    kept = owner.__dict__.setdefault("_lasting_callbacks", {})
    if name not in kept:
        kept[name] = [getattr(owner, name)] * _RESERVE
    return kept[name][0]
