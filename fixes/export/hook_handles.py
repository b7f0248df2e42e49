"""301.1 as source edits: the handle of each output's hook is kept, and removed once its graph is gone."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from fixes.export.scheduler import CLASS, SCHEDULER, put_with_helper
from fixes.export.source import Tree, method, misfit, replaced

FAULT = "301.1"
TITLE = "Remove the backward pre-hooks of outputs when their graph is gone"
CAUSE = """\
_register_backward_pre_hook registers a hook on every output that requires grad, in every step, and drops the handle
that register_hook returns. MindSpore keeps a hook until its handle is removed, so host memory grows with every step.

Each hook is now an object of its own, which MindSpore holds as long as the graph; when that has died its handle is due,
and is removed when the next hooks are registered. The final callback would be too early: a retained graph may run
again, and a forward without backward has none."""
EVIDENCE = """\
One hook a step, 800 steps, CPU: about 104 B of malloc in use a step unfixed, none above the clean control with the same
change made at import. Never run on an NPU. See hyper-repro, `repro verify 301.1`."""

_METHOD = "_register_backward_pre_hook"
_OWN = m.Attribute(value=m.Name("self"))
_DROPPED = m.Expr(value=m.Call(func=m.Attribute(attr=m.Name("register_hook")), args=[m.Arg(value=_OWN)]))


def edit(tree: Tree) -> None:
    """Edit the scheduler.

    Raises:
        MisfitError: It is not there, or keeps its handles already.
    """
    module = tree.module(SCHEDULER, FAULT)
    method(module, SCHEDULER, FAULT, f"{CLASS}._backward_pre_hook", ("grad",))
    register = method(module, SCHEDULER, FAULT, f"{CLASS}.{_METHOD}", ("outputs",))
    dropped = _Dropped()
    changed = register.visit(dropped)
    if not dropped.count:
        expected = f"{CLASS}.{_METHOD} with a statement <output>.register_hook(self.<hook>)"
        raise misfit(FAULT, SCHEDULER, expected, "found none that drops its handle")
    put_with_helper(tree, replaced(module, register, changed), "output_hooks", "OUTPUT_HOOKS")


class _Dropped(cst.CSTTransformer):
    """``output.register_hook(self.hook)`` becomes ``OUTPUT_HOOKS.register(output, self.hook)``."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def leave_Expr(self, original_node: cst.Expr, updated_node: cst.Expr) -> cst.Expr:  # noqa: N802
        """A whole statement only: where the value is used, the handle is kept."""
        del original_node
        if not m.matches(updated_node, _DROPPED):
            return updated_node
        self.count += 1
        call = cst.ensure_type(updated_node.value, cst.Call)
        output = cst.ensure_type(call.func, cst.Attribute).value
        comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
        function = cst.Attribute(cst.Name("OUTPUT_HOOKS"), cst.Name("register"))
        return updated_node.with_changes(value=cst.Call(function, [cst.Arg(output, comma=comma), *call.args]))
