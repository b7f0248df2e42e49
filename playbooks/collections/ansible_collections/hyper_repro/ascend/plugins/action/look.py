"""Runs the module ``look`` and compares the host's clock with ours around it."""

from __future__ import annotations

import time
from typing import Any

from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    """See the module's documentation."""

    _supports_check_mode = True

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The module's result, with the interval that holds the host's clock skew."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        began = time.time()
        # Always: a look is a look, also under --check.
        result.update(self._execute_module(module_args=self._task.args, task_vars=task_vars))
        ended = time.time()
        clock = (result.get("look") or {}).get("clock")
        if clock:
            # It began there after we asked, and ended before we had the answer.
            clock["skew"] = [clock["ended"] - ended, clock["began"] - began]
        return result
