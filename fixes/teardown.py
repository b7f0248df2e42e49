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
import time
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

import wrapt

from fixes import hook_handles
from fixes.final_callbacks import FinalCallbacks
from fixes.mend import Mend

_API = "mindspore.graph.api"
_COLLECTIVES = "mindspore.ops.function.comm_func"
_NATIVE = "mindspore._c_expression"
# Longer than any queue of a healthy process takes; a device that hangs must not keep a job from ending.
DEADLINE_S = 10.0


class Teardown(Mend):
    """The mend of 219.1."""

    fault = "219.1"
    mends = (
        "runs every backward final callback from one lasting object; at exit removes, waits, drops, collects, in order"
    )
    since = "MindSpore 2.10.0"
    # The package itself is named for the moment when its import is over: a handler of atexit registered then runs
    # before MindSpore's own, which was registered during it.
    modules = (_API, _COLLECTIVES, "mindspore")

    def __init__(self) -> None:
        super().__init__()
        self.callbacks = FinalCallbacks()
        self._pid = 0
        self._sync: Callable[[], object] | None = None
        # Handles of asynchronous collectives that nobody has waited for.
        self._open: weakref.WeakSet[Any] = weakref.WeakSet()

    def apply(self, module: ModuleType) -> None:
        """Mend the queue and the ways into backward, or register the teardown."""
        if module.__name__ == "mindspore":
            self._pid = os.getpid()
            atexit.register(self.finish)
            return
        if module.__name__ == _COLLECTIVES:
            for path, aid in (("CommHandle.__init__", self._opened), ("CommHandle.wait", self._waited)):
                owner, name, stored = self.target(module, path, ("self",))
                self.put(module, owner, name, wrapt.FunctionWrapper(stored, aid), aid=True)
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
        self._open.clear()

    def finish(self) -> None:
        """Before MindSpore's own teardown, in order, within the deadline.

        Hook handles removed (where mend 301.1 keeps them), collectives waited for, MindSpore's queue waited for,
        references dropped, garbage collected, and the queue once more for what finalisers put there.
        """
        # A forked child has none of MindSpore's threads, and would wait for ever.
        if os.getpid() != self._pid or not (self.uses or self._open):
            return
        # Handles are removed and garbage is collected here: finalisers belong to the main thread.
        hook_handles.MEND.remove_handles()
        self.callbacks.clear()
        ends = time.monotonic() + DEADLINE_S
        if self._within(ends, "collectives", self._wait_for_collectives) and self._within(ends, "queue", self._sync):
            # What finalisers release is released while MindSpore's devices are there.
            gc.collect()
            self._within(ends, "queue", self._sync)

    def _wait_for_collectives(self) -> None:
        for handle in list(self._open):
            handle.wait()

    def _within(self, ends: float, what: str, wait: Callable[[], object] | None) -> bool:
        """Wait on a thread of its own until the deadline; False, and said, if that was not enough."""
        if wait is None:
            return True
        waiting = threading.Thread(target=_said, args=(wait,), name="hyper-repro teardown", daemon=True)
        waiting.start()
        waiting.join(max(0.0, ends - time.monotonic()))
        if waiting.is_alive():
            print(f"hyper-repro: MindSpore's {what} not over after {DEADLINE_S:g} s; exiting", file=sys.stderr)
        return not waiting.is_alive()

    def _opened(self, wrapped: Callable[..., Any], handle: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        wrapped(*args, **kwargs)
        self._open.add(handle)

    def _waited(self, wrapped: Callable[..., Any], handle: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._open.discard(handle)
        return wrapped(*args, **kwargs)

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


def _said(wait: Callable[[], object]) -> None:
    try:
        wait()
    except Exception as error:  # noqa: BLE001 -- the process is ending: said, not raised
        print(f"hyper-repro: at exit: {type(error).__name__}: {error}", file=sys.stderr)


MEND = Teardown()
