#!/usr/bin/python
"""An image in the container engine: whether it is there, from an archive that was copied, or from a registry."""

from __future__ import annotations

DOCUMENTATION = """
module: image
short_description: An image in the container engine, noted in the ledger
description: Without I(archive) and I(pull) only looks. An archive is checked by its SHA-256 before it is loaded.
author: [hyper-repro]
options:
  name: {description: Name and tag., type: str, required: true}
  sha256: {description: Of the archive; the image that came from it is known by it., type: str}
  archive: {description: Archive on the host., type: path}
  keep_archive: {description: Leave the archive there., type: bool, default: false}
  pull: {description: Pull it by name, or better by digest., type: bool, default: false}
  docker: {description: The client., type: str, default: docker}
"""
EXAMPLES = """
- hyper_repro.ascend.image: {name: 'hyper-repro:sim', sha256: abc1, archive: /var/tmp/image.tar}
"""
RETURN = """
needed: {description: It is not there yet., returned: always, type: bool}
"""

import os
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import ledger


def main() -> None:
    """Run as a module."""
    spec = {
        "name": {"type": "str", "required": True},
        "sha256": {"type": "str"},
        "archive": {"type": "path"},
        "keep_archive": {"type": "bool", "default": False},
        "pull": {"type": "bool", "default": False},
        "docker": {"type": "str", "default": "docker"},
    }
    module = AnsibleModule(
        argument_spec=spec,
        supports_check_mode=True,
        required_by={"archive": "sha256"},
    )
    name, sha256, archive = (module.params[key] for key in ("name", "sha256", "archive"))
    book = ledger.Ledger()
    before = _id(module, name)
    entry = book.entries.get(f"image:{name}", {}).get("after") or {}
    # Ours, unchanged, and from this archive; for a pulled one its presence is all there is to say.
    here = before is not None and (sha256 is None or (entry.get("sha256") == sha256 and entry.get("id") == before))
    changed = not here and (archive is not None or module.params["pull"])
    if changed and not module.check_mode:
        book.remember("image", name, before, {"sha256": sha256, "id": None})
        _fetch(module, name, archive, sha256)
        book.remember("image", name, before, {"sha256": sha256, "id": _id(module, name)})
    if archive and os.path.exists(archive) and not module.params["keep_archive"] and not module.check_mode:
        os.unlink(archive)
    module.exit_json(changed=changed, needed=not here, id=before)


def _id(module: AnsibleModule, name: str) -> str | None:
    command = [module.params["docker"], "image", "inspect", "--format", "{{.Id}}", name]
    code, out, err = module.run_command(command)
    if code != 0 and "no such image" not in err.lower():
        module.fail_json(msg=f"the container engine does not answer: {err.strip()}")
    return out.strip() if code == 0 else None


def _fetch(module: AnsibleModule, name: str, archive: Any, sha256: str) -> None:
    if archive is None:
        module.run_command([module.params["docker"], "pull", "--quiet", name], check_rc=True)
        return
    found = ledger.sha256(archive)
    if found != sha256:
        module.fail_json(msg=f"{archive}: its SHA-256 is {found}, not {sha256}; copy it again")
    module.run_command([module.params["docker"], "load", "--quiet", "--input", archive], check_rc=True)
    if _id(module, name) is None:
        module.fail_json(msg=f"{archive} has no image named {name}")


if __name__ == "__main__":
    main()
