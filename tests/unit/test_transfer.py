"""Messages between noise, and files that arrive whole, go on where they were cut, and never outside their folder."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from repro.errors import InfraError
from repro.transfer.files import Incoming, Listed, list_folder, pieces
from repro.transfer.frames import Cut, Receiver, Sender


def channel(data: bytes, step: int) -> Receiver:
    parts = iter([data[at : at + step] for at in range(0, len(data), step)])
    return Receiver(lambda: next(parts, b""), "m4rk")


@pytest.mark.parametrize("step", [1, 7, 1 << 20])
def test_messages_and_pieces_come_through_a_noisy_shell(step: int) -> None:
    out = bytearray(b"Welcome to host 1!\nLast login: today\nno end of line: ")
    sender = Sender(out.extend, "m4rk")
    sender.send(hello="wörld\n")
    sender.piece(b"m4rk {}\n\0binary")
    sender.send(bye=True)
    receiver = channel(bytes(out), step)
    assert receiver.next() == {"hello": "wörld\n"}
    assert receiver.next() == {"piece": 15}
    assert b"".join(receiver.stream(15)) == b"m4rk {}\n\0binary"
    assert receiver.next() == {"bye": True}
    with pytest.raises(Cut):
        receiver.next()
    assert receiver.noise.startswith("Welcome to host 1!")


@pytest.mark.parametrize("line", [b"m4rk {\n", b"m4rk []\n", b'm4rk {"piece": -1}\n', b'm4rk {"piece": 99999999}\n'])
def test_what_is_no_message_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"a |Expecting"):
        channel(line, 100).next()


def test_a_channel_that_ends_says_what_the_shell_said_last() -> None:
    with pytest.raises(Cut, match="not found"):
        channel(b"hi\nsh: 1: python: not found\n", 100).next()


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../x", "", ".", "a//b", "./a", "a\0b", "a/.."])
def test_a_path_out_of_the_folder_is_refused(name: str) -> None:
    with pytest.raises(InfraError, match="outside its folder"):
        Listed.from_json([name, 1, "0" * 64])


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "there"
    (folder / "rank-0").mkdir(parents=True)
    (folder / "rank-0" / "stdout.log").write_bytes(b"0123456789" * 1000)
    (folder / "empty").touch()
    (folder / "link").symlink_to("/etc/passwd")
    return folder


def sent(source: Path, asked: list[tuple[str, int]]) -> Iterator[list[bytes]]:
    for name, offset in asked:
        for data in pieces(source, name, offset):
            yield [data[:100], data[100:]]


def test_files_arrive_whole_and_links_are_left(source: Path, tmp_path: Path) -> None:
    listed = list_folder(source, lambda _path: True)
    assert [entry.name for entry in listed] == ["empty", "rank-0/stdout.log"]
    incoming = Incoming(tmp_path / "here", listed)
    asked = incoming.missing()
    came = incoming.receive(dict(asked), sent(source, asked).__next__)
    assert came == 10_000
    assert list_folder(tmp_path / "here", lambda _path: True) == listed
    assert incoming.missing() == []


def test_a_cut_transfer_goes_on_where_it_ended(source: Path, tmp_path: Path) -> None:
    listed = list_folder(source, lambda _path: True)
    incoming = Incoming(tmp_path / "here", listed)

    def cut() -> Iterator[bytes]:
        yield b"0123456789" * 400
        raise Cut

    with pytest.raises(Cut):
        incoming.receive(dict(incoming.missing()), cut)
    asked = Incoming(tmp_path / "here", listed).missing()
    assert asked == [("rank-0/stdout.log", 4000)]
    assert incoming.receive(dict(asked), sent(source, asked).__next__) == 6000
    assert list_folder(tmp_path / "here", lambda _path: True) == listed


def test_a_file_that_is_not_what_was_listed_is_not_taken(source: Path, tmp_path: Path) -> None:
    listed = list_folder(source, lambda _path: True)
    (source / "rank-0" / "stdout.log").write_bytes(b"x" * 10_000)
    incoming = Incoming(tmp_path / "here", listed)
    asked = incoming.missing()
    with pytest.raises(InfraError, match="another digest"):
        incoming.receive(dict(asked), sent(source, asked).__next__)
    assert not (tmp_path / "here" / "rank-0" / "stdout.log").exists()
    shutil.rmtree(source)
    with pytest.raises(InfraError, match="shorter than was said"):
        incoming.receive({"rank-0/stdout.log": 0}, list)
    with pytest.raises(InfraError, match="longer than was said"):
        incoming.receive({"rank-0/stdout.log": 0}, lambda: [b"x" * 10_001])
