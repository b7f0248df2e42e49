"""Lay out the stand-in: ``make.py CANN_VERSION SET_ENV``; one wheel lies where versions before 9 have te and hccl."""

from __future__ import annotations

import platform
import shutil
import sys
import zipfile
from pathlib import Path

version, script = sys.argv[1:]
ascend = Path("/usr/local/Ascend")
root = ascend / f"cann-{version}"
for name in (f"{platform.machine()}-linux", "compiler", "lib64", "python/site-packages"):
    (root / name).mkdir(parents=True)
(ascend / "cann-8.5.0").mkdir()  # an older one beside it, which must not be taken
(ascend / "ascend-toolkit").mkdir()
(ascend / "ascend-toolkit" / "latest").symlink_to(f"../cann-{version}")
shutil.copy(script, ascend / "ascend-toolkit" / "set_env.sh")
(root / f"{platform.machine()}-linux" / "ascend_toolkit_install.info").write_text(
    f"package_name=Ascend-cann-toolkit\nversion={version}\ninnerversion=V100R001C99\n"
)
(root / "compiler" / "version.info").write_text(f"Version={version}\n")
# CANN's own `te` lies here. An empty one would be imported for its kernels, and MindSpore would fail with it.
tbe = root / "opp/built-in/op_impl/ai_core/tbe/stand_in_tbe"
tbe.mkdir(parents=True)
(tbe / "__init__.py").write_text("")
with zipfile.ZipFile(root / "lib64" / "hccl-0.1.0-py3-none-any.whl", "w") as wheel:
    files = {
        "hccl/__init__.py": "",
        "hccl/sys_version.py": f'__sys_version__ = "{version}"\n',
        "hccl-0.1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: hccl\nVersion: 0.1.0\n",
        "hccl-0.1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    for name, text in files.items():
        wheel.writestr(name, text)
    wheel.writestr("hccl-0.1.0.dist-info/RECORD", "".join(f"{name},,\n" for name in files))
with Path("/root/.bashrc").open("a") as file:
    file.write("source /usr/local/Ascend/ascend-toolkit/set_env.sh\n")
