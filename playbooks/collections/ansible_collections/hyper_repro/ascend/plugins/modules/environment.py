#!/usr/bin/python
"""Notes in the ledger that a virtual environment is about to be made, so that teardown may remove it."""

from __future__ import annotations

DOCUMENTATION = """
module: environment
short_description: Note that a virtual environment is about to be made
description: Changes the ledger alone, and only where the folder is not there yet.
author: [hyper-repro]
options:
  path: {description: Where it will be., type: path, required: true}
"""
EXAMPLES = """
- hyper_repro.ascend.environment: {path: /opt/hyper-repro}
"""
RETURN = """
path: {description: Where it will be., returned: always, type: str}
"""

import os

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import ledger


def main() -> None:
    """Run as a module."""
    module = AnsibleModule(argument_spec={"path": {"type": "path", "required": True}}, supports_check_mode=True)
    path = module.params["path"]
    book = ledger.Ledger()
    changed = not os.path.exists(path) and f"environment:{path}" not in book.entries
    if changed and not module.check_mode:
        book.remember("environment", path, None, None)
    module.exit_json(changed=changed, path=path)


if __name__ == "__main__":
    main()
