"""Both layouts of hyper-parallel, in small packages of our own: each mend alone, and the exported trees alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from checkouts import DATA, committed, opened
from harness import REPOSITORY
from sim_support import explain

from fixes.export.write import export
from repro.upstream.checkout import git

FAULTS = {"later": ["134.1", "134.2", "219.1", "301.1"], "older": ["134.1", "134.2"]}

# Says which faults show, under each choice of mends that it is given.
PROGRAM = """
import json, sys
package, choices = sys.argv[1], json.loads(sys.argv[2])
sys.dont_write_bytecode = True
sys.path.insert(0, package)
import fixes
import mindspore as ms, numpy as np
from mindspore.common.hook_handle import _TensorHookHandle
from mindspore.graph.api import _PyNativeExecutor
ms.set_device("CPU")

queued, handles = [], [0, 0]
queue = _PyNativeExecutor.queue_backward_final_callback
def recorded(self, callback):
    queued.append(callback)
    return queue(self, callback)
_PyNativeExecutor.queue_backward_final_callback = recorded
make, remove = _TensorHookHandle.__init__, _TensorHookHandle.remove
def made(self, *args, **kwargs):
    handles[0] += 1
    make(self, *args, **kwargs)
def removed(self):
    handles[1] += 1
    remove(self)
_TensorHookHandle.__init__, _TensorHookHandle.remove = made, removed

def module(name):
    from importlib import import_module
    try:
        return import_module(f"hyper_parallel.{name}")
    except ModuleNotFoundError:
        return None

def seen(mesh):
    at = list(mesh.get_coordinate() or ())
    return [list(mesh.rank_list), list(mesh.mesh_shape), at, mesh.mesh.asnumpy().tolist()]

def meshes():
    found = module("core.dtensor.device_mesh") or module("core.device_mesh")
    mesh = found.DeviceMesh("npu", [[0, 1, 2], [3, 4, 5]], mesh_dim_names=("dp", "tp"))
    views = [mesh, mesh["dp"], mesh["tp"], mesh.flatten("all"), found.DeviceMesh.from_group([1, 4], "npu", ["g"])]
    if hasattr(found.DeviceMesh, "concatenate"):
        views.append(found.DeviceMesh.concatenate([mesh["dp"], mesh["tp"]]))
    return [seen(each) for each in views]

EXPECTED = [
    [[0, 1, 2, 3, 4, 5], [2, 3], [1, 1], [[0, 1, 2], [3, 4, 5]]],
    [[1, 4], [2], [1], [1, 4]],
    [[3, 4, 5], [3], [1], [3, 4, 5]],
    [[0, 1, 2, 3, 4, 5], [6], [4], [0, 1, 2, 3, 4, 5]],
    [[1, 4], [2], [1], [1, 4]],
    [[0, 1, 2, 3, 4, 5], [2, 3], [1, 1], [[0, 1, 2], [3, 4, 5]]],
]

def mesh_fails():
    outside = meshes()
    assert outside == EXPECTED[:len(outside)], outside
    try:
        with ms.DeviceCtx("meta"):
            return meshes() != outside
    except RuntimeError as error:
        assert "src:meta" in str(error) or "is null" in str(error), error
        return True

class Collectives:
    "Stands for the platform: notes whether what it is handed is contiguous."
    def __init__(self):
        self.views = 0
    def all_reduce(self, data, group, async_op=False):
        self.views += not data.is_contiguous()
        return data, None
    def reduce_scatter_tensor(self, data, group, async_op=False):
        self.views += not data.is_contiguous()
        return ms.Tensor(np.ascontiguousarray(data.asnumpy())), None

def gradient_fails():
    view = ms.Tensor(np.arange(6, dtype=np.float32).reshape(2, 3)).T
    ready = ms.Tensor(np.ones((2, 3), np.float32))
    platform = Collectives()
    later = module("platform.mindspore.fully_shard.param")
    if later is not None:
        param = later.MindSporeHSDPParamV2(lambda grad: platform.all_reduce(grad, None))
        hooks = [param.all_reduce_grad]
        assert param._to_local_unsharded_grad(ready) is ready
    else:
        sync, async_ = module("core.hsdp.hsdp_grad_hook"), module("core.hsdp.hsdp_async_grad_hook")
        hooks = [sync.HSDPGradHook(platform).get_hook(None), async_.HSDPAsyncGradHook(platform).get_hook(None)]
    for hook in hooks:
        assert (hook(view).asnumpy() == view.asnumpy()).all()
        hook(ready)
    assert platform.views in (0, len(hooks)), platform.views
    return platform.views > 0

def step_faults():
    found = module("platform.mindspore.fully_shard.scheduler")
    if found is None:
        return []
    state = module("platform.mindspore.fully_shard.state").MindSporeHSDPStateV2()
    unit = found.MindSporeHSDPSchedulerV2(ms.nn.Cell(), state)
    def forward(value):
        y = value * 2
        unit._forward_hook(None, None, y)
        return y.sum()
    backward = ms.grad(forward)
    x = ms.Tensor(np.ones(4, np.float32))
    queued.clear()
    handles[:] = 0, 0
    for _ in range(10):
        assert backward(x).asnumpy().tolist() == [2.0] * 4
    assert unit.finished == 10, unit.finished
    assert handles[0] == 10, handles
    distinct = len({id(each) for each in queued})
    assert distinct in (1, 10), distinct
    # The handles of the last steps are due when their graphs are gone.
    return ["219.1"] * (distinct > 1) + ["301.1"] * (handles[1] < 7)

def shown():
    return ["134.1"] * mesh_fails() + ["134.2"] * gradient_fails() + step_faults()

result = {}
for choice in choices:
    fixes.install(choice)
    result[choice] = shown()
    fixes.remove()
print("RESULT", json.dumps(result))
"""


def run(package: Path, choices: list[str], folder: Path) -> dict[str, list[str]]:
    """Run the program on a package in a process of its own."""
    file = folder / "program.py"
    file.write_text(PROGRAM, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, file.name, str(package), json.dumps(choices)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "GLOG_v": "3", "RANK_ID": "4", "HYPER_REPRO_FIXES": "none"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "RESULT " in done.stdout, explain(done)
    found: dict[str, Any] = json.loads(done.stdout.rpartition("RESULT ")[2])
    return found


@pytest.mark.parametrize("layout", FAULTS)
def test_each_mend_alone_mends_its_own_fault(layout: str, tmp_path: Path) -> None:
    faults = FAULTS[layout]
    choices = ["none", ",".join(faults), *faults]
    expected = {choice: [fault for fault in faults if fault not in choice.split(",")] for choice in choices}
    assert run(DATA / layout, choices, tmp_path) == expected


@pytest.mark.parametrize("layout", FAULTS)
def test_the_exported_tree_alone_shows_no_fault(layout: str, tmp_path: Path) -> None:
    checkout = committed(layout, tmp_path / "checkout")
    # One after the other: the second and third meet what the first left.
    for number in sorted({int(fault.partition(".")[0]) for fault in FAULTS[layout]}):
        patch = tmp_path / f"{number}.patch"
        export(number, "", opened(checkout), patch)
        git(checkout, "am", "--quiet", str(patch))
    assert run(checkout, ["none"], tmp_path) == {"none": []}
