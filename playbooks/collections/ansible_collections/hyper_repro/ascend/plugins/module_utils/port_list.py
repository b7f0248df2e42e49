"""Lists of ports as the kernel writes them."""

from __future__ import annotations


def ports(text: str) -> set[int]:
    """``1,5-7`` as numbers."""
    found: set[int] = set()
    for part in filter(None, (word.strip() for word in text.split(","))):
        low, _, high = part.partition("-")
        found.update(range(int(low), int(high or low) + 1))
    return found


def union(one: str, other: str) -> str:
    """Both, written as the kernel does: ranges, ascending."""
    spans: list[list[int]] = []
    for port in sorted(ports(one) | ports(other)):
        if spans and spans[-1][1] + 1 == port:
            spans[-1][1] = port
        else:
            spans.append([port, port])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)
