"""The program of a made-up report: two factors that fit, or not."""

from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import ops

from repro.probes.context import Context


def case(context: Context) -> None:
    """Multiply; ``args.inner`` is the number of rows of the second factor."""
    inner = int(context.args["inner"])
    product = multiply(ms.Tensor(np.ones((2, 3), np.float32)), ms.Tensor(np.ones((inner, 2), np.float32)))
    context.check("product", ok=bool((product.asnumpy() == inner).all()), fault=False)


def multiply(left: ms.Tensor, right: ms.Tensor) -> ms.Tensor:
    """The product of two matrices."""
    return ops.matmul(left, right)
