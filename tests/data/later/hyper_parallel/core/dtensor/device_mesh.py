"""A device mesh with the names of the later layout; its rank maps are Tensors of whatever device is current (134.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hyper_parallel.platform import get_platform

platform = get_platform()
Tensor = platform.Tensor


class _Layout:
    """Where the ranks of a mesh, and of the meshes parallel to it, stand in a flat rank map: parallel meshes first."""

    def __init__(self, places: Any) -> None:
        self.places = np.asarray(places)

    def keep(self, axes: Sequence[int]) -> _Layout:
        """The layout of the meshes along some axes."""
        moved = np.moveaxis(self.places, [axis + 1 for axis in axes], range(-len(axes), 0))
        return _Layout(moved.reshape(-1, *(self.places.shape[axis + 1] for axis in axes)))

    def remap_to_numpy(self, rank_map: Any) -> Any:
        """The ranks of all parallel meshes."""
        return np.asarray(rank_map)[self.places]


class DeviceMesh:
    """An arrangement of ranks; one made from another shares its flat rank map."""

    def __init__(
        self,
        device_type: str,
        mesh: Any = None,
        *,
        mesh_dim_names: Sequence[str] = (),
        _layout: _Layout | None = None,
        _rank_map: Any = None,
        _root_mesh: DeviceMesh | None = None,
    ) -> None:
        self.device_type = device_type
        self.mesh_dim_names = tuple(mesh_dim_names)
        self._rank = platform.get_rank()
        self._root_mesh = _root_mesh
        if _layout is None:
            tensor = self._convert_mesh_to_tensor(mesh)
            self._layout = _Layout(np.arange(int(np.prod(tensor.shape))).reshape(1, *tensor.shape))
            self._rank_map = self._build_rank_map_from_mesh(tensor)
        else:
            self._layout = _layout
            self._rank_map = self._convert_rank_map_to_tensor(_rank_map)
        self._refresh_mesh_view()
        self._coordinate_on_dim = self._compute_coordinate_on_dim()

    @staticmethod
    def _convert_mesh_to_tensor(mesh: Any) -> Any:
        values = platform.tensor_to_numpy(mesh) if isinstance(mesh, Tensor) else np.array(mesh)
        return Tensor(values.astype(np.int32)).int()

    @staticmethod
    def _build_rank_map_from_mesh(mesh: Any) -> Any:
        return Tensor(platform.tensor_to_numpy(mesh).reshape(-1).astype(np.int32)).int()

    @staticmethod
    def _convert_rank_map_to_tensor(rank_map: Any) -> Any:
        values = platform.tensor_to_numpy(rank_map) if isinstance(rank_map, Tensor) else np.array(rank_map)
        return Tensor(values.reshape(-1).astype(np.int32)).int()

    def _refresh_mesh_view(self) -> None:
        full_mesh = Tensor(self._layout.remap_to_numpy(platform.tensor_to_numpy(self._rank_map))).int()
        self.mesh = self._get_mesh_tensor_from_full_mesh(full_mesh)
        self.mesh_shape = tuple(self.mesh.shape)
        self.rank_list = tuple(int(rank) for rank in platform.tensor_to_numpy(self.mesh).reshape(-1))

    @staticmethod
    def _get_mesh_tensor_from_full_mesh(full_mesh: Any) -> Any:
        """This rank's mesh among its parallels."""
        if full_mesh.shape[0] == 1:
            return full_mesh[0]
        found = (full_mesh == platform.get_rank()).nonzero()
        if found.shape[0] == 0:
            raise RuntimeError("this rank is in none of the parallel meshes")
        return full_mesh[int(found[0, 0])]

    def _compute_coordinate_on_dim(self) -> tuple[int, ...] | None:
        return self._compute_coordinates_from_mesh(self.mesh, self._rank)

    @staticmethod
    def _compute_coordinates_from_mesh(mesh_tensor: Any, rank: int) -> tuple[int, ...] | None:
        """Where the rank stands; None if it is not in the mesh."""
        found = (mesh_tensor == rank).nonzero()
        return tuple(found[0].tolist()) if found.shape[0] else None

    def get_coordinate(self) -> tuple[int, ...] | None:
        """Where this rank stands."""
        return self._coordinate_on_dim

    def _view(self, names: Sequence[str], layout: _Layout) -> DeviceMesh:
        root = self._root_mesh or self
        return DeviceMesh(
            self.device_type, mesh_dim_names=names, _layout=layout, _rank_map=root._rank_map, _root_mesh=root
        )

    def __getitem__(self, name: str) -> DeviceMesh:
        """The mesh along one dimension."""
        return self._view([name], self._layout.keep([self.mesh_dim_names.index(name)]))

    def flatten(self, mesh_dim_name: str) -> DeviceMesh:
        """All ranks in one dimension."""
        places = self._layout.places
        return self._view([mesh_dim_name], _Layout(places.reshape(places.shape[0], -1)))

    @staticmethod
    def concatenate(device_mesh_list: Sequence[DeviceMesh]) -> DeviceMesh:
        """One mesh with the dimensions of all, which are views of one root."""
        root = device_mesh_list[0]._root_mesh or device_mesh_list[0]
        names = [name for mesh in device_mesh_list for name in mesh.mesh_dim_names]
        layout = root._layout.keep([root.mesh_dim_names.index(name) for name in names])
        return root._view(names, layout)

    @staticmethod
    def from_group(group: Sequence[int], device_type: str, mesh_dim_names: Sequence[str]) -> DeviceMesh:
        """The mesh of a group's ranks."""
        return DeviceMesh(device_type, list(group), mesh_dim_names=mesh_dim_names)
