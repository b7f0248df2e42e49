"""Marks code that reads metadata from tensors, which stays allowed on tier sim, where computed numbers mean nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_reason: ContextVar[str] = ContextVar("hyper_repro_metadata", default="")
# The rank puts its event log here, so that a declaration stands in the evidence.
listeners: list[Callable[[str], None]] = []


@contextmanager
def metadata(reason: str) -> Iterator[None]:
    """Declare that what is read inside is metadata (shapes, rank maps), not a number that the device computed.

    Args:
        reason: Why; it is recorded with the trial.
    """
    for listener in listeners:
        listener(reason)
    token = _reason.set(reason)
    try:
        yield
    finally:
        _reason.reset(token)


def reading_metadata() -> bool:
    """True inside ``metadata``."""
    return bool(_reason.get())
