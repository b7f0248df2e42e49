"""Runs inside a simulated rank: tries lines of the operator table (JSON on stdin), says what comes of each."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

from repro.probes.number_guard import install
from repro.sim.environment import preload_quiet


def names() -> dict[str, Any]:
    """Returns the names that lines of the table may use; imports MindSpore and joins the process group."""
    import mindspore as ms
    import mindspore.experimental.optim  # for ms.experimental.optim
    import numpy as np
    from mindspore import Parameter, Tensor, _c_expression, mint, nn, ops
    from mindspore.common._grad_function import _Function
    from mindspore.common.api import _pynative_executor
    from mindspore.mint import distributed as dist
    from mindspore.mint.nn import functional

    ms.set_device("Ascend")
    dist.init_process_group()

    def maker(kind: Any, fill: int) -> Any:
        return lambda *shape: Tensor(np.full(shape, fill), dtype=kind)

    def net(cell: Any, given: Any) -> None:
        """Runs a cell forward and backward."""
        parameters = list(cell.trainable_params())
        if parameters:
            ms.value_and_grad(lambda x: cell(x).sum(), None, parameters)(given)
        else:
            ms.value_and_grad(lambda x: cell(x).sum(), 0)(given)

    def step(optimizer: Any, **options: Any) -> None:
        """Takes one step with an optimizer on a small network."""
        cell = mint.nn.Linear(4, 4)
        parameters = list(cell.trainable_params())
        mend = optimizer(parameters, **options)
        _, gradients = ms.value_and_grad(lambda x: cell(x).sum(), None, parameters)(maker(ms.float32, 1)(2, 4))
        mend(gradients)

    def run_backward(loss: Any) -> None:
        """What upstream calls where others call loss.backward(): records a graph, adds gradients up in the leaf."""
        _pynative_executor.set_grad_flag(True)
        try:
            leaf = maker(ms.float32, 1)(4)
            leaf.requires_grad_()
            ones = maker(ms.float32, 1)()
            _c_expression.run_backward((loss(leaf),), (ones,), False, False, (), True, accumulate_grad=True)
        finally:
            _pynative_executor.set_grad_flag(False)

    class Double(_Function):  # type: ignore[misc]  # MindSpore has no types
        """A function with a backward pass of its own."""

        @staticmethod
        def forward(ctx: Any, given: Any) -> Any:
            ctx.save_for_backward(given)
            return given * 2

        @staticmethod
        def backward(_ctx: Any, gradient: Any) -> Any:
            return gradient * 2

    group = dist.new_group(list(range(4)))
    return {
        "ms": ms, "mint": mint, "nn": nn, "ops": ops, "dist": dist, "np": np, "Tensor": Tensor, "Parameter": Parameter,
        "functional": functional, "net": net, "step": step, "run_backward": run_backward, "Double": Double,
        "GROUP": group, "WORLD": dist.get_world_size(), "__name__": "__main__",
        "f": maker(ms.float32, 1), "h": maker(ms.float16, 1), "b": maker(ms.bfloat16, 1), "t": maker(ms.bool_, 1),
        "i": maker(ms.int64, 0), "k": maker(ms.int32, 0),
    }  # fmt: skip


def main() -> int:
    """Tries every line in turn; flushes before each, so that the reader knows where a death came."""
    # Operators may print: their words go to stderr, the protocol has stdout for itself.
    protocol = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    preload_quiet()
    given = names()
    install()  # shows on the way that the guard stops none of MindSpore's own reads
    synchronize = given["ms"].runtime.synchronize

    def say(**words: Any) -> None:
        protocol.write(json.dumps(words) + "\n")
        protocol.flush()

    for index, code in json.load(sys.stdin):
        say(index=index)
        error = ""
        try:
            # MindSpore reads the source of a lambda from the file that it stands in.
            file = Path(f"line_{index}.py")
            lines = code.replace("\\n", "\n") + "\n"
            file.write_text(lines)
            exec(compile(lines, str(file), "exec"), dict(given))  # noqa: S102 - the table is ours
            synchronize()  # an operator may fail later than its call
        except Exception as failure:  # noqa: BLE001 - any error is a result here
            words = str(failure).strip().splitlines()
            # Addresses differ from run to run; the page must not.
            error = re.sub("0x[0-9a-f]+", "0x...", f"{type(failure).__name__}: {words[0] if words else ''}")
        say(index=index, error=error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
