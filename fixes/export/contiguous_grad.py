"""134.2 as source edits: a gradient is made contiguous where it enters the reduction, in either layout."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from fixes.export.source import Tree, classes, functions, method, misfit, replaced

FAULT = "134.2"
TITLE = "Make gradients contiguous before they are reduced"
CAUSE = """\
A gradient may arrive as a view: from a plain matrix product (mint.nn.Linear without bias), from DTensor.to_local or
redistribute. DistCommAllReduce and DistCommReduceScatter refuse it on Ascend, asynchronously, so that the error comes
up in whichever line waits for the queue next; on CPU all_reduce returns and the sum is lost.

The gradient is now made contiguous at the entry of the reduction. Tensor.contiguous() returns the same Tensor where
nothing is to be done, so there is no copy more than is needed."""
EVIDENCE = """\
hsdp(shard_size=1) over mint.nn.Linear, reduced synchronously and asynchronously: unfixed every rank keeps its own
gradient on CPU, and the exception comes over the host code of the Ascend build; with this change the gradient is the
sum over ranks, and nothing is refused. Never run on an NPU. See hyper-repro, `repro verify 134.2 --upstream DIR`."""

PARAM = "hyper_parallel/platform/mindspore/fully_shard/param.py"
HOOKS = {
    "hyper_parallel/core/hsdp/hsdp_grad_hook.py": "HSDPGradHook",
    "hyper_parallel/core/hsdp/hsdp_async_grad_hook.py": "HSDPAsyncGradHook",
}
_ENTRY = "_to_local_unsharded_grad"
_HOLDERS = ("MindSporeHSDPParamV2", "HSDPParamV2")
_COLLECTIVE = m.Attribute(
    value=m.Attribute(value=m.Name("self"), attr=m.Name("platform")),
    attr=m.Name("all_reduce") | m.Name("reduce_scatter_tensor"),
)
_CONTIGUOUS = m.Call(func=m.Attribute(attr=m.Name("contiguous")))


def edit(tree: Tree) -> None:
    """Edit the entries of whichever layouts are there.

    Raises:
        MisfitError: None is, or one has another shape.
    """
    hooks = [path for path in HOOKS if tree.has(path)]
    if not hooks and not tree.has(PARAM):
        tree.first(FAULT, PARAM, *HOOKS)
    if tree.has(PARAM):
        _edit_param(tree)
    for path in hooks:
        _edit_hooks(tree, path, HOOKS[path])


def _edit_param(tree: Tree) -> None:
    module = tree.module(PARAM, FAULT)
    found = classes(module)
    holder = next((name for name in _HOLDERS if name in found and _ENTRY in functions(found[name].body)), _HOLDERS[0])
    entry = method(module, PARAM, FAULT, f"{holder}.{_ENTRY}", ("grad",))
    returns = _Returns()
    changed = entry.visit(returns)
    if not returns.count:
        raise misfit(FAULT, PARAM, f"{holder}.{_ENTRY} that returns a gradient as it is", "found none to change")
    tree.put(PARAM, replaced(module, entry, changed))


def _edit_hooks(tree: Tree, path: str, holder: str) -> None:
    module = tree.module(path, FAULT)
    owner = classes(module).get(holder)
    if owner is None:
        raise misfit(FAULT, path, f"class {holder}", "found nothing")
    calls = _HookCalls()
    changed = owner.visit(calls)
    if not calls.count:
        expected = f"hooks of {holder} that hand their gradient to self.platform.all_reduce or reduce_scatter_tensor"
        raise misfit(FAULT, path, expected, "found none to change")
    tree.put(path, replaced(module, owner, changed))


def _contiguous(value: cst.BaseExpression) -> cst.Call:
    simple = isinstance(value, cst.Name | cst.Call | cst.Attribute | cst.Subscript) or value.lpar
    inner = value if simple else value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return cst.Call(cst.Attribute(inner, cst.Name("contiguous")))


class _Returns(cst.CSTTransformer):
    """Makes what a function returns contiguous."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def leave_Return(self, original_node: cst.Return, updated_node: cst.Return) -> cst.Return:  # noqa: N802
        """Not what is contiguous already, nor None."""
        del original_node
        value = updated_node.value
        if value is None or m.matches(value, m.Name("None") | _CONTIGUOUS):
            return updated_node
        self.count += 1
        return updated_node.with_changes(value=_contiguous(value))


class _HookCalls(cst.CSTTransformer):
    """Makes the first argument of a collective contiguous where it is the hook's own parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self._functions: list[set[str]] = []

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:  # noqa: N802
        """Remember whose parameters are in sight."""
        self._functions.append({param.name.value for param in node.params.params} - {"self"})

    def leave_FunctionDef(  # noqa: N802
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef:
        """Forget them."""
        del original_node
        self._functions.pop()
        return updated_node

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:  # noqa: N802
        """What comes out of another collective is contiguous, and what accumulates was made so."""
        del original_node
        if not self._functions or not updated_node.args or not m.matches(updated_node.func, _COLLECTIVE):
            return updated_node
        first, *rest = updated_node.args
        if not isinstance(first.value, cst.Name) or first.value.value not in self._functions[-1]:
            return updated_node
        self.count += 1
        return updated_node.with_changes(args=[first.with_changes(value=_contiguous(first.value)), *rest])
