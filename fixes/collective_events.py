"""Mends 301.3: a collective's event is destroyed by the manager that made it, once its handle is gone and it is over.

The mend is native (``native/comm_handle_events.cc``): a destructor that stands in front of MindSpore's own.
"""

from __future__ import annotations

import atexit
import ctypes
import sys
from types import ModuleType

from fixes.mend import Mend, MendError
from repro.errors import UsageError

_COUNTS = ("destroyed", "deferred", "left", "pending")


class CollectiveEvents(Mend):
    """The mend of 301.3."""

    fault = "301.3"
    mends = "hands a collective's event back to Ascend's resource manager when its handle dies"
    since = "MindSpore 2.10.0 alone, with its Ascend plugin"
    # When the package is imported its libraries are there, and whether ours came first can be seen.
    modules = ("mindspore",)

    def __init__(self) -> None:
        super().__init__()
        self._library: ctypes.CDLL | None = None

    @property
    def uses(self) -> int:
        """Events that were handed back."""
        return self.count("destroyed")

    def count(self, name: str) -> int:
        """How many events were ``destroyed``, ``deferred``, ``left`` to the original, or are ``pending``."""
        return 0 if self._library is None else int(getattr(self._library, f"hyper_repro_events_{name}")())

    def prepare(self) -> None:
        """Load the library, which must come before MindSpore's.

        Raises:
            UsageError: MindSpore is imported already.
            MendError: The library does not fit this MindSpore.
        """
        if self._library is None:
            if "mindspore" in sys.modules:
                self.active = False
                raise UsageError("mend 301.3 must be installed before `import mindspore`", "see docs/mends.md")
            from fixes.native.build import build

            self._library = ctypes.CDLL(str(build()), mode=ctypes.RTLD_GLOBAL)
            for name in _COUNTS:
                getattr(self._library, f"hyper_repro_events_{name}").restype = ctypes.c_int64
        self._library.hyper_repro_mend_events(1)
        # Registered again once MindSpore is there, to run before its own teardown.
        atexit.register(self.stop)

    def apply(self, module: ModuleType) -> None:
        """See that MindSpore's own libraries found our destructor."""
        if self._library is None or not self._library.hyper_repro_mend_in_place():
            raise MendError(
                f"mend 301.3 does not fit {module.__file__}: the destructor of CommHandle in libmindspore_pyboost.so "
                "was not found, or another library stands in front of it",
                f"it knows {self.since}; leave it out of HYPER_REPRO_FIXES",
            )
        atexit.unregister(self.stop)
        atexit.register(self.stop)
        self.met.append("libmindspore_pyboost.so:CommHandle::~CommHandle")

    def stop(self) -> None:
        """Leave all that dies from now on to the original."""
        if self._library is not None:
            self._library.hyper_repro_mend_events(0)

    def cleared(self) -> None:
        """A library cannot be taken out of a process; switched off it only passes calls on."""
        self.stop()
        atexit.unregister(self.stop)


MEND = CollectiveEvents()
