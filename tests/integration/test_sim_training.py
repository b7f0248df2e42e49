"""Ordinary training code runs as a simulated rank, ends with exit code 0 and leaves no files of MindSpore's."""

from __future__ import annotations

from pathlib import Path

import pytest
from sim_support import explain, require_sim, run_rank

PROGRAMS = {
    "dense network, legacy operators, Adam": """
        net = nn.SequentialCell(nn.Dense(8, 16, activation="relu"), nn.LayerNorm((16,)), nn.Dense(16, 4))
        loss = nn.CrossEntropyLoss()
        optimizer = nn.Adam(net.trainable_params(), learning_rate=1e-3)
        step = ms.value_and_grad(lambda x, y: loss(net(x), y), None, optimizer.parameters)
        for _ in range(10):
            _, gradients = step(mint.ones((4, 8)), mint.zeros((4,), dtype=ms.int32))
            optimizer(ops.clip_by_global_norm(gradients, 1.0))
        ms.runtime.synchronize()
    """,
    "transformer block, AdamW": """
        from mindspore.mint.nn import functional as F

        class Block(nn.Cell):
            def __init__(self):
                super().__init__()
                self.embedding = mint.nn.Embedding(32, 16)
                self.norm = mint.nn.LayerNorm(16)
                self.scale = Parameter(mint.ones((16,)), name="scale")
                self.qkv = mint.nn.Linear(16, 48)
                self.head = mint.nn.Linear(16, 32)

            def construct(self, tokens):
                x = self.norm(self.embedding(tokens))
                q, k, v = mint.chunk(self.qkv(x), 3, dim=-1)
                x = x + mint.matmul(F.softmax(mint.matmul(q, mint.transpose(k, -1, -2)), dim=-1), v)
                return self.head(ops.rms_norm(x, self.scale)[0])

        net = Block()
        optimizer = mint.optim.AdamW(net.trainable_params(), lr=1e-3)
        tokens = mint.zeros((2, 8), dtype=ms.int64)
        loss = lambda t: F.cross_entropy(net(t).view(-1, 32), t.view(-1))
        step = ms.value_and_grad(loss, None, net.trainable_params())
        for _ in range(5):
            _, gradients = step(tokens)
            for gradient in gradients:
                dist.all_reduce(gradient)
            optimizer(gradients)
        ms.runtime.synchronize()
    """,
    "small mixture of experts": """
        from mindspore.mint.nn import functional as F

        class Experts(nn.Cell):
            def __init__(self, count=4, width=8, top=2):
                super().__init__()
                self.router = mint.nn.Linear(width, count, bias=False)
                self.experts = nn.CellList([mint.nn.Linear(width, width) for _ in range(count)])
                self.top = top

            def construct(self, x):
                weights, chosen = mint.topk(F.softmax(self.router(x), dim=-1), self.top, dim=-1)
                order = mint.argsort(chosen.view(-1))
                rows = mint.index_select(mint.repeat_interleave(x, self.top, dim=0), 0, order)
                dispatched = mint.empty_like(rows)
                dist.all_to_all_single(dispatched, rows)
                parts = mint.chunk(dispatched, len(self.experts), dim=0)
                done = mint.cat([expert(part) for expert, part in zip(self.experts, parts)], dim=0)
                back = mint.scatter(mint.zeros_like(done), 0, order.unsqueeze(-1).expand((-1, x.shape[-1])), done)
                mask = F.one_hot(chosen, len(self.experts)).sum(0)
                gated = back.view(x.shape[0], self.top, -1) * weights.unsqueeze(-1)
                return mint.where(mint.isnan(gated.sum(1)), x, gated.sum(1)) + mask.sum().to(ms.float32) * 0

        net = Experts()
        optimizer = mint.optim.SGD(net.trainable_params(), lr=0.1)
        step = ms.value_and_grad(lambda x: net(x).sum(), None, net.trainable_params())
        for _ in range(5):
            _, gradients = step(mint.ones((16, 8)))
            optimizer(gradients)
        ms.runtime.synchronize()
    """,
    "hooks, _Function, run_backward, needs_input_grad": """
        from mindspore import _c_expression
        from mindspore.common._grad_function import _Function
        from mindspore.common.api import _pynative_executor

        seen = []

        class Scale(_Function):
            @staticmethod
            def forward(ctx, x, factor):
                ctx.factor = factor
                ctx.save_for_backward(x)
                return x * factor

            @staticmethod
            def backward(ctx, gradient):
                seen.append(ctx.needs_input_grad)
                return gradient * ctx.factor, None

        _pynative_executor.set_grad_flag(True)
        weight = Parameter(mint.ones((4, 4)), name="weight")
        for _ in range(20):
            x = mint.ones((2, 4))
            hidden = mint.matmul(x, weight)
            handle = hidden.register_hook(lambda gradient: gradient * 2)
            loss = Scale.apply(hidden, 3.0).sum()
            _c_expression.run_backward((loss,), (mint.ones(()),), False, False, (), True, accumulate_grad=True)
            handle.remove()
        ms.runtime.synchronize()
        assert len(seen) == 20 and seen[0][0], seen[:2]
        assert weight._grad is not None
    """,
    "collectives of gradients in hooks, async, on sub-groups": """
        world, rank = dist.get_world_size(), dist.get_rank()
        column = dist.new_group(list(range(rank % 2, world, 2)))
        net = mint.nn.Linear(4, 4)
        pending = []

        def reduce(gradient):
            gradient = gradient.contiguous()
            pending.append((dist.all_reduce(gradient, group=column, async_op=True), gradient))
            return gradient

        net.weight.register_hook(reduce)
        step = ms.value_and_grad(lambda x: net(x).sum(), None, net.trainable_params())
        for _ in range(20):
            step(mint.ones((2, 4)))
            for handle, _ in pending:
                handle.wait()
            pending.clear()
        step(mint.ones((2, 4)))  # and one handle is alive when the process ends
        ms.runtime.synchronize()
        assert len(pending) == 1
    """,
    "parameters made, swapped and saved": """
        net = nn.Dense(4, 4)
        for number in range(10):
            fresh = Parameter(Tensor(np.full((4, 4), number, np.float32)), name=f"weight_{number}")
            old, net.weight = net.weight, fresh
            net(mint.ones((2, 4)))
            old.set_data(mint.zeros((4, 4)))
        net._params["weight"] = Parameter(mint.ones((4, 4)), name="weight")
        ms.save_checkpoint(net, "net.ckpt")
        loaded = ms.load_checkpoint("net.ckpt")
        assert set(loaded) == {"weight", "bias"}, set(loaded)
        assert loaded["weight"].shape == (4, 4)
        ms.load_param_into_net(net, loaded)
        ms.runtime.synchronize()
        import os
        os.remove("net.ckpt")
    """,
}


@pytest.fixture(scope="module", autouse=True)
def _sim() -> None:
    require_sim()


@pytest.mark.parametrize("name", PROGRAMS)
def test_training_code_runs_and_ends_cleanly(name: str, tmp_path: Path) -> None:
    done = run_rank(tmp_path, PROGRAMS[name])
    assert done.returncode == 0, explain(done)
    assert "Traceback" not in done.stderr, explain(done)
    assert "WorkerJoin failed" not in done.stderr, explain(done)
    # MindSpore makes an empty ./offload at its first operator; the execute-order tracker's files must not be there.
    assert {path.name for path in tmp_path.iterdir()} <= {"program.py", "offload"}, list(tmp_path.rglob("*"))
    assert not list((tmp_path / "offload").glob("*"))


@pytest.mark.parametrize(("world_size", "rank"), [(1, 0), (16, 9), (4096, 4095)])
def test_a_rank_believes_in_its_world(world_size: int, rank: int, tmp_path: Path) -> None:
    program = """
    group = dist.new_group([dist.get_rank()])
    value = mint.ones((4,))
    dist.all_reduce(value)
    dist.all_reduce(value, group=group)
    gathered = mint.zeros((4 * dist.get_world_size(),))
    dist.all_gather_into_tensor(gathered, value)
    ms.runtime.synchronize()
    print(dist.get_rank(), dist.get_world_size(), dist.get_process_group_ranks(group))
    """
    done = run_rank(tmp_path, program, world_size, rank)
    assert done.returncode == 0, explain(done)
    assert done.stdout.split("\n")[0] == f"{rank} {world_size} [{rank}]"


def test_the_error_of_a_collective_comes_where_the_pipeline_is_waited_for(tmp_path: Path) -> None:
    program = """
    view = mint.ones((2, 3)).T
    dist.all_reduce(view)
    after = mint.ones((2,)) + 1
    print("call returned", flush=True)
    try:
        ms.runtime.synchronize()
    except ValueError as error:
        print(str(error).splitlines()[0])
    """
    done = run_rank(tmp_path, program)
    assert done.returncode == 0, explain(done)
    assert done.stdout.splitlines() == [
        "call returned",
        "DistCommAllReduce does not support not-contiguous tensor. Please call tensor.contiguous() firstly.",
    ]


def test_an_error_that_nobody_waits_for_is_only_logged(tmp_path: Path) -> None:
    done = run_rank(tmp_path, "dist.all_reduce(mint.ones((2, 3)).T)")
    assert "WorkerJoin failed: DistCommAllReduce" in done.stderr, explain(done)
    assert done.returncode == 0, explain(done)  # why a harness must synchronize before it calls a body done


def test_without_the_quiet_library_the_tracker_writes_files(tmp_path: Path) -> None:
    program = """
    import mindspore as ms
    from mindspore import mint
    import mindspore.mint.distributed as dist
    ms.set_device("Ascend")
    dist.init_process_group()
    dist.all_reduce(mint.ones((4,)))
    ms.runtime.synchronize()
    """
    done = run_rank(tmp_path, program, prologue=False)
    assert done.returncode == 0, explain(done)
    assert (tmp_path / "rank_0" / "execute_order").is_dir()
