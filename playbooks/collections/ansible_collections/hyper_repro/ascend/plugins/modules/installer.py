#!/usr/bin/python
"""Runs a vendor's .run installer where the version file says that another version is there, and only then."""

from __future__ import annotations

DOCUMENTATION = """
module: installer
short_description: Run a vendor's installer unless its version is there already
description: Never taken back by teardown; the ledger notes that it was done.
author: [hyper-repro]
options:
  package: {description: The installer on the host; without it the module only looks., type: path}
  sha256: {description: Its SHA-256., type: str}
  version: {description: The version that it brings., type: str, required: true}
  version_file: {description: "File with C(package_version=) or C(Version=)", type: path, required: true}
  arguments: {description: Its arguments., type: list, elements: str, default: []}
"""
EXAMPLES = """
- hyper_repro.ascend.installer: {package: /tmp/x.run, sha256: abc1, version: 1.0.0, version_file: /opt/version.info}
"""
RETURN = """
needed: {description: Another version is there., returned: always, type: bool}
"""

import os

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import ledger
from ..module_utils.ascend.versions import parse_keys


def main() -> None:
    """Run as a module."""
    text = {"type": "str", "required": True}
    spec = {
        "package": {"type": "path"},
        "sha256": {"type": "str"},
        "version": text,
        "version_file": {"type": "path", "required": True},
        "arguments": {"type": "list", "elements": "str", "default": []},
    }
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True, required_together=[("package", "sha256")])
    package, version = module.params["package"], module.params["version"]
    before = _version(module.params["version_file"])
    needed = before != version
    changed = needed and package is not None
    if changed and not module.check_mode:
        if ledger.sha256(package) != module.params["sha256"]:
            module.fail_json(msg=f"{package}: its SHA-256 is not {module.params['sha256']}; copy it again")
        ledger.Ledger().remember("installer", module.params["version_file"], before, version)
        os.chmod(package, 0o700)
        module.run_command([package, *module.params["arguments"]], check_rc=True)
        os.unlink(package)
        after = _version(module.params["version_file"])
        if after != version:
            module.fail_json(
                msg=f"{package} ended well, but {module.params['version_file']} says {after}, not {version}"
            )
    module.exit_json(
        changed=changed, needed=needed, installed=before, diff={"before": f"{before}\n", "after": f"{version}\n"}
    )


def _version(path: str) -> str | None:
    keys = parse_keys(ledger.read(path) or "")
    return keys.get("package_version") or keys.get("Version")


if __name__ == "__main__":
    main()
