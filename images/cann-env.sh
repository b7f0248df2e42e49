# Sourced by every way into an image: the environment of CANN, found in the documented order, once. Without CANN: nothing.
# shellcheck shell=bash disable=SC1090
if [ -z "${HYPER_REPRO_CANN:-}" ]; then
  hyper_repro_ascend=${HYPER_REPRO_ASCEND:-/usr/local/Ascend}
  for hyper_repro_root in "${ASCEND_HOME_PATH:-}" "$hyper_repro_ascend/cann" \
    "$(find "$hyper_repro_ascend" -maxdepth 1 -name 'cann-*' 2>/dev/null | sort -V | tail -n 1)" \
    "$hyper_repro_ascend/ascend-toolkit/latest"; do
    if [ -z "$hyper_repro_root" ] || [ ! -d "$hyper_repro_root" ]; then continue; fi
    for hyper_repro_script in "$hyper_repro_root/set_env.sh" "${hyper_repro_root%/*}/set_env.sh" \
      "$hyper_repro_ascend/ascend-toolkit/set_env.sh"; do
      if [ ! -f "$hyper_repro_script" ]; then continue; fi
      export HYPER_REPRO_CANN=$hyper_repro_root
      # It is CANN's own script: it may read variables that are not set and run programs that fail.
      hyper_repro_options=$-
      set +eu
      . "$hyper_repro_script"
      if [[ $hyper_repro_options == *e* ]]; then set -e; fi
      if [[ $hyper_repro_options == *u* ]]; then set -u; fi
      break 2
    done
  done
  unset hyper_repro_ascend hyper_repro_root hyper_repro_script hyper_repro_options
fi
