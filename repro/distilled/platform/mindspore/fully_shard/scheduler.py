"""The scheduler of one fully_shard unit: hooks around a layer's forward and backward, where 301.1 and 219.1 lie."""

from __future__ import annotations

from typing import TypeAlias

import mindspore as ms
from mindspore.graph.api import _pynative_executor

from repro.distilled.platform.mindspore.fully_shard.hook_function import PostBackwardFunction
from repro.distilled.platform.mindspore.fully_shard.state import MindSporeHSDPStateV2

Tensors: TypeAlias = ms.Tensor | tuple[ms.Tensor, ...]


def _flat(outputs: Tensors) -> list[ms.Tensor]:
    return list(outputs) if isinstance(outputs, tuple | list) else [outputs]


class MindSporeHSDPSchedulerV2:
    """Unshards before use, prefetches the next layer in backward, and reduces gradients when a layer is done.

    Args:
        cell: The layer.
        state: Its parameters' state.

    Attributes:
        post_backward_function: The custom Function around the layer's inputs.
    """

    post_backward_function = PostBackwardFunction

    def __init__(self, cell: ms.nn.Cell, state: MindSporeHSDPStateV2) -> None:
        self.cell = cell
        self.hsdp_state = state
        self.backward_prefetch: list[MindSporeHSDPSchedulerV2] = []
        self.in_backward = False
        cell.register_forward_pre_hook(self._forward_pre_hook)
        cell.register_forward_hook(self._forward_hook)

    def _forward_pre_hook(self, cell: ms.nn.Cell, inputs: Tensors) -> Tensors:
        del cell
        self.hsdp_state.unshard()
        return self._register_post_backward_hook(inputs)

    def _register_post_backward_hook(self, inputs: Tensors) -> Tensors:
        tensors = _flat(inputs)
        if not any(tensor._requires_grad for tensor in tensors):
            return inputs
        outputs = self.post_backward_function.apply(self, *tensors)
        return tuple(_flat(outputs))

    def _forward_hook(self, cell: ms.nn.Cell, inputs: Tensors, outputs: Tensors) -> None:
        del cell, inputs
        self._register_backward_pre_hook(outputs)
        self.hsdp_state.reshard()

    def _register_backward_pre_hook(self, outputs: Tensors) -> Tensors:
        for output in _flat(outputs):
            if output._requires_grad:
                # The fault 301.1: the handle is dropped, and nothing else ever removes the hook.
                output.register_hook(self._backward_pre_hook)
        return outputs

    def _backward_pre_hook(self, grad: ms.Tensor) -> ms.Tensor:
        # A fresh bound method for every call; if it is never run, MindSpore's worker thread drops the last reference.
        _pynative_executor.queue_backward_final_callback(self._backward_hook)
        if not self.in_backward:
            self.in_backward = True
            self.hsdp_state.unshard()
            for scheduler in self.backward_prefetch:
                scheduler.hsdp_state.unshard()
        return grad

    def post_backward(self) -> None:
        """The layer's gradients are complete: hand them to the reduction."""
        self.hsdp_state.post_backward()

    def _backward_hook(self) -> None:
        if self.in_backward:
            self.in_backward = False
            self.hsdp_state.wait_grads()
            self.hsdp_state.reshard()
