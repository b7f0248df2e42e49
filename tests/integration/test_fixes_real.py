"""The mends on the real MindSpore: each mends its own fault alone, in every way that its targets are used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from harness import REPOSITORY
from sim_support import explain

SHARED = """
import gc, json, sys, threading
import fixes
import mindspore as ms, numpy as np
from mindspore.common._grad_function import _Function
from mindspore.common.hook_handle import _TensorHookHandle
from mindspore.graph.api import _pynative_executor as executor
from repro.distilled.core.dtensor.device_mesh import DeviceMesh
from repro.distilled.platform.mindspore.fully_shard.param import HSDPParamV2
from repro.distilled.platform.mindspore.fully_shard.scheduler import MindSporeHSDPSchedulerV2
from repro.distilled.platform.mindspore.fully_shard.state import MindSporeHSDPStateV2
ms.set_device("CPU")
x = ms.Tensor(np.ones(4, np.float32))
ran, removed, inside = [], [], []
remove = _TensorHookHandle.remove
def counted(handle):
    removed.append(bool(inside))
    remove(handle)
_TensorHookHandle.remove = counted
class Unit(MindSporeHSDPSchedulerV2):
    fails = False
    def _backward_pre_hook(self, grad):
        inside.append(1)
        ran.append(1)
        try:
            if self.fails:
                raise RuntimeError("in a hook")
            return super()._backward_pre_hook(grad)
        finally:
            inside.pop()
unit = Unit(ms.nn.Cell(), MindSporeHSDPStateV2([]))
def forward(value):
    y = value * 2
    unit._register_backward_pre_hook(y)
    return y.sum()
class Identity(_Function):
    kept = []
    @staticmethod
    def forward(ctx, value):
        Identity.kept.append(ctx.needs_input_grad)
        return value * 1
    @staticmethod
    def backward(ctx, grad):
        Identity.kept.append(ctx.needs_input_grad)
        return grad
def applied(value):
    for _ in range(5):
        value = Identity.apply(value)
    return value.sum()
def held(step):
    "How many tuples of contexts that are dead have an owner besides us; those of the last step may not be dead yet."
    Identity.kept.clear()
    for _ in range(4):
        mark = len(Identity.kept)
        step()
        executor.sync()
        gc.collect()
    tuples = list({id(each): each for each in Identity.kept[:mark] if each is not None}.values())
    Identity.kept.clear()
    # The list, the name of the loop, and the argument.
    return [len(tuples), sum(sys.getrefcount(each) > 3 for each in tuples), *map(str, tuples[:1])]
"""

ALONE = """
def mesh():
    try:
        with ms.DeviceCtx("meta"):
            both = DeviceMesh.concatenate([DeviceMesh([0, 1], ["dp"], 1), DeviceMesh([1], ["tp"], 1)])
            return both.coordinate == (1, 0)
    except RuntimeError:
        return False
param = HSDPParamV2(ms.Parameter(x, name="p"), DeviceMesh([0], ["dp"], 0), None, lambda _: None)
def grad():
    view = ms.Tensor(np.ones((2, 3), np.float32)).T
    return bool(param._to_local_unsharded_grad(view).is_contiguous())
def hooks():
    removed.clear()
    backward = ms.grad(forward)
    for _ in range(10):
        backward(x)
    return len(removed) >= 8
def tuples():
    backward = ms.grad(applied)
    return held(lambda: backward(x))[1] == 0
kept = []
def callbacks():
    done = []
    def hook(value):
        executor.queue_backward_final_callback(first)
        return value
    first = lambda: executor.queue_backward_final_callback(second)
    second = lambda: done.append(1)
    # Without the mend the second is dropped without the GIL; kept for ever, it survives that.
    kept.extend((first, second))
    def body(value):
        y = value * 2
        y.register_hook(hook)
        return y.sum()
    ms.grad(body)(x)
    return bool(done)
probes = {"134.1": mesh, "134.2": grad, "219.1": callbacks, "301.1": hooks, "301.2": tuples}
def ask(selection):
    fixes.install(selection)
    answers = [name for name, probe in probes.items() if probe()]
    fixes.remove()
    return answers
result = {selection: ask(selection) for selection in ["none", *probes, ",".join(probes)]}
result["removed"] = ask("none")
"""

HOOKS = """
(mend,) = fixes.install("301.1")
one = ms.Tensor(np.float32(1))
def by_hand(times=1):
    executor.set_grad_flag(True)
    out = forward(ms.Parameter(ms.Tensor(np.ones(4, np.float32))))
    executor.set_grad_flag(False)
    run_backward = sys.modules["mindspore._c_expression"].run_backward
    for left in reversed(range(times)):
        run_backward((out,), (one,), left > 0, False, (), allow_unreachable=True, accumulate_grad=True)
def after(step):
    ran.clear(); removed.clear()
    for _ in range(20):
        step()
    return {"ran": len(ran), "inside": sum(removed), "open": mend.open_handles}
def failing():
    unit.fails = True
    try:
        backward(x)
    except RuntimeError:
        pass
    unit.fails = False
backward = ms.grad(forward)
@ms._no_grad()
def without_grad():
    forward(x)
class Inner(ms.nn.Cell):
    def __init__(self):
        super().__init__()
        self.layer = ms.nn.Dense(4, 4)
    def construct(self, value):
        return self.layer(value) * 2
class Outer(ms.nn.Cell):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.other = Inner()
    def construct(self, value):
        return self.other(self.inner(value))
outer = Outer()
# Every one of the five cells is a unit of its own, one inside another, so each has hooks on its output.
cells = [outer, outer.inner, outer.inner.layer, outer.other, outer.other.layer]
units = [Unit(cell, MindSporeHSDPStateV2([])) for cell in cells]
nested_backward = ms.grad(lambda value: outer(value).sum())
rows = ms.Tensor(np.ones((2, 4), np.float32))
result = {
    "backward": after(lambda: backward(x)),
    "forward alone": after(lambda: forward(x)),
    "no_grad": after(without_grad),
    "by hand": after(by_hand),
    "twice": after(lambda: by_hand(2)),
    "error": after(failing),
    "and again": after(lambda: backward(x)),
    "nested": after(lambda: nested_backward(rows)),
}
"""

MESHES = """
(mend,) = fixes.install("134.1")
def seen(mesh):
    return [list(mesh.rank_list), list(mesh.shape), list(mesh.coordinate or ()), mesh._rank_map.asnumpy().tolist()]
def meshes():
    base = DeviceMesh([[0, 1, 2], [3, 4, 5]], ["dp", "tp"], 4)
    lines = [DeviceMesh([1, 4], ["dp"], 4), DeviceMesh([3, 4, 5], ["tp"], 4)]
    made = [base, base.submesh("dp"), base.submesh("tp"), base.flatten("all"), DeviceMesh.concatenate(lines)]
    return [seen(mesh) for mesh in [*made, DeviceMesh([7, 8], ["dp"], 4), base.flatten("x").submesh("x")]]
outside = meshes()
with ms.DeviceCtx("meta"):
    inside_meta = meshes()
    with ms.DeviceCtx("meta"):
        nested = meshes()
    from_threads = []
    threads = [threading.Thread(target=lambda: from_threads.append(meshes())) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    made = DeviceMesh([[0, 1], [2, 3]], ["a", "b"], 3)
    try:
        ms.Tensor([1]).asnumpy()
        still_meta = False
    except RuntimeError:
        still_meta = True
same = [inside_meta == outside, nested == outside, *(each == outside for each in from_threads)]
result = {"base": outside[0], "same": same, "still_meta": still_meta, "used_outside": seen(made.submesh("a"))}
"""

GRADS = """
(mend,) = fixes.install("134.2")
param = HSDPParamV2(ms.Parameter(x, name="p"), DeviceMesh([0], ["dp"], 0), None, lambda _: None)
whole = ms.Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
same = [param._to_local_unsharded_grad(whole) is whole for _ in range(3)]
views = [whole.T, whole[:, 1:], whole.T.contiguous()]
passed = [param._to_local_unsharded_grad(view) for view in views]
param.reduce_grad(whole.T)
result = {
    "same": same,
    "was": [view.is_contiguous() for view in views],
    "is": [grad.is_contiguous() for grad in passed],
    "equal": [bool((a.asnumpy() == b.asnumpy()).all()) for a, b in zip(views, passed)],
    "untouched": passed[2] is views[2],
    "reduced": bool(param.grad.is_contiguous()),
    "counts": [mend.copies, mend.passed],
}
"""

TUPLES = """
backward = ms.grad(applied)
unfixed = held(lambda: backward(x)), held(lambda: applied(x))
fixes.install("301.2")
class Failing(Identity):
    @staticmethod
    def backward(ctx, grad):
        Identity.kept.append(ctx.needs_input_grad)
        raise RuntimeError("in backward")
failing = ms.grad(lambda value: Failing.apply(Failing.apply(value)).sum())
def fails():
    try:
        failing(x)
    except RuntimeError:
        pass
fixed = [held(lambda: backward(x)), held(lambda: applied(x)), held(fails)]
result = {"unfixed": unfixed, "fixed": fixed}
"""


def run(program: str, folder: Path) -> dict[str, Any]:
    """Run a program in a process of its own and return what it left in ``result``."""
    file = folder / "program.py"
    file.write_text(f"{SHARED}{program}\nprint('RESULT', json.dumps(result))\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, file.name],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "GLOG_v": "3", "HYPER_REPRO_FIXES": "none"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "RESULT " in done.stdout, explain(done)
    result: dict[str, Any] = json.loads(done.stdout.rpartition("RESULT ")[2])
    return result


def test_each_mend_mends_its_own_fault_alone(tmp_path: Path) -> None:
    found = run(ALONE, tmp_path)
    faults = ["134.1", "134.2", "219.1", "301.1", "301.2"]
    expected = {"none": [], "removed": [], ",".join(faults): faults, **{fault: [fault] for fault in faults}}
    assert found == expected


def test_hook_handles_are_removed_however_backward_goes(tmp_path: Path) -> None:
    found = run(HOOKS, tmp_path)
    ran = {"backward": 20, "forward alone": 0, "no_grad": 0, "by hand": 20, "twice": 40, "error": 20, "and again": 20}
    ran["nested"] = 100
    assert {name: each["ran"] for name, each in found.items()} == ran
    for name, each in found.items():
        # What the last step has registered, a hook a unit, goes when the next registers.
        assert each["open"] <= (6 if name == "nested" else 3), (name, found)
        assert each["inside"] == 0, (name, found)


def test_meshes_are_the_same_in_every_context(tmp_path: Path) -> None:
    found = run(MESHES, tmp_path)
    assert found["same"] == [True] * 6
    assert found["base"] == [[0, 1, 2, 3, 4, 5], [2, 3], [1, 1], [[0, 1, 2], [3, 4, 5]]]
    assert found["used_outside"] == [[1, 3], [2], [1], [1, 3]]
    assert found["still_meta"]


def test_only_what_is_not_contiguous_is_copied(tmp_path: Path) -> None:
    found = run(GRADS, tmp_path)
    assert found == {
        "same": [True] * 3,
        "was": [False, False, True],
        "is": [True] * 3,
        "equal": [True] * 3,
        "untouched": True,
        "reduced": True,
        # Two of the views, and the one on its way to the reduction.
        "counts": [3, 4],
    }


def test_needs_input_grad_can_be_read_and_is_released(tmp_path: Path) -> None:
    found = run(TUPLES, tmp_path)
    # 5 applies in each of 3 steps, with backward and without it.
    assert found["unfixed"][0] == [15, 15, "(True,)"], found
    assert found["fixed"][0] == [15, 0, "(True,)"], found
    assert found["unfixed"][1][1] == found["unfixed"][1][0], found
    assert found["fixed"][1][1] == 0, found
    # An error in backward leaves none either.
    assert found["fixed"][2][0] > 0, found
    assert found["fixed"][2][1] == 0, found
