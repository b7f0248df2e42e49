"""A distributed tensor in little: a local piece, its mesh, and conversions that hand out views, as 134.2 needs."""

from __future__ import annotations

from dataclasses import dataclass

import mindspore as ms

from repro.distilled.core.dtensor.device_mesh import DeviceMesh


@dataclass(frozen=True)
class DTensor:
    """A local tensor and the mesh over which it is sharded or replicated.

    Attributes:
        local: This rank's piece.
        mesh: Where the other pieces are.
        transposed: True if the piece is kept with its two last axes swapped.
    """

    local: ms.Tensor
    mesh: DeviceMesh
    transposed: bool = False

    def to_local(self) -> ms.Tensor:
        """This rank's piece in its logical layout; a view of what is stored, not a copy."""
        return self.local.T if self.transposed else self.local

    def rewritten(self) -> DTensor:
        """What a redistribution by a collective leaves: the piece is written anew, so it is contiguous."""
        return DTensor(self.to_local().contiguous(), self.mesh)

    def redistribute(self) -> DTensor:
        """The same values in logical layout; the piece is a view of the old one."""
        return DTensor(self.to_local(), self.mesh)
