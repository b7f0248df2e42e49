"""Stops code from reading a number of a simulated device: such a number is always meaningless (zeros, mostly).

Only reads of tensors that live on the device (``Tensor.device`` says ``Ascend:0``), and only by code outside
MindSpore, are stopped. A tensor made from numpy lives on the host and stays readable until an operator takes it to the
device: from then on its host copy is overwritten by zeros, too. A meta tensor raises MindSpore's own error. A tensor
copied back from the device is marked and stays guarded; what an operator of the CPU device computes from such a copy is
not marked: that hole is known. Pickling, copying and ``save_checkpoint`` move numbers without looking at them and are
not stopped. Printing shows a placeholder instead of raising, because a log line must not end a training program.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from repro.errors import UnsupportedError
from repro.probes.metadata import metadata, reading_metadata

__all__ = ["SimulatedNumberError", "install", "metadata", "uninstall"]

_READS = ("asnumpy", "numpy", "item", "tolist", "get_bytes", "to_dlpack")
_CONVERSIONS = ("__array__", "__float__", "__int__", "__bool__", "__index__", "__contains__")
_PRINTS = ("__repr__", "__str__")
_COPIES = ("to", "move_to")
_MARK = "_hyper_repro_simulated"
_originals: dict[str, Any] = {}  # None for a method that Tensor inherits from its native base


class SimulatedNumberError(UnsupportedError):
    """A program read a number of a simulated device; another tier has real ones."""


def install() -> None:
    """Installs the guard in this process; for tier sim only, after MindSpore is imported. Repeating it is fine."""
    if _originals:
        return
    import mindspore
    from mindspore import Tensor

    package = f"{Path(mindspore.__file__).parent}/"
    wrappers: dict[str, Callable[[str, Any], Any]] = {
        **dict.fromkeys((*_READS, *_CONVERSIONS), lambda name, original: _reader(name, original, package)),
        **dict.fromkeys(_PRINTS, _printer),
        **dict.fromkeys(_COPIES, _copier),
    }
    for name, wrap in wrappers.items():
        _originals[name] = Tensor.__dict__.get(name)
        setattr(Tensor, name, wrap(name, getattr(Tensor, name)))


def uninstall() -> None:
    """Takes the guard out again."""
    if not _originals:
        return
    from mindspore import Tensor

    for name, original in _originals.items():
        if original is None:
            delattr(Tensor, name)
        else:
            setattr(Tensor, name, original)
    _originals.clear()


def _simulated(tensor: Any) -> bool:
    """Tells whether the numbers of a tensor come from the simulated device."""
    return getattr(tensor, _MARK, False) or str(tensor.device).startswith("Ascend")


def _reader(name: str, original: Any, package: str) -> Any:
    """Wraps a method that gives away numbers, so that it raises for callers outside the folder package."""

    @functools.wraps(original)
    def read(tensor: Any, *arguments: Any, **options: Any) -> Any:
        caller = sys._getframe(1)
        # MindSpore reads its own tensors while it works: indices, checkpoints, object collectives.
        inside = caller.f_code.co_filename.startswith(package)
        if not inside and not reading_metadata() and _simulated(tensor):
            raise SimulatedNumberError(
                f"Tensor.{name}() was called at {caller.f_code.co_filename}:{caller.f_lineno} on a simulated device, "
                f"where numbers mean nothing (shape {tuple(tensor.shape)}, {tensor.dtype})",
                "judge numbers on tier cpu or npu, or read inside `with metadata('why'):`",
            )
        return original(tensor, *arguments, **options)

    return read


def _printer(name: str, original: Any) -> Any:
    """Wraps a method that prints numbers, so that it prints a placeholder."""
    del name

    @functools.wraps(original)
    def text(tensor: Any) -> Any:
        if not reading_metadata() and _simulated(tensor):
            return f"Tensor(shape={list(tensor.shape)}, dtype={tensor.dtype}, value=<simulated>)"
        return original(tensor)

    return text


def _copier(name: str, original: Any) -> Any:
    """Wraps a method that may copy a tensor from the device to the host, so that the copy stays guarded."""
    del name

    @functools.wraps(original)
    def copy(tensor: Any, *arguments: Any, **options: Any) -> Any:
        simulated = _simulated(tensor)
        result = original(tensor, *arguments, **options)
        if simulated and not str(result.device).startswith("Ascend"):
            setattr(result, _MARK, True)
        return result

    return copy
