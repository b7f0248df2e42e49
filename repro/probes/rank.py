"""The entry point of a rank: load the case program, mark each phase, run it, and leave through the ordinary exit.

Run as ``python -m repro.probes.rank`` with HYPER_REPRO_TRIAL naming the trial's folder; the launcher sets RANK_ID.
"""

from __future__ import annotations

import atexit
import faulthandler
import importlib.util
import json
import os
import signal
import sys
import traceback
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import ModuleType

import fixes
from repro.evidence.layout import RankFolder, TrialFolder
from repro.evidence.read import read_wants
from repro.model import Phase, Subject, Tier, TrialSpec
from repro.probes import metadata
from repro.probes.context import DEVICE_OF_TIER, Context, rank_of_environment
from repro.probes.events import Events

MESSAGE_LIMIT = 20_000


def main() -> int:
    """Run this process's part of the trial and return its exit code."""
    folder = TrialFolder(Path(os.environ["HYPER_REPRO_TRIAL"]))
    if os.environ.get("MS_ROLE") == "MS_SCHED":
        return _serve_as_scheduler()
    rank = rank_of_environment()
    spec = TrialSpec.from_json(json.loads(folder.spec.read_text(encoding="utf-8")))
    rank_folder = folder.rank(rank)
    rank_folder.path.mkdir(parents=True, exist_ok=True)
    # A hung rank is asked for its Python stacks with SIGUSR1 before it is killed.
    faulthandler.enable(all_threads=True)
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    events = Events(rank_folder.events)
    events.phase(Phase.BEFORE_BODY)
    # Registered before MindSpore's own exit handler, so it runs after it: native teardown inside atexit is over.
    atexit.register(events.write, "atexit done")
    mends: tuple[fixes.Mend, ...] = ()
    try:
        context = Context(spec, rank, events)
        if spec.tier is Tier.SIM:
            metadata.listeners.append(lambda reason: events.write("metadata", reason=reason))
        mends = _install_mends(events)
        _prepare_mindspore(spec)
        if spec.subject is Subject.UPSTREAM:
            _prepare_upstream(spec, events)
        program = _load(Path(os.environ["HYPER_REPRO_PROGRAM"]))
        events.phase(Phase.IN_BODY)
        with _traced(folder, rank_folder):
            _run_body(spec, context, program, rank_folder)
        # A program about teardown says so: waiting here would move its crash from the exit into the body.
        if getattr(program, "WAIT_FOR_DEVICE", True):
            _wait_for_the_device(spec)
        events.phase(Phase.BODY_DONE)
        # Registered after MindSpore's, so it runs first. A rank whose body failed keeps the phase it failed in.
        atexit.register(events.phase, Phase.FINALISING)
    except Exception as error:  # noqa: BLE001 -- whatever the case raised is the evidence
        _write_error(rank_folder.error, error)
        traceback.print_exc()
        return 1
    finally:
        # Before the interpreter's end, so that a crash there does not take it along.
        if mends:
            events.write("mends", mends=fixes.state(mends))
    return 0


def _traced(folder: TrialFolder, rank: RankFolder) -> AbstractContextManager[None]:
    """Where the run wants memory traces, the body runs under memray."""
    if not read_wants(folder).memory:
        return nullcontext()
    from repro.probes.tracing import traced

    return traced(rank)


def _run_body(spec: TrialSpec, context: Context, program: ModuleType, rank: RankFolder) -> None:
    if spec.series:
        from repro.probes.meter import Meter

        Meter(spec, context, rank.samples).run(program.series(context))
    else:
        program.case(context)


def _install_mends(events: Events) -> tuple[fixes.Mend, ...]:
    """Before MindSpore is imported and before the case is: a mend waits for the modules that it goes into."""
    mends = fixes.install()
    if mends:
        events.write("mends installed", faults=[mend.fault for mend in mends])
    return mends


def _prepare_upstream(spec: TrialSpec, events: Events) -> None:
    """Put the checkout in front of the path, and on CPU carry it with shims, which the evidence names."""
    from repro.upstream import shims

    sys.path.insert(0, os.environ[shims.VARIABLE])
    applied = shims.install() if spec.tier is Tier.CPU else ()
    import hyper_parallel

    events.write("upstream", file=hyper_parallel.__file__, shims=[shim.name for shim in applied])


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"hyper_repro_case_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python program")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _prepare_mindspore(spec: TrialSpec) -> None:
    if spec.tier is not Tier.CPU:
        from repro.sim import events
        from repro.sim.environment import preload_quiet

        preload_quiet()
        events.preload()
    import mindspore

    mindspore.set_device(DEVICE_OF_TIER[spec.tier])
    mindspore.set_seed(spec.seed)
    if spec.tier is Tier.SIM:
        from repro.probes import number_guard

        number_guard.install()


def _wait_for_the_device(spec: TrialSpec) -> None:
    """Let what is still queued fail here: left alone, MindSpore logs it at exit and the process ends with 0."""
    if spec.tier is not Tier.CPU:
        import mindspore

        mindspore.runtime.synchronize()


def _serve_as_scheduler() -> int:
    import mindspore
    from mindspore.communication import init

    mindspore.set_device("CPU")
    init()
    return 0


def _write_error(path: Path, error: Exception) -> None:
    frames = [(frame.filename, frame.lineno or 0, frame.name) for frame in traceback.extract_tb(error.__traceback__)]
    issued = getattr(error, "issued_at", ())
    data = {"type": type(error).__name__, "message": str(error)[:MESSAGE_LIMIT], "frames": frames, "issued_at": issued}
    part = path.with_suffix(".part")
    part.write_text(json.dumps(data, ensure_ascii=False, indent=1), encoding="utf-8", errors="backslashreplace")
    part.rename(path)


if __name__ == "__main__":
    sys.exit(main())
