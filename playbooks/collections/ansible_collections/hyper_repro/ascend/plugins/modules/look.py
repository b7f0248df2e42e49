#!/usr/bin/python
"""Looks at an Ascend host; needs no root and changes nothing."""

from __future__ import annotations

DOCUMENTATION = """
module: look
short_description: Look at an Ascend host without changing anything
description: Returns what is seen of dies, versions, engine, users, disks, limits, ports and network, as data.
author: [hyper-repro]
options:
  disks:
    description: Folders whose free room is looked at.
    type: list
    elements: str
    default: [/, /var/lib/docker]
"""
EXAMPLES = """
- hyper_repro.ascend.look:
"""
RETURN = """
look: {description: What was seen., returned: always, type: dict}
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.ascend.look import look
from ..module_utils.ascend.machine import Machine


def main() -> None:
    """Run as a module."""
    spec = {"disks": {"type": "list", "elements": "str", "default": ["/", "/var/lib/docker"]}}
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    module.exit_json(changed=False, look=look(Machine(), module.params["disks"]))


if __name__ == "__main__":
    main()
