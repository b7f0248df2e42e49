"""Hooks on output tensors, each with a handle that is removed once the graph that holds the hook is gone."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable
from typing import Any


class _OutputHook:
    """The hook of one tensor; lives exactly as long as something may still call it."""

    __slots__ = ("__weakref__", "_function")

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def run(self, grad: Any) -> Any:
        """Call the function that was registered."""
        return self._function(grad)


class OutputHooks:
    """Registers hooks, keeps their handles, and removes those that can never run again."""

    def __init__(self) -> None:
        self._handles: dict[weakref.ref[_OutputHook], Any] = {}
        # Filled as hooks die, perhaps on a thread of the framework: appending is all that is done there.
        self._due: deque[Any] = deque()

    @property
    def open_handles(self) -> int:
        """How many handles are kept."""
        return len(self._handles) + len(self._due)

    def register(self, tensor: Any, function: Callable[[Any], Any]) -> None:
        """Register ``function`` on the tensor; handles that are due are removed first."""
        while self._due:
            self._due.popleft().remove()
        hook = _OutputHook(function)
        self._handles[weakref.ref(hook, self._hook_died)] = tensor.register_hook(hook.run)

    def _hook_died(self, reference: weakref.ref[_OutputHook]) -> None:
        handle = self._handles.pop(reference, None)
        if handle is not None:
            self._due.append(handle)


OUTPUT_HOOKS = OutputHooks()
