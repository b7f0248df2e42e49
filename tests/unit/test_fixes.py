"""Mends without MindSpore: which are chosen, what they refuse, and that they leave no trace."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

import fixes
from fixes import activate
from fixes.contiguous_grad import ContiguousGrad
from fixes.hook_handles import HookHandles
from fixes.mend import Mend, MendError
from fixes.mesh_metadata import MeshMetadata
from fixes.needs_input_grad import NeedsInputGrad
from fixes.teardown import Teardown
from repro.errors import UsageError


@pytest.mark.parametrize(
    ("selection", "chosen"),
    [
        ("", ()),
        ("none", ()),
        (" all ", tuple(fixes.MODULES)),
        ("134.2", ("134.2",)),
        ("301.3, 134.1", ("134.1", "301.3")),
        ("301.1,301.1", ("301.1",)),
        ("301.5", ("301.1", "301.2", "301.3")),
    ],
)
def test_selection(selection: str, chosen: tuple[str, ...]) -> None:
    assert fixes.selected(selection) == chosen


@pytest.mark.parametrize("selection", ["134", "134.9", "134.1;134.2", "All", "134.1,"])
def test_an_unknown_mend_is_named(selection: str) -> None:
    with pytest.raises(UsageError, match=r"there is no mend '.*'; all, none, or some of 134.1, "):
        fixes.selected(selection)


@pytest.mark.parametrize("fault", fixes.MODULES)
def test_every_mend_says_what_it_is(fault: str) -> None:
    mend = fixes.load(fault)
    assert mend.fault == fault
    assert mend.mends
    assert mend.since
    assert mend.modules
    assert not mend.active


def module(source: str, name: str = "hyper_parallel.core.device_mesh") -> ModuleType:
    made = ModuleType(name)
    made.__file__ = f"/lib/{name.replace('.', '/')}.py"
    exec(source, vars(made))  # noqa: S102 -- a made-up module of a few lines
    return made


SCHEDULER = "class MindSporeHSDPSchedulerV2:\n    def _register_backward_pre_hook(self, {}): ...\n    "


@pytest.mark.parametrize(
    ("mend", "source", "words"),
    [
        (MeshMetadata, "", "DeviceMesh._compute_coordinates_from_mesh(rank) there, found nothing"),
        (MeshMetadata, "class DeviceMesh:\n    _compute_coordinates_from_mesh = 3", "(rank) there, found 3"),
        (
            MeshMetadata,
            "class DeviceMesh:\n    def _compute_coordinates_from_mesh(self, mesh, rank): ...",
            "DeviceMesh._convert_rank_map_to_tensor(rank_map) there, found nothing",
        ),
        (ContiguousGrad, "class HSDPParamV2: ...", "HSDPParamV2._to_local_unsharded_grad(grad) there, found nothing"),
        (
            ContiguousGrad,
            "class HSDPParamV2:\n    def _to_local_unsharded_grad(self, gradient): ...",
            "found HSDPParamV2._to_local_unsharded_grad(self, gradient)",
        ),
        (HookHandles, SCHEDULER.format("outputs") + "x = 1", "_backward_pre_hook(grad) there, found nothing"),
        (
            HookHandles,
            SCHEDULER.format("tensors") + "def _backward_pre_hook(self, grad): ...",
            "found MindSporeHSDPSchedulerV2._register_backward_pre_hook(self, tensors)",
        ),
        (NeedsInputGrad, "class _Function:\n    def apply(self): ...", "found neither"),
        (
            NeedsInputGrad,
            "class _Function:\n    needs_input_grad = ()\n    def apply(self): ...\n    def __del__(self): ...",
            "found needs_input_grad, __del__",
        ),
        (
            Teardown,
            "class _PyNativeExecutor: ...",
            "queue_backward_final_callback(self, callback) there, found nothing",
        ),
    ],
)
def test_another_shape_is_refused_by_name(mend: Callable[[], Mend], source: str, words: str) -> None:
    made = module(source)
    before = dict(vars(made))
    with pytest.raises(MendError) as caught:
        mend().apply(made)
    text = str(caught.value)
    assert "/lib/hyper_parallel/core/device_mesh.py" in text
    assert words in text
    assert "leave it out of HYPER_REPRO_FIXES" in text
    assert vars(made) == before


@pytest.mark.parametrize(
    ("mend", "name", "source", "words"),
    [
        (
            ContiguousGrad,
            "core.hsdp.hsdp_grad_hook",
            "class HSDPGradHook: ...",
            "HSDPGradHook._get_final_grad_hook(self, param, grad_hook) there, found nothing",
        ),
        (
            ContiguousGrad,
            "core.hsdp.hsdp_async_grad_hook",
            "class HSDPAsyncGradHook:\n    def _get_final_async_grad_hook(self, hook): ...",
            "found HSDPAsyncGradHook._get_final_async_grad_hook(self, hook)",
        ),
        (
            ContiguousGrad,
            "platform.mindspore.fully_shard.param",
            (
                "class HSDPParamV2:\n    def _to_local_unsharded_grad(self, grad): ...\n"
                "class MindSporeHSDPParamV2(HSDPParamV2):\n    def _to_local_unsharded_grad(self, gradient): ..."
            ),
            "found MindSporeHSDPParamV2._to_local_unsharded_grad(self, gradient)",
        ),
        (
            MeshMetadata,
            "core.dtensor.device_mesh",
            (
                "class DeviceMesh:\n    def _compute_coordinates_from_mesh(self, mesh, rank): ...\n"
                "    def _convert_rank_map_to_tensor(self, rank_map): ...\n"
                "    def _get_mesh_tensor_from_full_mesh(self, mesh): ..."
            ),
            "DeviceMesh._get_mesh_tensor_from_full_mesh(full_mesh) there, found",
        ),
    ],
)
def test_another_shape_of_either_layout_is_refused_by_name(
    mend: Callable[[], Mend], name: str, source: str, words: str
) -> None:
    made = module(source, f"hyper_parallel.{name}")
    assert made.__name__ in mend().modules
    with pytest.raises(MendError) as caught:
        mend().apply(made)
    assert f"/lib/hyper_parallel/{name.replace('.', '/')}.py" in str(caught.value)
    assert words in str(caught.value)


def test_an_older_module_without_the_target_is_told() -> None:
    mend = HookHandles()
    mend.active = True
    name = "hyper_parallel.platform.mindspore.hsdp.scheduler"
    with pytest.warns(RuntimeWarning, match=f"mend 301.1 stays out of {name}: this version has no MindSpore"):
        mend._imported(module("", name))
    assert (mend.met, mend.missed) == ([], [name])


class Grad:
    """A gradient in little."""

    def __init__(self, *, contiguous: bool) -> None:
        self._contiguous = contiguous

    def is_contiguous(self) -> bool:
        """As a Tensor's."""
        return self._contiguous

    def contiguous(self) -> Grad:
        """As a Tensor's."""
        return Grad(contiguous=True)


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A made-up hyper_parallel on the path, with one module."""
    folder = tmp_path / "hyper_parallel" / "platform" / "mindspore" / "fully_shard"
    folder.mkdir(parents=True)
    for path in (folder, *list(folder.parents)[:3]):
        (path / "__init__.py").touch()
    source = "class HSDPParamV2:\n    def _to_local_unsharded_grad(self, grad):\n        return grad\n"
    (folder / "param.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "hyper_parallel"]:
        del sys.modules[name]


def test_installed_at_import_and_removed_without_a_trace(library: Path) -> None:
    del library
    mend = ContiguousGrad()
    mend.install()
    mend.install()
    from hyper_parallel.platform.mindspore.fully_shard import param

    mended = vars(param.HSDPParamV2)["_to_local_unsharded_grad"]
    assert mend.met == [f"{param.__name__}:HSDPParamV2._to_local_unsharded_grad"]
    one, view = Grad(contiguous=True), Grad(contiguous=False)
    assert param.HSDPParamV2()._to_local_unsharded_grad(one) is one
    assert param.HSDPParamV2()._to_local_unsharded_grad(grad=view).is_contiguous()
    assert (mend.copies, mend.passed, mend.uses) == (1, 1, 2)
    mend.remove()
    assert vars(param.HSDPParamV2)["_to_local_unsharded_grad"] is mended.__wrapped__
    assert param.HSDPParamV2()._to_local_unsharded_grad(view) is view
    assert (mend.met, mend.uses) == ([], 0)
    mend.install()
    assert len(mend.met) == 1
    mend.remove()


def test_a_misfit_reaches_who_imports(library: Path) -> None:
    (library / "param.py").write_text("class HSDPParamV2: ...\n", encoding="utf-8")
    mend = ContiguousGrad()
    mend.install()
    with pytest.raises(MendError, match=r"param\.py"):
        importlib.import_module("hyper_parallel.platform.mindspore.fully_shard.param")
    mend.remove()


def test_enable_and_disable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sysconfig.get_paths", lambda: {"purelib": str(tmp_path)})
    monkeypatch.syspath_prepend(tmp_path)
    assert activate.disable() is None
    path = activate.enable()
    assert activate.is_enabled()
    line = path.read_text(encoding="utf-8")
    assert line.startswith("import ")
    assert line.count("\n") == 1
    monkeypatch.delenv("HYPER_REPRO_FIXES", raising=False)
    exec(line)  # noqa: S102 -- what site.py does with it
    assert activate.disable() == path
    assert not activate.is_enabled()
