"""Writes the files of an Ascend host that does not exist: device nodes, /usr/local/Ascend, npu-smi and hccn_tool.

The layouts are those that public reports and Huawei's documents show (docs/hosts.md); the values are ours. Nothing here
was recorded on hardware by this project.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

RULE = "+===========================+===============+"
SHARED = ("davinci_manager", "devmm_svm", "hisi_hdc")

# Answers from files beside it, and complains if it is run twice at once, as the real tool's manual forbids.
FAKE = """#!/bin/sh
# A stand-in for {tool}: it prints what the files beside it say.
data="${{0%/*}}/../share/{tool}"
if ! mkdir "$data/running" 2>/dev/null; then
    : >"$data/ran-twice-at-once"
    echo "{busy}"
    exit 1
fi
trap 'rmdir "$data/running"' EXIT
{pause}
name=$(IFS=_ && echo "$*")
code=0
if [ -f "$data/$name" ]; then
    cat "$data/$name"
    [ ! -f "$data/$name.code" ] || read -r code <"$data/$name.code"
    exit "$code"
fi
echo "{tool}: unknown command: $*"
exit 1
"""


@dataclass(frozen=True)
class Tree:
    """A host to be written.

    Attributes:
        chip: ``910b`` or ``a3``.
        npu_smi: Version in the banner.
        wide: The layout of npu-smi 26.0.
        driver, firmware, cann: Versions; CANN None is a host without.
        compatible_fw: The range in the driver's list.
        baselines: V100R001C numbers of driver and CANN.
        health: Device number -> word.
        held: Device number -> pid, name, MB.
        double_bit: Device number -> count.
        tls: Whether the switch is on.
        down: Device numbers whose link is down.
        subnet: First three numbers of the dies' addresses.
        broken: Text instead of the table of ``npu-smi info``.
        nodes: How many device nodes there are; None for as many as dies.
        seconds: How long each call of a tool takes.
    """

    chip: str = "910b"
    npu_smi: str = "25.5.1"
    wide: bool = False
    driver: str = "26.1.0"
    firmware: str = "7.8.0.7.220"
    cann: str | None = "9.1.0"
    compatible_fw: str = "[7.0.0,8.9.9]"
    baselines: tuple[int, int] = (26, 26)
    health: dict[int, str] = field(default_factory=dict)
    held: dict[int, tuple[int, str, int]] = field(default_factory=dict)
    double_bit: dict[int, int] = field(default_factory=dict)
    tls: bool = False
    down: tuple[int, ...] = ()
    subnet: str = "10.20.1"
    broken: str | None = None
    nodes: int | None = None
    seconds: float = 0.0

    @property
    def per_npu(self) -> int:
        """Dies an NPU."""
        return 2 if self.chip == "a3" else 1

    @property
    def dies(self) -> range:
        """Device numbers."""
        return range(8 * self.per_npu)


A2 = Tree()
A3 = Tree(chip="a3", npu_smi="26.0.rc2", wide=True, subnet="10.20.3")
ALARM = Tree(health={5: "Alarm"}, double_bit={5: 3}, subnet="10.20.4")
MISMATCH = Tree(driver="24.1.rc3", npu_smi="24.1.rc3", baselines=(19, 26), firmware="7.5.0.1.129", subnet="10.20.5")
TLS_ON = Tree(tls=True, subnet="10.20.6")
HELD = Tree(held={0: (4711, "VLLMWorker_TP", 57344), 1: (4712, "VLLMWorker_TP", 57344)}, subnet="10.20.7")


def info(tree: Tree) -> str:
    """What ``npu-smi info`` prints."""
    if tree.broken is not None:
        return tree.broken
    rest = 70 if tree.wide else 52
    cells = (21, 24, 24) if tree.wide else (12, 18, 20)
    line = "+" + "-" * (44 + rest) + "+"
    rule = RULE + "=" * rest + "+"

    def row(first: str, second: str, *third: str) -> str:
        words = "".join(word.ljust(width) for word, width in zip(third, cells, strict=True))
        return f"| {first:26}| {second:14}|{(' ' + words).ljust(rest)[:rest]}|"

    second_header = "Chip  Phy-ID" if tree.chip == "a3" else "Chip"
    out = [line, f"| npu-smi {tree.npu_smi:25}Version: {tree.npu_smi}".ljust(45 + rest) + "|"]
    out += [RULE.replace("=", "-") + "-" * rest + "+"]
    out += [row("NPU   Name", "Health", "Power(W)", "Temp(C)", "Hugepages-Usage(page)")]
    out += [row(second_header, "Bus-Id", "AICore(%)", "Memory-Usage(MB)", "HBM-Usage(MB)"), rule]
    for die in tree.dies:
        npu, chip = divmod(die, tree.per_npu)
        name = "Ascend910" if tree.chip == "a3" else "910B3"
        power = "-" if chip else f"{92.5 + npu}"
        out.append(row(f"{npu:<6}{name}", tree.health.get(die, "OK"), power, str(38 + chip), "0    / 0"))
        hbm = 3161 + die + (tree.held[die][2] if die in tree.held else 0)
        # The slash stands at the number where it has five digits.
        usage = f"{hbm} / 65536" if hbm < 10_000 else f"{hbm}/ 65536"
        number = f"{chip:<6}{die}" if tree.chip == "a3" else f"{chip}"
        out.append(row(number, f"0000:{0xC1 - 2 * die:02X}:00.0", "0", "0    / 0", usage))
        out.append(line if tree.per_npu > chip + 1 else rule)
    out.append(rule.replace("=", "-"))
    out += [
        f"| {'NPU     Chip':26}| {'Process id':14}| Process name             | Process memory(MB)".ljust(45 + rest)
        + "|"
    ]
    out.append(rule)
    for npu in range(8):
        mine = [die for die in tree.dies if die // tree.per_npu == npu and die in tree.held]
        for die in mine:
            pid, program, memory = tree.held[die]
            place = f"{npu:<8}{die % tree.per_npu}"
            out.append(f"| {place:26}| {pid:<14}| {program:25}| {memory}".ljust(45 + rest) + "|")
        if not mine:
            out.append(f"| No running processes found in NPU {npu}".ljust(45 + rest) + "|")
        out.append(rule)
    return "\n".join(out) + "\n"


def _npu_smi(tree: Tree) -> Iterator[tuple[str, str]]:
    yield "info", info(tree)
    a3 = tree.chip == "a3"
    header = ["NPU ID", "Chip ID", "Chip Logic ID", *(["Chip Phy-ID"] if a3 else []), "Chip Name"]
    rows = [header]
    for die in tree.dies:
        npu, chip = divmod(die, tree.per_npu)
        rows.append([str(npu), str(chip), str(die), *([str(die)] if a3 else []), "Ascend910" if a3 else "910B3"])
        if chip == tree.per_npu - 1:
            rows.append([str(npu), str(chip + 1), "-", *(["-"] if a3 else []), "Mcu"])
    yield "info_-m", "\n".join("\t" + "".join(cell.ljust(31) for cell in cells).rstrip() for cells in rows) + "\n"
    for npu in range(8):
        board = {
            "NPU ID": npu, "Product Name": "stand-in", "Software Version": tree.driver,
            "Firmware Version": tree.firmware, "Compatibility": "OK", "PCI Device ID": "0xD802",
            "Chip Count": tree.per_npu,
        }  # fmt: skip
        yield f"info_-t_board_-i_{npu}", "".join(f"\t{key:30} : {value}\n" for key, value in board.items())
        ecc: list[tuple[str, object]] = [("NPU ID", npu), ("Chip Count", tree.per_npu)]
        for chip in range(tree.per_npu):
            count = tree.double_bit.get(npu * tree.per_npu + chip, 0)
            ecc += [("HBM Single Bit Error Count", 12), ("HBM Double Bit Error Count", count)]
            ecc += [("HBM Single Bit Isolated Pages Count", 0), ("HBM Double Bit Isolated Pages Count", count)]
            ecc += [("HBM Double Bit Next-Isolated Pages Count", 0), ("Chip ID", chip)]
        yield f"info_-t_ecc_-i_{npu}", "".join(f"\t{key:40} : {value}\n" for key, value in ecc)


def _hccn(tree: Tree) -> Iterator[tuple[str, str]]:
    for die in tree.dies:
        yield f"-i_{die}_-link_-g", f"link status: {'DOWN' if die in tree.down else 'UP'}\n"
        yield f"-i_{die}_-ip_-g", f"ipaddr:{tree.subnet}.{die + 1}\nnetmask:255.255.255.0\n"
        yield f"-i_{die}_-net_health_-g", "net health status: Init\n"
        switch = f"tls switch[{int(tree.tls)}](0:disable, 1:enable), tls preconfigured[1](0:non-preset, 1:preset)"
        yield f"-i_{die}_-tls_-g", f"dev_id:{die}, {switch}, tls alarm time threshold[60]days\n"


def _versions(tree: Tree) -> Iterator[tuple[str, str]]:
    driver, cann = tree.baselines
    listed = ",".join(f"[V100R001C{number}]" for number in range(driver - 4, driver + 1))
    yield (
        "usr/local/Ascend/driver/version.info",
        (
            f"Version={tree.driver}\nascendhal_version=7.35.23\nInnerversion=V100R001C{driver}SPC001B124\n"
            f"compatible_version={listed}\ncompatible_version_fw={tree.compatible_fw}\npackage_version={tree.driver}\n"
        ),
    )
    major = ".".join(tree.driver.split(".")[:2])
    yield (
        "usr/local/Ascend/firmware/version.info",
        (
            f"Version={tree.firmware}\nfirmware_version=1.0\npackage_version={tree.driver}\n"
            f"compatible_version_drv=[25.5,25.5.],[{major},{major}.]\n"
        ),
    )
    yield (
        "etc/ascend_install.info",
        ("UserName=HwHiAiUser\nUserGroup=HwHiAiUser\nDriver_Install_Type=full\nDriver_Install_Status=complete\n"),
    )
    if tree.cann:
        ours = ",".join(f"[V100R001C{number}]" for number in range(cann - 4, cann + 1))
        yield (
            f"usr/local/Ascend/cann-{tree.cann}/x86_64-linux/ascend_toolkit_install.info",
            (
                f"package_name=Ascend-cann-toolkit\nversion={tree.cann}\ninnerversion=V100R001C{cann}SPC001B231\n"
                f"compatible_version={ours}\narch=x86_64\nos=linux\n"
            ),
        )
        yield (
            f"usr/local/Ascend/cann-{tree.cann}/set_env.sh",
            f"export ASCEND_HOME_PATH=/usr/local/Ascend/cann-{tree.cann}\n",
        )


def write(tree: Tree, root: Path) -> None:
    """Write the tree below a folder; device nodes are plain files there."""

    def put(path: str, text: str, mode: int = 0o644) -> None:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        file.chmod(mode)

    pause = f"sleep {tree.seconds}" if tree.seconds else ""
    count = len(tree.dies) if tree.nodes is None else tree.nodes
    for name in (*SHARED, *(f"davinci{number}" for number in range(count))):
        put(f"dev/{name}", "", 0o660)
    for path, text in _versions(tree):
        put(path, text)
    conf = "".join(f"address_{die}={tree.subnet}.{die + 1}\nnetmask_{die}=255.255.255.0\n" for die in tree.dies)
    put("etc/hccn.conf", conf)
    for tool, folder, answers, busy in (
        ("npu-smi", "usr/local", _npu_smi(tree), "dcmi module initialize failed. ret is -8005"),
        ("hccn_tool", "usr/local/Ascend/driver", _hccn(tree), "hccn_tool is busy, please try again"),
    ):
        where = "sbin" if tool == "npu-smi" else "tools"
        put(f"{folder}/{where}/{tool}", FAKE.format(tool=tool, busy=busy, pause=pause), 0o755)
        share = root / folder / "share" / tool
        share.mkdir(parents=True, exist_ok=True)
        share.chmod(0o1777)
        for name, text in answers:
            put(f"{folder}/share/{tool}/{name}", text)
        if tree.broken is not None and tool == "npu-smi":
            put(f"{folder}/share/{tool}/info.code", "1\n")


def variant(tree: Tree, **changes: object) -> Tree:
    """The same host but for some things."""
    return dataclasses.replace(tree, **changes)  # type: ignore[arg-type]
