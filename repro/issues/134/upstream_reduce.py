"""134.2 on the real library: ``hsdp(shard_size=1)`` on a linear layer whose weight gradient arrives as a view.

A ``mint.nn.Linear`` without bias is a plain matrix product, whose gradient is a transposed view; ``nn.Dense`` gives a
contiguous one. On CPU the collective takes the view and the sum is lost, so every gradient is compared with the sum
over ranks; on Ascend host code it is refused.
"""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from hyper_parallel import hsdp, hsdp_sync_stream, init_process_group
from mindspore import mint, nn
from numpy.typing import NDArray

from repro.model import Tier
from repro.probes.context import Context
from repro.probes.issuing import CollectiveLog

Array = NDArray[np.float32]
BATCH, INPUTS, OUTPUTS = 3, 6, 4


def case(context: Context) -> None:
    """Run backward of the layer that ``args.layer`` names, its reduction synchronous and asynchronous."""
    init_process_group()
    for comm_async in (False, True):
        layer = _layer(str(context.args["layer"]))
        layer.weight.set_data(ms.Tensor(np.ones((OUTPUTS, INPUTS), np.float32)))
        hsdp(layer, shard_size=1, threshold=0, optimizer_level="level1", comm_async=comm_async)
        with CollectiveLog():
            grad = _backward(layer, context.rank)
            if comm_async:
                hsdp_sync_stream()
            if context.tier is not Tier.CPU:
                ms.runtime.synchronize()
        name = f"{context.args['layer']} {'async' if comm_async else 'sync'}"
        if context.tier is Tier.SIM:
            context.check(name, ok=True, fault=False, says="its reduction was accepted")
            continue
        _compare(context, name, grad.asnumpy())


def _layer(kind: str) -> Any:
    if kind == "mint":
        return mint.nn.Linear(INPUTS, OUTPUTS, bias=False)
    return nn.Dense(INPUTS, OUTPUTS, has_bias=False)


def _inputs(rank: int) -> Array:
    return np.arange(BATCH * INPUTS, dtype=np.float32).reshape(BATCH, INPUTS) + 10 * rank


def _weights() -> Array:
    return np.arange(BATCH * OUTPUTS, dtype=np.float32).reshape(BATCH, OUTPUTS)


def _backward(layer: Any, rank: int) -> Any:
    def forward(value: ms.Tensor) -> ms.Tensor:
        return (layer(value) * ms.Tensor(_weights())).sum()

    return ms.value_and_grad(forward, None, layer.trainable_params())(ms.Tensor(_inputs(rank)))[1][0]


def _compare(context: Context, name: str, grad: Array) -> None:
    own = _weights().T @ _inputs(context.rank)
    total = sum((_weights().T @ _inputs(rank) for rank in range(context.world)), np.zeros_like(own))
    summed, lost = bool(np.allclose(grad, total)), bool(np.allclose(grad, own))
    says = "" if summed else "this rank's own gradient, not the sum over ranks" if lost else "neither own nor sum"
    context.check(name, summed, fault=lost, says=says, largest_difference=float(np.abs(grad - total).max()))
