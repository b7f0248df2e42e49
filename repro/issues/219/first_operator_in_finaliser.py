"""The planted control of 219: the process's first native operator runs in a finaliser of the last garbage collection.

It dies of SIGSEGV on the main thread with the report's own words (``Current thread``, ``Garbage-collecting``,
``<no Python frame>``), and so shows that the harness sees a crash after a body that passed. It is contrived: a training
test has run operators long before its end. Never take it for the fault of the report.
"""

from __future__ import annotations

import functools
import operator

import mindspore as ms
import numpy as np

from repro.probes.context import Context


class _Late:
    """A cycle with itself, so that only the cyclic collector ends it."""

    def __init__(self) -> None:
        self.itself = self


def case(context: Context) -> None:
    """Leave the cycle behind and pass. No group is formed: that would run operators."""
    # Blocking, the operator runs and crashes on the thread that collects, not on a worker thread.
    ms.runtime.launch_blocking()
    # A callable without Python code, so that the crash has no Python frame.
    setattr(_Late, "__del__", functools.partial(operator.mul, ms.Tensor(np.ones(4, np.float32)), 2))  # noqa: B010
    _Late()
    print(f"rank: {context.rank}, no operator has run")
    print("1 passed")
