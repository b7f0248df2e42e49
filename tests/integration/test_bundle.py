"""A real run with planted names and secrets leaves as a bundle without them, and is judged the same."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from harness import Cli, verdict

from repro.collect.archive import unpack

SECRETS = {
    "host": "trainer17.prod.internal",
    "user": "mallory",
    "v4": "192.168.17.4",
    "v6": "2001:db8:0:1:1:1:1:1",
    "mac": "52:54:00:ab:cd:ef",
    "token": "ghp_abcdefghijklmnop1234",
    "password": "hunter2xyz",
    "share": "secretproj",
    "word": "Falcon",
}
PLANTED = (
    "mallory@trainer17.prod.internal (192.168.17.4, 2001:db8:0:1:1:1:1:1, 52:54:00:ab:cd:ef) "
    "ghp_abcdefghijklmnop1234 password=hunter2xyz /share/pangu/secretproj/run/train.py /home/mallory/x.py Falcon"
)
IN_EVIDENCE = ("hunter2-in-event", "hunter2-in-arguments")


def texts(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8", errors="replace")
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_nothing_that_was_planted_leaves_and_the_verdict_is_the_same(cli: Cli) -> None:
    cli.out = cli.folder / "mallory-runs" / "run"
    options = ("9003.1", "--memory", "--json", "--out", str(cli.out))
    ran = cli("run", *options, HYPER_REPRO_TEST_PLANTED=PLANTED)
    assert (ran.code, verdict(ran)["verdict"]) == (0, "REPRODUCED")
    before = "".join(texts(cli.out / "trials").values())
    assert all(secret in before for secret in (*SECRETS.values(), *IN_EVIDENCE)), "all of it was planted"

    target = cli.folder / "sent.tar.zst"
    done = cli("bundle", str(cli.out), "--output", str(target), "--hide", "Falcon")
    assert done.code == 0, done
    assert done.out == f"{target}\n"
    assert "left out, for it cannot be redacted: trials/" in done.err
    assert "memray.bin" in done.err

    unpack(target, cli.folder / "received", 64 << 20)
    received = cli.folder / "received" / "run"
    shown = texts(received)
    for secret in (*SECRETS.values(), *IN_EVIDENCE, str(cli.folder)):
        assert [name for name, text in shown.items() if secret in text or secret in name] == []
    assert not list(received.rglob("*.bin"))
    assert not list(received.rglob("redaction.json"))
    for seal in received.rglob("SHA256SUMS"):
        subprocess.run(["sha256sum", "--check", "--strict", "--quiet", seal.name], cwd=seal.parent, check=True)

    again = cli("judge", str(received), "--json", HYPER_REPRO_ISSUES="")
    assert again.code == 0, again
    fault = verdict(again)
    assert "asked to tell user-1@host-1 (ip-1, ip-2, mac-1) token-" in fault["why"]
    assert {**fault, "why": ""} == {**verdict(ran), "why": ""}
    assert "traces.py:" in fault["why"], "file and line of the fault are what a maintainer needs"

    mapping = cli.out / "redaction.json"
    assert mapping.stat().st_mode & 0o077 == 0
    known = json.loads(mapping.read_text(encoding="utf-8"))
    assert "mallory" in known["user"]
    # A second bundle says the same names; the run itself is as it was.
    other = cli.folder / "again.tar.zst"
    assert cli("bundle", str(cli.out), "--output", str(other), "--hide", "Falcon").code == 0
    assert other.read_bytes() == target.read_bytes()
    assert cli("judge", str(cli.out), "--json").out == ran.out


def test_an_edited_run_is_not_bundled(cli: Cli) -> None:
    done = cli.run("9001")
    assert done.code == 0, done
    (cli.out / "run.json").write_text("{}", encoding="utf-8")
    told = cli("bundle", str(cli.out))
    assert (told.code, told.out) == (4, "")
    assert len(told.err.splitlines()) == 1
    assert not list(cli.folder.glob("*.tar.zst"))


def test_where_there_is_no_folder_for_it(cli: Cli) -> None:
    cli.out.mkdir()
    told = cli("bundle", str(cli.out), "--output", str(cli.folder / "none" / "x.tar.zst"))
    assert (told.code, told.out) == (2, "")
    assert "is no folder; give --output in one that is there" in told.last
