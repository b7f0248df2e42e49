"""A sharded parameter on MindSpore: its gradient's way to the collective, where fault 134.2 lies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms

from repro.distilled.core.dtensor.device_mesh import DeviceMesh
from repro.distilled.core.dtensor.dtensor import DTensor
from repro.distilled.core.fully_shard.hsdp_param import HSDPParam

Reduce = Callable[[ms.Tensor], Any]


class HSDPParamV2(HSDPParam):
    """One parameter under fully_shard with replicated storage (HSDP's replicate_params).

    Args:
        param: The parameter of the cell.
        mesh: The mesh that fully_shard was given.
        orig_dtensor_mesh: The tensor-parallel mesh of the parameter, or None.
        reduce: The collective that sums a gradient over the data-parallel ranks, in place; it returns a handle to wait
            for, or None when it is synchronous.
        gather: Makes the whole parameter's data from the sharded one; None where storage is replicated as it is.
    """

    def __init__(
        self,
        param: ms.Parameter,
        mesh: DeviceMesh,
        orig_dtensor_mesh: DeviceMesh | None,
        reduce: Reduce,
        gather: Callable[[ms.Parameter], ms.Tensor] | None = None,
    ) -> None:
        super().__init__(mesh, orig_dtensor_mesh)
        self.sharded_param = param
        self._gather = gather
        self._reduce = reduce
        self._handle: Any = None
        self.grad: ms.Tensor | None = None
        # Where the unsharded parameter is a DTensor, its gradient is one too and stands here.
        self.dtensor_grad: DTensor | None = None

    @property
    def unsharded_grad(self) -> ms.Tensor | DTensor | None:
        """What backward has left for this parameter."""
        return self.sharded_param._grad if self.dtensor_grad is None else self.dtensor_grad

    def _normalize_unsharded_grad_to_local(self, grad: ms.Tensor | DTensor) -> ms.Tensor:
        # to_local and redistribute hand out views where the stored layout differs from the logical one.
        return grad.redistribute().to_local() if isinstance(grad, DTensor) else grad

    def _to_local_unsharded_grad(self, grad: ms.Tensor | DTensor) -> ms.Tensor:
        # The one entry of all reduce paths. The fault: nothing here makes the view contiguous.
        return self._normalize_unsharded_grad_to_local(grad)

    def unshard(self) -> None:
        """Put the whole parameter's data, an operator's output that may still be queued, in place."""
        if self._gather is not None:
            self.sharded_param.set_data(self._gather(self.sharded_param))

    def reduce_grad(self, grad: ms.Tensor | DTensor) -> None:
        """Start to sum the gradient over the data-parallel ranks."""
        self.grad = self._to_local_unsharded_grad(grad)
        self._handle = self._reduce(self.grad)

    def wait_grad(self) -> None:
        """Wait for the reduction that ``reduce_grad`` started."""
        if self._handle is not None:
            self._handle.wait()
            self._handle = None
