"""The platform as the 2026-03 layout's modules ask for it."""

from __future__ import annotations

import os
from typing import Any

import mindspore as ms


class Platform:
    """Tensors, and this process's rank, which a test sets."""

    Tensor = ms.Tensor

    @staticmethod
    def get_rank() -> int:
        """The rank of the world group, from the environment."""
        return int(os.environ.get("RANK_ID", "0"))

    @staticmethod
    def tensor_to_numpy(tensor: Any) -> Any:
        """A host copy."""
        return tensor.asnumpy()


_platform = Platform()


def get_platform() -> Platform:
    """The one platform of the process."""
    return _platform
