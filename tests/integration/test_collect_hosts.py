"""Facts and logs of real sshd hosts, gathered beside a run; a host that fails is told and holds up no other."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator

import pytest
from harness import Cli
from hosts_cluster import Cluster, cluster, lacking

pytestmark = pytest.mark.skipif(bool(lacking()), reason=lacking())
LOG = "ascend/log/debug/plog/plog-17_20261130.log"


@pytest.fixture(scope="module")
def hosts() -> Iterator[Cluster]:
    with cluster(2) as made:
        yield made


def test_facts_and_logs_of_hosts(hosts: Cluster, cli: Cli) -> None:
    assert cli.run("9001").code == 0
    here = cli("collect", str(cli.out))
    assert (here.code, here.out.splitlines()[0]) == (0, "local: facts")
    facts = json.loads((cli.out / "collected" / "local" / "facts.json").read_text(encoding="utf-8"))
    assert facts["npu_smi"]
    assert facts["core_pattern"]["text"]
    assert "PATH" in facts["environment"]

    first, second = hosts.hosts
    hosts.trust(hosts.hosts)
    inventory = hosts.inventory(cli.folder / "hosts.yml", hyper_repro_python=sys.executable)
    for number, host in enumerate(hosts.hosts):
        log = host.folder / "home-root" / LOG
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(f"[ERROR] device {number}\n" * 10_000, encoding="utf-8")
    done = cli("collect", str(cli.out), "--hosts", str(inventory))
    assert done.code == 0, done
    assert [line.partition(":")[0] for line in done.out.splitlines()[:2]] == [first.name, second.name]
    for number, host in enumerate(hosts.hosts):
        facts = json.loads((cli.out / "collected" / host.name / "facts.json").read_text(encoding="utf-8"))
        assert facts["limits"]["CORE"]
        [fetched] = (cli.out / "collected" / "cann-logs").glob(f"*/{host.name}/**/plog-17_20261130.log")
        assert fetched.read_text(encoding="utf-8") == f"[ERROR] device {number}\n" * 10_000
        assert (host.folder / "home-root" / LOG).exists(), "nothing is deleted on a host"

    shutil.rmtree(cli.out / "collected")
    second.die()
    part = cli("collect", str(cli.out), "--hosts", str(inventory), "--host-timeout", "20")
    assert part.code == 4
    assert f"{first.name}: facts, logs of " in part.out
    assert part.err.startswith(f"{second.name}: ")
    assert len(part.err.splitlines()) == 1
    # What was gathered leaves with a bundle as the rest does, and the run is judged as before.
    assert cli("bundle", str(cli.out)).code == 0
