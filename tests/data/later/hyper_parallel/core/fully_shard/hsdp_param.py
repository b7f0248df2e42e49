"""The half of a sharded parameter that no platform knows."""

from __future__ import annotations

from typing import Any


class HSDPParamV2:
    """A parameter under fully_shard."""

    def _normalize_unsharded_grad_to_local(self, grad: Any, *, reduce_partial_dtensor: bool = True) -> Any:
        """The local part of a gradient; a DTensor's may be a view."""
        del reduce_partial_dtensor
        return grad.to_local() if hasattr(grad, "to_local") else grad
