"""Counts the hooks that are registered on Tensors and not removed: exact, where the bytes that they hold are noisy."""

from __future__ import annotations

from typing import Any

_registered = 0
_removed = 0


def count_hooks() -> None:
    """Put the count in front of ``Tensor.register_hook`` and of ``remove`` of the handle that it returns.

    Call it once, after MindSpore is imported and so after any mend was put there: what a mend removes is counted too.
    """
    import mindspore as ms
    from mindspore.common.hook_handle import _TensorHookHandle

    register, remove = ms.Tensor.register_hook, _TensorHookHandle.remove

    def counted(tensor: ms.Tensor, hook: Any) -> Any:
        global _registered  # noqa: PLW0603 -- a count of the process
        handle = register(tensor, hook)
        _registered += 1
        return handle

    def removed(handle: Any) -> None:
        global _removed  # noqa: PLW0603
        remove(handle)
        _removed += 1

    ms.Tensor.register_hook, _TensorHookHandle.remove = counted, removed


def live_hooks() -> int:
    """Hooks registered and not removed since ``count_hooks``."""
    return _registered - _removed
