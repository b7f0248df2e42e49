"""Gradient hooks with the names of 2026-03: each hands its gradient to a collective as it is (134.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Hook = Callable[[Any], Any]


class HSDPGradHook:
    """Makes the hook of a parameter, which reduces its gradient."""

    def __init__(self, platform: Any) -> None:
        self.platform = platform

    def _get_final_grad_hook(self, param: Any, grad_hook: Hook, no_cast: bool = False) -> Hook:
        del param, no_cast
        return lambda grad: grad_hook(grad) * 1

    def get_hook(self, hsdp_param: Any) -> Hook:
        """The hook."""

        def grad_all_reduce_hook(grad: Any) -> Any:
            output, _ = self.platform.all_reduce(grad, hsdp_param)
            return output

        return self._get_final_grad_hook(hsdp_param, grad_all_reduce_hook)
