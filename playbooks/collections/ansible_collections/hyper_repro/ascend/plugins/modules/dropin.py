#!/usr/bin/python
"""A file or folder of our own; what is there and not ours is refused, never overwritten."""

from __future__ import annotations

DOCUMENTATION = """
module: dropin
short_description: A file or folder of our own, noted in the ledger
description: Writes a whole file, or makes a folder. A file that others wrote is refused.
author: [hyper-repro]
options:
  path: {description: Where., type: path, required: true}
  content: {description: Text of the file; without it a folder is made., type: str}
  mode: {description: "Octal, such as '0644'.", type: str}
"""
EXAMPLES = """
- hyper_repro.ascend.dropin: {path: /etc/security/limits.d/90-hyper-repro.conf, content: text}
"""
RETURN = """
path: {description: Where., returned: always, type: str}
"""

import os
import stat

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import ledger


def main() -> None:
    """Run as a module."""
    spec = {"path": {"type": "path", "required": True}, "content": {"type": "str"}, "mode": {"type": "str"}}
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    path, content = module.params["path"], module.params["content"]
    mode = int(module.params["mode"] or ("0644" if content is not None else "0755"), 8)
    book = ledger.Ledger()
    ours = f"file:{path}" in book.entries
    if content is None:
        _folder(module, book, path, mode)
    old = ledger.read(path)
    same_mode = old is not None and stat.S_IMODE(os.stat(path).st_mode) == mode
    if old is not None and old != content and not ours:
        module.fail_json(msg=f"{path} is there and was not written by these playbooks; move it away or name another")
    changed = old != content or (ours and not same_mode)
    if changed and not module.check_mode:
        # A file that was there with our text already is not ours to take away.
        book.remember("file", path, None, {"text": content, "mode": mode, "folders": ledger.missing_folders(path)})
        os.makedirs(os.path.dirname(path), exist_ok=True)
        ledger.write(path, content, mode)
    diff = {"before_header": path, "after_header": path, "before": old or "", "after": content}
    module.exit_json(changed=changed, path=path, diff=diff)


def _folder(module: AnsibleModule, book: ledger.Ledger, path: str, mode: int) -> None:
    here = os.path.isdir(path)
    if os.path.exists(path) and not here:
        module.fail_json(msg=f"{path} is there and is no folder")
    ours = f"folder:{path}" in book.entries
    changed = not here or (ours and stat.S_IMODE(os.stat(path).st_mode) != mode)
    if changed and not module.check_mode:
        book.remember("folder", path, None, {"mode": mode, "folders": ledger.missing_folders(path)})
        os.makedirs(path, exist_ok=True)
        os.chmod(path, mode)
    state = {"before": {"path": path, "state": "directory" if here else "absent"}}
    module.exit_json(changed=changed, path=path, diff=dict(state, after={"path": path, "state": "directory"}))


if __name__ == "__main__":
    main()
