"""301's regression: one layer under the distilled fully_shard, stepped 1,000 times, its live hook handles counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
from mindspore._c_expression import run_backward
from mindspore.graph.api import _pynative_executor

from repro.distilled.api import fully_shard
from repro.distilled.core.dtensor.device_mesh import DeviceMesh
from repro.model import Tier
from repro.probes.context import Context
from repro.probes.hooks import count_hooks, live_hooks
from repro.probes.metadata import metadata

WIDTH = 8


def series(context: Context) -> dict[str, Callable[[], object]]:
    """The loops: one call is one forward and backward of the layer."""
    if context.args.get("blocking"):
        # Without MindSpore's pipeline, whose threads wait for each other on a busy machine; what is left is the same.
        ms.runtime.launch_blocking()
    count_hooks()
    context.count("live_handles", live_hooks)
    x = ms.Tensor(np.ones((2, WIDTH), np.float32))
    seed = ms.Tensor(np.ones((2, WIDTH), np.float32))
    DeviceMesh.search_on_host = context.tier is Tier.SIM
    with metadata("a device mesh is metadata"):
        mesh = DeviceMesh([0], ["dp"], 0)
    sharded = ms.nn.Dense(WIDTH, WIDTH, has_bias=False)
    fully_shard(sharded, mesh, lambda _: None)
    plain = ms.nn.Dense(WIDTH, WIDTH, has_bias=False)
    kept: list[Any] = []

    def loop(layer: ms.nn.Cell, *, removes: bool = False, keeps: bool = False) -> Callable[[], None]:
        def step() -> None:
            _pynative_executor.set_grad_flag(True)
            y = layer(x)
            if removes or keeps:
                kept.append(y.register_hook(lambda grad: grad))
            run_backward((y,), (seed,), False, False, (), allow_unreachable=True, accumulate_grad=True)
            _pynative_executor.set_grad_flag(False)
            layer.weight._grad = None
            if removes:
                kept.pop().remove()

        return step

    return {"sharded": loop(sharded), "removed": loop(plain, removes=True), "planted": loop(plain, keeps=True)}
