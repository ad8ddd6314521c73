#!/usr/bin/env bash
# Installs the packages of deps/debian.txt that are missing; does nothing, not even ask, when none is.
set -euo pipefail
cd "$(dirname "$0")"

missing() {  # missing PATTERN: packages of the list whose line matches and that dpkg does not have
  sed -e 's/#.*//' debian.txt | awk -v optional="$1" 'NF && (($2 == "?") == optional) { print $1 }' |
    while read -r package; do
      dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || echo "$package"
    done
}

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "this is no Debian: install what deps/debian.txt lists with your own package manager" >&2
  exit 0
fi

required=$(missing 0)
optional=$(missing 1)
[ -n "$required$optional" ] || exit 0

sudo=
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "not root and no sudo: install" $required >&2; exit 1; }
  sudo="sudo"
fi
apt() { $sudo env DEBIAN_FRONTEND=noninteractive apt-get -q -y "$@" </dev/null; }

apt update
if [ -n "$required" ]; then apt install --no-install-recommends $required; fi
for package in $optional; do
  apt install --no-install-recommends "$package" || echo "without the optional package $package" >&2
done
