#!/bin/bash
# `repro`, `python` and `msrun` of the image, for `docker exec`, which no entry point sees: CANN's environment first.
set -euo pipefail
. /opt/hyper-repro/images/cann-env.sh
name=${0##*/}
if [ "$name" = repro ]; then exec /opt/venv/bin/python -P -m repro.cli "$@"; fi
exec "/opt/venv/bin/$name" "$@"
