"""Mends 134.2: a gradient is made contiguous at the one entry of all reduce paths, whichever that is in the layout.

With fully_shard that is ``_to_local_unsharded_grad`` of the parameter; with hsdp (2026-03) the factories of the
gradient hooks, whose hook calls the collective. The collective itself would be too late: pipeline stages hand it their
gradient and read the same Tensor afterwards, so a copy made there would lose the sum.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import wrapt

from fixes.mend import Mend, below_roots

_ENTRY = "_to_local_unsharded_grad"
# The library's own name, and that of the base class, which our distilled subject and older commits define it in.
_CLASSES = ("MindSporeHSDPParamV2", "HSDPParamV2")
_HOOKS = {
    "hsdp_grad_hook": ("HSDPGradHook._get_final_grad_hook", "grad_hook"),
    "hsdp_async_grad_hook": ("HSDPAsyncGradHook._get_final_async_grad_hook", "async_hook"),
}


class ContiguousGrad(Mend):
    """The mend of 134.2.

    Attributes:
        copies: Gradients that were copied.
        passed: Gradients that were contiguous already and went through untouched.
    """

    fault = "134.2"
    mends = "makes a gradient contiguous before any collective; copies only what is not contiguous"
    since = "hyper-parallel from 2026-03 (core.hsdp) on, platform.mindspore.fully_shard included"
    modules = (
        *below_roots("platform.mindspore.fully_shard.param"),
        *below_roots("core.hsdp.hsdp_grad_hook", "core.hsdp.hsdp_async_grad_hook"),
    )

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
        hook = _HOOKS.get(module.__name__.rpartition(".")[2])
        if hook is not None:
            path, parameter = hook
            owner, name, stored = self.target(module, path, ("self", "param", parameter))
            self.put(module, owner, name, wrapt.FunctionWrapper(stored, self._make_hook))
            return
        # Looked up in the class's own body: an inherited entry would be mended where it does not stand.
        holders = [holder for holder in _CLASSES if _ENTRY in vars(getattr(module, holder, object))]
        path = f"{holders[0] if holders else _CLASSES[0]}.{_ENTRY}"
        owner, name, stored = self.target(module, path, ("grad",))
        self.put(module, owner, name, wrapt.FunctionWrapper(stored, self._to_local))

    def cleared(self) -> None:
        """Start counting anew."""
        self.copies = self.passed = 0

    def _to_local(self, wrapped: Callable[..., Any], _param: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._contiguous(wrapped(*args, **kwargs))

    def _make_hook(
        self, wrapped: Callable[..., Any], _factory: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Hand the factory a hook that gets its gradient contiguous; it is the second argument of both factories."""
        if len(args) > 1:
            return wrapped(args[0], self._before(args[1]), *args[2:], **kwargs)
        hooks = {name: self._before(hook) for name, hook in kwargs.items() if name in ("grad_hook", "async_hook")}
        return wrapped(*args, **{**kwargs, **hooks})

    def _before(self, hook: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda grad: hook(self._contiguous(grad))

    def _contiguous(self, grad: Any) -> Any:
        if grad is None or grad.is_contiguous():
            self.passed += 1
            return grad
        self.copies += 1
        return grad.contiguous()


MEND = ContiguousGrad()
