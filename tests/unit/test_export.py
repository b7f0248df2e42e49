"""Exports: what is edited, what is refused with file, name and expectation, and that the checkout is only read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from checkouts import DATA, commit, committed, opened

from fixes.export import REQUESTS, codemod, has_export, request
from fixes.export.source import MisfitError, Tree
from fixes.export.write import export
from repro import cli
from repro.errors import ReproError, UnsupportedError
from repro.upstream.checkout import git

FOLDER = "hyper_parallel/platform/mindspore/fully_shard"
MESH = "class DeviceMesh:\n    def _compute_coordinates_from_mesh({}): ...\n"
NAMES = "platform = 1\nTensor = platform\n"
SCHEDULER = "class MindSporeHSDPSchedulerV2:\n    def _backward_pre_hook(self, grad):\n        {}\n"
REGISTER = "    def _register_backward_pre_hook(self, outputs):\n        {}\n"


@pytest.mark.parametrize(
    ("fault", "layout", "changed", "fragments"),
    [
        (
            "134.1",
            "later",
            {"hyper_parallel/core/dtensor/device_mesh.py"},
            ["return _host_rank_map(values.reshape(-1).astype(np.int32))", "return _host_rank_map(ranks[0])"],
        ),
        (
            "134.1",
            "older",
            {"hyper_parallel/core/device_mesh.py"},
            ["_host_rank_map(np.reshape(ranks.tolist(), ranks.shape))", "_host_rank_map(self.rank_list)"],
        ),
        ("134.2", "later", {f"{FOLDER}/param.py"}, ["reduce_partial_dtensor=False).contiguous()"]),
        (
            "134.2",
            "older",
            {"hyper_parallel/core/hsdp/hsdp_grad_hook.py", "hyper_parallel/core/hsdp/hsdp_async_grad_hook.py"},
            ["all_reduce(grad.contiguous(), hsdp_param)", "all_reduce(output, hsdp_param, async_op=True)"],
        ),
        (
            "219.1",
            "later",
            {f"{FOLDER}/scheduler.py", f"{FOLDER}/lasting_callbacks.py"},
            ['queue_backward_final_callback(lasting(self, "_backward_hook"))'],
        ),
        (
            "301.1",
            "later",
            {f"{FOLDER}/scheduler.py", f"{FOLDER}/output_hooks.py"},
            ["OUTPUT_HOOKS.register(output, self._backward_pre_hook)"],
        ),
    ],
)
def test_edits(fault: str, layout: str, changed: set[str], fragments: list[str]) -> None:
    tree = Tree(DATA / layout)
    mod = codemod(fault)
    assert mod is not None
    mod.edit(tree)
    assert set(tree.changed) == changed
    text = "\n".join(tree.changed.values())
    assert all(fragment in text for fragment in fragments), text
    for path, source in tree.changed.items():
        compile(source, path, "exec")
    # A second time there is nothing to do, and that is told.
    again = Tree(DATA / layout)
    again.changed.update(tree.changed)
    with pytest.raises(MisfitError, match=re.escape(f"export of {fault} does not fit hyper_parallel/")):
        mod.edit(again)


@pytest.mark.parametrize(
    ("fault", "path", "source", "words"),
    [
        ("134.1", "core/other.py", "", "expects a file of one of these names there, found neither"),
        ("134.1", "core/device_mesh.py", NAMES, "DeviceMesh._compute_coordinates_from_mesh(rank) there, found nothing"),
        (
            "134.1",
            "core/device_mesh.py",
            MESH.format("mesh, rank"),
            "the module's own name Tensor there, found nothing",
        ),
        (
            "134.1",
            "core/device_mesh.py",
            NAMES + MESH.format("mesh, r"),
            "found DeviceMesh._compute_coordinates_from_mesh(mesh, r)",
        ),
        ("134.1", "core/device_mesh.py", NAMES + MESH.format("a, b, rank"), "(<mesh>, rank) there, found a, b"),
        (
            "134.1",
            "core/device_mesh.py",
            NAMES + MESH.format("mesh, rank"),
            "made by Tensor(<values>) there, found none",
        ),
        (
            "134.1",
            "core/device_mesh.py",
            NAMES + MESH.format("mesh, rank") + "x = Tensor([1], dtype=int)\n",
            "rank maps made by Tensor(<values>) there, found Tensor([1], dtype=int)",
        ),
        (
            "134.1",
            "core/dtensor/device_mesh.py",
            "def _host_tensor_from_numpy(x): ...\n",
            "found that they are made from numpy already",
        ),
        ("134.1", "core/device_mesh.py", "def (", "expects Python there, line 1"),
        ("134.2", "core/other.py", "", "expects a file of one of these names there"),
        ("134.2", "core/hsdp/hsdp_grad_hook.py", "x = 1\n", "class HSDPGradHook there, found nothing"),
        (
            "134.2",
            "core/hsdp/hsdp_grad_hook.py",
            "class HSDPGradHook:\n    def f(self, grad):\n        self.platform.all_reduce(self.grad)\n",
            "self.platform.all_reduce or reduce_scatter_tensor there, found none to change",
        ),
        (
            "134.2",
            "platform/mindspore/fully_shard/param.py",
            "class MindSporeHSDPParamV2: ...\n",
            "MindSporeHSDPParamV2._to_local_unsharded_grad(grad) there, found nothing",
        ),
        (
            "134.2",
            "platform/mindspore/fully_shard/param.py",
            "class HSDPParamV2:\n    def _to_local_unsharded_grad(self, gradient): ...\n",
            "found HSDPParamV2._to_local_unsharded_grad(self, gradient)",
        ),
        ("301.1", "core/other.py", "", "expects the file there, found nothing"),
        (
            "301.1",
            "platform/mindspore/fully_shard/scheduler.py",
            SCHEDULER.format("..."),
            "MindSporeHSDPSchedulerV2._register_backward_pre_hook(outputs) there, found nothing",
        ),
        (
            "301.1",
            "platform/mindspore/fully_shard/scheduler.py",
            SCHEDULER.format("...") + REGISTER.format("handle = outputs.register_hook(self._backward_pre_hook)"),
            "<output>.register_hook(self.<hook>) there, found none that drops its handle",
        ),
        (
            "219.1",
            "platform/mindspore/fully_shard/scheduler.py",
            SCHEDULER.format("executor.queue_backward_final_callback(callback)"),
            "queue_backward_final_callback(self.<method>) there, found it with callback",
        ),
        (
            "219.1",
            "platform/mindspore/fully_shard/scheduler.py",
            SCHEDULER.format("..."),
            "queue_backward_final_callback(self.<method>) there, found no call",
        ),
    ],
)
def test_another_shape_is_refused(fault: str, path: str, source: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "hyper_parallel" / path
    file.parent.mkdir(parents=True)
    file.write_text(source, encoding="utf-8")
    tree, mod = Tree(tmp_path), codemod(fault)
    assert mod is not None
    with pytest.raises(MisfitError) as caught:
        mod.edit(tree)
    assert words in str(caught.value)
    assert "hyper_parallel/" in str(caught.value)
    assert not tree.changed


def test_the_patch_is_one_that_git_takes(tmp_path: Path) -> None:
    folder = committed("later", tmp_path / "it")
    before = {path: path.read_bytes() for path in folder.rglob("*.py")}
    done = export(301, "", opened(folder), tmp_path / "out.patch")
    assert {path: path.read_bytes() for path in folder.rglob("*.py")} == before
    assert opened(folder).changed == ()
    assert len(done.written) == 3
    assert sorted(path.name for path in tmp_path.glob("out*")) == [
        "out-mindspore-301.2.md",
        "out-mindspore-301.3.md",
        "out.patch",
    ]
    git(folder, "am", "--quiet", str(tmp_path / "out.patch"))
    author, subject, body = git(folder, "log", "-1", "--format=%an <%ae>%n%s%n%b").split("\n", 2)
    assert author == "A Name <name@localhost>"
    assert subject == "Remove the backward pre-hooks of outputs when their graph is gone"
    assert "drops the handle" in body
    assert "Evidence: One hook a step" in body
    assert "Never run on an NPU" in body
    assert max(map(len, body.splitlines())) <= 72
    assert (folder / FOLDER / "output_hooks.py").is_file()


def test_a_patch_of_several_mends_says_each(tmp_path: Path) -> None:
    folder = committed("older", tmp_path / "it")
    export(134, "", opened(folder), tmp_path / "out.patch")
    git(folder, "am", "--quiet", str(tmp_path / "out.patch"))
    body = git(folder, "log", "-1", "--format=%B")
    assert body.startswith("Keep a device mesh's rank maps off the current device, and 1 more\n")
    assert "\nMake gradients contiguous before they are reduced\n" in body


def test_what_a_version_cannot_have_is_left_out(tmp_path: Path) -> None:
    checkout = opened(committed("older", tmp_path / "it"))
    done = export(219, "", checkout, tmp_path / "out.patch")
    assert [path.name for path in tmp_path.glob("out*")] == ["out-mindspore-219.1.md"]
    assert done.notes[0].startswith("219.1 is left out: this version cannot have it: it queues no final callback")
    with pytest.raises(UnsupportedError, match=r"301\.1 is left out: this version cannot have it"):
        export(301, "301.1", checkout, tmp_path / "out.patch")


def test_a_checkout_that_a_patch_cannot_be_made_against(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = committed("later", tmp_path / "it")
    (folder / "hyper_parallel" / "core" / "__init__.py").write_text("x = 1\n", encoding="utf-8")
    arguments = ["fixes", "export", "134.1", "--output", str(tmp_path / "out.patch"), "--checkout"]
    assert cli.main([*arguments, str(folder)]) == 2
    assert "has changes: hyper_parallel/core/__init__.py; commit, stash or remove" in capsys.readouterr().err
    bare = tmp_path / "bare" / "hyper_parallel"
    bare.mkdir(parents=True)
    (bare / "__init__.py").touch()
    assert cli.main([*arguments, str(bare.parent)]) == 2
    assert "is not the top of a git checkout" in capsys.readouterr().err
    assert cli.main([*arguments, str(tmp_path / "nowhere")]) == 2
    assert "--checkout: " in capsys.readouterr().err
    assert not (tmp_path / "out.patch").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["export"], "export needs a report or fault, and --checkout"),
        (["export", "134.1"], "export needs a report or fault, and --checkout"),
        (["list", "134"], "issue: only `repro fixes export` takes it"),
        (["enable", "--output", "x"], "output: only `repro fixes export` takes it"),
        (["export", "301.4", "--checkout", str(DATA / "later")], "there is no export of 301.4; there is one of 134.1,"),
        (["export", "9001", "--checkout", str(DATA / "later")], "there is no export of 9001"),
        (["export", "all", "--checkout", str(DATA / "later")], "'all' is not an issue or a fault"),
    ],
)
def test_a_wrong_command_line_is_one_line(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["fixes", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_a_patch_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    folder = committed("later", tmp_path / "it")
    with pytest.raises(ReproError, match=r"cannot write .*/no/out.patch: No such file"):
        export(134, "134.2", opened(folder), tmp_path / "no" / "out.patch")


@pytest.mark.parametrize("source", [b"# coding: latin-1\nname = '\xe9'\n", b"name = '\xe9'\n"])
def test_a_file_that_is_not_utf_8_is_refused(source: bytes, tmp_path: Path) -> None:
    file = tmp_path / FOLDER / "param.py"
    file.parent.mkdir(parents=True)
    file.write_bytes(source)
    with pytest.raises(MisfitError, match=r"param\.py: it expects text in UTF-8 there, found"):
        Tree(tmp_path).module(f"{FOLDER}/param.py", "134.2")


def test_line_ends_and_neighbours_stay(tmp_path: Path) -> None:
    folder = committed("later", tmp_path / "it")
    path = folder / FOLDER / "param.py"
    source = path.read_bytes().replace(b"\n", b"\r\n") + b"# no end of line"
    path.write_bytes(source)
    git(folder, "config", "core.autocrlf", "false")
    commit(folder)
    export(134, "134.2", opened(folder), tmp_path / "out.patch")
    git(folder, "am", "--quiet", "--keep-cr", str(tmp_path / "out.patch"))
    assert path.read_bytes() == source.replace(b"=False)\r\n", b"=False).contiguous()\r\n")


def test_the_requests_are_those_of_the_documentation() -> None:
    text = (Path(__file__).parents[2] / "docs" / "mends.md").read_text(encoding="utf-8")
    for path in REQUESTS.glob("*.md"):
        assert f"../fixes/export/requests/{path.name}" in text, path.name
        assert has_export(path.stem)
        for part in ("**Change:**", "**Why:**", "**Evidence**", "unction:**"):
            assert part in request(path.stem), (path.name, part)
