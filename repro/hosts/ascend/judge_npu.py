"""Judges what was seen of NPUs: dies, health, memory, holders, versions, network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from . import versions
from .faults import UNKNOWN
from .finding import Finding, bad, good, spans
from .look_npu import SHARED_NODES

Data = Mapping[str, Any]


def die_name(die: Data) -> str:
    """``0/1`` for chip 1 of NPU 0 where an NPU has several, with the number of its device node."""
    return str(die["npu"]) if die["phy"] is None else f"{die['npu']}/{die['chip']} (davinci{die['phy']})"


def chip_of(look: Data) -> str | None:
    """``910b`` or ``a3`` as the table shows it; None if it shows neither."""
    info = look["npu_smi"]["info"]
    if not info or info["layout"] == "unknown":
        return None
    if info["layout"] == "a3":
        return "a3"
    names = {die["name"] for die in info["dies"]}
    return "910b" if all(name.startswith("910B") for name in names) else None


def _dies_of(look: Data) -> list[dict[str, Any]]:
    info = look["npu_smi"]["info"]
    return list(info["dies"]) if info else []


def _smi(look: Data, _wanted: Data) -> Iterator[Finding]:
    smi = look["npu_smi"]
    info = smi["info"]
    if smi["path"] is None:
        yield bad("smi.missing", smi["problem"])
    elif smi["problem"]:
        key = _smi_fault(smi["problem"])
        yield bad(key, smi["problem"] if key == "smi.failed" else f"{UNKNOWN}: {smi['problem']}")
    else:
        yield good("npu-smi", f"{info['version'] or 'no banner'}, layout {info['layout']}")


def _smi_fault(problem: str) -> str:
    if "was in use by somebody else" in problem:
        return "smi.busy"
    return "smi.failed" if any(word in problem for word in ("dcmi", "library", "no answer")) else "smi.unknown"


def _dies(look: Data, wanted: Data) -> Iterator[Finding]:
    nodes, listed, chip = look["devices"], len(_dies_of(look)), chip_of(look)
    here = len(nodes["dies"])
    if not here:
        yield bad("dies.none", "no /dev/davinci*")
        return
    faults = []
    if nodes["missing"]:
        faults.append(bad("dies.shared", f"no /dev/{', /dev/'.join(nodes['missing'])}"))
    if wanted["dies"] and here != wanted["dies"]:
        faults.append(bad("dies.count", f"{here} of {wanted['dies']}: davinci {spans(nodes['dies'])}"))
    if listed and listed != here:
        faults.append(bad("dies.differ", f"npu-smi lists {listed}, /dev has {here}"))
    if wanted["chip"] and chip and chip != wanted["chip"]:
        faults.append(bad("dies.chip", f"{chip} where the inventory says {wanted['chip']}"))
    if nodes["closed"]:
        faults.append(bad("dies.closed", f"davinci {spans(nodes['closed'])}"))
    yield from faults or [good("dies", f"{here} ({chip or 'chip unknown'}), {len(SHARED_NODES)} shared nodes")]


def _health(look: Data, _wanted: Data) -> Iterator[Finding]:
    dies = _dies_of(look)
    for key, words in (
        ("health.alarm", ("Alarm", "Critical")),
        ("health.warning", ("Warning",)),
        ("health.unknown", ("UNKNOWN", "unknown")),
    ):
        ill = [f"{die_name(die)} {die['health_text']}" for die in dies if die["health"] in words]
        if ill:
            yield bad(key, f"{UNKNOWN + ': ' if key.endswith('unknown') else ''}die {', '.join(ill)}")
    well = sum(die["health"] == "OK" for die in dies)
    if dies and well == len(dies):
        yield good("health", f"{well} dies OK")


def _ecc(look: Data, _wanted: Data) -> Iterator[Finding]:
    dies, ecc = _dies_of(look), look["npu_smi"]["ecc"]
    ill, silent = [], []
    for die in dies:
        counters = (ecc.get(str(die["npu"])) or {}).get(str(die["chip"]))
        if counters is None:
            silent.append(die_name(die))
        elif counters.get("double_bit", 0) or counters.get("isolated_pages", 0):
            seen = f"{counters.get('double_bit', 0)} double-bit, {counters.get('isolated_pages', 0)} isolated pages"
            ill.append(f"die {die_name(die)}: {seen}")
    if ill:
        yield bad("ecc.errors", "; ".join(ill))
    if silent:
        yield bad("ecc.unknown", f"{UNKNOWN}: die {', '.join(silent)}")
    if dies and not ill and not silent:
        yield good("ecc", f"no double-bit errors on {len(dies)} dies")


def _held(look: Data) -> dict[tuple[int, int], list[str]]:
    info = look["npu_smi"]["info"] or {"processes": []}
    held: dict[tuple[int, int], list[str]] = {}
    for process in info["processes"]:
        held.setdefault((process["npu"], process["chip"]), []).append(f"{process['name']} (pid {process['pid']})")
    return held


def _hbm(look: Data, wanted: Data) -> Iterator[Finding]:
    dies, held = _dies_of(look), _held(look)
    if not dies:
        return
    if any(die["hbm_total"] in (None, 0) for die in dies):
        yield bad("hbm.unknown", f"{UNKNOWN}: no figures")
        return
    full = [die for die in dies if die["hbm_used"] > wanted["hbm_idle_mb"] and (die["npu"], die["chip"]) not in held]
    if full:
        yield bad(
            "hbm.used", "; ".join(f"die {die_name(die)}: {die['hbm_used']} of {die['hbm_total']} MB" for die in full)
        )
    else:
        used = [die["hbm_used"] for die in dies]
        yield good("hbm", f"{min(used)} to {max(used)} of {dies[0]['hbm_total']} MB in use")


def _holders(look: Data, _wanted: Data) -> Iterator[Finding]:
    dies, held = _dies_of(look), _held(look)
    if not dies:
        return
    free = [index for index, die in enumerate(dies) if (die["npu"], die["chip"]) not in held]
    seen = "; ".join(
        f"die {die_name(die)}: {', '.join(held[die['npu'], die['chip']])}"
        for die in dies
        if (die["npu"], die["chip"]) in held
    )
    if not held:
        yield good("holders", "none")
    elif free:
        yield bad("holders.some", seen, free=",".join(str(number) for number in free))
    else:
        yield bad("holders.all", seen)


def _versions(look: Data, wanted: Data) -> Iterator[Finding]:
    files, boards = look["versions"], [board for board in look["npu_smi"]["boards"].values() if board]
    driver = files["driver"] or {}
    on_disk = driver.get("package_version") or driver.get("Version")
    loaded = sorted({board["driver"] for board in boards if board["driver"]})
    info = look["npu_smi"]["info"]
    if info and any("Driver_Install_Status" in line or "install" in line.lower() for line in info["warnings"]):
        yield bad("driver.half", info["warnings"][0])
    if not on_disk:
        yield bad("driver.unknown", f"{UNKNOWN}: no driver/version.info")
    elif loaded and loaded != [on_disk]:
        yield bad("driver.reboot", f"{on_disk} on disk, {', '.join(loaded)} loaded")
    else:
        yield good("driver", on_disk)
    yield from _firmware(files, boards, on_disk)
    yield from _cann(files, on_disk, wanted["rows"])


def _firmware(files: Data, boards: list[Data], driver: str | None) -> Iterator[Finding]:
    firmware = files["firmware"] or {}
    version = firmware.get("Version") or next((board["firmware"] for board in boards if board["firmware"]), None)
    verdicts = sorted({board["compatibility"] for board in boards if board["compatibility"]})
    if verdicts and verdicts != ["OK"]:
        yield bad("firmware.unfit", f"{version}: Compatibility: {', '.join(verdicts)}")
        return
    listed = [
        ("driver lists it", versions.firmware_in_driver(files["driver"] or {}, version)),
        ("it lists the driver", versions.driver_in_firmware(firmware, driver)),
    ]
    if any(answer is False for _, answer in listed):
        seen = ", ".join(f"{words}: {'yes' if answer else 'no'}" for words, answer in listed if answer is not None)
        yield bad("firmware.range", f"{version} with driver {driver}; {seen}")
    elif not version or (not verdicts and all(answer is None for _, answer in listed)):
        yield bad("firmware.unknown", f"{UNKNOWN}: {version or 'no version'}")
    else:
        yield good("firmware", f"{version}{', Compatibility: OK' if verdicts else ''}")


def _cann(files: Data, driver: str | None, rows: list[dict[str, Any]]) -> Iterator[Finding]:
    if not files["cann"]:
        newest = str(rows[0]["cann"]) if rows else "the CANN of a known row"
        yield bad("cann.none", "none in /usr/local/Ascend", cann=newest)
    for cann in files["cann"]:
        row = versions.row_for(rows, cann["version"])
        mine, least = versions.number(driver), versions.number(str(row["hdk"]) if row else None)
        seen = f"{cann['version']} in {cann['root']}, driver {driver or 'unknown'}"
        if row and mine and least and mine[:4] < least[:4]:
            yield bad("cann.driver", f"{seen}, needs {row['hdk']}", hdk=str(row["hdk"]))
        elif versions.cann_in_driver(files["driver"] or {}, cann["keys"]) is False:
            yield bad("cann.unfit", seen)
        elif rows and (row is None or mine is None or least is None or mine[:2] != least[:2]):
            yield bad("cann.unlisted", f"{seen}{', row has ' + str(row['hdk']) if row else ''}")
        else:
            yield good("cann", f"{seen}{', as in the row of MindSpore ' + str(row.get('mindspore')) if row else ''}")


def _hccn(look: Data, _wanted: Data) -> Iterator[Finding]:
    net, dies = look["hccn"], look["hccn"]["dies"]
    if net["problem"]:
        yield bad("hccn.unknown", f"{UNKNOWN}: {net['problem']}")
        return
    faults = []
    for key, numbers in (
        ("hccn.down", [n for n, die in dies.items() if die["link"] == "DOWN"]),
        ("hccn.unknown", [n for n, die in dies.items() if die["link"] is None or die["tls"] is None]),
        ("hccn.address", [n for n, die in dies.items() if not die["ip"]["address"]]),
        ("hccn.health", [n for n, die in dies.items() if die["net_health"] not in ("Success", "Init", None)]),
        (
            "hccn.conf",
            [
                n
                for n, die in dies.items()
                if die["ip"]["address"]
                and net["conf"].get(n, {}).get("address", die["ip"]["address"]) != die["ip"]["address"]
            ],
        ),
    ):
        if numbers:
            unknown = f"{UNKNOWN}: " if key == "hccn.unknown" else ""
            faults.append(bad(key, f"{unknown}die {spans([int(number) for number in numbers])}"))
    if dies:
        yield from faults or [good("hccn", f"{len(dies)} links up, each with an address")]


RULES = (_smi, _dies, _health, _ecc, _hbm, _holders, _versions, _hccn)
