"""134.1: fully_shard on a DTensor parameter inside ms.DeviceCtx("meta"), as MindFormers does to delay initialisation.

The data-parallel and the tensor-parallel mesh are made beforehand, as a framework does at start. Inside the context,
fully_shard takes the parameter's base placements, which concatenates the two meshes, refreshes the view of the result,
reads its rank map back and looks for this rank's coordinate in it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import mindspore as ms
import numpy as np
from mindspore import mint

from repro.distilled.api import fully_shard
from repro.distilled.bypass import read_rank_maps_from_the_host
from repro.distilled.core.dtensor.device_mesh import DeviceMesh
from repro.model import Tier
from repro.probes.context import Context
from repro.probes.metadata import metadata


def case(context: Context) -> None:
    """Shard one layer; ``args.context`` is meta or none, ``args.read`` is tensor or bypassed."""
    DeviceMesh.search_on_host = context.tier is Tier.SIM
    data, tensor = _rank_maps(context)
    reason = "a device mesh is metadata: rank maps and coordinates, no computed number"
    with metadata(reason):
        data_mesh = DeviceMesh(data, ["dp"], context.rank)
        sharded = len(tensor) > 1 or context.args.get("parameter") == "dtensor"
        tensor_mesh = DeviceMesh(tensor, ["tp"], context.rank) if sharded else None
        if context.args.get("read") == "bypassed":
            read_rank_maps_from_the_host()
        with _device_context(str(context.args["context"])):
            layer = mint.nn.Linear(4, 4)
            dtensors = {p.name: tensor_mesh for p in layer.trainable_params()} if tensor_mesh else {}
            scheduler = fully_shard(layer, data_mesh, lambda _: None, dtensors)
        mesh = scheduler.hsdp_state.hsdp_params[0].spmd_mesh
    expected = np.add.outer(data, np.asarray(tensor) - context.rank).ravel() if tensor_mesh else np.asarray(data)
    context.check("rank list", mesh.rank_list == tuple(expected), fault=False, value=mesh.rank_list)
    at = np.argwhere(expected.reshape(mesh.shape) == context.rank)[0]
    context.check("coordinate", mesh.coordinate == tuple(at), fault=False, value=mesh.coordinate)


def _rank_maps(context: Context) -> tuple[list[int], list[int]]:
    """Global ranks along this rank's data-parallel and tensor- (or expert-) parallel line."""
    inner = context.topology.tp * context.topology.ep
    first = context.rank // inner * inner
    return list(range(context.rank % inner, context.world, inner)), list(range(first, first + inner))


def _device_context(name: str) -> AbstractContextManager[object]:
    return ms.DeviceCtx("meta") if name == "meta" else nullcontext()
