"""Mends 301.2: the needs_input_grad tuple of a custom Function's context is released when the context dies.

MindSpore makes the tuple in every ``apply`` and its ``FunctionBase_clear`` forgets it. Setting the attribute to None
drops the reference, so a finaliser that does so on ``_Function`` covers all its subclasses, with backward, without it
and after an error, and leaves the attribute readable for as long as anyone can read it.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from fixes.mend import Mend

_MODULE = "mindspore.common._grad_function"


class NeedsInputGrad(Mend):
    """The mend of 301.2."""

    fault = "301.2"
    mends = "releases needs_input_grad when a custom Function's context dies"
    since = "MindSpore 2.10.0"
    modules = (_MODULE,)

    def apply(self, module: ModuleType) -> None:
        """Give ``_Function`` a finaliser; refuse where it, or the native base, has one of its own."""
        self.target(module, "_Function.apply")
        function = module._Function
        found = [name for name in ("needs_input_grad", "__del__") if hasattr(function, name)]
        if found != ["needs_input_grad"]:
            expected = "_Function with needs_input_grad and without __del__"
            raise self._misfit(module, expected, f"found {', '.join(found) or 'neither'}")
        self.put(module, function, "__del__", self._finaliser())

    def _finaliser(self) -> Any:
        used = self.used

        def release(context: Any) -> None:
            context.needs_input_grad = None
            used()

        return release


MEND = NeedsInputGrad()
