"""The table of report 134: a small MoE under fully_shard, built inside the meta context and run for one backward.

``args.mesh`` is device, as reported, or host, which mends problem 1 and lets the run reach problem 2. What is sharded
how follows the topology: the attention weight is a DTensor over the TP line if TP > 1, the expert weight over the EP
line if EP > 1 (and the TP line, if any), the norm weight never.

The rule by which a gradient arrives as a view is ours, read from the report: an expert's weight is stored transposed,
as grouped matrix multiplication wants it, and ``to_local`` of its gradient is a view; where the gradient has to be
redistributed over TP, a collective writes it anew and it is contiguous. That the real library's table has this cause is
likely, not proved.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import mindspore.mint.distributed as dist
import numpy as np
from mindspore import mint

from repro.distilled.bypass import read_rank_maps_from_the_host
from repro.distilled.core.dtensor.device_mesh import DeviceMesh
from repro.distilled.core.dtensor.dtensor import DTensor
from repro.distilled.platform.mindspore.fully_shard.param import HSDPParamV2
from repro.distilled.platform.mindspore.fully_shard.state import MindSporeHSDPStateV2
from repro.model import Tier, Topology
from repro.probes.context import Context
from repro.probes.issuing import CollectiveLog
from repro.probes.metadata import metadata

WIDTH = 8


def lines(rank: int, topology: Topology) -> dict[str, list[int]]:
    """Global ranks along this rank's TP, EP and data-parallel line; TP is innermost, data parallel outermost."""
    tp, ep = topology.tp, topology.ep
    inner = tp * ep
    first = rank // inner * inner
    return {
        "tp": list(range(rank // tp * tp, rank // tp * tp + tp)),
        "ep": list(range(first + rank % tp, first + inner, tp)),
        "dp": list(range(rank % inner, topology.world, inner)),
    }


def case(context: Context) -> None:
    """Shard in the meta context, then hand each layer's gradient to its reduction, the last layer first."""
    if context.world > 1:
        context.init_collectives()
    DeviceMesh.search_on_host = context.tier is Tier.SIM
    if context.args["mesh"] == "host":
        read_rank_maps_from_the_host()
        DeviceMesh.search_on_host = True
    with metadata("device meshes are metadata"):
        at = lines(context.rank, context.topology)
        meshes = {name: DeviceMesh(ranks, [name], context.rank) for name, ranks in at.items()}
        reduce = _reduction(context, at["dp"])
        with ms.DeviceCtx("meta"):
            params = {name: _placed(name, context.topology, meshes, reduce) for name in ("expert", "attention", "norm")}
    units = [MindSporeHSDPStateV2([_materialised(name, param, context.topology)]) for name, param in params.items()]
    with CollectiveLog():
        for later, earlier in zip(units, [*units[1:], None], strict=True):
            later.post_backward()
            if earlier is not None:
                earlier.unshard()
        for unit in units:
            unit.wait_grads()
        if context.world > 1:
            ms.runtime.synchronize()
    context.record("reached", what="every gradient was handed to its reduction")


def _reduction(context: Context, ranks: list[int]) -> Callable[[ms.Tensor], Any]:
    """The collective of the data-parallel line: reduce_scatter under FSDP, all_reduce without, nothing for one rank."""
    if len(ranks) == 1:
        return lambda _: None
    group = dist.new_group(ranks)
    if context.topology.fsdp == 1:
        return lambda grad: dist.all_reduce(grad, group=group, async_op=True)
    shard = mint.zeros((WIDTH // len(ranks), WIDTH))
    return lambda grad: dist.reduce_scatter_tensor(shard, grad, group=group, async_op=True)


def _sharded_over(name: str, topology: Topology) -> list[str]:
    """The mesh lines over which the parameter of this layer is a DTensor."""
    over_ep = topology.ep > 1 and name == "expert"
    over_tp = topology.tp > 1 and name != "norm"
    return [line for line, used in (("ep", over_ep), ("tp", over_tp)) if used]


def _placed(
    name: str, topology: Topology, meshes: dict[str, DeviceMesh], reduce: Callable[[ms.Tensor], Any]
) -> HSDPParamV2:
    dtensor = [meshes[line] for line in _sharded_over(name, topology)]
    orig_mesh = DeviceMesh.concatenate(dtensor) if len(dtensor) > 1 else dtensor[0] if dtensor else None
    without_storage = ms.Parameter(ms.Tensor(np.ones((WIDTH, WIDTH), np.float32)), name=name)
    return HSDPParamV2(without_storage, meshes["dp"], orig_mesh, reduce, _gathered)


def _gathered(_: ms.Parameter) -> ms.Tensor:
    # Stands for the buffer that an all-gather fills: an operator's output that is still queued.
    return mint.ones((WIDTH, WIDTH)) * 1


def _materialised(name: str, param: HSDPParamV2, topology: Topology) -> HSDPParamV2:
    """Give the parameter storage and a gradient, after the meta context as delayed initialisation does."""
    param.sharded_param = ms.Parameter(ms.Tensor(np.ones((WIDTH, WIDTH), np.float32)), name=name)
    over = _sharded_over(name, topology)
    stored = DTensor(ms.Tensor(np.ones((WIDTH, WIDTH), np.float32)), param.spmd_mesh, transposed="ep" in over)
    param.dtensor_grad = stored.rewritten() if "tp" in over else stored
    return param
