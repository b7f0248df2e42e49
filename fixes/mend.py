"""What every mend has in common: where it goes, the check that its target fits, and the way back."""

from __future__ import annotations

import inspect
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import ModuleType
from typing import Any, ClassVar

import wrapt

from repro.errors import ReproError

# The real library and our own distilled one: the same module paths and names below both.
ROOTS = ("hyper_parallel", "repro.distilled")
_MISSING = object()


class MendError(ReproError):
    """A mend does not fit: its target is not there, or has another shape."""


def below_roots(*paths: str) -> tuple[str, ...]:
    """Full names of modules that may stand below each root."""
    return tuple(f"{root}.{path}" for path in paths for root in ROOTS)


class Mend(ABC):
    """One mend: installed once a process, applied to each of its target modules when that is imported.

    Attributes:
        fault: The fault it mends.
        mends: What it does, in a line.
        since: The versions whose shape it knows.
        modules: Full names of the modules it waits for.
        older: Those of them that may, in other versions, lack the mended class; then the mend says so and stays out.
        active: True between ``install`` and ``remove``.
        met: Targets that were mended, as ``module:name``.
        missed: Modules of ``older`` that were imported and have no target.
        uses: How often mended code did what it is for; 0 means that the mend has had no effect so far.
    """

    fault: ClassVar[str]
    mends: ClassVar[str]
    since: ClassVar[str]
    modules: ClassVar[tuple[str, ...]]
    older: ClassVar[dict[str, str]] = {}

    def __init__(self) -> None:
        self.active = False
        self.met: list[str] = []
        self.missed: list[str] = []
        self._uses = 0
        self._watched: set[str] = set()
        self._undo: list[tuple[Any, str, Any]] = []

    @property
    def uses(self) -> int:
        """How often it has had an effect."""
        return self._uses

    def install(self) -> None:
        """Apply to what is imported already, and watch for the rest.

        Raises:
            MendError: A target that is imported already does not fit.
        """
        if self.active:
            return
        self.active = True
        self.prepare()
        for name in self.modules:
            if name in sys.modules:
                self._imported(sys.modules[name])
            elif name not in self._watched:
                # wrapt has no way to take a hook out again, so it stays and looks whether the mend is active.
                self._watched.add(name)
                wrapt.register_post_import_hook(self._imported, name)

    def remove(self) -> None:
        """Put back what was there, the last change first."""
        self.active = False
        for owner, name, before in reversed(self._undo):
            if before is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
        self._undo.clear()
        self.met.clear()
        self.missed.clear()
        self._uses = 0
        self.cleared()

    def prepare(self) -> None:  # noqa: B027 -- most mends need nothing here
        """Do what must come before any target is imported."""

    def cleared(self) -> None:  # noqa: B027
        """Drop what the mend remembers, after it was removed."""

    @abstractmethod
    def apply(self, module: ModuleType) -> None:
        """Check the module's shape and mend it.

        Raises:
            MendError: It does not fit.
        """

    def _imported(self, module: ModuleType) -> None:
        if not self.active:
            return
        wanted = self.older.get(module.__name__)
        if wanted is not None and not hasattr(module, wanted):
            self.missed.append(module.__name__)
            said = f"mend {self.fault} stays out of {module.__name__}: this version has no {wanted} there"
            warnings.warn(said, RuntimeWarning, stacklevel=2)
            return
        self.apply(module)

    def target(self, module: ModuleType, path: str, parameters: Sequence[str] = (), *, needed: bool = True) -> Any:
        """Look a function of the module up and check its parameters.

        Args:
            module: Where it is.
            path: Its name, such as ``DeviceMesh.concatenate``.
            parameters: Names that its signature must have.
            needed: False returns None where there is no such name.

        Returns:
            The class that holds it (or the module), its last name, and the function as it is stored there.

        Raises:
            MendError: It is not there, no function, or lacks a parameter.
        """
        *outer, name = path.split(".")
        owner: Any = module
        for part in outer:
            owner = getattr(owner, part, None)
        stored = inspect.getattr_static(owner, name, None) if owner is not None else None
        if stored is None and not needed:
            return None
        function = getattr(stored, "__func__", stored)
        expected = f"{path}({', '.join(parameters)})"
        if not callable(function):
            raise self._misfit(module, expected, f"found {'nothing' if stored is None else repr(stored)}")
        if parameters:
            found = list(inspect.signature(function).parameters)
            if not set(parameters) <= set(found):
                raise self._misfit(module, expected, f"found {path}({', '.join(found)})")
        return owner, name, stored

    def put(self, module: ModuleType, owner: Any, name: str, value: Any, *, aid: bool = False) -> None:
        """Replace an attribute, remembering what was there; an aid is needed for the mend, but no target of it."""
        self._undo.append((owner, name, vars(owner).get(name, _MISSING)))
        setattr(owner, name, value)
        if aid:
            return
        label = name if owner is module else f"{getattr(owner, '__name__', type(owner).__name__)}.{name}"
        self.met.append(f"{module.__name__}:{label}")

    def used(self) -> None:
        """Count one effect."""
        self._uses += 1

    def _misfit(self, module: ModuleType, expected: str, found: str) -> MendError:
        file = getattr(module, "__file__", None) or module.__name__
        return MendError(
            f"mend {self.fault} does not fit {file}: it expects {expected} there, {found}",
            f"it knows {self.since}; leave it out of HYPER_REPRO_FIXES, or adapt {type(self).__module__}",
        )
