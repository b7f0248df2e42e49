"""The control of 219 that ends well, like the report's test_ms_hsdp_replicate_dtensor_state_visible_after_backward.

The same scheduler and path through backward, without prefetch and with nothing queued inside a final callback: after
backward each rank sees the reduced gradients in the state of its units.
"""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore._c_expression import run_backward
from mindspore.graph.api import _pynative_executor

from repro.distilled.api import fully_shard
from repro.distilled.core.dtensor.device_mesh import DeviceMesh
from repro.probes.context import Context
from repro.probes.teardown import CallbackProbe

WIDTH = 4
ROWS = 7


def case(context: Context) -> None:
    """Form the group and run the test."""
    context.init_collectives()
    test(context)


def test(context: Context) -> None:
    """Run one backward, check the reduced gradients and print what the report's test prints."""

    def reduce(grad: ms.Tensor) -> Any:
        return ms.mint.distributed.all_reduce(grad, async_op=True)

    mesh = DeviceMesh(range(context.world), ["dp"], context.rank)
    layers = [ms.nn.Dense(WIDTH, WIDTH, weight_init="ones", has_bias=False) for _ in range(2)]
    units = [fully_shard(layer, mesh, reduce) for layer in layers]
    rows = ms.Tensor(np.ones((ROWS, WIDTH), np.float32))
    # With a gradient of its own, so that the Function that ends a layer's backward is there for the first layer too.
    rows.requires_grad_(True)
    with CallbackProbe(context) as probe:
        _pynative_executor.set_grad_flag(True)
        logits = rows
        for layer in layers:
            logits = layer(logits)
        seed = ms.Tensor(np.ones((ROWS, WIDTH), np.float32))
        run_backward((logits,), (seed,), False, False, (), allow_unreachable=True, accumulate_grad=True)
        _pynative_executor.set_grad_flag(False)
        probe.backward_done()
    # In closed form: each entry of a rank's own gradient is ROWS * WIDTH in both layers, and the ranks are summed.
    expected, unreduced = ROWS * WIDTH * context.world, ROWS * WIDTH
    for index, unit in enumerate(units):
        grad = unit.hsdp_state.hsdp_params[0].grad
        value = float(np.max(grad.asnumpy())) if grad is not None else 0.0
        ok = value == expected
        context.check("reduced gradient visible", ok=ok, fault=value == unreduced, unit=index, value=value)
        if not ok:
            raise AssertionError(f"unit {index}: gradient is {value}, expected {expected}")
    print(f"rank: {context.rank}, max_logits_sum_after_backward: {float(logits.sum().asnumpy())}")
    print("1 passed")
