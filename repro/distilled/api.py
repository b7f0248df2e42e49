"""``fully_shard``: put a cell's layers under the distilled scheduler."""

from __future__ import annotations

from collections.abc import Mapping

import mindspore as ms

from repro.distilled.core.dtensor.device_mesh import DeviceMesh
from repro.distilled.platform.mindspore.fully_shard.param import HSDPParamV2, Reduce
from repro.distilled.platform.mindspore.fully_shard.scheduler import MindSporeHSDPSchedulerV2
from repro.distilled.platform.mindspore.fully_shard.state import MindSporeHSDPStateV2


def fully_shard(
    cell: ms.nn.Cell, mesh: DeviceMesh, reduce: Reduce, dtensor_meshes: Mapping[str, DeviceMesh] | None = None
) -> MindSporeHSDPSchedulerV2:
    """Shard one cell as a unit.

    Args:
        cell: The layer; its parameters become the unit's.
        mesh: The data-parallel mesh.
        reduce: The collective for gradients, see ``HSDPParamV2``.
        dtensor_meshes: The tensor- or expert-parallel mesh of each parameter that is a DTensor, by parameter name.

    Returns:
        The unit's scheduler; link ``backward_prefetch`` to prefetch.
    """
    meshes = dtensor_meshes or {}
    params = [HSDPParamV2(param, mesh, meshes.get(param.name), reduce) for param in cell.trainable_params()]
    return MindSporeHSDPSchedulerV2(cell, MindSporeHSDPStateV2(params))
