"""Finds the installed MindSpore wheel without importing it, and which CANN symbols its Ascend plugin asks for."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import mmap
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from repro.errors import InfraError, UnsupportedError

INSTALL = "pip install 'mindspore==2.10.0' 'numpy<2'"

# The plugin libraries that a simulated rank loads. Others in the wheel (ATB, DVPP, matrix kernels) stay unloaded.
PLUGIN_LIBRARIES = (
    "plugin/libmindspore_ascend.so.2",
    "plugin/libmindspore_ops_ascend.so",
    "plugin/ascend/libmindspore_ascend_res_manager.so",
    "plugin/ascend/libmindspore_graph_ir.so",
    "libmindspore_ge_backend.so",
    "plugin/ascend/libd_collective.so",
    "plugin/ascend/ms_kernels_symmetric_memory/shmem/shmem/lib/libshmem.so",
)
# The C API that the plugin looks up with dlsym: names as they stand, whole, between zero bytes.
_DLSYM_NAME = re.compile(rb"\0((?:acl(?:rt|mdl|op|prof|tdt)?[A-Z]|Hccl[A-Z])[A-Za-z0-9]+)(?=\0)")


@dataclass(frozen=True)
class Wheel:
    """An installed MindSpore.

    Attributes:
        version: As its metadata says, for example ``2.10.0``.
        lib: The folder of its native libraries.
        fingerprint: Changes when the wheel's files change: hash of its RECORD, or of the plugin's file sizes.
    """

    version: str
    lib: Path
    fingerprint: str


@dataclass(frozen=True)
class Demand:
    """What a wheel asks of CANN.

    Attributes:
        linked: Symbols that must exist when the plugin is loaded.
        looked_up: Names that the plugin looks up with dlsym.
        libraries: Names of the shared libraries that the plugin is linked against and that nobody else provides.
    """

    linked: frozenset[str]
    looked_up: frozenset[str]
    libraries: frozenset[str]


def find_wheel() -> Wheel:
    """Returns the MindSpore of this interpreter; raises UnsupportedError if there is none with an Ascend plugin."""
    spec = importlib.util.find_spec("mindspore")
    if spec is None or spec.origin is None:
        raise UnsupportedError("MindSpore is not installed in this interpreter", INSTALL)
    lib = Path(spec.origin).parent / "lib"
    for name in PLUGIN_LIBRARIES:
        if not (lib / name).is_file():
            raise UnsupportedError(f"the installed MindSpore has no {name}", f"2.10.0 has it: {INSTALL}")
    try:
        distribution = importlib.metadata.distribution("mindspore")
    except importlib.metadata.PackageNotFoundError:
        raise UnsupportedError(f"MindSpore in {lib.parent} has no package metadata", INSTALL) from None
    record = distribution.read_text("RECORD")
    if not record:
        record = "\n".join(f"{name} {(lib / name).stat().st_size}" for name in PLUGIN_LIBRARIES)
    return Wheel(distribution.version, lib, hashlib.sha256(record.encode()).hexdigest())


def run_tool(command: list[str], check: bool = True) -> str:
    """Runs a build tool and returns what it prints; raises InfraError with its own words if it is missing or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise InfraError(f"{command[0]} is missing", "apt-get install g++ binutils") from None
    if check and done.returncode != 0:
        raise InfraError(f"{' '.join(command[:3])} ... ended with {done.returncode}: {done.stderr.strip()[:2000]}")
    return done.stdout


def nm(files: list[Path], selection: str, check: bool = True) -> set[str]:
    """Returns the dynamic symbols of files, ``--defined-only`` or ``--undefined-only`` (without the weak ones)."""
    symbols = set()
    for line in run_tool(["nm", "-D", selection, *map(str, files)], check).splitlines():
        match line.split():
            case [*_, kind, symbol] if selection == "--defined-only" or kind == "U":
                symbols.add(symbol)
    return symbols


def needed_libraries(files: list[Path]) -> set[str]:
    """Returns the names of the shared libraries that files are linked against."""
    return set(re.findall(r"\(NEEDED\).*\[(.+)\]", run_tool(["readelf", "-d", *map(str, files)])))


def demand(wheel: Wheel) -> Demand:
    """Reads from the plugin's files what it asks of CANN; takes about a second."""
    plugin = [wheel.lib / name for name in PLUGIN_LIBRARIES]
    # The GPU half is as large as the rest together and defines nothing that the Ascend half needs.
    libraries = [path for path in wheel.lib.rglob("*.so*") if path.is_file()]
    every = [path for path in libraries if "gpu" not in str(path.relative_to(wheel.lib))]
    needed = needed_libraries(plugin) - {path.name for path in every}
    system = {name: path for name in needed if (path := _system_path(name))}
    # nm complains about libraries for another processor (kernels that run on the card): their symbols do not count.
    defined = {symbol.split("@")[0] for symbol in nm([*every, *system.values()], "--defined-only", check=False)}
    undefined = {symbol.split("@")[0] for symbol in nm(plugin, "--undefined-only")} - defined
    linked = {symbol for symbol in undefined if not re.match(r"_?Py", symbol)}  # Python provides its own
    looked_up: set[str] = set()
    for path in plugin:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            looked_up.update(name.decode() for name in _DLSYM_NAME.findall(content))
    return Demand(frozenset(linked), frozenset(looked_up - defined), frozenset(needed - system.keys()))


def _system_path(library: str) -> Path | None:
    """Returns the library of the system by name, or None: the compiler prints a bare name for what it does not find."""
    found = run_tool(["gcc", f"-print-file-name={library}"]).strip()
    return Path(found) if "/" in found else None
