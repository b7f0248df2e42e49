"""A device mesh that keeps its rank map in a Tensor of whatever device is current: the shape of fault 134.1."""

from __future__ import annotations

from collections.abc import Sequence

import mindspore as ms
import numpy as np
from numpy.typing import NDArray

RankMap = NDArray[np.int32]


def tensor_to_numpy(tensor: ms.Tensor) -> RankMap:
    """Host copy of a tensor; fails for one that lives on the meta device."""
    values: RankMap = tensor.asnumpy()
    return values


class DeviceMesh:
    """An n-dimensional arrangement of ranks with named dimensions.

    Args:
        rank_map: Global ranks, one axis a mesh dimension.
        dim_names: A name for each axis.
        rank: This process's global rank.

    Attributes:
        search_on_host: Look for the coordinate in a host copy. The simulated Ascend refuses nonzero, whose output shape
            depends on values that it does not compute; everywhere else the search runs on the device, as reported.
    """

    search_on_host = False

    def __init__(self, rank_map: Sequence[object] | RankMap, dim_names: Sequence[str], rank: int) -> None:
        self.dim_names = tuple(dim_names)
        self.rank = rank
        self._rank_map = self._convert_rank_map_to_tensor(rank_map)
        self._refresh_mesh_view()

    @staticmethod
    def _convert_rank_map_to_tensor(rank_map: Sequence[object] | RankMap) -> ms.Tensor:
        # The fault: nothing says where this tensor lives, so inside ms.DeviceCtx("meta") it has no storage.
        return ms.Tensor(np.asarray(rank_map, dtype=np.int32))

    def _refresh_mesh_view(self) -> None:
        full_mesh = tensor_to_numpy(self._rank_map)
        self.shape = full_mesh.shape
        self.rank_list = tuple(int(rank) for rank in full_mesh.ravel())
        self.coordinate = self._compute_coordinates_from_mesh(self._rank_map, self.rank)

    @classmethod
    def _compute_coordinates_from_mesh(cls, rank_map: ms.Tensor, rank: int) -> tuple[int, ...] | None:
        on_host = cls.search_on_host
        ranks = tensor_to_numpy(rank_map) if on_host else rank_map
        found = np.argwhere(ranks == rank) if on_host else tensor_to_numpy((ranks == rank).nonzero())
        return tuple(int(index) for index in found[0]) if len(found) else None

    @classmethod
    def from_group(cls, group: str, name: str, rank: int) -> DeviceMesh:
        """One dimension with the ranks of a communication group that is formed already."""
        from mindspore.mint.distributed import get_process_group_ranks

        return cls(get_process_group_ranks(group), [name], rank)

    @staticmethod
    def concatenate(meshes: Sequence[DeviceMesh]) -> DeviceMesh:
        """One mesh with the dimensions of all, the first outermost.

        A data-parallel mesh and the tensor-parallel mesh of a DTensor parameter each hold the ranks along one direction
        through this rank; their concatenation spans both.
        """
        first, *others = meshes
        rank_map = tensor_to_numpy(first._rank_map)
        for mesh in others:
            offsets = tensor_to_numpy(mesh._rank_map) - mesh.rank
            rank_map = rank_map.reshape(rank_map.shape + (1,) * offsets.ndim) + offsets
        names = [name for mesh in meshes for name in mesh.dim_names]
        return DeviceMesh(rank_map, names, first.rank)

    def submesh(self, name: str) -> DeviceMesh:
        """The line of ranks through this rank along one dimension.

        Raises:
            ValueError: The mesh has no such dimension, or this rank is not in it.
        """
        if self.coordinate is None:
            raise ValueError(f"rank {self.rank} is not in the mesh {self.rank_list}")
        axis = self.dim_names.index(name)
        index: list[int | slice] = list(self.coordinate)
        index[axis] = slice(None)
        return DeviceMesh(tensor_to_numpy(self._rank_map)[tuple(index)], [name], self.rank)

    def flatten(self, name: str) -> DeviceMesh:
        """All ranks of the mesh in one dimension."""
        return DeviceMesh(self._rank_map.reshape(-1).asnumpy(), [name], self.rank)
