"""The stand-in runtime: when it is built, when not, what its functions do, and what an unserved one does."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sim_support import TIMEOUT, explain, require_sim, run_rank

from repro.sim.build import Runtime, build, runtime_for, served_generically, source_folder, status
from repro.sim.environment import EXIT_UNSERVED
from repro.sim.wheel import demand, find_wheel

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def runtime() -> Runtime:
    require_sim()
    return build()


def build_in(checkout: Path, cache: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs ``python -m repro.sim.build`` of a checkout with a cache of its own."""
    environment = {**os.environ, "PYTHONPATH": str(checkout), "HYPER_REPRO_CACHE": str(cache), **variables}
    command = [sys.executable, "-m", "repro.sim.build"]
    return subprocess.run(
        command, cwd=checkout, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )


def call_in_child(library: Path, symbol: str) -> tuple[int, str]:
    """Calls a function without arguments in a child; returns its exit code (the result, if it returns) and stderr."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writing, 2)
        os._exit(getattr(ctypes.CDLL(str(library)), symbol)() & 0xFF)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said


def test_every_unserved_symbol_names_itself_and_ends_the_process(runtime: Runtime) -> None:
    unserved = runtime.symbols()["unserved"]
    assert "_ZN2ge7Session12CompileGraphEj" in unserved
    for symbol in unserved:
        code, said = call_in_child(runtime.libraries / "libascendcl.so", symbol)
        assert code == EXIT_UNSERVED, (symbol, code, said)
        assert len(said.splitlines()) == 1, said
        # C++ names are shown as one writes them: the last part of a class member is enough to tell.
        assert symbol in said or (symbol.startswith("_Z") and "ge::" in said and "_Z" not in said), said
        assert "images/cann-sim/README.md" in said


def test_the_line_of_a_cpp_symbol_is_readable(runtime: Runtime) -> None:
    _, said = call_in_child(runtime.libraries / "libascendcl.so", "_ZN2ge7Session12CompileGraphEj")
    assert "unserved CANN symbol ge::Session::CompileGraph(unsigned int) was called" in said


def test_a_rank_that_calls_an_unserved_symbol_ends_with_its_code(tmp_path: Path) -> None:
    require_sim()
    program = """
    import ctypes
    print("before", flush=True)
    ctypes.CDLL("libascendcl.so").HcclAllReduce()
    print("after")
    """
    done = run_rank(tmp_path, program)
    assert done.returncode == EXIT_UNSERVED, explain(done)
    assert done.stdout.splitlines() == ["before"]
    assert "unserved CANN symbol HcclAllReduce was called" in done.stderr.splitlines()[-1]


def test_a_path_of_mindspore_without_stand_in_ends_with_the_line(tmp_path: Path) -> None:
    require_sim()
    program = """
    @ms.jit(backend="GE")
    def add_one(x):
        return x + 1
    add_one(mint.ones((2,)))
    """
    done = run_rank(tmp_path, program)
    assert done.returncode == EXIT_UNSERVED, explain(done)
    assert "unserved CANN symbol ge::" in done.stderr.splitlines()[-1]


def test_what_is_served_generically_answers_success(runtime: Runtime) -> None:
    for symbol in runtime.symbols()["generic"]:
        assert call_in_child(runtime.libraries / "libascendcl.so", symbol) == (0, ""), symbol


def test_the_table_has_no_line_that_this_wheel_does_not_ask_for() -> None:
    require_sim()
    wanted = demand(find_wheel())
    for line in (source_folder() / "served-generically.txt").read_text().splitlines():
        if line.split("#")[0].strip():
            assert served_generically(set(wanted.linked | wanted.looked_up), line), line


def test_all_that_the_plugin_is_linked_against_is_there(runtime: Runtime) -> None:
    library = ctypes.CDLL(str(runtime.libraries / "libascendcl.so"))
    for symbol in demand(find_wheel()).linked:
        assert hasattr(library, symbol)
    for name in demand(find_wheel()).libraries:
        assert (runtime.libraries / name).is_file()


def test_it_is_built_once_and_status_says_so(runtime: Runtime) -> None:
    marker = runtime.root / "symbols.json"
    before = marker.stat().st_mtime_ns
    again = build()
    assert (again.root, again.seconds) == (runtime.root, 0.0)
    assert marker.stat().st_mtime_ns == before
    assert status().ready
    assert str(runtime.root) in status().detail


def test_another_source_is_another_runtime(runtime: Runtime, tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    shutil.copytree(REPOSITORY / "repro", checkout / "repro", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(REPOSITORY / "images" / "cann-sim", checkout / "images" / "cann-sim")
    assert build_in(checkout, tmp_path / "cache").returncode == 0
    with (checkout / "images" / "cann-sim" / "served-generically.txt").open("a") as table:
        table.write("acltdtDestroyChannel\n")
    changed = build_in(checkout, tmp_path / "cache")
    assert "built in" in changed.stdout, explain(changed)
    kept = sorted((tmp_path / "cache" / "cann-sim").iterdir())
    assert len(kept) == 2, kept
    served = [Runtime(root, "").symbols()["generic"] for root in kept]
    assert sorted("acltdtDestroyChannel" in names for names in served) == [False, True]
    assert runtime.root.name in {root.name for root in kept}  # the same sources and wheel give the same key anywhere


def test_without_a_compiler_it_says_what_to_install(tmp_path: Path) -> None:
    require_sim()
    (tmp_path / "bin").mkdir()
    done = build_in(REPOSITORY, tmp_path / "cache", PATH=str(tmp_path / "bin"))
    assert done.returncode == 4, explain(done)
    assert done.stderr.strip() == "error: g++ is missing; apt-get install g++ binutils"


def test_without_a_compiler_what_is_built_already_will_do(runtime: Runtime, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    done = build_in(REPOSITORY, runtime.root.parents[1], PATH=str(tmp_path / "bin"))
    assert done.returncode == 0, explain(done)
    assert "was built already" in done.stdout


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    require_sim()
    (tmp_path / "file").write_text("")
    done = build_in(REPOSITORY, tmp_path / "file")
    assert done.returncode == 4, explain(done)
    assert (
        done.stderr.strip() == f"error: cannot write {tmp_path}/file/cann-sim: Not a directory; set HYPER_REPRO_CACHE"
    )


def test_a_failed_build_leaves_nothing_that_looks_built(tmp_path: Path) -> None:
    require_sim()
    checkout = tmp_path / "checkout"
    shutil.copytree(REPOSITORY / "repro", checkout / "repro", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(REPOSITORY / "images" / "cann-sim", checkout / "images" / "cann-sim")
    (checkout / "images" / "cann-sim" / "opapi.c").write_text("this is no C\n")
    done = build_in(checkout, tmp_path / "cache")
    assert done.returncode == 4, explain(done)
    assert "opapi.c" in done.stderr
    assert list((tmp_path / "cache" / "cann-sim").iterdir()) == []


def test_two_builds_at_once_agree(tmp_path: Path) -> None:
    require_sim()
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda _: build_in(REPOSITORY, tmp_path / "cache"), range(2)))
    assert [one.returncode for one in done] == [0, 0], [explain(one) for one in done]
    assert len(list((tmp_path / "cache" / "cann-sim").iterdir())) == 1


def test_status_names_the_command_that_mends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_sim()
    monkeypatch.setenv("HYPER_REPRO_CACHE", str(tmp_path))
    assert not runtime_for(find_wheel()).root.exists()
    assert (status().ready, status().mend) == (False, "make sim")
