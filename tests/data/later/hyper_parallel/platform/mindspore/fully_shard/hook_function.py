"""The autograd Function that marks where a layer's backward ends."""

from __future__ import annotations

from typing import Any

from mindspore.common._grad_function import _Function


class PostBackwardFunction(_Function):  # type: ignore[misc]
    """Identity; its backward tells the scheduler."""

    @staticmethod
    def forward(ctx: Any, hsdp_scheduler: Any, *tensors: Any) -> Any:
        """Pass the tensors through."""
        ctx.hsdp_scheduler = hsdp_scheduler
        return tensors

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Pass the gradients through."""
        ctx.hsdp_scheduler.hsdp_state.post_backward()
        return (None, *grads)
