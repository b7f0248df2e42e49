"""The placement half of a sharded parameter: where the meshes of fully_shard and of a DTensor parameter meet."""

from __future__ import annotations

from repro.distilled.core.dtensor.device_mesh import DeviceMesh


class HSDPParam:
    """A parameter's place in the data-parallel mesh and, if it is a DTensor, in the tensor-parallel one.

    Args:
        mesh: The mesh that fully_shard was given.
        orig_dtensor_mesh: The mesh of the DTensor that the parameter was; None for an ordinary parameter.
    """

    def __init__(self, mesh: DeviceMesh, orig_dtensor_mesh: DeviceMesh | None) -> None:
        self.mesh = mesh
        self._orig_dtensor_mesh = orig_dtensor_mesh
        self._spmd_mesh = mesh
        self._get_base_spmd_placements()

    def _get_base_spmd_placements(self) -> None:
        # Only a TP- or EP-sharded parameter comes this way, which is why report 134 sees the crash only there.
        if self._orig_dtensor_mesh is not None:
            self._spmd_mesh = DeviceMesh.concatenate([self.mesh, self._orig_dtensor_mesh])

    @property
    def spmd_mesh(self) -> DeviceMesh:
        """The mesh over which the parameter is laid out in all."""
        return self._spmd_mesh
