"""The state of one fully_shard unit."""

from __future__ import annotations

from collections.abc import Sequence

from hyper_parallel.platform.mindspore.fully_shard.param import MindSporeHSDPParamV2


class MindSporeHSDPStateV2:
    """The sharded parameters of one layer."""

    def __init__(self, hsdp_params: Sequence[MindSporeHSDPParamV2] = ()) -> None:
        self.hsdp_params = list(hsdp_params)
        self.reduced = 0

    def post_backward(self) -> None:
        """The gradients are complete."""
        self.reduced += 1
