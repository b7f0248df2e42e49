"""Do the mends themselves grow? A sharded layer and a custom Function under all mends, beside neither."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
from mindspore._c_expression import run_backward
from mindspore.common._grad_function import _Function
from mindspore.graph.api import _pynative_executor

from repro.distilled.api import fully_shard
from repro.distilled.core.dtensor.device_mesh import DeviceMesh
from repro.probes.context import Context
from repro.probes.plant import leak_bytes

WIDTH = 8


class _Identity(_Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, x: ms.Tensor) -> ms.Tensor:
        del ctx
        return x * 1

    @staticmethod
    def backward(ctx: Any, grad: ms.Tensor) -> ms.Tensor:
        del ctx
        return grad


def series(context: Context) -> dict[str, Callable[[], object]]:
    """The loops: one call is one forward and backward."""
    del context
    ms.runtime.launch_blocking()
    x = ms.Tensor(np.ones((2, WIDTH), np.float32))
    seed = ms.Tensor(np.ones((2, WIDTH), np.float32))
    mesh = DeviceMesh([0], ["dp"], 0)
    sharded, plain = (ms.nn.Dense(WIDTH, WIDTH, has_bias=False) for _ in range(2))
    fully_shard(sharded, mesh, lambda _: None)

    def loop(
        layer: ms.nn.Cell, *, function: bool = False, mesh: bool = False, leaks: bool = False
    ) -> Callable[[], None]:
        def step() -> None:
            _pynative_executor.set_grad_flag(True)
            y = layer(x)
            y = _Identity.apply(y) if function else y * 1
            run_backward((y,), (seed,), False, False, (), allow_unreachable=True, accumulate_grad=True)
            _pynative_executor.set_grad_flag(False)
            layer.weight._grad = None
            if mesh:
                # Every step makes a mesh too, as a mended library may.
                DeviceMesh([0], ["dp"], 0)
            if leaks:
                leak_bytes(64)

        return step

    return {
        "mended": loop(sharded, function=True, mesh=True),
        "hooks": loop(sharded),
        "function": loop(plain, function=True),
        "mesh": loop(plain, mesh=True),
        "plain": loop(plain),
        "planted": loop(plain, leaks=True),
    }
