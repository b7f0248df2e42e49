"""Mend 301.3 on the simulated tier: events that are over are destroyed, pending ones are kept for later."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from sim_support import explain, require_sim, run_rank

EVENTS = """
import fixes
(mend,) = fixes.install("301.3")
from repro.sim import events
events.preload()
{quiet}
import mindspore as ms
import numpy as np
import mindspore.mint.distributed as dist
ms.set_device("Ascend")
dist.init_process_group()
tensor = ms.Tensor(np.ones(16, np.float32))
def loop(count):
    for _ in range(count):
        dist.all_reduce(tensor)
        dist.all_reduce(tensor, async_op=True).wait()
    ms.runtime.synchronize()
loop(20)
before = events.live_events()
loop(100)
print("RESULT", events.live_events() - before, *(mend.count(n) for n in ("destroyed", "deferred", "left", "pending")))
"""
QUIET = "from repro.sim.environment import preload_quiet; preload_quiet()"


@pytest.mark.parametrize(
    ("quiet", "grown", "counts"),
    [
        # Over at once, as the simulated tier's preload has it: each event is destroyed with its handle.
        (QUIET, 0, (240, 0, 0, 0)),
        # Never over, as MindSpore's own simulation has it: each is kept for later, none is destroyed while pending.
        ("", 200, (0, 240, 0, 240)),
    ],
    ids=["over", "pending"],
)
def test_events_of_collectives(quiet: str, grown: int, counts: tuple[int, ...], tmp_path: Path) -> None:
    require_sim()
    done = run_rank(tmp_path, EVENTS.format(quiet=quiet), world_size=2, prologue=False)
    assert "RESULT " in done.stdout, explain(done)
    answers = [int(part) for part in done.stdout.rpartition("RESULT ")[2].split()[:5]]
    # The last handle may still be alive, in the queue.
    assert abs(answers[0] - grown) <= 2, answers
    assert all(abs(found - wanted) <= 2 for found, wanted in zip(answers[1:], counts, strict=True)), answers


# The same answer as repro.sim's own preload gives, but only once it is told that events are over.
SWITCH = r"""
static int over = 0;
void set_over(void) { over = 1; }
int EventStatus(void *event, int *status)
  __asm__("_ZN9mindspore6device6ascend30SimuFuncIaclrtQueryEventStatusIiEET_PvP24aclrtEventRecordedStatus");
int EventStatus(void *event, int *status) { *status = over; return event == 0; }
"""
LATER = """
counts = lambda: [mend.count(n) for n in ("destroyed", "deferred", "left", "pending")]
pending = counts()
switch.set_over()
loop(40)
print("RESULT", *pending, *counts())
"""


def test_pending_events_are_destroyed_when_they_are_over(tmp_path: Path) -> None:
    require_sim()
    (tmp_path / "switch.c").write_text(SWITCH, encoding="utf-8")
    library = tmp_path / "switch.so"
    subprocess.run(["g++", "-x", "c", "-shared", "-fPIC", "-o", library, tmp_path / "switch.c"], check=True)
    quiet = f"import ctypes; switch = ctypes.CDLL({str(library)!r}, mode=ctypes.RTLD_GLOBAL)"
    done = run_rank(tmp_path, EVENTS.format(quiet=quiet) + LATER, world_size=2, prologue=False)
    assert "RESULT " in done.stdout, explain(done)
    answers = [int(part) for part in done.stdout.rpartition("RESULT ")[2].split()[:8]]
    before, after = answers[:4], answers[4:]
    assert before[0] == 0, answers
    assert before[3] >= 238, answers
    # 80 more handles die, each looks at 8 of the pending events; none of them was left, all are destroyed.
    assert after[2:] == [0, 0], answers
    assert abs(after[0] - 320) <= 2, answers


FROM_GROUP = """
import fixes
(mend,) = fixes.install("134.1")
from repro.sim.environment import preload_quiet
preload_quiet()
import mindspore as ms
import mindspore.mint.distributed as dist
from repro.distilled.core.dtensor.device_mesh import DeviceMesh
ms.set_device("Ascend")
dist.init_process_group()
group = dist.new_group([1, 3])
def seen():
    mesh = DeviceMesh.from_group(group, "odd", 3)
    return [(each.rank_list, each.coordinate) for each in (mesh, mesh.submesh("odd"))]
outside = seen()
with ms.DeviceCtx("meta"):
    inside = seen()
print("RESULT", outside == inside, *outside, mend.uses > 0)
"""


def test_a_mesh_from_a_group_is_the_same_inside_meta(tmp_path: Path) -> None:
    require_sim()
    done = run_rank(tmp_path, FROM_GROUP, world_size=4, rank=3, prologue=False)
    assert "RESULT True ((1, 3), (1,)) ((1, 3), (1,)) True" in done.stdout, explain(done)
