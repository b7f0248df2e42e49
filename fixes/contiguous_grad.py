"""Mends 134.2: a gradient is made contiguous in ``_to_local_unsharded_grad``, the one entry of all reduce paths."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import wrapt

from fixes.mend import Mend, below_roots

_CLASS = "HSDPParamV2"
_OLD = below_roots("platform.mindspore.hsdp.param")


class ContiguousGrad(Mend):
    """The mend of 134.2.

    Attributes:
        copies: Gradients that were copied.
        passed: Gradients that were contiguous already and went through untouched.
    """

    fault = "134.2"
    mends = "makes a gradient contiguous before any collective; copies only what is not contiguous"
    since = "hyper-parallel with platform.mindspore.fully_shard (reported 2026)"
    modules = (*below_roots("platform.mindspore.fully_shard.param"), *_OLD)
    older = dict.fromkeys(_OLD, _CLASS)

    def __init__(self) -> None:
        super().__init__()
        self.copies = 0
        self.passed = 0

    @property
    def uses(self) -> int:
        """Gradients that came through, copied or not: where all are contiguous the mend has done its work as well."""
        return self.copies + self.passed

    def apply(self, module: ModuleType) -> None:
        """Mend the entry."""
        owner, name, stored = self.target(module, f"{_CLASS}._to_local_unsharded_grad", ("grad",))
        self.put(module, owner, name, wrapt.FunctionWrapper(stored, self._contiguous))

    def cleared(self) -> None:
        """Start counting anew."""
        self.copies = self.passed = 0

    def _contiguous(
        self, wrapped: Callable[..., Any], _param: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        grad = wrapped(*args, **kwargs)
        if grad is None or grad.is_contiguous():
            self.passed += 1
            return grad
        self.copies += 1
        return grad.contiguous()


MEND = ContiguousGrad()
