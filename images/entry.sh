#!/bin/bash
# Entry point: a verb of repro or any other program, in the environment of CANN where there is one.
set -euo pipefail
. /opt/hyper-repro/images/cann-env.sh
# A read-only root file system without a tmpfs: /workspace is a volume and can be written.
if [ ! -w "${TMPDIR:-/tmp}" ]; then export TMPDIR=/workspace/.tmp && mkdir -p "$TMPDIR"; fi
verb=${1:-}
if [[ -z $verb || $verb == -* || -f /opt/hyper-repro/repro/commands/${verb//-/_}.py ]]; then
  exec /opt/venv/bin/python -P -m repro.cli "$@"
fi
exec "$@"
