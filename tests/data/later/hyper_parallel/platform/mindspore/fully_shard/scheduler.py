"""The hooks around a layer's forward and backward: handles are dropped (301.1), bound methods queued afresh (219.1)."""

from __future__ import annotations

from typing import Any

import mindspore as ms
from mindspore.common.api import _pynative_executor

from hyper_parallel.platform.mindspore.fully_shard.hook_function import PostBackwardFunction
from hyper_parallel.platform.mindspore.fully_shard.state import MindSporeHSDPStateV2


class MindSporeHSDPSchedulerV2:
    """Unshards before backward and reshards after it."""

    def __init__(self, cell: ms.nn.Cell, hsdp_state: MindSporeHSDPStateV2) -> None:
        self.cell = cell
        self.hsdp_state = hsdp_state
        self.in_backward = False
        self.finished = 0

    def _register_post_backward_hook(self, *tensors: Any) -> Any:
        return PostBackwardFunction.apply(self, *tensors)

    def _register_backward_pre_hook(self, outputs: Any) -> Any:
        flat_outputs = outputs if isinstance(outputs, tuple | list) else [outputs]
        for output in flat_outputs:
            if isinstance(output, ms.Tensor) and output._requires_grad:
                output.register_hook(self._backward_pre_hook)
        return outputs

    def _forward_hook(self, cell: Any, inputs: Any, outputs: Any) -> Any:
        del cell, inputs
        return self._register_backward_pre_hook(outputs)

    def _backward_pre_hook(self, grad: Any) -> Any:
        _pynative_executor.queue_backward_final_callback(self._backward_hook)
        self.in_backward = True
        return grad

    def _backward_hook(self) -> None:
        if self.in_backward:
            self.in_backward = False
            self.finished += 1
