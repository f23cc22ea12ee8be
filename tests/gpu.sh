#!/bin/bash
# Everything that a machine with a GPU can show, from a finished build: tests/gpu.sh BUILD DRIVER [BIG_MODEL.gguf]
# Prints each step's result and, last, a table of what passed. RDNA_GPU_CASES: random cases of each kernel (12).
set -u
build=$(realpath "$1") driver=$2 big=${3:-}
cd "$(dirname "$0")/.."
rows=()
step() { # name, command…
  local name=$1 began=$SECONDS
  shift
  echo "== $name: $*"
  if "$@"; then rows+=("$(printf '%-34s passed  %4d s' "$name" $((SECONDS - began)))")
  else rows+=("$(printf '%-34s FAILED  %4d s' "$name" $((SECONDS - began)))"); fi
}
same_text() { # greedy text of the demo model on the host and on the GPU
  local a b
  for device in host "$driver"; do
    "$build/bin/rdna" run examples/demo-model/rdna-demo-q8_0.gguf "And it came to pass" --greedy --ignore-end \
      --max-tokens 200 --device $device --json >"/tmp/rdna-text-$device.json" || return 1
  done
  python3 - "$driver" <<'PY'
import json, sys
a, b = (json.load(open(f"/tmp/rdna-text-{d}.json"))["tokens"] for d in ("host", sys.argv[1]))
print(len(a), "tokens, equal" if a == b else f"differ from token {next(i for i, (x, y) in enumerate(zip(a, b)) if x != y)} on")
sys.exit(a != b or len(a) != 200)
PY
}
"$build/bin/rdna" info
step "device conformance" "$build/bin/conformance_test" "$driver"
step "kernels against host twins" "$build/bin/rdna" selftest --driver "$driver" --cases "${RDNA_GPU_CASES:-12}"
for suite in elementwise pointwise fused cast movement norm norm_backward channel_norm rope softmax softmax_dim index indexed \
  reduce reduce_dims scan sort attention flash gemm linear quant quant_group conv pool upsample loss optim random \
  deterministic; do
  [ -e "$build/bin/${suite}_test" ] || { rows+=("$(printf '%-34s was not built' "operators: $suite")"); continue; }
  step "operators: $suite" env RDNA_TEST_DEVICE="$driver" "$build/bin/${suite}_test"
done
step "logits of models" env RDNA_TEST_DEVICE="$driver" RDNA_PROGRAM="$build/bin/rdna" python3 tests/logits_test.py
step "greedy text equal to the host's" same_text
step "operators' speed" "$build/bin/rdna" bench --driver "$driver"
step "demo model's speed" "$build/bin/rdna" bench examples/demo-model/rdna-demo-q8_0.gguf --driver "$driver" --prompt 256 --decode 128
[ -n "$big" ] && step "large model's speed" "$build/bin/rdna" bench "$big" --driver "$driver"
echo
printf '%s\n' "${rows[@]}"
[[ "${rows[*]}" != *FAILED* && "${rows[*]}" != *"not built"* ]]
