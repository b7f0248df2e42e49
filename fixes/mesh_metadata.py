"""Mends 134.1: rank maps and coordinates of a device mesh stay on the host, whatever device is current.

A rank map becomes a Tensor made by ``Tensor.from_numpy``, which has storage in the meta context too, and carries its
values as numpy. Changes of its shape and the search for a rank's coordinate are done in numpy: an operator of MindSpore
would put its result on the current device again. Entering ``ms.DeviceCtx("CPU")`` would mend it too, but that context
is the whole process's, so that a mesh made in one thread would take another thread's meta context away.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import wrapt
from numpy.typing import NDArray

from fixes.mend import Mend, below_roots

RankMap = NDArray[np.int32]
_VALUES = "_hyper_repro_rank_map"
# Under either layout of the library: the function that makes the rank map's Tensor.
_CONVERT = ("_convert_rank_map_to_tensor", "_convert_mesh_to_tensor")
# In the layout of core.dtensor: picks this rank's mesh out of all parallel ones, by operators.
_PICK = "_get_mesh_tensor_from_full_mesh"
_SHAPED = ("reshape", "view", "flatten", "ravel")


def host_tensor(values: Any) -> Any:
    """A Tensor of int32 on the host, in every context; its shape can be changed without any operator."""
    import mindspore as ms

    rank_map: RankMap = np.array(values, dtype=np.int32, order="C")
    tensor = ms.Tensor.from_numpy(rank_map.copy())
    setattr(tensor, _VALUES, rank_map)
    for name in _SHAPED:
        setattr(tensor, name, _in_numpy(rank_map, name))
    tensor.asnumpy = rank_map.copy
    # It is int32 already; the library asks for it after every change of shape.
    tensor.int = lambda: tensor
    return tensor


def _in_numpy(rank_map: RankMap, name: str) -> Callable[..., Any]:
    # numpy's view changes the type, not the shape.
    method = "reshape" if name == "view" else name
    return lambda *shape: host_tensor(getattr(rank_map, method)(*shape))


def values_of(rank_map: Any) -> RankMap:
    """The values of a rank map as numpy; reads the Tensor only if it is not one of ours."""
    kept = getattr(rank_map, _VALUES, None)
    if kept is None:
        kept = np.asarray(rank_map.asnumpy() if hasattr(rank_map, "asnumpy") else rank_map, dtype=np.int32)
    found: RankMap = kept
    return found


class _OnHost(type):
    """Lets a module go on asking ``isinstance(x, Tensor)`` once its name ``Tensor`` makes host Tensors."""

    def __instancecheck__(cls, instance: Any) -> bool:
        import mindspore as ms

        return isinstance(instance, ms.Tensor)


class HostTensor(metaclass=_OnHost):
    """Stands for the name ``Tensor`` in the module of the mesh, where every Tensor is a rank map."""

    def __new__(cls, values: Any) -> Any:  # noqa: D102
        cls.used()
        return host_tensor(values_of(values))

    @staticmethod
    def used() -> None:
        """Called with every Tensor that is made."""


class MeshMetadata(Mend):
    """The mend of 134.1."""

    fault = "134.1"
    mends = "keeps a mesh's rank maps and coordinates in host numpy, off the current device"
    since = "hyper-parallel from 2026-03 (core.device_mesh) on, core.dtensor.device_mesh included; MindSpore 2.10.0"
    modules = below_roots("core.dtensor.device_mesh", "core.device_mesh")

    def apply(self, module: ModuleType) -> None:
        """Mend where the rank map is made, where coordinates are looked for, and the module's own ``Tensor``."""
        search = self.target(module, "DeviceMesh._compute_coordinates_from_mesh", ("rank",))
        makers = [self.target(module, f"DeviceMesh.{name}", needed=False) for name in _CONVERT]
        found = next((maker for maker in makers if maker), None)
        if found is None:
            found = self.target(module, f"DeviceMesh.{_CONVERT[0]}", ("rank_map",))
        pick = self.target(module, f"DeviceMesh.{_PICK}", ("full_mesh",), needed=False)
        owner, name, stored = search
        self.put(module, owner, name, wrapt.FunctionWrapper(stored, self._search))
        if pick is not None:
            owner, name, stored = pick
            self.put(module, owner, name, wrapt.FunctionWrapper(stored, self._pick))
        if "Tensor" in vars(module):
            # Whatever the module makes of a rank map, flat or not, it makes by this name.
            self.put(module, module, "Tensor", _OnHost("Tensor", (HostTensor,), {"used": self.used}))
            return
        owner, name, stored = found
        self.put(module, owner, name, wrapt.FunctionWrapper(stored, self._convert))

    def _convert(
        self, _wrapped: Callable[..., Any], _instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        (given,) = (*args, *kwargs.values())
        self.used()
        return host_tensor(values_of(given))

    def _search(
        self, _wrapped: Callable[..., Any], _instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        rank_map, rank = (*args, *kwargs.values())
        self.used()
        found = np.argwhere(values_of(rank_map) == rank)
        if len(found) > 1:
            raise AssertionError(f"rank {rank} is {len(found)} times in the mesh")
        return tuple(int(index) for index in found[0]) if len(found) else None

    def _pick(self, wrapped: Callable[..., Any], _instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Numpy knows the arrays' indexing; the function's own search and errors stay as they are."""
        full, *rest = args or (kwargs.pop("full_mesh"),)
        self.used()
        return host_tensor(wrapped(values_of(full).view(_Array), *rest, **kwargs))


class _Array(np.ndarray[Any, np.dtype[np.int32]]):
    """A numpy array whose ``nonzero`` gives coordinates a row, as a Tensor's does."""

    def nonzero(self) -> Any:
        """One row a hit."""
        return np.argwhere(np.asarray(self))


MEND = MeshMetadata()
