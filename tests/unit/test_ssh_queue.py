"""Who gets which host: spreading, packing, fairness to large trials, lost hosts, and ranks a host."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from repro.engines.ssh.queue import OVERTAKES, Grant, Hosts, Need, spread


def names(grants: tuple[Grant, ...] | None) -> list[str]:
    assert grants is not None
    return [grant.host for grant in grants]


def test_trials_spread_before_they_pile_up() -> None:
    hosts = Hosts({"a": 2, "b": 2})
    given = [hosts.acquire(Need()) for _ in range(4)]
    assert [names(each)[0] for each in given] == ["a", "b", "a", "b"]
    assert hosts.acquire(Need(), timeout_s=0) is None


def test_no_place_is_given_twice() -> None:
    hosts = Hosts({"a": 8})
    first, second = hosts.acquire(Need((3,))), hosts.acquire(Need((4,)))
    assert first is not None
    assert second is not None
    assert not set(first[0].places) & set(second[0].places)
    hosts.release(Need((3,)), first)
    third = hosts.acquire(Need((4,)))
    assert third == (Grant("a", (0, 1, 2, 7)),)


def test_a_measurement_has_its_host_to_itself() -> None:
    hosts = Hosts({"a": 4, "b": 4})
    alone = Need(alone=True)
    assert names(hosts.acquire(Need())) == ["a"]
    given = hosts.acquire(alone)
    assert names(given) == ["b"]
    assert names(hosts.acquire(Need())) == ["a"]
    assert hosts.acquire(alone, timeout_s=0) is None
    hosts.release(alone, given or ())
    assert names(hosts.acquire(Need())) == ["b"]


def in_line(pool: ThreadPoolExecutor, hosts: Hosts, need: Need) -> Future[tuple[Grant, ...] | None]:
    """Ask in a thread, and come back once the asker stands in line."""
    before = len(hosts._line)
    future = pool.submit(hosts.acquire, need)
    while len(hosts._line) == before and not future.done():
        threading.Event().wait(0.001)
    return future


def test_small_trials_pass_a_large_one_but_not_for_ever() -> None:
    hosts = Hosts({"a": 2})
    large = Need((2,))
    with ThreadPoolExecutor() as pool:
        held = hosts.acquire(Need())
        waiting = in_line(pool, hosts, large)
        for _ in range(OVERTAKES):
            small = hosts.acquire(Need(), timeout_s=0)
            assert small is not None, "there is room for it, and the large one has no use of it"
            hosts.release(Need(), small)
        assert hosts.acquire(Need(), timeout_s=0) is None, "now it is the large one's turn"
        hosts.release(Need(), held or ())
        assert names(waiting.result(5)) == ["a"]


def test_a_large_trial_takes_its_hosts_all_at_once() -> None:
    hosts = Hosts({"a": 2, "b": 2, "c": 1})
    across = Need((2, 2))
    held = hosts.acquire(Need((2,)))
    assert hosts.acquire(across, timeout_s=0) is None
    assert names(hosts.acquire(Need())) == ["b"], "nothing was kept for a trial that gave up"
    hosts.release(Need((2,)), held or ())
    assert hosts.acquire(across, timeout_s=0) is None


def test_who_waits_for_a_lost_host_is_told() -> None:
    hosts = Hosts({"a": 1, "b": 1})
    with ThreadPoolExecutor() as pool:
        held = hosts.acquire(Need((1, 1)))
        across = in_line(pool, hosts, Need((1, 1)))
        single = in_line(pool, hosts, Need())
        hosts.lose("a")
        assert across.result(5) is None
        hosts.release(Need((1, 1)), held or ())
        assert names(single.result(5)) == ["b"]
    assert hosts.acquire(Need(avoid=frozenset({"b"}))) is None


def test_closing_lets_nobody_wait() -> None:
    hosts = Hosts({"a": 1})
    with ThreadPoolExecutor() as pool:
        hosts.acquire(Need())
        waiting = in_line(pool, hosts, Need())
        hosts.close()
        assert waiting.result(5) is None


@pytest.mark.parametrize(
    ("world", "places", "nodes", "even", "shares"),
    [
        (2, [2, 2], None, False, (2,)),
        (4, [2, 2], None, False, (2, 2)),
        (4, [2, 2, 2], 2, False, (2, 2)),
        (2, [2, 2], 2, True, (1, 1)),
        (5, [4, 2], None, False, (3, 2)),
        (6, [4, 2], None, False, (4, 2)),
        (6, [4, 2], None, True, ()),  # msrun wants as many on each
        (6, [4, 2, 2], None, True, (2, 2, 2)),
        (16, [16, 16], None, True, (16,)),
        (32, [16, 8, 16], None, True, (16, 16)),
        (9, [4, 4], None, False, ()),
        (2, [4], 2, False, ()),
        (2, [4, 4, 4], 3, False, ()),  # a host without a rank
    ],
)
def test_ranks_are_spread_by_dies(
    world: int, places: list[int], nodes: int | None, even: bool, shares: tuple[int, ...]
) -> None:
    assert spread(world, places, nodes, even=even) == shares
