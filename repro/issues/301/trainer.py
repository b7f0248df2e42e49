"""301 as a whole: a distilled trainer with the report's counts a step, and its growth taken apart by cause.

A step is a forward and backward over 12 layers of 10 units, an embedding and a head: 122 units, each applying one
post-backward Function, 60 of them with two outputs, which makes 182 output hooks; 10 auxiliary-loss scalers and one
chunked cross entropy complete the report's 133 custom Functions. The first unit of each layer gathers before forward
and before backward and reduces after it; one all_reduce stands for the gradient norm: 37 collectives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import mindspore as ms
import mindspore.mint.distributed as dist
import numpy as np
from mindspore import mint
from mindspore._c_expression import run_backward
from mindspore.common._grad_function import _Function
from mindspore.graph.api import _pynative_executor

from repro.distilled.core.dtensor.device_mesh import DeviceMesh
from repro.distilled.platform.mindspore.fully_shard.hook_function import PostBackwardFunction
from repro.distilled.platform.mindspore.fully_shard.param import HSDPParamV2
from repro.distilled.platform.mindspore.fully_shard.scheduler import MindSporeHSDPSchedulerV2, Tensors
from repro.distilled.platform.mindspore.fully_shard.state import MindSporeHSDPStateV2
from repro.model import Tier
from repro.probes.context import Context
from repro.probes.hooks import count_hooks, live_hooks
from repro.probes.metadata import metadata
from repro.probes.owned import Owned
from repro.probes.plant import leak_bytes
from repro.sim.events import can_count, live_events

LAYERS, UNITS_A_LAYER, SCALERS = 12, 10, 10
TWO_OUTPUTS_A_LAYER = 5
WIDTH = 8
PLANTED_B = 4096
PLANTED_OBJECTS = 8
# What the steps so far have made, for the record that the counts are the report's.
made: Counter[str] = Counter()
# The contexts' tuples, watched where they are counted; a watched one is kept until the next reading.
tuples = Owned()
counting = False


def _watch(ctx: Any) -> None:
    if counting:
        tuples.watch(ctx.needs_input_grad)


class _PostBackward(PostBackwardFunction):
    @staticmethod
    def forward(ctx: Any, scheduler: MindSporeHSDPSchedulerV2, *tensors: ms.Tensor) -> tuple[ms.Tensor, ...]:
        _watch(ctx)
        return PostBackwardFunction.forward(ctx, scheduler, *tensors)


class _Releasing(_PostBackward):
    @staticmethod
    def backward(ctx: Any, *grads: ms.Tensor) -> tuple[ms.Tensor | None, ...]:
        result = PostBackwardFunction.backward(ctx, *grads)
        ctx.needs_input_grad = None
        return result


class _MoEAuxLossAutoScaler(_Function):  # type: ignore[misc]
    release = False

    @staticmethod
    def forward(ctx: Any, x: ms.Tensor) -> ms.Tensor:
        _watch(ctx)
        return x * 1

    @classmethod
    def backward(cls, ctx: Any, grad: ms.Tensor) -> ms.Tensor:
        if _MoEAuxLossAutoScaler.release:
            ctx.needs_input_grad = None
        return grad


class _ChunkCrossEntropyLoss(_MoEAuxLossAutoScaler):
    """The loss of the report's trainer; only that it is one more custom Function matters here."""


class _Scheduler(MindSporeHSDPSchedulerV2):
    """The scheduler with the reporter's two workarounds as switches."""

    remove_hooks = False
    handles: list[Any] = []  # noqa: RUF012 -- one list for all units, emptied after every backward

    def _register_post_backward_hook(self, inputs: Tensors) -> Tensors:
        outputs = super()._register_post_backward_hook(inputs)
        made["post_backward"] += outputs is not inputs
        return outputs

    def _register_backward_pre_hook(self, outputs: Tensors) -> Tensors:
        made["hooks"] += sum(y._requires_grad for y in (outputs if isinstance(outputs, tuple) else (outputs,)))
        if not self.remove_hooks:
            return super()._register_backward_pre_hook(outputs)
        for output in outputs if isinstance(outputs, tuple) else (outputs,):
            if output._requires_grad:
                self.handles.append(output.register_hook(self._backward_pre_hook))
        return outputs


class _Unit(ms.nn.Cell):  # type: ignore[misc]
    def __init__(self, *, two_outputs: bool) -> None:
        super().__init__()
        self.linear = mint.nn.Linear(WIDTH, WIDTH, bias=False)
        self.two_outputs = two_outputs

    def construct(self, x: ms.Tensor) -> Tensors:
        y = self.linear(x)
        return (y, y * 0.5) if self.two_outputs else y


class _Trainer:
    """The model under the distilled fully_shard, and one step of it."""

    def __init__(self, context: Context) -> None:
        self._world = context.world
        DeviceMesh.search_on_host = context.tier is Tier.SIM
        with metadata("a device mesh is metadata"):
            mesh = DeviceMesh(list(range(context.world)), ["dp"], context.rank)
        count = LAYERS * UNITS_A_LAYER
        self._units = [_Unit(two_outputs=index % UNITS_A_LAYER < TWO_OUTPUTS_A_LAYER) for index in range(count)]
        self._ends = [_Unit(two_outputs=False), _Unit(two_outputs=False)]
        self.with_collectives = True
        for index, unit in enumerate([*self._units, *self._ends]):
            talks = index % UNITS_A_LAYER == 0 and index < len(self._units)
            self._shard(unit, mesh, talks=talks)
        # A Parameter, so that the first unit's input asks for a gradient too and gets its post-backward Function.
        self._x = ms.Parameter(ms.Tensor(np.ones((2, WIDTH), np.float32)), name="input")
        self._one = ms.Tensor(np.float32(1))
        self._norm = mint.ones((1,))

    def _shard(self, unit: _Unit, mesh: DeviceMesh, *, talks: bool) -> None:
        shard, whole = mint.zeros((WIDTH, WIDTH)), mint.zeros((WIDTH * self._world, WIDTH))

        def gather(param: ms.Parameter) -> ms.Tensor:
            if self.with_collectives:
                made["collectives"] += 1
                dist.all_gather_into_tensor(whole, shard, async_op=True).wait()
            return param.value()

        def reduce(grad: ms.Tensor) -> Any:
            del grad
            made["collectives"] += self.with_collectives
            return dist.reduce_scatter_tensor(shard, whole, async_op=True) if self.with_collectives else None

        param = HSDPParamV2(unit.linear.weight, mesh, None, reduce, gather if talks else None)
        _Scheduler(unit, MindSporeHSDPStateV2([param] if talks else []))

    def step(self) -> None:
        """Forward, backward, gradient norm, gradients dropped."""
        _pynative_executor.set_grad_flag(True)
        x = self._ends[0](self._x)
        for index, unit in enumerate(self._units):
            y = unit(x)
            x = y[0] + y[1] if isinstance(y, tuple) else y
            if index < SCALERS:
                made["others"] += 1
                x = _MoEAuxLossAutoScaler.apply(x)
        made["others"] += 1
        loss = _ChunkCrossEntropyLoss.apply(self._ends[1](x)).sum()
        run_backward((loss,), (self._one,), False, False, (), allow_unreachable=True, accumulate_grad=True)
        if self.with_collectives:
            made["collectives"] += 1
            dist.all_reduce(self._norm)
        for unit in [*self._units, *self._ends]:
            unit.linear.weight._grad = None
        self._x._grad = None
        for handle in _Scheduler.handles:
            handle.remove()
        _Scheduler.handles.clear()


def _start(context: Context) -> _Trainer:
    # Without MindSpore's pipeline a step takes a tenth of the time on two cores, where the threads of the pipeline wait
    # for each other; what a step leaves behind is the same (docs/measurements.md). ``args.pipeline`` switches it on.
    if not context.args.get("pipeline"):
        ms.runtime.launch_blocking()
    context.init_collectives()
    return _Trainer(context)


def case(context: Context) -> None:
    """Only train: ``args.steps`` steps as reported, without a meter."""
    trainer = _start(context)
    steps = int(context.args["steps"])
    made.clear()
    for _ in range(steps):
        trainer.step()
    context.record("made", **{what: count / steps for what, count in made.items()})


def _count(context: Context) -> None:
    """Let the meter read how many hook handles, tuples and events there are."""
    global counting  # noqa: PLW0603 -- the Functions are classes, and see no context of ours
    counting = True
    count_hooks()
    one = ms.Tensor(np.ones(1, np.float32))
    # MindSpore keeps the graph of the last backward until the next one; this one has nothing in it that is counted.
    last = ms.grad(lambda value: (value * 2).sum())

    def live_kept() -> int:
        last(one)
        _pynative_executor.sync()
        return live_hooks() + tuples.count() + (live_events() if can_count() else 0)

    context.count("live_kept", live_kept)


def series(context: Context) -> dict[str, Callable[[], object]]:
    """The loops: one call is one training step; with ``args.count``, what it keeps is counted, not its bytes alone."""
    trainer = _start(context)
    if context.args.get("count"):
        _count(context)

    def loop(*, remove_hooks: bool, release: bool, collectives: bool, planted: bool = False) -> Callable[[], None]:
        def step() -> None:
            _Scheduler.remove_hooks = remove_hooks
            _Scheduler.post_backward_function = _Releasing if release else _PostBackward
            _MoEAuxLossAutoScaler.release = release
            trainer.with_collectives = collectives
            trainer.step()
            if planted and counting:
                kept.extend(tuples.watch(tuple(flags)) for _ in range(PLANTED_OBJECTS))
            elif planted:
                leak_bytes(PLANTED_B)

        return step

    kept: list[object] = []
    # A literal would be one tuple for all of them.
    flags = [True]

    return {
        "unfixed": loop(remove_hooks=False, release=False, collectives=True),
        "hooks-removed": loop(remove_hooks=True, release=False, collectives=True),
        "both-removed": loop(remove_hooks=True, release=True, collectives=True),
        "nothing-kept": loop(remove_hooks=True, release=True, collectives=False),
        "planted": loop(remove_hooks=True, release=True, collectives=False, planted=True),
    }
