#!/usr/bin/env bash
# Machine code for other CPUs: objects.sh WEFT CPU FOLDER... compiles every model there, which fails when an object would
# call anything but memcpy, memset and memmove.
set -uo pipefail
weft=$1 cpu=$2
shift 2
file=$(mktemp)
trap 'rm -f "$file"' EXIT
bad=0
for folder in "$@"; do
  for model in "$folder"/*.onnx; do
    [ -f "$model" ] || continue
    "$weft" compile "$model" --cpu "$cpu" --emit object -o "$file" && "$weft" info "$file" | head -1 || bad=1
  done
done
exit "$bad"
