"""A sharded parameter on MindSpore: the one entry of all reduce paths hands out views (134.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hyper_parallel.core.fully_shard.hsdp_param import HSDPParamV2


class MindSporeHSDPParamV2(HSDPParamV2):
    """A parameter whose gradient is handed to a collective."""

    def __init__(self, reduce: Callable[[Any], Any] | None = None) -> None:
        self._reduce = reduce

    def _to_local_unsharded_grad(self, grad: Any) -> Any:
        return self._normalize_unsharded_grad_to_local(grad, reduce_partial_dtensor=False)

    def all_reduce_grad(self, grad: Any) -> Any:
        """Sum the gradient over the ranks."""
        local = self._to_local_unsharded_grad(grad)
        if self._reduce is not None:
            self._reduce(local)
        return local
