"""The number guard on a simulated device: what it stops, what it lets through."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sim_support import explain, require_sim, run_rank

INSTALL = """
import json
from repro.probes.number_guard import SimulatedNumberError, install, metadata, uninstall
install()

def outcome(read):
    try:
        return str(read())
    except SimulatedNumberError as error:
        return f"stopped: {error}"

def report(reads):
    print(json.dumps({name: outcome(read) for name, read in reads.items()}))

"""

STOPPED = {
    "asnumpy": "t.asnumpy()",
    "numpy": "t.numpy()",
    "item": "t.item()",
    "tolist": "t.tolist()",
    "get_bytes": "t.get_bytes()",
    "__float__": "float(t)",
    "__int__": "int(t)",
    "__bool__": "not t",
    "__index__": "[1, 2][k]",
    "__array__": "np.asarray(t)",
    "__contains__": "1.0 in t",
    "a comparison": "1 if t == t else 2",
    "a library": "np.testing.assert_allclose(t, t)",
    "a copy on the host": "t.to('CPU').asnumpy()",
    "a view": "t.view(1, 1).asnumpy()",
    "a parameter": "Parameter(mint.ones((2,))).asnumpy()",
    "a host tensor that an operator took to the device": "used.asnumpy()",
}
ALLOWED = {
    "a host tensor": "Tensor([1.5]).item()",
    "a tensor of the CPU device": "on_cpu().asnumpy().tolist()",
    "shape": "t.shape",
    "dtype": "t.dtype",
    "pickling": "len(__import__('pickle').dumps(t)) > 0",
}


@pytest.fixture(scope="module", autouse=True)
def _sim() -> None:
    require_sim()


def reads(folder: Path, expressions: dict[str, str]) -> dict[str, str]:
    """Evaluates expressions in a simulated rank with the guard and returns what came of each."""
    lines = "".join(f"    {name!r}: lambda: {expression},\n" for name, expression in expressions.items())
    program = f"""{INSTALL}
t = mint.ones((1,))
k = mint.zeros((1,), dtype=ms.int64)
used = Tensor(np.ones(2, np.float32))
used + 1

def on_cpu():
    with ms.DeviceCtx("CPU"):
        return mint.ones((2,)) + 1

report({{
{lines}}})
"""
    done = run_rank(folder, program)
    assert done.returncode == 0, explain(done)
    found: dict[str, str] = json.loads(done.stdout.splitlines()[0])
    return found


def test_reads_of_the_device_are_stopped_and_named(tmp_path: Path) -> None:
    found = reads(tmp_path, STOPPED)
    assert found.keys() == STOPPED.keys()
    for name, said in found.items():
        assert said.startswith("stopped: Tensor."), (name, said)
        assert "with metadata(" in said
        if name.startswith("__") or f".{name}()" in STOPPED[name]:
            assert said.startswith(f"stopped: Tensor.{name}() was called at ")
    assert "program.py:" in found["asnumpy"]


def test_what_is_real_stays_readable(tmp_path: Path) -> None:
    found = reads(tmp_path, ALLOWED)
    assert found == {
        "a host tensor": "1.5",
        "a tensor of the CPU device": "[2.0, 2.0]",
        "shape": "(1,)",
        "dtype": "Float32",
        "pickling": "True",
    }


def test_printing_shows_a_placeholder(tmp_path: Path) -> None:
    done = run_rank(tmp_path, f"{INSTALL}t = mint.ones((2, 3))\nprint(t, [t], f'loss {{t}}')\n")
    assert done.returncode == 0, explain(done)
    placeholder = "Tensor(shape=[2, 3], dtype=Float32, value=<simulated>)"
    assert done.stdout.splitlines()[0] == f"{placeholder} [{placeholder}] loss {placeholder}"


def test_metadata_allows_a_read_and_only_inside(tmp_path: Path) -> None:
    program = f"""{INSTALL}
t = mint.ones((2,))
with metadata("the test says so"):
    print(len(t.asnumpy()))
    with metadata("nested"):
        pass
    print(len(t.tolist()))
print(outcome(t.asnumpy)[:8])
uninstall()
print(len(t.asnumpy()))
"""
    done = run_rank(tmp_path, program)
    assert done.returncode == 0, explain(done)
    assert done.stdout.splitlines()[:4] == ["2", "2", "stopped:", "2"]


def test_a_meta_tensor_raises_its_own_error(tmp_path: Path) -> None:
    program = f"""{INSTALL}
with ms.DeviceCtx("meta"):
    try:
        Tensor([0, 1]).asnumpy()
    except RuntimeError as error:
        print(str(error).splitlines()[0])
"""
    done = run_rank(tmp_path, program)
    assert done.returncode == 0, explain(done)
    assert done.stdout.splitlines()[0] == "Not support copy between src:meta and dst:CPU"


def test_training_and_checkpoints_go_on_under_the_guard(tmp_path: Path) -> None:
    program = f"""{INSTALL}
net = nn.SequentialCell(nn.Dense(4, 8), nn.LayerNorm((8,)), nn.Dense(8, 2))
optimizer = nn.AdamWeightDecay(net.trainable_params())
step = ms.value_and_grad(lambda x: net(x).sum(), None, optimizer.parameters)
for _ in range(3):
    loss, gradients = step(mint.ones((2, 4)))
    optimizer(gradients)
ms.save_checkpoint(net, "net.ckpt")
ms.load_param_into_net(net, ms.load_checkpoint("net.ckpt"))
print(outcome(loss.item)[:8])
"""
    done = run_rank(tmp_path, program)
    assert done.returncode == 0, explain(done)
    assert done.stdout.splitlines()[0] == "stopped:"
