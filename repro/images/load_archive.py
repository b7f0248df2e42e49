"""Loads the image of a verified archive into the Docker engine of this machine, without a network."""

from __future__ import annotations

import platform
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import docker
import requests
import zstandard
from docker.errors import DockerException

from repro.errors import InfraError
from repro.images.archive import IMAGE, Archive

TIMEOUT_S = 600


def load(path: Path, archive: Archive) -> None:
    """Load it, and see that the engine then has the image that the manifest names.

    Raises:
        InfraError: Another processor, no engine, or another image came out.
    """
    about = archive.about
    if about.architecture != platform.machine():
        raise InfraError(f"{path} is for {about.architecture}, this is {platform.machine()}", "take the other archive")
    try:
        client = docker.from_env(timeout=TIMEOUT_S)
        with _image(path) as stream:
            client.images.load(stream)
        loaded = client.images.get(about.image)
    except (DockerException, requests.exceptions.RequestException) as error:
        raise InfraError(f"Docker did not load {about.image}: {error}", "is its engine running?") from error
    if loaded.id != about.image_id:
        raise InfraError(f"{about.image} came out as {loaded.id}, not {about.image_id}", "remove it and load again")


@contextmanager
def _image(path: Path) -> Iterator[zstandard.ZstdDecompressionReader]:
    with tarfile.open(path, "r:") as archive:
        stream = archive.extractfile(IMAGE)
        if stream is None:
            raise InfraError(f"{path}: {IMAGE} is no file", "it was not written by `make bundle`")
        with zstandard.ZstdDecompressor().stream_reader(stream) as reader:
            yield reader
