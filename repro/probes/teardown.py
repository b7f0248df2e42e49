"""Oracles for crashes at teardown that need no crash: un-run final callbacks, late finalisers, objects kept alive.

They tell of what precedes the known crashes of MindSpore 2.10.0, in every run, where the crash itself is a matter of
timing. That a check here fails does not prove that a crash seen elsewhere has this cause.
"""

from __future__ import annotations

import functools
import gc
import json
import os
import sys
import time
import weakref
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any

from repro.evidence.layout import TrialFolder
from repro.probes.context import Context

QUEUED_INSIDE = "final callback queued inside a final callback"
UNRUN = "final callbacks left un-run"
LATE_FINALISER = "finaliser ran while finalising"
RELEASED = "released by an ordered teardown"


class CallbackProbe:
    """Watches the final callbacks that MindSpore itself is given, below any mend in Python.

    It holds no callback, wraps none and takes no weak reference to one, since each of these changes who drops the last
    reference to it, and that is the fault. It knows a callback by its code object: a queued one is seen when it is
    handed over, one that runs by the interpreter's profile events. Callbacks without Python code are not watched.

    Use it around the steps and call ``backward_done`` after each backward, also after one that raised.

    Args:
        context: Where the checks go.
        enabled: False makes it do nothing, for arms whose only oracle is the crash.
    """

    def __init__(self, context: Context, *, enabled: bool = True) -> None:
        self._context = context
        self._enabled = enabled
        self._executor: Any = None
        self._native: Any = None
        self._pending: Counter[CodeType] = Counter()
        self._seen: set[CodeType] = set()
        self._queued = 0
        self._inside: Counter[str] = Counter()
        self._unwatched = 0

    def __enter__(self) -> CallbackProbe:
        if self._enabled:
            from mindspore.graph.api import _pynative_executor

            self._executor, self._native = _pynative_executor, _pynative_executor._executor
            self._executor._executor = _Executor(self._native, self._saw_queued)
            sys.setprofile(self._saw_call)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._enabled:
            sys.setprofile(None)
            self._executor._executor = self._native

    def backward_done(self) -> None:
        """Record both checks for the backward that has just ended, and start anew."""
        if not self._enabled:
            return
        left = +self._pending
        inside = dict(self._inside)
        self._context.check(QUEUED_INSIDE, ok=not inside, fault=bool(inside), queued=self._queued, callbacks=inside)
        names = {code.co_qualname: count for code, count in left.items()}
        more: dict[str, Any] = {"queued": self._queued, "unrun": left.total(), "unwatched": self._unwatched}
        self._context.check(UNRUN, ok=not left, fault=bool(left), callbacks=names, **more)
        self._pending.clear()
        self._inside.clear()
        self._queued = self._unwatched = 0

    def _saw_queued(self, callback: Callable[[], object], caller: FrameType) -> None:
        self._queued += 1
        code = _code_of(callback)
        if code is None:
            self._unwatched += 1
            return
        frame: FrameType | None = caller
        while frame is not None:
            if frame.f_code in self._seen:
                self._inside[f"{code.co_qualname} in {frame.f_code.co_qualname}"] += 1
                break
            frame = frame.f_back
        self._seen.add(code)
        self._pending[code] += 1

    def _saw_call(self, frame: FrameType, event: str, argument: Any) -> None:
        del argument
        if event == "call" and frame.f_code in self._pending:
            self._pending[frame.f_code] -= 1


class _Executor:
    """Stands before the native executor and tells of each callback that is queued."""

    def __init__(self, native: Any, saw: Callable[[Callable[[], object], FrameType], None]) -> None:
        self._native = native
        self._saw = saw

    def __getattr__(self, name: str) -> Any:
        return getattr(self._native, name)

    def queue_backward_final_callback(self, callback: Callable[[], object]) -> Any:
        self._saw(callback, sys._getframe(1))
        return self._native.queue_backward_final_callback(callback)


def _code_of(callback: Any) -> CodeType | None:
    while isinstance(callback, functools.partial):
        callback = callback.func
    code = getattr(callback, "__code__", None)
    return code if isinstance(code, CodeType) else None


class Sentinel:
    """Tells when it dies: before the interpreter's end, or while it is finalising, after MindSpore's own teardown.

    Put one on each object whose end is of interest, such as a scheduler. No check is recorded for one that never dies.

    Args:
        context: Whose rank it belongs to.
        name: What it sits on.
    """

    def __init__(self, context: Context, name: str) -> None:
        # A descriptor of its own: by the time that it writes, the context and all modules may be gone.
        path = TrialFolder(Path(os.environ["HYPER_REPRO_TRIAL"])).rank(context.rank).events
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        self._pid = os.getpid()
        self._good, self._bad = (
            f', "event": "check", "name": "{LATE_FINALISER}", "ok": {json.dumps(ok)}, "fault": {json.dumps(not ok)}, '
            f'"on": {json.dumps(name)}}}\n'
            for ok in (True, False)
        )
        context.record("sentinel armed", on=name)

    def __del__(
        self,
        *,
        _write: Callable[[int, bytes], int] = os.write,
        _is_finalizing: Callable[[], bool] = sys.is_finalizing,
        _time: Callable[[], float] = time.time,
        _getpid: Callable[[], int] = os.getpid,
    ) -> None:
        # What it calls is bound as defaults, since module globals may be None here. A forked child is not the rank.
        if _getpid() == self._pid:
            line = self._bad if _is_finalizing() else self._good
            _write(self._descriptor, f'{{"t": {_time()}{line}'.encode())


class ReleaseCheck:
    """Whether objects are gone after an ordered teardown.

    Args:
        context: Where the check goes.
        objects: What must go, by name; only weak references are kept.
    """

    def __init__(self, context: Context, objects: Mapping[str, object]) -> None:
        self._context = context
        self._references = {name: weakref.ref(value) for name, value in objects.items()}

    def check(self) -> None:
        """Collect garbage and record what is still alive. The caller has dropped its own references before."""
        gc.collect()
        alive = [name for name, reference in self._references.items() if reference() is not None]
        self._context.check(RELEASED, ok=not alive, fault=bool(alive), alive=alive, of=len(self._references))
