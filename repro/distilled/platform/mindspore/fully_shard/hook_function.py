"""The custom Function that marks where a layer's backward ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mindspore as ms
from mindspore.common._grad_function import _Function

if TYPE_CHECKING:
    from repro.distilled.platform.mindspore.fully_shard.scheduler import MindSporeHSDPSchedulerV2


class PostBackwardFunction(_Function):  # type: ignore[misc]
    """Identity in forward; in backward, tells the scheduler that the gradients of its layer are complete."""

    @staticmethod
    def forward(ctx: Any, scheduler: MindSporeHSDPSchedulerV2, *tensors: ms.Tensor) -> tuple[ms.Tensor, ...]:
        """Pass the tensors through and remember the scheduler."""
        ctx.scheduler = scheduler
        return tensors

    @staticmethod
    def backward(ctx: Any, *grads: ms.Tensor) -> tuple[ms.Tensor | None, ...]:
        """Pass the gradients through after the layer's own were handed to the reduction."""
        ctx.scheduler.post_backward()
        return (None, *grads)
