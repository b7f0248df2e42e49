#!/bin/bash
# The user of an image: user.sh UID GID. A number that belongs to somebody else is told, never renumbered.
set -euo pipefail
uid=$1 gid=$2 name=HwHiAiUser
export SOURCE_DATE_EPOCH=0 # the day in /etc/shadow, so that two builds give equal files
for kind in "group $gid" "passwd $uid"; do
  read -r table number <<<"$kind"
  if entry=$(getent "$table" "$number") && [ "${entry%%:*}" != "$name" ]; then
    echo "user.sh: $table $number is ${entry%%:*} in the base image, and Ascend's driver asks for $name; give another with RUN_UID and RUN_GID" >&2
    exit 4
  fi
done
getent group "$name" >/dev/null || groupadd --gid "$gid" "$name"
getent passwd "$name" >/dev/null || useradd --uid "$uid" --gid "$gid" --no-create-home --home-dir /workspace --shell /bin/bash "$name"
if [ "$(id -u "$name"):$(id -g "$name")" != "$uid:$gid" ]; then
  echo "user.sh: $name is $(id -u "$name"):$(id -g "$name") in the base image; give these as RUN_UID and RUN_GID" >&2
  exit 4
fi
rm -f /etc/passwd- /etc/group- /etc/shadow- /etc/gshadow- /var/log/faillog /var/log/lastlog
# Any user may be named by `docker run --user`: the working folder is like /tmp.
mkdir -p /workspace && chmod 1777 /workspace
# Login shells reset PATH; interactive ones read no BASH_ENV. The shell that reads the line shall expand it, not this one.
for file in /etc/profile.d/hyper-repro.sh /etc/bash.bashrc /etc/bashrc; do
  if [ "$file" = /etc/profile.d/hyper-repro.sh ] || [ -f "$file" ]; then
    # shellcheck disable=SC2016
    printf '%s\n' 'export PATH="/opt/hyper-repro/bin:$PATH"' '. /opt/hyper-repro/images/cann-env.sh' >>"$file"
  fi
done
