"""The state of one fully_shard unit: its parameters, and what is done with their gradients after backward."""

from __future__ import annotations

from collections.abc import Sequence

from repro.distilled.platform.mindspore.fully_shard.param import HSDPParamV2


class MindSporeHSDPStateV2:
    """The sharded parameters of one layer.

    Args:
        params: The layer's parameters.
    """

    def __init__(self, params: Sequence[HSDPParamV2]) -> None:
        self.hsdp_params = list(params)
        self.unsharded = False

    def unshard(self) -> None:
        """Make whole parameters available."""
        for hsdp_param in self.hsdp_params:
            hsdp_param.unshard()
        self.unsharded = True

    def reshard(self) -> None:
        """The inverse of ``unshard``."""
        self.unsharded = False

    def post_backward(self) -> None:
        """Hand every gradient that backward has left to its reduction."""
        for hsdp_param in self.hsdp_params:
            # Reading an attribute of a Parameter waits for MindSpore's queue, so an earlier asynchronous error of
            # the reduction surfaces in this line, far from the call that caused it.
            if not hsdp_param.sharded_param.requires_grad:
                continue
            grad = hsdp_param.unsharded_grad
            if grad is not None:
                hsdp_param.reduce_grad(grad)

    def wait_grads(self) -> None:
        """Wait for all reductions of this unit."""
        for hsdp_param in self.hsdp_params:
            hsdp_param.wait_grad()
