#!/usr/bin/env bash
# Small models on an emulated CPU, against the reference interpreter: verify.sh WEFT_CROSS CPU MODELS [ZOO]. Of the zoo,
# those that are there.
set -uo pipefail
weft=$1 cpu=$2 models=$3 zoo=${4:-}
bad=0
for model in "$models"/*.onnx "$zoo"/{mlp,magika,lstm_tagger,silero_vad,silero_vad_sequence,ocr_angle}.onnx; do
  [ -f "$model" ] || continue
  "$weft" verify "$model" --target "$cpu" || bad=1
done
exit "$bad"
