"""Judges the looks of all hosts of the play, here, once: prints the table, keeps JSON and HTML where asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ..module_utils.ascend import across, finding, render

ARGUMENTS = ("register", "wanted", "versions", "folder", "everything")
LOST = "no answer, or the look ended there; its line is above"


class ActionModule(ActionBase):
    """Arguments: ``register`` names the variable with each host's look; the rest are the role's variables."""

    _supports_check_mode = True
    _VALID_ARGS = frozenset(ARGUMENTS)

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Level and findings of each host; never changed, since nothing is changed on any host."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        arguments = self._task.args
        variables = task_vars or {}
        rows = _rows(arguments.get("versions") or "")
        looks: dict[str, Any] = {}
        expected: dict[str, dict[str, Any]] = {}
        for host in variables["ansible_play_hosts_all"]:
            its = variables["hostvars"][host]
            looks[str(host)] = (its.get(arguments["register"]) or {}).get("look")
            own = {"chip": its.get("ascend_chip"), "dies": its.get("ascend_dies"), "rows": rows}
            expected[str(host)] = {**(arguments.get("wanted") or {}), **own}
        findings = across.judge_all(looks, expected, dict.fromkeys(looks, LOST))
        Display().display("\n" + render.table(findings, everything=bool(arguments.get("everything"))))
        if arguments.get("folder"):
            _keep(Path(arguments["folder"]).expanduser(), findings, looks)
        levels = {
            host: {
                "level": finding.worst(some),
                "faults": [one.fault for one in some if one.level == "fail"],
                "warnings": [one.fault for one in some if one.level == "warn"],
            }
            for host, some in findings.items()
        }
        return dict(result, changed=False, hosts=levels)


def _rows(path: str) -> list[dict[str, Any]]:
    if not path or not Path(path).is_file():
        return []
    try:
        return across.compatibility_rows(yaml.safe_load(Path(path).read_text(encoding="utf-8")))
    except (yaml.YAMLError, ValueError) as error:
        raise AnsibleActionFail(f"{path}: {error}") from error


def _keep(folder: Path, findings: Mapping[str, list[finding.Finding]], looks: Mapping[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    data = render.to_json(findings, looks)
    for host, its in data["hosts"].items():
        one = {"schema_version": data["schema_version"], "host": host, **its}
        # A host's name may be anything that an inventory allows.
        (folder / f"{host.replace('/', '_')}.json").write_text(json.dumps(one, indent=1) + "\n", encoding="utf-8")
    (folder / "preflight.html").write_text(render.page(findings, "Preflight"), encoding="utf-8")
