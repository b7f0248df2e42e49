"""What carries hyper-parallel on MindSpore's CPU device: each a replacement in this process alone, with its reason.

The library is written for Ascend and asks for it in a few places. The checkout is never touched, and on the simulated
tier none of this is used.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from repro.upstream.checkout import VARIABLE

__all__ = ["ALL", "VARIABLE", "Shim", "install"]


@dataclass(frozen=True)
class Shim:
    """One replacement.

    Attributes:
        name: What is replaced.
        why: Why it does not work on CPU as it is.
        apply: Does it.
    """

    name: str
    why: str
    apply: Callable[[], None]


def install() -> tuple[Shim, ...]:
    """Apply all; call it once, after MindSpore and before the case."""
    for shim in ALL:
        shim.apply()
    return ALL


def _platform() -> Any:
    return import_module("hyper_parallel.platform.mindspore.platform").MindSporePlatform


def _init_process_group() -> None:
    """The world group by ``mindspore.communication.init``, once."""

    @functools.cache
    def form() -> None:
        from mindspore.communication import init

        init()

    def init_process_group(*_: Any, **__: Any) -> None:
        form()

    _platform().init_process_group = staticmethod(init_process_group)


class _NoStream:
    """Stands for a stream, its event and its context: on CPU work is done in the order in which it is asked for."""

    def __init__(self, *_: object) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass

    def record_event(self) -> _NoStream:
        """The event that ``wait`` waits for."""
        return self

    def wait(self) -> None:
        """Nothing is outstanding."""


def _streams() -> None:
    platform = _platform()
    platform.new_stream = lambda _: _NoStream()
    platform.get_stream_context = lambda _: _NoStream


ALL: tuple[Shim, ...] = (
    Shim(
        "MindSporePlatform.init_process_group",
        "the library asks for backend hccl; on CPU the group is formed by mindspore.communication.init (mccl)",
        _init_process_group,
    ),
    Shim(
        "MindSporePlatform.new_stream, get_stream_context",
        "MindSpore has no streams on CPU: its StreamCtx fails there; the replacement does nothing, in order",
        _streams,
    ),
)
