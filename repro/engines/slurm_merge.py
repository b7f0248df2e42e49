"""Makes one trial of the parts that its nodes left in the shared folder."""

from __future__ import annotations

import json
from pathlib import Path

from repro.engines.slurm_part import STOPPED, part_folder
from repro.evidence.layout import TrialFolder
from repro.evidence.write import write_json
from repro.model import Ending, TrialRecord

# Nodes of a cluster keep their clocks by NTP; how well was not measured.
CLOCK_ERROR_S = 0.5


def whole(attempt: Path, nodes: int) -> bool:
    """True if every node's part has a record that counts: finished, or ended because of another node's."""
    for index in range(nodes):
        part = part_folder(attempt, index)
        path = TrialFolder(part).record
        if not path.exists():
            return False
        ending = json.loads(path.read_text(encoding="utf-8"))["ending"]
        if ending == Ending.INTERRUPTED and not (part / STOPPED).exists():
            return False
    return True


def merge_parts(attempt: Path, nodes: int, folder: TrialFolder) -> None:
    """Move the evidence of all nodes into the trial's folder and write the record of the whole.

    Raises:
        InfraError: It cannot be written.
    """
    # Imported here: it brings Fabric along, which no job needs.
    from repro.engines.ssh.across import gather_parts
    from repro.engines.ssh.merge import Part, merge
    from repro.engines.ssh.session import Clock

    parts = []
    for index in range(nodes):
        path = part_folder(attempt, index)
        record = TrialRecord.from_json(json.loads(TrialFolder(path).record.read_text(encoding="utf-8")))
        node = str(json.loads((path / "slurm.json").read_text(encoding="utf-8"))["node"])
        parts.append(Part(node, record, Clock(0.0, CLOCK_ERROR_S), (path / STOPPED).exists()))
    gather_parts([part_folder(attempt, index) for index in range(nodes)], folder)
    write_json(folder.record, merge(parts).to_json())
