"""Every fault that preflight can name: how bad it is, and what to do. docs/hosts.md shows this table."""

from __future__ import annotations

from typing import NamedTuple

OK, WARN, FAIL = "ok", "warn", "fail"
# No level of its own: what could not be found out is a warning, and its value begins with this word.
UNKNOWN = "unknown"


class Fault(NamedTuple):
    """One fault: the check that finds it, how bad it is, what is wrong, and what to do."""

    check: str
    level: str
    what: str
    advice: str


FAULTS: dict[str, Fault] = {
    "host.unreachable": Fault(
        "reach", FAIL, "the host does not answer, or preflight ended there", "ssh to it by hand; see its line above"
    ),
    "smi.missing": Fault(
        "npu-smi", FAIL, "npu-smi is not there", "install the driver; on some products it is in /usr/local/sbin"
    ),
    "smi.failed": Fault(
        "npu-smi",
        FAIL,
        "the driver's library refuses or hangs",
        "end what owns the device, or reload the driver; see dmesg",
    ),
    "smi.unknown": Fault(
        "npu-smi", WARN, "npu-smi prints a layout not known here", "read `npu-smi info` yourself, and report its output"
    ),
    "smi.busy": Fault("npu-smi", WARN, "somebody else kept npu-smi in use", "run preflight again when it has ended"),
    "dies.none": Fault(
        "dies", FAIL, "no /dev/davinci* at all", "install and load the driver; in a container pass --device"
    ),
    "dies.shared": Fault(
        "dies",
        FAIL,
        "a device node that all dies share is missing",
        "load the driver again; in a container pass it too",
    ),
    "dies.count": Fault(
        "dies",
        FAIL,
        "fewer or more dies than the inventory says",
        "look at lspci -d 19e5: and dmesg, or mend ascend_dies",
    ),
    "dies.differ": Fault(
        "dies", FAIL, "npu-smi and /dev do not show the same number", "a die was lost: see dmesg; reboot if it stays so"
    ),
    "dies.chip": Fault("dies", FAIL, "another chip than the inventory says", "mend ascend_chip in the inventory"),
    "dies.closed": Fault(
        "dies", FAIL, "this user may not open the device nodes", "sudo usermod -aG HwHiAiUser USER, then log in again"
    ),
    "health.alarm": Fault(
        "health",
        FAIL,
        "a die is in Alarm or Critical",
        "npu-smi info -t health -i NPU -c CHIP; leave the die out of runs",
    ),
    "health.warning": Fault(
        "health", WARN, "a die is in Warning", "npu-smi info -t health -i NPU -c CHIP tells the error code"
    ),
    "health.unknown": Fault("health", WARN, "a health word not known here", "read `npu-smi info` yourself"),
    "ecc.errors": Fault(
        "ecc", FAIL, "double-bit errors or isolated pages", "take the card out of service and have it checked"
    ),
    "ecc.unknown": Fault("ecc", WARN, "no ECC counters were found", "npu-smi info -t ecc -i NPU, as root"),
    "hbm.used": Fault(
        "hbm", WARN, "much HBM in use where no process is shown", "a container's process may be hidden: ask its owner"
    ),
    "hbm.unknown": Fault("hbm", WARN, "npu-smi prints no HBM figures", "npu-smi info -t usages -i NPU"),
    "holders.some": Fault(
        "holders", WARN, "processes hold some of the dies", "run on the others: ASCEND_RT_VISIBLE_DEVICES={free}"
    ),
    "holders.all": Fault(
        "holders", FAIL, "processes hold every die", "wait, or ask their owners; nothing is ended here"
    ),
    "driver.unknown": Fault("driver", WARN, "no version file of the driver", "look for another installation path"),
    "driver.half": Fault(
        "driver", FAIL, "the driver's installation did not complete", "install the driver again, then reboot"
    ),
    "driver.reboot": Fault(
        "driver", WARN, "the loaded driver is not the one on disk", "reboot when no job runs on the host"
    ),
    "firmware.unfit": Fault(
        "firmware", FAIL, "the driver says that the firmware does not fit it", "install the firmware of the same HDK"
    ),
    "firmware.range": Fault(
        "firmware", WARN, "driver and firmware do not list each other", "install the firmware of the same HDK"
    ),
    "firmware.unknown": Fault(
        "firmware", WARN, "firmware and driver could not be compared", "compare with the HDK's notes"
    ),
    "cann.none": Fault("cann", WARN, "no CANN on the host", "nothing, if runs use an image; else install {cann}"),
    "cann.driver": Fault(
        "cann",
        FAIL,
        "the driver is older than this CANN's row needs",
        "install driver and firmware {hdk}, or an older CANN",
    ),
    "cann.unfit": Fault(
        "cann", WARN, "driver and CANN do not list each other", "install the pair of one row of images/versions.yaml"
    ),
    "cann.unlisted": Fault(
        "cann", WARN, "no known row has this CANN with this driver", "known rows are in images/versions.yaml"
    ),
    "engine.none": Fault("engine", WARN, "no container engine", "install docker, or run without images"),
    "engine.silent": Fault("engine", FAIL, "the container engine does not answer", "systemctl status docker; start it"),
    "engine.denied": Fault(
        "engine", WARN, "this user may not use the container engine", "container_engine_members of deploy.yml, or sudo"
    ),
    "engine.json": Fault("engine", FAIL, "daemon.json cannot be read as JSON", "mend /etc/docker/daemon.json by hand"),
    "runtime.absent": Fault(
        "runtime", WARN, "no Ascend Docker Runtime", "nothing: `repro docker-args` prints the devices to pass"
    ),
    "runtime.unused": Fault(
        "runtime", WARN, "installed, but the engine does not know it", "playbooks/deploy.yml --tags ascend_runtime"
    ),
    "users.none": Fault("users", FAIL, "the driver's user or group is missing", "playbooks/deploy.yml --tags users"),
    "users.taken": Fault(
        "users", FAIL, "uid or gid 1000 belongs to somebody else", "an owner must move it; it is never renumbered here"
    ),
    "users.ids": Fault("users", WARN, "the driver's user is not 1000:1000", "containers must use the same numbers"),
    "users.group": Fault(
        "users", FAIL, "this user is not in the driver's group", "sudo usermod -aG HwHiAiUser USER, then log in again"
    ),
    "clock.far": Fault("clock", FAIL, "the clock is far off ours", "start chrony or systemd-timesyncd"),
    "clock.off": Fault("clock", WARN, "the clock is a little off ours", "start chrony or systemd-timesyncd"),
    "clock.unknown": Fault("clock", WARN, "the clock was not compared with ours", "run preflight over SSH"),
    "disk.full": Fault("disk", FAIL, "no room on a disk that is needed", "free space there"),
    "disk.low": Fault("disk", WARN, "little room on a disk that is needed", "free space there before a long run"),
    "disk.unknown": Fault("disk", WARN, "the room could not be found out", "df there"),
    "shm.small": Fault(
        "shm", WARN, "little shared memory", "containers: --shm-size or --ipc=host; hosts: remount /dev/shm"
    ),
    "core.pipe": Fault(
        "core", WARN, "core dumps go to a program", "look there first; or playbooks/deploy.yml --tags coredump"
    ),
    "core.relative": Fault(
        "core", WARN, "core dumps go to the working directory", "playbooks/deploy.yml --tags coredump"
    ),
    "core.unknown": Fault("core", WARN, "core_pattern could not be read", "cat /proc/sys/kernel/core_pattern"),
    "core.off": Fault("core", WARN, "no core dumps are written", "playbooks/deploy.yml --tags coredump,limits"),
    "limits.low": Fault("limits", WARN, "a limit is low for many ranks", "playbooks/deploy.yml --tags limits"),
    "ports.unreserved": Fault(
        "ports", WARN, "the kernel may give HCCL's ports to others", "playbooks/deploy.yml --tags network"
    ),
    "ports.unknown": Fault("ports", WARN, "the port ranges could not be read", "sysctl net.ipv4 | grep port"),
    "ports.taken": Fault("ports", FAIL, "a port that HCCL uses is taken", "ss -ltnp; or set HCCL_IF_BASE_PORT"),
    "hccn.unknown": Fault("hccn", WARN, "the dies' network could not be asked", "as root: hccn_tool -i 0 -link -g"),
    "hccn.down": Fault("hccn", FAIL, "a die's link is down", "check cable and optics: hccn_tool -i N -optical -g"),
    "hccn.address": Fault("hccn", WARN, "a die has no address", "hccn_tool -i N -ip -s address A netmask M"),
    "hccn.conf": Fault(
        "hccn",
        WARN,
        "a die's address is not the one in /etc/hccn.conf",
        "it changes at the next boot: mend one of the two",
    ),
    "hccn.health": Fault("hccn", WARN, "a die's network health is bad", "hccn_tool -i N -net_health -g, -stat -g"),
    "hccn.twice": Fault("hccn", FAIL, "two dies have one address", "give one of them another"),
    "tls.mixed": Fault(
        "tls",
        FAIL,
        "the TLS switch differs between dies or hosts",
        "set it alike everywhere: hccn_tool -i N -tls -s enable",
    ),
    "alike.driver": Fault("alike", WARN, "hosts have different drivers", "bring them to one version"),
    "alike.cann": Fault("alike", WARN, "hosts have different CANN", "bring them to one version, or use one image"),
}
