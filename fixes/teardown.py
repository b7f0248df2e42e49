"""Mends 219.1 as far as Python can: final callbacks that MindSpore never drops un-run, and a teardown in order.

What it removes are the two known mechanisms: MindSpore drops the last reference to an un-run final callback on a worker
thread that does not hold the GIL, after a callback queued another one or after backward raised. The release without the
GIL stays, in MindSpore; it only meets one object that never dies.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import wrapt

from fixes.final_callbacks import FinalCallbacks
from fixes.mend import Mend

_API = "mindspore.graph.api"
_NATIVE = "mindspore._c_expression"
# Longer than any queue of a healthy process takes; a device that hangs must not keep a job from ending.
DEADLINE_S = 10.0


class Teardown(Mend):
    """The mend of 219.1."""

    fault = "219.1"
    mends = "runs every backward final callback from one lasting object, and empties MindSpore's queue before it exits"
    since = "MindSpore 2.10.0"
    # The package itself is named for the moment when its import is over: a handler of atexit registered then runs
    # before MindSpore's own, which was registered during it.
    modules = (_API, "mindspore")

    def __init__(self) -> None:
        super().__init__()
        self.callbacks = FinalCallbacks()
        self._pid = 0
        self._sync: Callable[[], object] | None = None

    def apply(self, module: ModuleType) -> None:
        """Mend the queue and the ways into backward, or register the teardown."""
        if module.__name__ == "mindspore":
            self._pid = os.getpid()
            atexit.register(self.finish)
            return
        owner, name, stored = self.target(
            module, "_PyNativeExecutor.queue_backward_final_callback", ("self", "callback")
        )
        self.target(module, "_pynative_executor.sync")
        self._sync = module._pynative_executor.sync
        self.put(module, owner, name, wrapt.FunctionWrapper(stored, self._queue))
        owner, name, stored = self.target(module, "_PyNativeExecutor.grad", ("self", "args"))
        self.put(module, owner, name, wrapt.FunctionWrapper(stored, self._backward))
        native = sys.modules[_NATIVE]
        owner, name, stored = self.target(native, "run_backward")
        self.put(native, owner, name, wrapt.FunctionWrapper(stored, self._backward))

    def cleared(self) -> None:
        """No teardown any more."""
        atexit.unregister(self.finish)
        self.callbacks.clear()

    def finish(self) -> None:
        """Before MindSpore's own teardown: wait for its queue, drop what is left, collect garbage."""
        # A forked child has none of MindSpore's threads, and would wait for ever.
        if os.getpid() != self._pid or not self.uses:
            return
        self.callbacks.clear()
        waiting = threading.Thread(target=self._wait, name="hyper-repro teardown", daemon=True)
        waiting.start()
        waiting.join(DEADLINE_S)
        if waiting.is_alive():
            print(f"hyper-repro: MindSpore's queue is not empty after {DEADLINE_S:g} s; exiting", file=sys.stderr)
            return
        # What finalisers release is released while MindSpore's devices are there.
        gc.collect()

    def _wait(self) -> None:
        if self._sync is None:
            return
        try:
            self._sync()
        except Exception as error:  # noqa: BLE001 -- the process is ending: said, not raised
            print(f"hyper-repro: at exit: {type(error).__name__}: {error}", file=sys.stderr)

    def _queue(
        self, wrapped: Callable[..., Any], _executor: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        (callback,) = (*args, *kwargs.values())
        self.used()
        self.callbacks.queue(callback, wrapped)

    def _backward(
        self, wrapped: Callable[..., Any], _executor: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        return self.callbacks.backward(lambda: wrapped(*args, **kwargs))


MEND = Teardown()
