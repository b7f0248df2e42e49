"""Builds the stand-in CANN runtime for the installed MindSpore: ``python -m repro.sim.build``."""

from __future__ import annotations

import fnmatch
import hashlib
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from repro.errors import InfraError, ReproError
from repro.sim.wheel import Wheel, demand, find_wheel, nm, run_tool

COMMAND = "make sim"
_MARKER = "symbols.json"  # written last: where it is, the rest is, too
# Opened by name at run time (dlopen), so that no link says so.
_OPENED_NAMES = "ge_runner graph msprofiler hccl runtime platform c_sec nnopbase ascend_hal acl_op_compiler"
_OPENED = [f"lib{name}.so" for name in (*_OPENED_NAMES.split(" "), "acl_tdt_channel", "aclnn")]
# The plugin is built with the old ABI of libstdc++; ours must be, too.
_CXX = ["g++", "-std=c++17", "-D_GLIBCXX_USE_CXX11_ABI=0", "-O1", "-fPIC", "-Wall", "-Wextra", "-Werror"]
_C = ["gcc", "-std=c11", "-D_DEFAULT_SOURCE", "-O1", "-fPIC", "-Wall", "-Wextra", "-Werror"]
# What MindSpore's own start-up check looks at; without these each rank warns at length.
# It also misses the package ``te``, loudly. A stand-in for that would be imported for its kernels, so there is none.
_PYTHON = "opp/built-in/op_impl/ai_core/tbe"
_FILES = {
    f"{_PYTHON}/hccl/__init__.py": "",
    f"{_PYTHON}/hccl/sys_version.py": '__sys_version__ = "9.1"\n',
    "compiler/version.info": "Version=9.1.0\n",
}


@dataclass(frozen=True)
class Runtime:
    """A built stand-in runtime.

    Attributes:
        root: Its folder.
        wheel_version: The MindSpore it was built for.
        seconds: How long the build took, in seconds; 0.0 if it was there already.
    """

    root: Path
    wheel_version: str
    seconds: float = 0.0

    @property
    def home(self) -> Path:
        """ASCEND_HOME_PATH. MindSpore refuses a libascendcl.so whose path lacks ``ascend-toolkit/latest/lib64``."""
        return self.root / "Ascend" / "ascend-toolkit" / "latest"

    @property
    def libraries(self) -> Path:
        """The folder for LD_LIBRARY_PATH."""
        return self.home / "lib64"

    @property
    def python_path(self) -> Path:
        """The folder for PYTHONPATH: the modules that MindSpore asks for the version of CANN."""
        return self.home / _PYTHON

    @property
    def operators(self) -> Path:
        """ASCEND_OPP_PATH."""
        return self.home / "opp"

    @property
    def quiet_library(self) -> Path:
        """The library that a rank loads before MindSpore: no execute-order tracker, real pinned memory."""
        return self.root / "libhyper_repro_quiet.so"

    @property
    def events_library(self) -> Path:
        """The library that counts the events of MindSpore's resource manager (``repro.sim.events``)."""
        return self.root / "libhyper_repro_events.so"

    @property
    def is_built(self) -> bool:
        """Tells whether it is there, whole."""
        return (self.root / _MARKER).is_file()

    def symbols(self) -> dict[str, list[str]]:
        """Returns the symbols by how they are served: ``hand``, ``generic``, ``unserved``."""
        served: dict[str, list[str]] = json.loads((self.root / _MARKER).read_text())
        return served


@dataclass(frozen=True)
class Status:
    """What ``doctor`` shows: whether the runtime is there and fits; if not, what lacks and what mends it."""

    ready: bool
    detail: str
    mend: str = ""


def source_folder() -> Path:
    """Returns images/cann-sim of this checkout; raises InfraError if it is not there."""
    folder = Path(__file__).resolve().parents[2] / "images" / "cann-sim"
    if not (folder / "acl_runtime.c").is_file():
        raise InfraError(
            f"the sources of the stand-in runtime are not in {folder}", "run from a checkout of hyper-repro"
        )
    return folder


def cache_folder() -> Path:
    """Returns where runtimes are kept: ``$HYPER_REPRO_CACHE/cann-sim``, else ``.cache/cann-sim`` in the checkout."""
    chosen = os.environ.get("HYPER_REPRO_CACHE")
    base = Path(chosen).expanduser().resolve() if chosen else Path(__file__).resolve().parents[2] / ".cache"
    return base / "cann-sim"


def runtime_for(wheel: Wheel) -> Runtime:
    """Returns where the runtime of a wheel belongs, built or not: wheel, our sources and the compiler decide.

    Where there is no compiler, as in a container image that was built elsewhere, what any compiler made is as good.
    """
    digest = hashlib.sha256(f"{wheel.version}\n{wheel.fingerprint}\n".encode())
    for path in [*sorted(source_folder().glob("*")), Path(__file__), Path(__file__).with_name("wheel.py")]:
        if path.suffix in {".c", ".cc", ".h", ".txt", ".py"}:
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    stem = f"{wheel.version}-{platform.machine()}-{digest.hexdigest()[:16]}"
    try:
        compiler = hashlib.sha256(run_tool(["g++", "--version"]).encode()).hexdigest()[:8]
    except InfraError:
        built = [marker.parent for marker in sorted(cache_folder().glob(f"{stem}-*/{_MARKER}"))]
        if not built:
            raise
        return Runtime(built[0], wheel.version)
    return Runtime(cache_folder() / f"{stem}-{compiler}", wheel.version)


def build() -> Runtime:
    """Returns the runtime for the installed MindSpore and builds it first if it is not there.

    Raises:
        UnsupportedError: There is no MindSpore with an Ascend plugin in this interpreter.
        InfraError: A compiler or binutils is missing, or fails, or the cache can not be written.
    """
    wheel = find_wheel()
    runtime = runtime_for(wheel)
    if runtime.is_built:
        return runtime
    start = time.monotonic()
    try:
        runtime.root.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=".building-", dir=runtime.root.parent))
    except OSError as error:
        raise InfraError(f"cannot write {runtime.root.parent}: {error.strerror}", "set HYPER_REPRO_CACHE") from None
    try:
        _build_into(Runtime(work, wheel.version), wheel)
        work.chmod(0o755)  # mkdtemp makes it private; containers run as another user
        try:
            work.rename(runtime.root)
        except OSError:
            if not runtime.is_built:
                raise
            # another process built the same meanwhile: one is as good as the other
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return Runtime(runtime.root, wheel.version, time.monotonic() - start)


def status() -> Status:
    """Tells whether a fitting runtime is there; builds nothing and imports no MindSpore."""
    try:
        runtime = runtime_for(find_wheel())
    except ReproError as error:
        return Status(False, error.message, error.next_step)
    if runtime.is_built:
        return Status(True, f"stand-in CANN for MindSpore {runtime.wheel_version} in {runtime.root}")
    others = sorted(path.name for path in runtime.root.parent.glob("[0-9]*")) if runtime.root.parent.is_dir() else []
    stale = f"; there is {', '.join(others)}, which does not fit" if others else ""
    return Status(False, f"no stand-in CANN for MindSpore {runtime.wheel_version}{stale}", COMMAND)


def served_generically(names: set[str], table: str) -> set[str]:
    """Returns those of names that the table (served-generically.txt) lets answer 0 without doing anything."""
    patterns = [line.split("#")[0].strip() for line in table.splitlines()]
    return {name for name in names if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns if pattern)}


def generated_source(generic: set[str], unserved: set[str]) -> str:
    """Returns C for the symbols that nobody wrote by hand; labels, not assembly, so that any processor will do."""
    lines = ["/* Generated by repro/sim/build.py. */", '#include "unserved.h"']
    for index, symbol in enumerate(sorted(generic)):
        lines.append(f'long generic_{index}(void) __asm__("{symbol}"); long generic_{index}(void) {{ return 0; }}')
    for index, symbol in enumerate(sorted(unserved)):
        lines.append(f'void unserved_{index}(void) __asm__("{symbol}");')
        lines.append(f'void unserved_{index}(void) {{ hyper_repro_unserved("{symbol}"); }}')
    return "\n".join(lines) + "\n"


def _build_into(runtime: Runtime, wheel: Wheel) -> None:
    """Compiles everything into the folder of runtime; symbols.json, written last, marks it whole."""
    source, objects = source_folder(), runtime.root / "objects"
    runtime.libraries.mkdir(parents=True)
    objects.mkdir()
    wanted = demand(wheel)
    data = sorted(symbol for symbol in wanted.linked if symbol.startswith(("_ZTV", "_ZTI", "_ZTS", "_ZTT")))
    if data:
        raise InfraError(f"MindSpore {wheel.version} needs CANN data that no function can stand for: {', '.join(data)}",
                         "images/cann-sim/README.md: how to add a class")  # fmt: skip
    built = []
    for name in ("acl_runtime.c", "acl_operator.c", "ge_values.cc", "ge_operator.cc", "unserved.cc"):
        built.append(objects / f"{name}.o")
        run_tool([*(_C if name.endswith(".c") else _CXX), "-c", str(source / name), "-o", str(built[-1])])
    listed = run_tool(["nm", "--defined-only", "--extern-only", "--format=posix", *map(str, built)])
    by_hand = {line.split()[0] for line in listed.splitlines() if not line.endswith(":")}
    names = set(wanted.linked | wanted.looked_up)
    generic = served_generically(names - by_hand, (source / "served-generically.txt").read_text())
    unserved = names - by_hand - generic
    (objects / "generated.c").write_text(generated_source(generic, unserved))
    run_tool([*_C, f"-I{source}", "-c", str(objects / "generated.c"), "-o", str(objects / "generated.o")])
    library = runtime.libraries / "libascendcl.so"
    _link(["g++"], library, [objects / "generated.o", *built])
    _link(_C, runtime.libraries / "libopapi.so", [source / "opapi.c"])
    (objects / "empty.c").write_text("typedef int empty;\n")
    for name in sorted({*_OPENED, *wanted.libraries} - {"libascendcl.so"}):
        _link(_C, runtime.libraries / name, [objects / "empty.c", library], "-Wl,--no-as-needed")
    _link(_C, runtime.quiet_library, [source / "preload.c"])
    _link(_CXX, runtime.events_library, [source / "event_counter.cc"])
    missing = wanted.linked - nm([library], "--defined-only")
    if missing:
        raise InfraError(f"built, but without {', '.join(sorted(missing)[:5])}")
    shutil.rmtree(objects)
    for name, text in _FILES.items():
        path = runtime.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    served = {"hand": sorted(names & by_hand), "generic": sorted(generic), "unserved": sorted(unserved)}
    (runtime.root / _MARKER).write_text(json.dumps(served, indent=1) + "\n")


def _link(compiler: list[str], library: Path, inputs: list[Path], *options: str) -> None:
    """Makes a shared library that is known by its file name."""
    run_tool([*compiler, "-shared", f"-Wl,-soname,{library.name}", *options, "-o", str(library), *map(str, inputs)])


def main() -> int:
    """Builds and prints where and what; returns an exit code."""
    try:
        runtime = build()
    except ReproError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    counts = ", ".join(f"{len(names)} {how}" for how, names in runtime.symbols().items())
    took = f"built in {runtime.seconds:.1f} s" if runtime.seconds else "was built already"
    print(f"stand-in CANN for MindSpore {runtime.wheel_version}: {runtime.root}\n{took}; symbols: {counts}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
