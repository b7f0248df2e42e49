#!/usr/bin/python
"""The driver's user and group, and who is in the group; nobody is ever renumbered."""

from __future__ import annotations

DOCUMENTATION = """
module: account
short_description: A user with its group, and members of the group
description: Makes the group and the user where they are missing, adds members. Numbers that are taken are an error.
author: [hyper-repro]
options:
  name: {description: Name of user and group., type: str, required: true}
  uid: {description: Number of both; needed where they have to be made., type: int}
  create: {description: Make them where they are missing., type: bool, default: true}
  members: {description: Users to be in the group., type: list, elements: str, default: []}
"""
EXAMPLES = """
- hyper_repro.ascend.account: {name: HwHiAiUser, uid: 1000, members: [ops]}
"""
RETURN = """
done: {description: What was done., returned: always, type: list, elements: str}
"""

import grp
import pwd

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import ledger


def main() -> None:
    """Run as a module."""
    spec = {
        "name": {"type": "str", "required": True},
        "uid": {"type": "int"},
        "create": {"type": "bool", "default": True},
        "members": {"type": "list", "elements": "str", "default": []},
    }
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    name, uid = module.params["name"], module.params["uid"]
    groups = {one.gr_name: one for one in grp.getgrall()}
    users = {one.pw_name: one for one in pwd.getpwall()}
    steps: list[tuple[str, str, list[str]]] = []
    if module.params["create"]:
        _refuse_taken(module, name, uid, groups, users)
        if name not in groups:
            steps.append(("group", name, ["groupadd", "--gid", str(uid), name]))
        if name not in users:
            command = [
                "useradd",
                "--uid",
                str(uid),
                "--gid",
                name,
                "--no-create-home",
                "--shell",
                "/usr/sbin/nologin",
                name,
            ]
            steps.append(("user", name, command))
    elif name not in groups and not module.check_mode:
        module.fail_json(msg=f"there is no group {name}; let the driver's installer make it, or set create")
    for member in module.params["members"]:
        if member not in users:
            module.fail_json(msg=f"there is no user {member} to be put in group {name}")
        inside = name in groups and member in groups[name].gr_mem
        if not inside and (name not in groups or users[member].pw_gid != groups[name].gr_gid):
            steps.append(("member", f"{name}:{member}", ["gpasswd", "--add", member, name]))
    if not module.check_mode:
        book = ledger.Ledger()
        for kind, target, command in steps:
            book.remember(kind, target, None, {"uid": uid})
            module.run_command(command, check_rc=True)
    done = [f"{kind} {target}" for kind, target, _ in steps]
    module.exit_json(changed=bool(steps), done=done, diff={"before": "", "after": "".join(f"{one}\n" for one in done)})


def _refuse_taken(module: AnsibleModule, name: str, uid: int | None, groups: dict, users: dict) -> None:  # type: ignore[type-arg]
    if uid is None and (name not in groups or name not in users):
        module.fail_json(msg=f"{name} is missing, and uid does not say which number it shall have")
    for kind, owner in (
        ("gid", next((one for one, its in groups.items() if its.gr_gid == uid), name) if name not in groups else name),
        ("uid", next((one for one, its in users.items() if its.pw_uid == uid), name) if name not in users else name),
    ):
        if owner != name:
            module.fail_json(
                msg=f"{kind} {uid} belongs to {owner}; it is not renumbered here: its owner has to move it"
            )


if __name__ == "__main__":
    main()
