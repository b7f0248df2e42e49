"""134.2: a gradient that reaches its collective as a view, through the one entry of all reduce paths.

On CPU the collective does not refuse a view: it returns, and the sum is lost. So every gradient is compared with the
sum over ranks, which each rank can compute for itself, since it knows what the others hold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import mindspore.mint.distributed as dist
import numpy as np
from mindspore import mint
from numpy.typing import NDArray

from repro.distilled.core.dtensor.device_mesh import DeviceMesh
from repro.distilled.core.dtensor.dtensor import DTensor
from repro.distilled.platform.mindspore.fully_shard.param import HSDPParamV2
from repro.probes.context import Context

Array = NDArray[np.float32]
ROWS, COLUMNS = 3, 4


def case(context: Context) -> None:
    """Reduce a DTensor's and a linear layer's gradient; ``args.arrival`` is view, contiguous or unreduced."""
    context.init_collectives()
    mesh = DeviceMesh(list(range(context.world)), ["dp"], context.rank)
    arrival = str(context.args["arrival"])
    for name, make in (("DTensor.to_local", _dtensor_gradient), ("Linear.weight", _linear_gradient)):
        for async_op in (False, True):
            param = _Param(mesh, arrival, async_op=async_op)
            grad, local = make(context.rank, mesh)
            if arrival == "contiguous":
                grad = DTensor(grad.to_local().contiguous(), mesh) if isinstance(grad, DTensor) else grad.contiguous()
            param.reduce_grad(grad)
            param.wait_grad()
            expected = sum((make(rank, mesh)[1] for rank in range(context.world)), np.zeros_like(local))
            _compare(context, f"{name} {'async' if async_op else 'sync'}", param, expected, local)


class _Param(HSDPParamV2):
    """A parameter whose reduction is an all_reduce over the world."""

    def __init__(self, mesh: DeviceMesh, arrival: str, *, async_op: bool) -> None:
        def all_reduce(grad: ms.Tensor) -> Any:
            return None if arrival == "unreduced" else dist.all_reduce(grad, async_op=async_op)

        super().__init__(ms.Parameter(ms.Tensor(np.zeros((COLUMNS, ROWS), np.float32))), mesh, None, all_reduce)


def _dtensor_gradient(rank: int, mesh: DeviceMesh) -> tuple[DTensor, Array]:
    stored = np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS) + 100 * rank
    return DTensor(ms.Tensor(stored), mesh, transposed=True), stored.T


def _linear_gradient(rank: int, mesh: DeviceMesh) -> tuple[ms.Tensor, Array]:
    del mesh
    layer = mint.nn.Linear(ROWS, COLUMNS, bias=False)
    layer.weight.set_data(ms.Tensor(np.ones((COLUMNS, ROWS), np.float32)))
    x = np.arange(2 * ROWS, dtype=np.float32).reshape(2, ROWS) + 10 * rank
    forward: Callable[[ms.Tensor], ms.Tensor] = lambda value: layer(value).sum()  # noqa: E731
    grad = ms.value_and_grad(forward, None, layer.trainable_params())(ms.Tensor(x))[1][0]
    # The reference in closed form: d(sum(x @ W.T))/dW holds the column sums of x in every row.
    return grad, np.tile(x.sum(axis=0), (COLUMNS, 1))


def _compare(context: Context, name: str, param: HSDPParamV2, expected: Array, local: Array) -> None:
    if param.grad is None:
        raise RuntimeError(f"{name}: reduce_grad left no gradient")
    strides, contiguous = param.grad.stride(), param.grad.is_contiguous()
    value = param.grad.asnumpy()
    off_by = float(np.abs(value - expected).max())
    lost = np.allclose(value, local) and not np.allclose(local, expected)
    context.check(
        name,
        ok=np.allclose(value, expected),
        fault=lost,
        says=f"holds the {'unreduced value' if lost else 'value'}, off by {off_by:g} from the sum over ranks",
        largest_difference=off_by,
        strides=list(strides),
        contiguous=bool(contiguous),
    )
