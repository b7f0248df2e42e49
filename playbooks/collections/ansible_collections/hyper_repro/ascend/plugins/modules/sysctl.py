#!/usr/bin/python
"""One kernel setting, now and at every boot by a drop-in file of ours; lists of ports are merged with what is there."""

from __future__ import annotations

DOCUMENTATION = """
module: sysctl
short_description: One kernel setting, now and at boot, noted in the ledger
description: Writes a drop-in file of our own and the running kernel's value.
author: [hyper-repro]
options:
  name: {description: "With dots, such as C(kernel.core_pattern).", type: str, required: true}
  value: {description: The value; of a list of ports what must be in it., type: str, required: true}
  dropin: {description: The drop-in file., type: path, required: true}
  ports: {description: The value is a list of ports and is added to the one there., type: bool, default: false}
"""
EXAMPLES = """
- hyper_repro.ascend.sysctl: {name: vm.swappiness, value: '10', dropin: /etc/sysctl.d/99-hyper-repro-a.conf}
"""
RETURN = """
value: {description: The value afterwards., returned: always, type: str}
"""

import os

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import ledger
from ..module_utils.port_list import union


def main() -> None:
    """Run as a module."""
    spec = {
        "name": {"type": "str", "required": True},
        "value": {"type": "str", "required": True},
        "dropin": {"type": "path", "required": True},
        "ports": {"type": "bool", "default": False},
    }
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    name, dropin = module.params["name"], module.params["dropin"]
    kernel = "/proc/sys/" + name.replace(".", "/")
    now = ledger.read(kernel)
    if now is None:
        module.fail_json(msg=f"this kernel has no {name}")
    now = now.strip()
    value = union(now, module.params["value"]) if module.params["ports"] else module.params["value"]
    text = f"# Made by hyper-repro; playbooks/teardown.yml takes it back.\n{name} = {value}\n"
    book = ledger.Ledger()
    old = ledger.read(dropin)
    if old is not None and old != text and f"file:{dropin}" not in book.entries:
        module.fail_json(msg=f"{dropin} is there and was not written by these playbooks; move it away or name another")
    changed = now != value or old != text
    if changed and not module.check_mode:
        book.remember("file", dropin, None, {"text": text, "mode": 0o644, "folders": ledger.missing_folders(dropin)})
        book.remember("sysctl", name, now, value)
        os.makedirs(os.path.dirname(dropin), exist_ok=True)
        ledger.write(dropin, text, 0o644)
        with open(kernel, "w", encoding="utf-8") as file:
            file.write(value + "\n")
    module.exit_json(changed=changed, value=value, diff={"before": f"{name} = {now}\n", "after": f"{name} = {value}\n"})


if __name__ == "__main__":
    main()
