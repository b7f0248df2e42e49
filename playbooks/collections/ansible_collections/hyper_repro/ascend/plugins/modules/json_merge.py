#!/usr/bin/python
"""Adds keys to a JSON file that others own; a value of theirs that differs is kept unless one says so."""

from __future__ import annotations

DOCUMENTATION = """
module: json_merge
short_description: Add keys to a JSON file that others own
description: Merges deeply, notes each key in the ledger, and keeps every value that is already there.
author: [hyper-repro]
options:
  path: {description: The file; made if it is missing., type: path, required: true}
  settings: {description: What to merge in., type: dict, required: true}
  replace: {description: "Replace values that differ; else they are kept.", type: bool, default: false}
"""
EXAMPLES = """
- hyper_repro.ascend.json_merge: {path: /etc/docker/daemon.json, settings: {live-restore: true}}
"""
RETURN = """
kept: {description: Keys with another value that stay as they are., returned: always, type: list, elements: str}
"""

import json
import os

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import json_keys, ledger


def main() -> None:
    """Run as a module."""
    spec = {
        "path": {"type": "path", "required": True},
        "settings": {"type": "dict", "required": True},
        "replace": {"type": "bool", "default": False},
    }
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    path = module.params["path"]
    old = ledger.read(path)
    try:
        data = json.loads(old) if old and old.strip() else {}
    except ValueError as error:
        module.fail_json(msg=f"{path} is not JSON, so nothing is merged into it: {error}")
    if not isinstance(data, dict):
        module.fail_json(msg=f"{path} is no JSON object, so nothing is merged into it")
    keys, kept = json_keys.wanted(data, module.params["settings"], module.params["replace"])
    for steps, _, value in keys:
        json_keys.put(data, steps, value)
    new = json.dumps(data, indent=2) + "\n" if keys else old
    if keys and not module.check_mode:
        book = ledger.Ledger()
        _note(book, path, old, new, keys)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        ledger.write(path, new)
    diff = {"before_header": path, "after_header": path, "before": old or "", "after": new or ""}
    module.exit_json(changed=bool(keys), kept=[".".join(steps) for steps in kept], diff=diff)


def _note(book: ledger.Ledger, path: str, old: str | None, new: str, keys: list[json_keys.Key]) -> None:
    entry = book.entries.get(f"json:{path}", {"before": None, "after": {"keys": []}})
    before = entry["before"] or {"text": old}
    noted = {tuple(steps) for steps, _, _ in entry["after"]["keys"]}
    known = [
        # A key of ours that is changed again keeps what was there before the first change.
        [steps, was, next((value for again, _, value in keys if list(again) == steps), value)]
        for steps, was, value in entry["after"]["keys"]
    ]
    fresh = [[list(steps), was, value] for steps, was, value in keys if tuple(steps) not in noted]
    folders = entry["after"].get("folders", ledger.missing_folders(path))
    book.remember("json", path, before, {"text": new, "keys": known + fresh, "folders": folders})


if __name__ == "__main__":
    main()
