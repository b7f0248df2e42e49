"""219.1 as source edits, as far as hyper-parallel can: the scheduler queues one bound method that lasts."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from fixes.export.scheduler import CLASS, SCHEDULER, put_with_helper
from fixes.export.source import Tree, classes, method, misfit, replaced

FAULT = "219.1"
TITLE = "Queue one lasting bound method as backward's final callback"
CAUSE = """\
Reading self._backward_hook makes a new bound method each time, and MindSpore's queue of final callbacks holds the only
reference to it. Where MindSpore drops a callback un-run (backward raised, or a callback queued another), it does so on
a worker thread without the GIL, and the process dies of signal 11, often at exit after the test has passed.

The scheduler now queues the same bound method every time, and holds it. The release without the GIL stays in MindSpore,
where it needs a change of its own; it only meets an object that does not die."""
EVIDENCE = """\
Two mechanisms on MindSpore 2.10.0, msrun, 2 ranks: with a fresh bound method 20 of 20 trials end in signal 11 after the
body passed, with one that is kept 0 of 8 (one SIGABRT is not explained). That either is the crash of report 219 is not
proved. Never run on an NPU. See hyper-repro, docs/findings.md."""

_QUEUE = m.Call(func=m.Attribute(attr=m.Name("queue_backward_final_callback")))
_FRESH = m.Arg(value=m.Attribute(value=m.Name("self"), attr=m.Name()))


def edit(tree: Tree) -> None:
    """Edit the scheduler.

    Raises:
        MisfitError: It is not there, or queues something else than a bound method of its own.
    """
    module = tree.module(SCHEDULER, FAULT)
    method(module, SCHEDULER, FAULT, f"{CLASS}._backward_pre_hook", ("grad",))
    owner = classes(module)[CLASS]
    queued = _Queued()
    changed = owner.visit(queued)
    if not queued.count or queued.others:
        found = f"found it with {queued.others[0]}" if queued.others else "found no call"
        raise misfit(FAULT, SCHEDULER, "queue_backward_final_callback(self.<method>)", found)
    put_with_helper(tree, replaced(module, owner, changed), "lasting_callbacks", "lasting")


class _Queued(cst.CSTTransformer):
    """``queue_backward_final_callback(self.name)`` becomes ``queue_backward_final_callback(lasting(self, "name"))``."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.others: list[str] = []

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:  # noqa: N802
        """Anything else that is queued is told, and refused."""
        del original_node
        if not m.matches(updated_node, _QUEUE):
            return updated_node
        if len(updated_node.args) != 1 or not m.matches(updated_node.args[0], _FRESH):
            self.others.append(", ".join(cst.Module([]).code_for_node(arg) for arg in updated_node.args))
            return updated_node
        self.count += 1
        name = cst.ensure_type(updated_node.args[0].value, cst.Attribute).attr.value
        comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
        kept = cst.Call(
            cst.Name("lasting"), [cst.Arg(cst.Name("self"), comma=comma), cst.Arg(cst.SimpleString(f'"{name}"'))]
        )
        return updated_node.with_changes(args=[cst.Arg(kept)])
