"""Remembers where each collective was issued, for errors that surface later and in another line.

On Ascend a collective is queued; what is wrong with it is raised by whichever line waits for the queue next. The stack
that a user sees there is not the one that caused it, so the call's own stack is kept until it is needed.
"""

from __future__ import annotations

import traceback
from types import TracebackType
from typing import Any

import wrapt

MODULE = "mindspore.mint.distributed"
COLLECTIVES = ("all_reduce", "reduce_scatter_tensor", "all_gather_into_tensor", "all_to_all_single", "broadcast")

Frames = list[tuple[str, int, str]]


class CollectiveLog:
    """While it is entered, keeps the stack of the last collective that was given a non-contiguous tensor."""

    def __init__(self) -> None:
        self.refused: Frames = []
        self._originals: dict[str, Any] = {}

    def __enter__(self) -> CollectiveLog:
        """Wrap the collectives of mint.distributed."""
        import mindspore.mint.distributed as dist

        for name in COLLECTIVES:
            self._originals[name] = getattr(dist, name)
            wrapt.wrap_function_wrapper(MODULE, name, self._note)
        return self

    def __exit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Unwrap them, and hang the stack on the error that passes, for error.json."""
        import mindspore.mint.distributed as dist

        for name, original in self._originals.items():
            setattr(dist, name, original)
        if error is not None and self.refused:
            error.issued_at = self.refused  # type: ignore[attr-defined]

    def _note(self, wrapped: Any, _instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        tensors = [value for value in (*args, *kwargs.values()) if hasattr(value, "is_contiguous")]
        if not all(tensor.is_contiguous() for tensor in tensors):
            stack = traceback.extract_stack()[:-1]
            self.refused = [(frame.filename, frame.lineno or 0, frame.name) for frame in stack]
        return wrapped(*args, **kwargs)
