"""Mends 301.1: the handles of backward pre-hooks on output Tensors are kept, and removed once they can never run again.

When that is cannot be told by the Tensor that Python sees, which often dies before backward, nor by the end of a
backward, after which a retained graph may run once more. It is told by the hook itself: MindSpore holds it as long as
the graph lives, with or without backward, after an error too. So each hook gets an object of its own, and when that has
died its handle is due. Handles are removed when the next hooks are registered, never from inside a hook or a finaliser.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable
from types import ModuleType
from typing import Any

import wrapt

from fixes.mend import Mend, below_roots

_CLASS = "MindSporeHSDPSchedulerV2"
_OLD = below_roots("platform.mindspore.hsdp.scheduler")
_TENSOR = "mindspore.common.tensor"


class _Once:
    """The hook of one Tensor; dies with the graph that holds it."""

    __slots__ = ("__weakref__", "_hook")

    def __init__(self, hook: Callable[[Any], Any]) -> None:
        self._hook = hook

    def run(self, grad: Any) -> Any:
        """Call the scheduler's hook."""
        return self._hook(grad)


class HookHandles(Mend):
    """The mend of 301.1."""

    fault = "301.1"
    mends = "keeps the handle of every backward pre-hook and removes it when its graph is gone"
    since = "hyper-parallel with platform.mindspore.fully_shard (reported 2026), MindSpore 2.10.0"
    modules = (*below_roots("platform.mindspore.fully_shard.scheduler"), *_OLD, _TENSOR)
    older = dict.fromkeys(_OLD, _CLASS)

    def __init__(self) -> None:
        super().__init__()
        self._kept: dict[weakref.ref[_Once], Any] = {}
        # Filled by weak references as hooks die, perhaps on a worker thread: appending is all that is done there.
        self._due: deque[Any] = deque()
        self._registering = threading.local()

    @property
    def open_handles(self) -> int:
        """Handles that are kept or due."""
        return len(self._kept) + len(self._due)

    def apply(self, module: ModuleType) -> None:
        """Mend the scheduler, or listen in on ``Tensor.register_hook``, by which alone the handles can be had."""
        if module.__name__ == _TENSOR:
            owner, name, stored = self.target(module, "Tensor.register_hook", ("hook",))
            self.put(module, owner, name, wrapt.FunctionWrapper(stored, self._register_hook), aid=True)
            return
        self.target(module, f"{_CLASS}._backward_pre_hook", ("grad",))
        owner, name, stored = self.target(module, f"{_CLASS}._register_backward_pre_hook", ("outputs",))
        self.put(module, owner, name, wrapt.FunctionWrapper(stored, self._register_all))

    def cleared(self) -> None:
        """Hand back the handles: without the mend they are what they were, dropped."""
        self._kept.clear()
        self._due.clear()

    def remove_handles(self) -> None:
        """Remove every handle that is kept or due; for the end of the process, when no graph will run again."""
        self._remove_due()
        for reference in list(self._kept):
            self._died(reference)
        self._remove_due()

    def _register_all(
        self, wrapped: Callable[..., Any], _scheduler: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        self._remove_due()
        self._registering.on = True
        try:
            return wrapped(*args, **kwargs)
        finally:
            self._registering.on = False

    def _register_hook(
        self, wrapped: Callable[..., Any], _tensor: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        # Hooks that others register are their own affair.
        if not getattr(self._registering, "on", False):
            return wrapped(*args, **kwargs)
        hook = args[0] if args else kwargs["hook"]
        once = _Once(hook)
        handle = wrapped(once.run)
        self._kept[weakref.ref(once, self._died)] = handle
        return handle

    def _died(self, reference: weakref.ref[_Once]) -> None:
        handle = self._kept.pop(reference, None)
        if handle is not None:
            self._due.append(handle)

    def _remove_due(self) -> None:
        while self._due:
            self._due.popleft().remove()
            self.used()


MEND = HookHandles()
