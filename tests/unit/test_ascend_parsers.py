"""What npu-smi, hccn_tool and version files say: generations, broken and translated ones; unknown is unknown."""

from __future__ import annotations

from pathlib import Path

import ascend_tree
import pytest

from repro.hosts.ascend import hccn, npu_smi, versions

DATA = Path(__file__).parents[1] / "data" / "npu-smi"


def given(name: str) -> str:
    return (DATA / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "version", "layout", "dies", "last_phy"),
    [
        ("reconstructed-a2-23.0.3", "23.0.3", "a2", 8, None),
        ("reconstructed-a2-25.5.1-held", "25.5.1", "a2", 8, None),
        ("reconstructed-a2-26.0.rc1-wide", "26.0.rc1", "a2", 8, None),
        ("reconstructed-a3-24.1.rc3.7", "24.1.rc3.7", "a3", 16, 15),
        ("reconstructed-a3-26.0.rc2-wide", "26.0.rc2", "a3", 16, 15),
    ],
)
def test_generations(name: str, version: str, layout: str, dies: int, last_phy: int | None) -> None:
    found = npu_smi.parse_info(given(name))
    assert (found["version"], found["layout"], found["why"]) == (version, layout, "")
    assert len(found["dies"]) == dies
    assert found["dies"][-1]["phy"] == last_phy
    assert {die["hbm_total"] for die in found["dies"]} == {65536}
    assert found["dies"][0]["bus"] == "0000:C1:00.0"


def test_processes_and_health() -> None:
    held = npu_smi.parse_info(given("reconstructed-a2-25.5.1-held"))
    assert [(one["npu"], one["pid"], one["name"], one["memory"]) for one in held["processes"]] == [
        (0, 4711, "VLLMWorker_TP", 57344),
        (1, 4712, "VLLMWorker_TP", 57344),
    ]
    # The slash moves to the number where it has five digits.
    assert held["dies"][0]["hbm_used"] == 3161 + 57344
    assert held["idle"] == [2, 3, 4, 5, 6, 7]
    a3 = npu_smi.parse_info(given("reconstructed-a3-26.0.rc2-wide"))
    assert [(one["npu"], one["chip"]) for one in a3["processes"]] == [(2, 1)]
    ill = npu_smi.parse_info(given("reconstructed-a3-24.1.rc3.7"))
    assert [(die["npu"], die["chip"]) for die in ill["dies"] if die["health"] == "Warning"] == [(1, 1)]


def test_a_process_in_a_container_has_two_numbers() -> None:
    found = npu_smi.parse_info(given("reconstructed-a3-container-process"))
    assert [(one["pid"], one["name"], one["memory"]) for one in found["processes"]] == [
        (824166, "VLLMWorker_TP", 59316)
    ]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("invented-a2-cut-in-a-die", "cut after the first line of NPU 0"),
        ("invented-a2-column-more", "not a chip's line: | 0                         | x"),
        ("invented-950", "not an NPU's line: | 0           | 950PR"),
        ("reconstructed-dcmi-8020", "another container or process owns the device (dcmi -8020)"),
        ("reconstructed-dcmi-8005", "the driver's library could not start (dcmi -8005)"),
    ],
)
def test_what_is_not_understood_is_unknown_and_why(name: str, why: str) -> None:
    found = npu_smi.parse_info(given(name))
    assert found["layout"] == "unknown"
    assert found["why"].startswith(why)
    assert (found["dies"], found["processes"], found["idle"]) == ([], [], [])


@pytest.mark.parametrize("text", ["", "\n", "bash: npu-smi: command not found\n", "+---+\n| hello |\n+---+\n"])
def test_no_table_at_all(text: str) -> None:
    assert npu_smi.parse_info(text)["layout"] == "unknown"


def test_a_table_with_a_die_twice_is_unknown() -> None:
    text = given("reconstructed-a2-23.0.3").replace("| 1     910B3", "| 0     910B3")
    assert npu_smi.parse_info(text)["why"] == "one die is listed twice"


def test_every_cut_of_a_table_is_unknown_or_true() -> None:
    whole = npu_smi.parse_info(given("reconstructed-a3-26.0.rc2-wide"))
    text = given("reconstructed-a3-26.0.rc2-wide")
    for end in range(0, len(text), 7):
        part = npu_smi.parse_info(text[:end])
        if part["layout"] != "unknown":
            seen = [die for die in part["dies"] if die["hbm_total"] is not None]
            assert all(die in whole["dies"] for die in seen[:-1])


def test_translated_words_are_unknown_words_not_a_healthy_die() -> None:
    found = npu_smi.parse_info(given("invented-a2-chinese"))
    assert found["layout"] == "a2"
    assert {die["health"] for die in found["dies"]} == {"unknown"}
    assert found["dies"][0]["health_text"] == "正常"


def test_a_warning_below_the_table_is_kept() -> None:
    assert "Driver_Install_Status" in npu_smi.parse_info(given("invented-driver-half-installed"))["warnings"][0]


def test_mapping_of_both_families_and_mcus_left_out() -> None:
    a3 = npu_smi.parse_mapping(dict(ascend_tree._npu_smi(ascend_tree.A3))["info_-m"])
    assert len(a3) == 16
    assert a3[3] == {"npu": 1, "chip": 1, "logic": 3, "phy": 3}
    a2 = npu_smi.parse_mapping(dict(ascend_tree._npu_smi(ascend_tree.A2))["info_-m"])
    assert a2[7] == {"npu": 7, "chip": 0, "logic": 7, "phy": None}
    assert npu_smi.parse_mapping("NPU ID  Slot ID  Chip Name\n0 1 950\n") == []
    assert npu_smi.parse_mapping("") == []


def test_ecc_counts_present_errors_of_each_chip() -> None:
    text = dict(ascend_tree._npu_smi(ascend_tree.variant(ascend_tree.A3, double_bit={3: 2})))["info_-t_ecc_-i_1"]
    assert npu_smi.parse_ecc(text) == {
        0: {"double_bit": 0, "isolated_pages": 0},
        1: {"double_bit": 2, "isolated_pages": 2},
    }
    assert npu_smi.parse_ecc("\tNPU ID : 0\n\tChip ID : 0\n") == {0: None}
    assert npu_smi.parse_ecc("This device does not support querying ecc.\n") == {}


def test_board() -> None:
    text = "\tNPU ID : 0\n\tSoftware Version : 25.5.1\n\tFirmware Version : 7.8.0.6.201\n\tCompatibility : OK\n"
    assert npu_smi.parse_board(text) == {"driver": "25.5.1", "firmware": "7.8.0.6.201", "compatibility": "OK"}
    assert npu_smi.parse_board("nothing\n") == {"driver": None, "firmware": None, "compatibility": None}


def test_hccn_tool() -> None:
    assert hccn.parse_link("link status: UP\n") == "UP"
    assert hccn.parse_link("link status: 正常\n") is None
    assert hccn.parse_ip("ipaddr:10.0.0.1\nnetmask:255.255.255.0\n") == {
        "address": "10.0.0.1",
        "netmask": "255.255.255.0",
    }
    assert hccn.parse_ip("no ip\n") == {"address": None, "netmask": None}
    assert hccn.parse_net_health("net health status: Init\n") == "Init"
    on = "dev_id:0, tls switch[1](0:disable, 1:enable), tls alarm time threshold[60]days\ndev_id:0, [pub cert] info:\n"
    assert hccn.parse_tls(on) is True
    assert hccn.parse_tls(on.replace("[1]", "[0]")) is False
    assert hccn.parse_tls("hccn_tool is busy, please try again\n") is None
    assert hccn.parse_conf("address_0=10.0.0.1\nnetmask_0=255.0.0.0\n# address_1=x\njunk\n") == {
        "0": {"address": "10.0.0.1", "netmask": "255.0.0.0"}
    }


def test_versions_sort_as_they_were_released() -> None:
    rising = [
        "8.0.RC3",
        "8.0.0",
        "8.2.rc1",
        "8.5.0",
        "9.1.0-beta.3",
        "9.1.0",
        "24.1.rc3",
        "24.1.rc3.7",
        "25.2.0",
        "26.0.RC1",
        "26.1.0",
    ]
    numbers = [versions.number(text) for text in rising]
    assert None not in numbers
    assert sorted(numbers) == numbers  # type: ignore[type-var]
    assert [versions.number(text) for text in ("", None, "unknown", "V100")] == [None] * 4
    assert versions.same("9.1.0", "9.1.0") is True
    assert versions.same("26.0.rc1", "26.0.RC1") is True
    assert versions.same("9.1.0-beta.3", "9.1.0") is False


DRIVER = {
    "Innerversion": "V100R001C19SPC001B124",
    "compatible_version": "[V100R001C13],[V100R001C18],[V100R001C19]",
    "compatible_version_fw": "[7.0.0,7.5.99]",
}


@pytest.mark.parametrize(
    ("firmware", "fits"),
    [
        ("7.5.0.1.129", True),
        ("7.0.0", True),
        ("7.5.99.9", True),
        ("7.6.0.1", False),
        ("6.9", False),
        ("7.x", None),
        (None, None),
    ],
)
def test_firmware_in_the_drivers_range(firmware: str | None, fits: bool | None) -> None:
    assert versions.firmware_in_driver(DRIVER, firmware) is fits


@pytest.mark.parametrize("text", ["", "[7.0.0]", "[7.0.0,x]"])
def test_an_unreadable_range_is_unknown(text: str) -> None:
    assert versions.firmware_in_driver({"compatible_version_fw": text}, "7.1.0") is None


@pytest.mark.parametrize(
    ("driver", "fits"), [("24.1.rc3", True), ("23.0.0", True), ("25.0.rc1", False), ("24.10.0", False)]
)
def test_driver_in_the_firmwares_list(driver: str, fits: bool) -> None:
    firmware = {"compatible_version_drv": "[23.0.0,23.0.0.],[24.0,24.0.],[24.1,24.1.]"}
    assert versions.driver_in_firmware(firmware, driver) is fits
    assert versions.driver_in_firmware({}, driver) is None


@pytest.mark.parametrize(
    ("cann", "fits"),
    [
        ({"innerversion": "V100R001C18SPC001"}, True),
        ({"innerversion": "V100R001C26"}, False),
        ({"innerversion": "V100R001C26", "compatible_version": "[V100R001C19]"}, True),
        ({"innerversion": "unknown"}, None),
        ({}, None),
    ],
)
def test_baselines_of_driver_and_cann(cann: dict[str, str], fits: bool | None) -> None:
    assert versions.cann_in_driver(DRIVER, cann) is fits
