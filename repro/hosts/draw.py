"""Draws an inventory: racks, hosts, dies and the ranks that a world over all of them would have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from repro.hosts.inventory import Host, Inventory


def ranks(hosts: Sequence[Host]) -> dict[str, range]:
    """Host -> its ranks, counted through in the inventory's order; a host without known dies has none."""
    found, start = {}, 0
    for host in hosts:
        found[host.name] = range(start, start + host.dies)
        start += host.dies
    return found


def draw(inventory: Inventory) -> str:
    """The drawing as text."""
    return "\n".join(_lines(inventory))


def _lines(inventory: Inventory) -> Iterator[str]:
    racks: dict[str, list[Host]] = {}
    for host in inventory.hosts:
        racks.setdefault(host.rack, []).append(host)
    numbered = ranks(inventory.hosts)
    width = max(len(host.name) for host in inventory.hosts)
    for rack, hosts in racks.items():
        dies = sum(host.dies for host in hosts)
        yield f"rack {rack or '(none)'}: {len(hosts)} hosts, {dies} dies"
        for host in hosts:
            branch = "└─" if host is hosts[-1] else "├─"
            way = f"{host.user + '@' if host.user else ''}{host.address}{'' if host.port == 22 else f':{host.port}'}"  # noqa: PLR2004
            through = f" through {' then '.join(host.jump)}" if host.jump else ""
            yield f"  {branch} {host.name.ljust(width)}  {_dies(host, numbered[host.name])}  {way}{through}"
    chips = sorted({host.chip for host in inventory.hosts if host.chip})
    world = sum(host.dies for host in inventory.hosts)
    told = f"{len(inventory.hosts)} hosts, {len(racks)} racks, chips {', '.join(chips) or 'unknown'}"
    yield f"{told}, world of {world} ranks"


def _dies(host: Host, mine: range) -> str:
    chip = (host.chip or "?").ljust(4)
    if not host.dies:
        return f"{chip} dies unknown".ljust(40)
    # Two dies of an A3 are one card.
    card = "▮▮" if host.chip == "a3" else "▮"
    cells = " ".join([card] * (host.dies // len(card)) + ["▮"] * (host.dies % len(card)))
    return f"{chip} {cells} ranks {mine.start}-{mine.stop - 1}".ljust(40)
