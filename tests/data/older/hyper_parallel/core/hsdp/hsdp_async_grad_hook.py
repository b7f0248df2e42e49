"""The asynchronous gradient hooks, with the names of 2026-03."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hyper_parallel.core.hsdp.hsdp_grad_hook import Hook, HSDPGradHook


class HSDPAsyncGradHook(HSDPGradHook):
    """Makes the hook of a parameter, which starts the reduction."""

    def _get_final_async_grad_hook(
        self, param: Any, async_hook: Callable[[Any], tuple[Any, Any]], post_hook: Hook | None = None
    ) -> Hook:
        del param, post_hook

        def handler(grad: Any) -> Any:
            output, handle = async_hook(grad)
            if handle is not None:
                handle.wait()
            return output

        return handler

    def get_hook(self, hsdp_param: Any) -> Hook:
        """The hook."""

        def grad_reduce_scatter_hook(grad: Any) -> Any:
            output, _ = self.platform.reduce_scatter_tensor(grad, hsdp_param, async_op=False)
            return self.platform.all_reduce(output, hsdp_param, async_op=True)

        return self._get_final_async_grad_hook(hsdp_param, grad_reduce_scatter_hook)
