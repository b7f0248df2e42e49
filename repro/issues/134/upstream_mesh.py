"""134.1 on the real library: a device mesh made, sliced and flattened inside ms.DeviceCtx("meta").

The world group is formed before. A mesh with groups asks for it again, and on Ascend MindSpore cannot even be asked in
the meta context (``KeyError: 'meta'``), so on tier sim meshes in that context are made without groups: no flatten
there, and no from_group, for which the simulation knows no ranks. Ranks and coordinates are compared with numpy's.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import mindspore as ms
import numpy as np
from hyper_parallel import DeviceMesh, init_device_mesh, init_process_group
from numpy.typing import NDArray

from repro.model import Tier, Topology
from repro.probes.context import Context
from repro.probes.metadata import metadata

Ranks = NDArray[np.int64]


def case(context: Context) -> None:
    """Make in ``args.context`` what ``args.make`` says: all (``mesh``) or the views of a mesh made outside."""
    if context.world == 1:
        context.record("reached", what="one card has no mesh to make")
        return
    init_process_group()
    degrees = _degrees(context.topology)
    names, shape = tuple(degrees), tuple(degrees.values())
    ranks = np.arange(context.world).reshape(shape)
    with metadata("a device mesh is metadata: rank maps and coordinates, no computed number"):
        grouped = context.tier is not Tier.SIM
        made = init_device_mesh("npu", shape, mesh_dim_names=names) if context.args["make"] == "views" else None
        with _device_context(str(context.args["context"])):
            mesh = made or init_device_mesh("npu", shape, mesh_dim_names=names, init_backend=grouped)
            meshes = _views(mesh, grouped=grouped, sliced=grouped or made is not None)
    own = np.argwhere(ranks == context.rank)[0]
    lines = {name: np.moveaxis(ranks, axis, 0)[:, *np.delete(own, axis)] for axis, name in enumerate(names)}
    expected = {"mesh": ranks, **lines, "flatten": ranks.ravel(), "from_group": lines["tp"], "concatenate": ranks}
    for name, found in meshes.items():
        _compare(context, name, found, expected[name])


def _degrees(topology: Topology) -> dict[str, int]:
    """The mesh of a topology, outermost first: all data parallel ranks, expert parallel if any, tensor parallel."""
    experts = {"ep": topology.ep} if topology.ep > 1 else {}
    return {"dp": topology.dp * topology.fsdp, **experts, "tp": topology.tp}


def _views(mesh: Any, *, grouped: bool, sliced: bool) -> dict[str, Any]:
    views = {"mesh": mesh}
    if sliced:
        views |= {name: mesh[name] for name in mesh.mesh_dim_names}
    if grouped:
        views["flatten"] = mesh.flatten()
        views["from_group"] = DeviceMesh.from_group(mesh.get_group("tp"), "npu", mesh_dim_names=("tp",))
    # Layouts before core/dtensor have none.
    if sliced and hasattr(DeviceMesh, "concatenate"):
        views["concatenate"] = DeviceMesh.concatenate([mesh[name] for name in mesh.mesh_dim_names])
    return views


def _compare(context: Context, name: str, mesh: Any, expected: Ranks) -> None:
    seen = np.array(mesh.rank_list).reshape(mesh.mesh_shape)
    same = seen.shape == expected.shape and bool((seen == expected).all())
    context.check(f"{name}: ranks", same, fault=False, value=list(mesh.rank_list))
    # The library leaves the coordinate out in a simulation.
    if context.tier is not Tier.SIM:
        at = tuple(int(index) for index in np.argwhere(expected == context.rank)[0])
        context.check(f"{name}: coordinate", mesh.get_coordinate() == at, fault=False, value=mesh.get_coordinate())


def _device_context(name: str) -> AbstractContextManager[object]:
    return ms.DeviceCtx("meta") if name == "meta" else nullcontext()
