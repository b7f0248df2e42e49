"""219.1: three layers under fully_shard with replicated parameters and backward prefetch, and what crashes afterwards.

The shape of the report's test_ms_fully_shard_replicate_params_backward_prefetch_regression. ``mechanism`` chooses what
is driven through the scheduler; each of them is a crash of MindSpore 2.10.0 on CPU, none is proved to be what was seen
on Ascend. With ``none``, the natural shape, every run so far ended well: the natural cause is open.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
from mindspore._c_expression import run_backward
from mindspore.graph.api import _pynative_executor

from repro.distilled.core.dtensor.device_mesh import DeviceMesh
from repro.distilled.platform.mindspore.fully_shard.param import HSDPParamV2
from repro.distilled.platform.mindspore.fully_shard.scheduler import MindSporeHSDPSchedulerV2
from repro.distilled.platform.mindspore.fully_shard.state import MindSporeHSDPStateV2
from repro.probes.context import Context
from repro.probes.metadata import metadata
from repro.probes.teardown import CallbackProbe, ReleaseCheck, Sentinel

WIDTH = 8
# What is still queued must come to its end while the rank exits, as in the report.
WAIT_FOR_DEVICE = False
NOT_JUDGED = "values are read to wait for them and to print the loss; nothing is judged by them"
LAYERS = 3


class Unit(MindSporeHSDPSchedulerV2):
    """The natural shape.

    The input of the first layer needs no gradient, so no Function marks the end of that layer's backward, and its
    gradients are reduced in the final callback.
    """

    def __init__(self, cell: ms.nn.Cell, state: MindSporeHSDPStateV2) -> None:
        super().__init__(cell, state)
        self.reduced = False

    def post_backward(self) -> None:
        """Hand the gradients to the reduction, once a step."""
        if not self.reduced:
            self.reduced = True
            super().post_backward()

    def _backward_hook(self) -> None:
        self.post_backward()
        super()._backward_hook()
        self.reduced = False


class QueuesInFinal(Unit):
    """Its final callback queues one more, a fresh bound method.

    MindSpore walks over the vector that this appends to, and never comes to what was appended. A worker thread may
    then drop the last reference to it, and does so without the GIL. Two ranks with an asynchronous collective in the
    final callback crashed in 8 of 8 runs, one rank without a collective in 0 of 12.
    """

    def _backward_hook(self) -> None:
        super()._backward_hook()
        _pynative_executor.queue_backward_final_callback(self._after_backward)

    def _after_backward(self) -> None:
        self.hsdp_state.reshard()


class QueuesCachedInFinal(QueuesInFinal):
    """The contrast: the bound method lives as long as the scheduler. It masks the crash and mends nothing.

    The worker thread still lowers the reference count without the GIL, only not to zero.
    """

    def __init__(self, cell: ms.nn.Cell, state: MindSporeHSDPStateV2) -> None:
        super().__init__(cell, state)
        # In the instance it hides the class's method, so reading the attribute makes no new object.
        self._after_backward = self._after_backward  # type: ignore[method-assign]


class RaisesInBackward(Unit):
    """Raises while its final callback is queued, so that MindSpore drops that un-run."""

    def post_backward(self) -> None:
        """Fail as an operator in backward may, before any collective: the ranks stay in step."""
        raise RuntimeError("raised in backward on purpose")


class RaisesWithCached(RaisesInBackward):
    """The contrast to ``RaisesInBackward``: one bound method that lives as long as the scheduler."""

    def __init__(self, cell: ms.nn.Cell, state: MindSporeHSDPStateV2) -> None:
        super().__init__(cell, state)
        self._backward_hook = self._backward_hook  # type: ignore[method-assign]


# The first layer's unit and that of the others. Only the first queues more: its callback runs last, and where a vector
# doubles when it is full, one that holds three has room for the fourth. With more, runs died in the body as well.
UNITS: dict[str, tuple[type[Unit], type[Unit]]] = {
    "none": (Unit, Unit),
    "queued-in-final": (QueuesInFinal, Unit),
    "cached-final": (QueuesCachedInFinal, Unit),
    "raise-in-backward": (RaisesInBackward, RaisesInBackward),
    "cached-raise": (RaisesWithCached, RaisesWithCached),
    "fork-exit": (Unit, Unit),
}


def case(context: Context) -> None:
    """Form the group, if there is one, and run the test."""
    if context.world > 1:
        context.init_collectives()
    test(context)


def test(context: Context) -> None:
    """Run one step and print what the report's test prints; what happens after the return is the case.

    Args of the case: ``mechanism``, a key of ``UNITS``; ``probe``, True to record the checks of ``CallbackProbe``;
    ``sentinel``, True to put a sentinel on each unit; ``teardown``, "none", "collect" for a garbage collection alone,
    or "ordered" to undo the cycles of hooks first.
    """
    mechanism = str(context.args.get("mechanism", "none"))
    if context.world > 1:
        _meet()
    first, rest = UNITS[mechanism]
    # On the host, so that it can be read back where the device is simulated: the mesh is no part of this fault.
    with ms.DeviceCtx("CPU"):
        mesh = DeviceMesh(range(context.world), ["dp"], context.rank)
    layers = [ms.nn.Dense(WIDTH, WIDTH, has_bias=False) for _ in range(LAYERS)]
    reduce = _reducer(context.world)
    units = [_shard(rest if index else first, layer, mesh, reduce) for index, layer in enumerate(layers)]
    _link(units)
    if context.args.get("sentinel", False):
        _arm_sentinels(context, units)
    with CallbackProbe(context, enabled=bool(context.args.get("probe", False))) as probe:
        loss = _step(layers, probe)
    print(f"rank: {context.rank}, regression step loss: {loss}")
    if (teardown := context.args.get("teardown", "none")) != "none":
        check = ReleaseCheck(context, _named(layers, units))
        if teardown == "ordered":
            _undo_hooks(layers, units)
        layers.clear()
        units.clear()
        check.check()
    if mechanism == "fork-exit":
        _leave_in_forked_child(context)
    print("1 passed")


def _meet() -> None:
    # A rank that raises reaches no collective and may be gone while the other still joins the group.
    met = ms.Tensor(np.ones(1, np.float32))
    ms.mint.distributed.all_reduce(met)
    with metadata(NOT_JUDGED):
        met.asnumpy()


def _reducer(world: int) -> Callable[[ms.Tensor], Any]:
    """The collective for gradients: an asynchronous sum over all ranks; nothing if there is one rank."""

    def reduce(grad: ms.Tensor) -> Any:
        return ms.mint.distributed.all_reduce(grad, async_op=True) if world > 1 else None

    return reduce


def _shard(
    kind: type[Unit], layer: ms.nn.Cell, mesh: DeviceMesh, reduce: Callable[[ms.Tensor], Any]
) -> MindSporeHSDPSchedulerV2:
    params = [HSDPParamV2(param, mesh, None, reduce) for param in layer.trainable_params()]
    return kind(layer, MindSporeHSDPStateV2(params))


def _step(layers: list[ms.nn.Cell], probe: CallbackProbe) -> float:
    value = ms.Tensor(np.ones((2, WIDTH), np.float32))
    # The report's test does not use value_and_grad; this is its way into autograd, and gradients gather in _grad.
    _pynative_executor.set_grad_flag(True)
    for layer in layers:
        value = layer(value)
    loss = value.sum()
    # Read before backward: a read waits for the worker thread without the GIL, and with a callback left un-run the
    # crash would come in that wait, in the body. The report's came later.
    with metadata(NOT_JUDGED):
        number = float(loss.asnumpy())
    seed = ms.Tensor(np.ones((), np.float32))
    try:
        run_backward((loss,), (seed,), False, False, (), allow_unreachable=True, accumulate_grad=True)
    except RuntimeError as error:
        print(f"caught: {error}")
    finally:
        probe.backward_done()
        _pynative_executor.set_grad_flag(False)
    return number


def _link(units: list[MindSporeHSDPSchedulerV2]) -> None:
    for earlier, later in itertools.pairwise(units):
        later.backward_prefetch.append(earlier)


def _arm_sentinels(context: Context, units: list[MindSporeHSDPSchedulerV2]) -> None:
    for index, unit in enumerate(units):
        vars(unit)["sentinel"] = Sentinel(context, f"unit {index}")


def _named(layers: list[ms.nn.Cell], units: list[MindSporeHSDPSchedulerV2]) -> dict[str, object]:
    named: dict[str, object] = {}
    for index, (layer, unit) in enumerate(zip(layers, units, strict=True)):
        named |= {f"layer {index}": layer, f"weight {index}": layer.weight, f"unit {index}": unit}
    return named


def _undo_hooks(layers: list[ms.nn.Cell], units: list[MindSporeHSDPSchedulerV2]) -> None:
    for unit in units:
        unit.hsdp_state.wait_grads()
        unit.backward_prefetch.clear()
    for layer in layers:
        layer._forward_pre_hook.clear()
        layer._forward_hook.clear()


def _leave_in_forked_child(context: Context) -> None:
    child = os.fork()
    if child == 0:
        # The ordinary exit joins MindSpore's worker threads, which the child does not have.
        sys.exit(0)
    _, status = os.waitpid(child, 0)
    context.record("forked child ended", code=os.waitstatus_to_exitcode(status))
