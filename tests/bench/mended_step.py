"""A step with the report's counts, without and with all mends in turn, in one process: prints the paired ratios.

122 units, 182 hooks and 133 custom Functions a step, as in report 301, on one rank of tier cpu without collectives.
What the mends cost is a matter of these counts, so how much it is of a step depends on how long the layers take.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import numpy as np

import fixes

# Short windows in many pairs: on a machine that others use too, the ratio of neighbours is what stays comparable.
BLOCKS, STEPS = 40, 1
UNITS, TWO_OUTPUTS, OTHERS = 122, 60, 11


def build(width: int, rows: int) -> Callable[[], None]:
    """The step, for layers of this size."""
    import mindspore as ms
    from mindspore._c_expression import run_backward
    from mindspore.common._grad_function import _Function
    from mindspore.graph.api import _pynative_executor

    from repro.distilled.api import fully_shard
    from repro.distilled.core.dtensor.device_mesh import DeviceMesh

    ms.set_device("CPU")
    # Without the pipeline: on a busy machine its threads wait for each other, and that hides what is looked for.
    ms.runtime.launch_blocking()

    class Unit(ms.nn.Cell):  # type: ignore[misc]
        def __init__(self, *, two: bool) -> None:
            super().__init__()
            # Not a linear layer, whose gradient arrives as a view: copying that is mend 134.2's work, not its overhead.
            self.weight = ms.Parameter(ms.mint.zeros((width, width)), name="weight")
            self.two = two

        def construct(self, x: ms.Tensor) -> ms.Tensor | tuple[ms.Tensor, ms.Tensor]:
            y = ms.mint.matmul(x, self.weight)
            return (y, y * 0.5) if self.two else y

    class Scaler(_Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: object, x: ms.Tensor) -> ms.Tensor:
            del ctx
            return x * 1

        @staticmethod
        def backward(ctx: object, grad: ms.Tensor) -> ms.Tensor:
            del ctx
            return grad

    units = [Unit(two=index < TWO_OUTPUTS) for index in range(UNITS)]
    mesh = DeviceMesh([0], ["dp"], 0)
    for unit in units:
        fully_shard(unit, mesh, lambda _: None)
    first = ms.Parameter(ms.Tensor(np.ones((rows, width), np.float32)), name="input")
    one = ms.Tensor(np.float32(1))

    def step() -> None:
        _pynative_executor.set_grad_flag(True)
        x = first
        for index, unit in enumerate(units):
            y = unit(x)
            x = y[0] + y[1] if isinstance(y, tuple) else y
            if index < OTHERS:
                x = Scaler.apply(x)
        run_backward((x.sum(),), (one,), False, False, (), allow_unreachable=True, accumulate_grad=True)
        _pynative_executor.set_grad_flag(False)
        for unit in units:
            unit.weight._grad = None
        first._grad = None
        _pynative_executor.sync()

    return step


def main() -> None:
    """Run the size that the command line names; print an object for the wall clock, one for the thread's."""
    # Before MindSpore is imported, as one of them must be; from here on they are switched.
    mends = fixes.install("all")
    step = build(int(sys.argv[1]), int(sys.argv[2]))
    for _ in range(3):
        step()
    wall: dict[bool, list[float]] = {False: [], True: []}
    thread: dict[bool, list[float]] = {False: [], True: []}
    for block in range(BLOCKS):
        for on in (False, True) if block % 2 else (True, False):
            if on:
                for mend in mends:
                    mend.install()
            else:
                fixes.remove()
            step()
            begin, spent = time.perf_counter(), time.thread_time()
            for _ in range(STEPS):
                step()
            wall[on].append((time.perf_counter() - begin) / STEPS)
            thread[on].append((time.thread_time() - spent) / STEPS)
    for name, taken in (("wall", wall), ("thread", thread)):
        print(json.dumps({"clock": name, "off": taken[False], "on": taken[True]}))


if __name__ == "__main__":
    main()
