"""``make bench``: times, overheads and detection limits as figures and ratios; ``--write FILE`` keeps them by part.

Absolute times depend on the machine; a ratio compares two things measured one after the other in this run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import keep
import mends
import psutil
from fanout import fanout

import images
from repro import catalogue
from repro.evidence.layout import TrialFolder
from repro.evidence.read import read_events, read_windows
from repro.judge.growth import GrowthState, judge_growth
from repro.model import Arm, GrowthOracle, Launcher, Scalar, Subject, Tier, Topology, TrialSpec

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BYTES = GrowthOracle("malloc_in_use", "B/call", floor=4, planted=64)
RECORDED = ROOT / "tests" / "data" / "recorded"

Row = tuple[str, str, str]


def run(command: list[str], environment: dict[str, str] | None = None) -> tuple[float, str, int]:
    """Seconds, standard output, and the largest resident memory of the process itself in bytes."""
    start = time.perf_counter()
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, cwd=ROOT, env=environment)
        largest = 0
        watched = psutil.Process(process.pid)
        while process.poll() is None:
            try:
                largest = max(largest, watched.memory_info().rss)
            except psutil.NoSuchProcess:
                break
            time.sleep(0.05)
        process.wait()
        seconds = time.perf_counter() - start
        out.seek(0)
        return seconds, out.read(), largest


def repro(*arguments: str) -> list[str]:
    """The command line of the harness."""
    return [sys.executable, "-m", "repro.cli", *arguments]


def trial(folder: Path, program: Path, **changes: object) -> TrialFolder:
    """Run one trial under a supervisor."""
    values: dict[str, object] = {
        "issue": 0, "fault": "0.1", "case": "bench", "arm": Arm.UNFIXED, "tier": Tier.CPU, "subject": Subject.DISTILLED,
        "launcher": Launcher.PLAIN, "topology": Topology(), "program": program.name, "args": dict[str, Scalar](),
        "series": dict[str, str](), "calls": 0, "window": 0, "calls_per_step": 1, "index": 0, "timeout_s": 900.0,
        "collectives": False, "environment": dict[str, str](), "seed": 0,
    }  # fmt: skip
    spec = TrialSpec(**{**values, **changes})  # type: ignore[arg-type]
    folder.mkdir(parents=True)
    whole = TrialFolder(folder)
    whole.spec.write_text(json.dumps(spec.to_json()), encoding="utf-8")
    cores = str(len(os.sched_getaffinity(0)))
    command = [sys.executable, "-m", "repro.launch.supervisor", str(folder), str(program), cores]
    subprocess.run(command, cwd=ROOT, check=True)
    return whole


def verdicts(work: Path) -> Iterator[Row]:
    """Time to verdict of each report, the size of the parent, and what the meter took."""
    for number, goal in (("134", 25), ("301", 90), ("219", 120)):
        seconds, out, largest = run(repro("run", number, "--json", "--out", str(work / number)))
        found = ", ".join(f"{fault['id']} {fault['verdict']}" for fault in json.loads(out)["faults"])
        yield f"report {number}: time to verdict", f"{seconds:.0f} s (goal {goal} s)", found
        yield f"report {number}: parent process", f"{largest / 1e6:.0f} MB", "goal under 100 MB"
    for folder in sorted((work / "301" / "trials").glob("301.[12]-*")):
        spent = [event for event in read_events(folder / "rank-0" / "events.jsonl") if event["event"] == "meter"]
        share = spent[0]["meter_s"] / spent[0]["calls_s"]
        yield f"meter, {folder.name}", f"{share:.2%} of the calls' time", "goal under 2%"


def reports_own_method(work: Path) -> Iterator[Row]:
    """Report 301's way to see 301.1, and ours, in time and in what they tell."""
    grown, total = {}, 0.0
    for arm in ("no-hook", "dropped", "removed"):
        seconds, out, _ = run([sys.executable, str(HERE / "report_method.py"), arm])
        grown[arm] = json.loads(out)["bytes_a_call"]
        total += seconds
    difference = grown["dropped"] - grown["no-hook"]
    values = ", ".join(f"{arm} {value:,.0f}" for arm, value in grown.items())
    yield (
        "301.1 by the report's method",
        f"{total:.0f} s",
        f"{difference:+.0f} B a call, no interval ({values} B a call)",
    )
    seconds, out, _ = run(repro("run", "301.1", "--json", "--out", str(work / "301.1")))
    measure = json.loads(out)["faults"][0]["measure"]
    told = f"{measure['value']:+.0f} B a call, 95% {measure['ci95'][0]:.0f} to {measure['ci95'][1]:.0f}"
    yield "301.1 by ours", f"{seconds:.0f} s, {total / seconds:.1f} times as fast", told


def detection(work: Path) -> Iterator[Row]:
    """The smallest planted leak, and clean series that must not look like one."""
    found = 0
    for index in range(5):
        roles = {"case": "sixteen", "clean": "clean", "planted": "planted"}
        program = HERE / "small_leak.py"
        folder = trial(work / f"leak-{index}", program, series=roles, calls=1000, window=100)
        finding = judge_growth(read_windows(folder.rank(0).samples), BYTES)
        found += finding.state is GrowthState.LEAK
    yield "16 B a call within 1,000 calls", f"found {found} of 5 times", f"last: {finding.slope:.1f} B a call"
    leaks = sum(_shuffled(seed) is GrowthState.LEAK for seed in range(100))
    yield "100 clean series, recorded, shuffled", f"{leaks} called a leak", "a control that itself grows 970 B a call"


def _shuffled(seed: int) -> GrowthState:
    """The recorded control against itself, its windows in another order."""
    windows = [window for window in read_windows(RECORDED / "control.csv") if window.block > 0]
    clean = [window for window in windows if window.series == "clean"] or windows
    random.Random(seed).shuffle(clean)
    half = len(clean) // 2
    series = []
    for block, (one, other) in enumerate(zip(clean[:half], clean[half:], strict=False)):
        leaked = {**other.end, BYTES.measure: other.end[BYTES.measure] + BYTES.planted * other.calls}
        series += [
            replace(one, block=block, series="case"),
            replace(other, block=block, series="clean"),
            replace(other, block=block, series="planted", end=leaked),
        ]
    return judge_growth(series, BYTES).state


FIRST_OPERATOR = """
import resource, mindspore as ms, numpy as np
from mindspore import mint
ms.set_device({device!r})
x = ms.Tensor(np.ones((4, 4), np.float32))
mint.matmul(x, x)
ms.graph.api._pynative_executor.sync()
if {groups}:
    import mindspore.mint.distributed as dist
    dist.init_process_group()
    dist.all_reduce(x)
    dist.new_group([0, 1])
    ms.runtime.synchronize()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def simulation(work: Path) -> Iterator[Row]:
    """The simulated tier: its build, its start, its size, and the trainer."""
    if shutil.which("g++") is None:
        yield "tier sim", "not measured", "no g++"
        return
    cold = {**os.environ, "HYPER_REPRO_CACHE": str(work / "cache")}
    seconds, _, _ = run([sys.executable, "-m", "repro.sim.build"], cold)
    yield "stand-in CANN, cold build", f"{seconds:.1f} s", "goal under 20 s"
    from repro.sim.environment import process_environment

    cpu = FIRST_OPERATOR.format(device="CPU", groups=False)
    ascend = FIRST_OPERATOR.format(device="Ascend", groups=False)
    ratios = []
    for _ in range(5):
        on_cpu, _, _ = run([sys.executable, "-c", cpu])
        on_sim, _, _ = run([sys.executable, "-c", ascend], process_environment(8, 0))
        ratios.append(on_sim / on_cpu)
    ratio = sorted(ratios)[len(ratios) // 2]
    yield (
        "start to first operator, sim to cpu",
        f"{ratio:.2f} times",
        f"last {on_sim:.1f} s and {on_cpu:.1f} s; goal 1.1",
    )
    program = FIRST_OPERATOR.format(device="Ascend", groups=True)
    for world in (8, 512, 4096):
        seconds, out, _ = run([sys.executable, "-c", program], process_environment(world, 0))
        size = int(out.strip().splitlines()[-1]) / 1024
        yield f"a rank of a world of {world}", f"{size:.0f} MiB, {seconds:.1f} s", "goal under 600 MB, the same at each"
    start = time.perf_counter()
    program_path = catalogue.BUILT_IN / "301" / "trainer.py"
    eight = Topology(dp=8)
    trial(work / "trainer", program_path, tier=Tier.SIM, launcher=Launcher.RANKS, topology=eight, args={"steps": 20})
    yield "trainer, 8 ranks of 20 steps", f"{time.perf_counter() - start:.0f} s", "goal under 120 s on 2 cores"


def mended(work: Path) -> Iterator[Row]:
    """What the mends cost a step, and whether they grow."""
    yield from mends.step_time()
    yield from mends.own_growth(work, trial)


def ansible_hosts(_work: Path) -> Iterator[Row]:
    """Preflight and a no-change deploy over many hosts; see playbooks.py."""
    from playbooks import measure

    yield from measure()


def ansible_choices(_work: Path) -> Iterator[Row]:
    """What each setting of ansible.cfg is worth; MITOGEN names a folder with mitogen, to be measured too."""
    from playbooks import choices

    yield from choices()


PARTS: dict[str, Callable[[Path], Iterator[Row]]] = {
    "verdicts": verdicts,
    "method": reports_own_method,
    "detection": detection,
    "simulation": simulation,
    "mends": mended,
    "hosts": lambda work: fanout(work, run),
    "images": images.images,
    "ansible": ansible_hosts,
    "ansible-settings": ansible_choices,
}


def main() -> None:
    """Measure the parts asked for and print a Markdown table."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="default: all")
    parser.add_argument("--write", type=Path, help="also put each part measured into its section of this file")
    options = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as work:
        for name in options.parts or PARTS:
            measured = (
                f"Measured on {datetime.now(UTC):%Y-%m-%d} by `make bench ARGS={name}`: {cores} cores, "
                f"{platform.machine()}, Python {platform.python_version()}, load before {os.getloadavg()[0]:.1f}."
            )
            lines = [measured, "", "| what | figure | beside it |", "|---|---|---|"]
            print(f"## {name}\n\n" + "\n".join(lines), flush=True)
            for row in PARTS[name](Path(work) / name):
                lines.append(f"| {' | '.join(row)} |")
                print(lines[-1], flush=True)
            if options.write:
                keep.replace(options.write, name, "\n".join(lines))


if __name__ == "__main__":
    main()
