#!/bin/sh
# assemble.sh PTXAS WEFT-TILE WEFT MODEL...: assembles the examples of the tile language and the kernels of models for
# each of GPUS. Fails on an error of the assembler, on spilled registers, on products of four warps that it would not leave
# to themselves, and when a text has no kernel.
ptxas=$1 tile=$2 weft=$3
shift 3
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
failed=0

# check NAME GPU: the PTX in $folder/text.
check() {
  if ! "$ptxas" -v -arch="$2" "$folder/text" -o "$folder/code" >"$folder/log" 2>&1; then
    echo "$1 for $2: not assembled"
    head -5 "$folder/log"
    failed=1
    return
  fi
  kernels=$(grep -c 'Compiling entry function' "$folder/log")
  spills=$(grep -c ' [1-9][0-9]* bytes spill' "$folder/log")
  registers=$(grep -o 'Used [0-9]* registers' "$folder/log" | sort -n -k 2 | tail -n 1)
  echo "$1 for $2: $kernels kernels, $spills that spill, at most: $registers"
  if grep -i 'serializ\|injected' "$folder/log"; then failed=1; fi
  if [ "$kernels" -eq 0 ] || [ "$spills" -ne 0 ]; then failed=1; fi
}

for gpu in ${GPUS:-sm_80 sm_90a sm_100a}; do
  for example in vector_add softmax layer_norm matmul int4_matmul flash_attention paged_attention running_sum histogram \
      embedding_bag half_matmul f8_matmul half_attention; do
    "$tile" $example --target cuda:$gpu --print source >"$folder/text" || failed=1
    check $example $gpu
  done
  for model in "$@"; do
    [ -f "$model" ] || continue
    "$weft" compile "$model" --target cuda:$gpu --emit source >"$folder/text" || failed=1
    check "$(basename "$model")" $gpu
  done
done
exit $failed
