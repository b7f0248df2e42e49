"""Mend 301.3 on the simulated tier: events that are over are destroyed, pending ones are kept for later."""

from __future__ import annotations

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
