#!/usr/bin/env bash
# Runs a conformance suite; fails when a case fails that docs/known-gaps.md does not name.
#   check.sh WEFT GAPS DIR...
set -uo pipefail
weft=$1 gaps=$2
shift 2
csv=$(mktemp)
trap 'rm -f "$csv"' EXIT
"$weft" conformance "$@" --jobs "$(nproc)" --csv "$csv"
code=$?
[ "$code" -le 1 ] || exit "$code"
bad=0
while IFS= read -r name; do
  if ! grep -qF "\`$name\`" "$gaps"; then
    echo "not among the known gaps: $name"
    bad=1
  fi
done < <(grep -E '^"[^"]*",failed,' "$csv" | cut -d'"' -f2)
exit "$bad"
