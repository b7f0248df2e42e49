"""Who gets which host: trials wait in the order they came, small ones may pass a waiting large one, but not for ever.

Nothing here knows of connections; it only waits.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

# How many later trials may start before one that waits for more room than there is.
OVERTAKES = 8


@dataclass(frozen=True)
class Need:
    """What a trial asks for.

    Attributes:
        places: Places on each of its hosts, the first host first.
        alone: True if no other trial may run on its hosts meanwhile.
        avoid: Hosts it has failed on.
    """

    places: tuple[int, ...] = (1,)
    alone: bool = False
    avoid: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Grant:
    """Places on one host.

    Attributes:
        host: Its name.
        places: Numbers of the places, from 0 on; on tier npu those of the dies.
    """

    host: str
    places: tuple[int, ...]


@dataclass(eq=False)
class _Waiting:
    need: Need
    overtaken: int = 0
    given: tuple[Grant, ...] | None = None


@dataclass
class Hosts:
    """The places of all hosts, and who waits for them.

    Attributes:
        places: How many places each host has, by name, in the order of the inventory; a lost host is taken out.
    """

    places: dict[str, int]
    _used: dict[str, set[int]] = field(default_factory=dict)
    _alone: set[str] = field(default_factory=set)
    _line: list[_Waiting] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _closed: bool = False

    def acquire(self, need: Need, timeout_s: float | None = None) -> tuple[Grant, ...] | None:
        """Wait for hosts that a trial fits on and take its places there.

        Returns:
            A grant for each of ``need.places``; None if there can be none any more, or not in time.
        """
        with self._changed:
            waiting = _Waiting(need)
            self._line.append(waiting)
            self._serve()
            self._changed.wait_for(lambda: waiting.given or self._closed or not self._possible(need), timeout_s)
            if waiting.given is None:
                self._line.remove(waiting)
                self._serve()
            return waiting.given

    def release(self, need: Need, grants: Sequence[Grant]) -> None:
        """Give a trial's places back."""
        with self._changed:
            for grant in grants:
                self._used[grant.host] -= set(grant.places)
                if need.alone:
                    self._alone.discard(grant.host)
            self._serve()

    def lose(self, name: str) -> None:
        """Take a host out; trials that could run nowhere else are told so."""
        with self._changed:
            self.places.pop(name, None)
            self._serve()

    def close(self) -> None:
        """Let nobody wait any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _serve(self) -> None:
        """Give places to those in line, the first first, as far as each may be passed."""
        blocked: list[_Waiting] = []
        for waiting in list(self._line):
            if self._closed or any(before.overtaken >= OVERTAKES for before in blocked):
                break
            found = self._fit(waiting.need)
            if found is None:
                blocked += [waiting] if self._possible(waiting.need) else []
                continue
            for grant in found:
                self._used.setdefault(grant.host, set()).update(grant.places)
                if waiting.need.alone:
                    self._alone.add(grant.host)
            for before in blocked:
                before.overtaken += 1
            waiting.given = found
            self._line.remove(waiting)
        self._changed.notify_all()

    def _fit(self, need: Need) -> tuple[Grant, ...] | None:
        """Hosts for a trial now: the emptiest first, so that work spreads before it piles up."""
        free = {
            name: sorted(set(range(self.places[name])) - self._used.get(name, set()))
            for name in self._candidates(need)
            if name not in self._alone and not (need.alone and self._used.get(name))
        }
        order = sorted(free, key=lambda name: -len(free[name]) / self.places[name])
        chosen: list[Grant] = []
        for count in need.places:
            name = next((each for each in order if len(free[each]) >= count), None)
            if name is None:
                return None
            order.remove(name)
            chosen.append(Grant(name, tuple(free[name][:count])))
        return tuple(chosen)

    def _possible(self, need: Need) -> bool:
        """True if the trial could run on the hosts that are left, were they empty."""
        have = sorted((self.places[name] for name in self._candidates(need)), reverse=True)
        wanted = sorted(need.places, reverse=True)
        return len(have) >= len(wanted) and all(h >= w for h, w in zip(have, wanted, strict=False))

    def _candidates(self, need: Need) -> list[str]:
        return [name for name in self.places if name not in need.avoid]


def spread(world: int, places: Sequence[int], nodes: int | None, *, even: bool) -> tuple[int, ...]:
    """How many ranks each host of a trial gets.

    Args:
        world: Ranks in all.
        places: Places of the hosts there are.
        nodes: How many hosts to spread over; None for as few as hold all ranks.
        even: True where the launcher needs as many ranks on every host: msrun numbers them by that.

    Returns:
        Ranks a host, the largest share first; empty if these hosts cannot hold them so.
    """
    largest = sorted(places, reverse=True)
    for count in [nodes] if nodes else range(1, len(largest) + 1):
        if count > len(largest) or count > world:
            break
        if even and world % count:
            continue
        shares = _shares(world, largest[:count], even=even)
        if shares:
            return shares
    return ()


def _shares(world: int, places: Sequence[int], *, even: bool) -> tuple[int, ...]:
    if even:
        share = world // len(places)
        return (share,) * len(places) if share <= min(places) else ()
    if world > sum(places):
        return ()
    # One rank each in turn to whoever has most room left: as level as their dies allow.
    shares = [0] * len(places)
    for _ in range(world):
        roomiest = max(range(len(places)), key=lambda n: (places[n] > shares[n], -shares[n], places[n]))
        shares[roomiest] += 1
    return tuple(sorted(shares, reverse=True))
