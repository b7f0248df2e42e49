"""134.2 on Ascend: the collective refuses a view, and the error surfaces in the next line that waits for the queue.

The order is that of backward prefetch: the later layer's gradient arrives as a view and its reduction is queued; the
earlier layer's parameter is unsharded; then the earlier layer's post_backward reads an attribute of that Parameter,
which waits for the queue, and there the other layer's error comes up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import mindspore.mint.distributed as dist
import numpy as np
from mindspore import mint

from repro.distilled.core.dtensor.device_mesh import DeviceMesh
from repro.distilled.core.dtensor.dtensor import DTensor
from repro.distilled.platform.mindspore.fully_shard.param import HSDPParamV2
from repro.distilled.platform.mindspore.fully_shard.state import MindSporeHSDPStateV2
from repro.model import Tier
from repro.probes.context import Context
from repro.probes.issuing import CollectiveLog
from repro.probes.metadata import metadata

ROWS, COLUMNS = 4, 6
REFUSAL = "does not support not-contiguous tensor"


def case(context: Context) -> None:
    """Reduce by all_reduce and reduce_scatter, each sync and async; ``args.arrival`` is view or contiguous."""
    context.init_collectives()
    DeviceMesh.search_on_host = context.tier is Tier.SIM
    with metadata("a device mesh is metadata"):
        mesh = DeviceMesh(list(range(context.world)), ["dp"], context.rank)
    ways = [(name, async_op) for name in ("all_reduce", "reduce_scatter") for async_op in (False, True)]
    errors = [_post_backward(context, mesh, name, async_op=async_op) for name, async_op in ways]
    refusals = [error for error in errors if error is not None]
    if refusals and len(refusals) < len(errors):
        raise RuntimeError(f"{len(refusals)} of {len(errors)} ways were refused, the report has all; see the checks")
    if refusals:
        raise refusals[0]


def _post_backward(context: Context, mesh: DeviceMesh, name: str, *, async_op: bool) -> ValueError | None:
    reduce = _collective(name, context.world, async_op=async_op)
    later, earlier = (MindSporeHSDPStateV2([_param(mesh, reduce)]) for _ in range(2))
    view = DTensor(ms.Tensor(np.ones((ROWS, COLUMNS), np.float32)), mesh, transposed=True)
    contiguous = DTensor(view.to_local().contiguous(), mesh)
    later.hsdp_params[0].dtensor_grad = view if context.args["arrival"] == "view" else contiguous
    raised: ValueError | None = None
    log = CollectiveLog()
    try:
        with log:
            later.post_backward()
            earlier.unshard()
            earlier.post_backward()
            later.wait_grads()
            ms.runtime.synchronize()
    except ValueError as error:
        raised = error
    refused = raised is not None and REFUSAL in str(raised)
    label = f"{name} {'async' if async_op else 'sync'}"
    context.check(label, ok=raised is None, fault=refused, says=str(raised).splitlines()[0] if raised else "")
    return raised


def _param(mesh: DeviceMesh, reduce: Callable[[ms.Tensor], Any]) -> HSDPParamV2:
    def gather(_: ms.Parameter) -> ms.Tensor:
        # Stands for the buffer that an all-gather fills: an operator's output that is still queued.
        return mint.ones((COLUMNS, ROWS)) * 1

    return HSDPParamV2(ms.Parameter(ms.Tensor(np.ones((COLUMNS, ROWS), np.float32))), mesh, None, reduce, gather)


def _collective(name: str, world: int, *, async_op: bool) -> Callable[[ms.Tensor], Any]:
    def all_reduce(grad: ms.Tensor) -> Any:
        return dist.all_reduce(grad, async_op=async_op)

    def reduce_scatter(grad: ms.Tensor) -> Any:
        shard = mint.zeros((COLUMNS // world, ROWS))
        return dist.reduce_scatter_tensor(shard, grad, async_op=async_op)

    return all_reduce if name == "all_reduce" else reduce_scatter
