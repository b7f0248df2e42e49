#!/usr/bin/python
"""Takes back what the ledger holds, newest first; what others have changed since is left, and said."""

from __future__ import annotations

DOCUMENTATION = """
module: undo
short_description: Take back what the ledger on this host holds
description: Each entry is taken back only if it still is as we left it. Entries that stay stay in the ledger.
author: [hyper-repro]
options:
  images: {description: Remove images that were loaded or pulled., type: bool, default: true}
  docker: {description: The client., type: str, default: docker}
"""
EXAMPLES = """
- hyper_repro.ascend.undo:
"""
RETURN = """
left: {description: What was left, and why., returned: always, type: list, elements: str}
"""

import json
import os
import shutil
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import json_keys, ledger

Entry = dict[str, Any]


def main() -> None:
    """Run as a module."""
    spec = {"images": {"type": "bool", "default": True}, "docker": {"type": "str", "default": "docker"}}
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    book = ledger.Ledger()
    takes = {
        "file": _file,
        "folder": _folder,
        "json": _json,
        "sysctl": _sysctl,
        "image": _image,
        "installer": _installer,
        "environment": _environment,
    }
    done, left = [], []
    for key in list(reversed(list(book.entries))):
        entry = book.entries[key]
        why = takes.get(entry["kind"], _account)(module, entry)
        if why:
            left.append(f"{entry['kind']} {entry['target']}: {why}")
            continue
        done.append(f"{entry['kind']} {entry['target']}")
        if not module.check_mode:
            del book.entries[key]
            book.write()
    if not module.check_mode:
        ledger.remove_if_empty(ledger.FOLDER)
    module.exit_json(changed=bool(done), done=done, left=left, engine=any(one.startswith("json ") for one in done))


def _remove_folders(folders: list[str]) -> None:
    for folder in reversed(folders):
        ledger.remove_if_empty(folder)


def _file(module: AnsibleModule, entry: Entry) -> str:
    now = ledger.read(entry["target"])
    if now is not None and now != entry["after"]["text"]:
        return "others have changed it since"
    if not module.check_mode:
        if now is not None:
            os.unlink(entry["target"])
        _remove_folders(entry["after"]["folders"])
    return ""


def _folder(module: AnsibleModule, entry: Entry) -> str:
    path = entry["target"]
    if os.path.isdir(path) and os.listdir(path):
        names = [name for name in os.listdir(path) if os.path.join(path, name) != ledger.PATH]
        # In check mode what is taken back before it is still inside.
        if names and not module.check_mode:
            return f"not empty: {', '.join(sorted(names)[:3])}"
    if not module.check_mode:
        ledger.remove_if_empty(path)
        _remove_folders(entry["after"]["folders"])
    return ""


def _json(module: AnsibleModule, entry: Entry) -> str:
    path, now = entry["target"], ledger.read(entry["target"])
    before, after = entry["before"]["text"], entry["after"]
    if module.check_mode or now is None:
        return ""
    if now == after["text"]:
        # Nobody touched it: back to the very bytes.
        if before is None:
            os.unlink(path)
            _remove_folders(after["folders"])
        else:
            ledger.write(path, before)
        return ""
    try:
        data = json.loads(now)
    except ValueError as error:
        return f"not JSON any more: {error}"
    for steps, was, value in after["keys"]:
        if json_keys.get(data, steps) == value:
            json_keys.take(data, steps, was)
    ledger.write(path, json.dumps(data, indent=2) + "\n")
    return ""


def _sysctl(module: AnsibleModule, entry: Entry) -> str:
    kernel = "/proc/sys/" + entry["target"].replace(".", "/")
    now = (ledger.read(kernel) or "").strip()
    if now not in (entry["after"], entry["before"]):
        return f"others have set it to {now!r} since"
    if not module.check_mode and now != entry["before"]:
        with open(kernel, "w", encoding="utf-8") as file:
            file.write(entry["before"] + "\n")
    return ""


def _account(module: AnsibleModule, entry: Entry) -> str:
    kind, target = entry["kind"], entry["target"]
    group, _, member = target.partition(":")
    commands = {
        "user": ["userdel", target],
        "group": ["groupdel", target],
        "member": ["gpasswd", "--delete", member, group],
    }
    if kind not in commands:
        return f"this playbook does not know the kind {kind}"
    if module.check_mode:
        return ""
    code, _, err = module.run_command(commands[kind])
    gone = "does not exist" in err or "not a member" in err
    return "" if code == 0 or gone else err.strip()


def _image(module: AnsibleModule, entry: Entry) -> str:
    name, after = entry["target"], entry["after"]
    if not module.params["images"]:
        return "images are kept as asked"
    code, out, _ = module.run_command([module.params["docker"], "image", "inspect", "--format", "{{.Id}}", name])
    if code != 0:
        return ""
    if entry["before"] is not None or out.strip() != after["id"]:
        return "it was there before, or others have replaced it since"
    if module.check_mode:
        return ""
    code, _, err = module.run_command([module.params["docker"], "image", "rm", name])
    return err.strip() if code != 0 else ""


def _environment(module: AnsibleModule, entry: Entry) -> str:
    path = entry["target"]
    if os.path.isdir(path) and not os.path.isfile(os.path.join(path, "pyvenv.cfg")):
        return "it is no virtual environment any more"
    if not module.check_mode and os.path.isdir(path):
        shutil.rmtree(path)
    return ""


def _installer(_module: AnsibleModule, entry: Entry) -> str:
    return f"version {entry['after']} was installed on request, over {entry['before']}; it is not taken back"


if __name__ == "__main__":
    main()
