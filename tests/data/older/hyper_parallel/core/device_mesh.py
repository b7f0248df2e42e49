"""A device mesh with the names of 2026-03; its rank maps are Tensors of whatever device is current (134.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hyper_parallel.platform import get_platform

platform = get_platform()
Tensor = platform.Tensor


class DeviceMesh:
    """An arrangement of ranks."""

    def __init__(self, device_type: str, mesh: Any, *, mesh_dim_names: Sequence[str] = ()) -> None:
        self.device_type = device_type
        self.mesh_dim_names = tuple(mesh_dim_names)
        self.mesh = self._convert_mesh_to_tensor(mesh)
        self.mesh_shape = tuple(self.mesh.shape)
        self.rank_list = tuple(int(rank) for rank in platform.tensor_to_numpy(self.mesh).reshape(-1))
        self._coordinate_on_dim = self._compute_coordinates_from_mesh(self.mesh, platform.get_rank())

    @staticmethod
    def _convert_mesh_to_tensor(mesh: Any) -> Any:
        values = platform.tensor_to_numpy(mesh) if isinstance(mesh, Tensor) else np.array(mesh)
        return Tensor(values.astype(np.int32)).int()

    @staticmethod
    def _compute_coordinates_from_mesh(mesh_tensor: Any, rank: int) -> tuple[int, ...] | None:
        """Where the rank stands; None if it is not in the mesh."""
        found = (mesh_tensor == rank).nonzero()
        return tuple(found[0].tolist()) if found.shape[0] else None

    def get_coordinate(self) -> tuple[int, ...] | None:
        """Where this rank stands."""
        return self._coordinate_on_dim

    def __getitem__(self, name: str) -> DeviceMesh:
        """The line of ranks through this one along a dimension."""
        if self._coordinate_on_dim is None:
            raise KeyError(name)
        axis = self.mesh_dim_names.index(name)
        at: list[int | slice] = list(self._coordinate_on_dim)
        at[axis] = slice(None)
        ranks = np.array(self.rank_list).reshape(self.mesh_shape)[tuple(at)]
        return DeviceMesh(self.device_type, Tensor(ranks.tolist()).reshape(ranks.shape), mesh_dim_names=[name])

    def flatten(self, mesh_dim_name: str) -> DeviceMesh:
        """All ranks in one dimension."""
        return DeviceMesh(self.device_type, Tensor(self.rank_list), mesh_dim_names=[mesh_dim_name])

    @staticmethod
    def from_group(group: Sequence[int], device_type: str, mesh_dim_names: Sequence[str]) -> DeviceMesh:
        """The mesh of a group's ranks."""
        return DeviceMesh(device_type, list(group), mesh_dim_names=mesh_dim_names)
