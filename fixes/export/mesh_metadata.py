"""134.1 as source edits: rank maps are made on the host, and coordinates are looked for in numpy."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst
import libcst.matchers as m

from fixes.export.source import Tree, before_definitions, classes, functions, method, misfit, replaced, with_body

FAULT = "134.1"
TITLE = "Keep a device mesh's rank maps off the current device"
CAUSE = """\
A rank map is metadata, but DeviceMesh made it by Tensor(...), which puts it on whatever device is current. Inside
ms.DeviceCtx("meta"), where fully_shard runs for delayed initialisation, it then has no storage: reading it back fails
with "Not support copy between src:meta and dst:CPU", and past that the search for a rank's coordinate by nonzero fails
or ends in signal 11.

Rank maps are now made by Tensor.from_numpy, which has storage on the host in every context, changes of their shape are
done in numpy before, and a rank is looked for in numpy."""
EVIDENCE = """\
init_device_mesh, slices, flatten and from_group inside the meta context: unfixed the error above or a null pointer in
reshape, on CPU and over the host code of the Ascend build; with this change every rank list and coordinate is the one
outside the context. Never run on an NPU. See hyper-repro, `repro verify 134.1 --upstream DIR`."""

FILES = ("hyper_parallel/core/dtensor/device_mesh.py", "hyper_parallel/core/device_mesh.py")
_MADE = "_host_rank_map"
_HELPER = f'''

def {_MADE}(values):
    """An int32 tensor with storage on the host, whatever device is current: a rank map is metadata."""
    if isinstance(values, Tensor):
        values = platform.tensor_to_numpy(values)
    values = np.array(values, dtype=np.int32)
    from_numpy = getattr(Tensor, "from_numpy", None)
    return Tensor(values).int() if from_numpy is None else from_numpy(values)
'''
_SEARCH = """
ranks = platform.tensor_to_numpy({mesh}) if isinstance({mesh}, Tensor) else np.asarray({mesh})
found = np.argwhere(ranks == {rank})
if len(found) > 1:
    raise AssertionError(f"rank {{{rank}}} is {{len(found)}} times in the mesh")
return tuple(int(index) for index in found[0]) if len(found) else None
"""
_PICK = """
ranks = platform.tensor_to_numpy({full})
if ranks.shape[0] == 1:
    return _host_rank_map(ranks[0])
found = np.argwhere(ranks == {rank})
if len(found) == 0:
    raise RuntimeError("this rank is in none of the parallel meshes, and the mesh has not all of its dimensions")
return _host_rank_map(ranks[found[0, 0]])
"""


def edit(tree: Tree) -> None:
    """Edit the module of the mesh.

    Raises:
        MisfitError: It has another shape than both known layouts, or makes its rank maps on the host already.
    """
    path = tree.first(FAULT, *FILES)
    module = tree.module(path, FAULT)
    if {"_host_tensor_from_numpy", _MADE} & functions(module).keys():
        raise misfit(FAULT, path, "rank maps made by Tensor(...)", "found that they are made from numpy already")
    for name in ("Tensor", "platform"):
        if not _assigned(module, name):
            raise misfit(FAULT, path, f"the module's own name {name}", "found nothing")
    search = method(module, path, FAULT, "DeviceMesh._compute_coordinates_from_mesh", ("rank",))
    mesh = _other_parameter(search, path)
    module = replaced(module, search, with_body(search, _SEARCH.format(mesh=mesh, rank="rank")))
    pick = functions(classes(module)["DeviceMesh"].body).get("_get_mesh_tensor_from_full_mesh")
    if pick is not None:
        names = [param.name.value for param in pick.params.params]
        rank = (
            "platform.get_rank()" if len(names) == 1 else f"(platform.get_rank() if {names[1]} is None else {names[1]})"
        )
        module = replaced(module, pick, with_body(pick, _PICK.format(full=names[0], rank=rank)))
    made = _Made()
    module = module.visit(made)
    if made.others or not made.count:
        found = f"found {made.others[0]}" if made.others else "found none"
        raise misfit(FAULT, path, "rank maps made by Tensor(<values>)", found)
    tree.put(path, before_definitions(module, _HELPER))


def _assigned(module: cst.Module, name: str) -> bool:
    target = m.AssignTarget(target=m.Name(name))
    return any(m.matches(node, m.SimpleStatementLine(body=[m.Assign(targets=[target])])) for node in module.body)


def _other_parameter(function: cst.FunctionDef, path: str) -> str:
    names = [param.name.value for param in function.params.params if param.name.value not in ("self", "cls", "rank")]
    if len(names) != 1:
        raise misfit(FAULT, path, "_compute_coordinates_from_mesh(<mesh>, rank)", f"found {', '.join(names) or 'rank'}")
    return names[0]


class _Made(m.MatcherDecoratableTransformer):
    """Replaces what makes rank maps: ``Tensor(x)``, and what is asked of it at once."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.others: list[str] = []

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:  # noqa: N802
        """Inner calls come first, so a chain is met from its beginning."""
        if m.matches(updated_node, m.Call(func=m.Name("Tensor"), args=[m.Arg(keyword=None)])):
            self.count += 1
            return updated_node.with_changes(func=cst.Name(_MADE))
        if m.matches(updated_node.func, m.Name("Tensor")):
            self.others.append(cst.Module([]).code_for_node(original_node))
        ours = m.Call(func=m.Name(_MADE))
        if m.matches(updated_node, m.Call(func=m.Attribute(value=ours, attr=m.Name("int")), args=[])):
            return cst.ensure_type(cst.ensure_type(updated_node.func, cst.Attribute).value, cst.Call)
        if m.matches(updated_node, m.Call(func=m.Attribute(value=ours, attr=m.Name("reshape")))):
            inner = cst.ensure_type(cst.ensure_type(updated_node.func, cst.Attribute).value, cst.Call)
            return inner.with_changes(args=[cst.Arg(_reshaped(inner.args[0].value, updated_node.args))])
        return updated_node


def _reshaped(values: cst.BaseExpression, shape: Sequence[cst.Arg]) -> cst.Call:
    sizes = [arg.value for arg in shape]
    wanted = sizes[0] if len(sizes) == 1 else cst.Tuple([cst.Element(size) for size in sizes])
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    function = cst.Attribute(cst.Name("np"), cst.Name("reshape"))
    return cst.Call(function, [cst.Arg(values, comma=comma), cst.Arg(wanted)])
