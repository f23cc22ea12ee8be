#!/bin/bash
# Everything that a machine with a GPU can show, from a finished build: tests/gpu.sh BUILD DRIVER [BIG_MODEL.gguf]
# Prints what failed, and last a table of what passed. RDNA_GPU_CASES: random cases of each kernel (12); RDNA_GPU_JOBS:
# how many tests at a time (one for each processor), since most of their time goes into compiling kernels for the card.
# Rates are measured after that, alone.
set -u
build=$(realpath "$1") driver=$2 big=${3:-}
cd "$(dirname "$0")/.."
jobs=${RDNA_GPU_JOBS:-$(nproc)}
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
names=()
export RDNA_TEST_DEVICE=$driver RDNA_PROGRAM=$build/bin/rdna
job() { # name, command…: in the background, at most $jobs at a time
  local name=$1 number=${#names[@]}
  shift
  names+=("$name")
  while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
  {
    began=$SECONDS
    "$@" >"$logs/$number.log" 2>&1
    case $? in 0) result=passed ;; 77) result=skipped ;; *) result=FAILED ;; esac
    printf '%-40s %s %4d s  %s\n' "$name" $result $((SECONDS - began)) "$(grep -a 'kernels agree\|test(s) run' "$logs/$number.log" | tail -1)" \
      >"$logs/$number.row"
  } &
}
same_text() { # greedy text of the demo model on the host and on the GPU
  local device
  for device in host "$driver"; do
    "$build/bin/rdna" run examples/demo-model/rdna-demo-q8_0.gguf "And it came to pass" --exact --greedy --ignore-end \
      --max-tokens 200 --device $device --json >"$logs/text-$device.json" || return 1
  done
  python3 - "$logs" "$driver" <<'PY'
import json, sys
a, b = (json.load(open(f"{sys.argv[1]}/text-{d}.json"))["tokens"] for d in ("host", sys.argv[2]))
print(len(a), "tokens, equal" if a == b else f"differ from token {next(i for i, (x, y) in enumerate(zip(a, b)) if x != y)} on")
sys.exit(a != b or len(a) != 200)
PY
}
"$build/bin/rdna" info
job "device conformance" "$build/bin/conformance_test" "$driver"
job "logits of models" python3 tests/logits_test.py
job "logits of another engine" python3 tests/another_engine_test.py
# RDNA_MADE_MODELS: a folder that tests/architectures_test.py --write filled, where PyTorch cannot be installed
if [ -n "${RDNA_MADE_MODELS:-}" ]; then
  job "logits of architectures" python3 tests/architecture_errors.py "$RDNA_MADE_MODELS"
else
  job "logits of architectures" python3 tests/architectures_test.py
fi
job "sessions of a model" "$build/bin/llm_test"
job "greedy text equal to the host's" same_text
case $driver in hip) prefix=gfx ;; *) prefix=sm_ ;; esac
target=$("$build/bin/rdna" kernels --needed | grep -m 1 "^$prefix") || { echo "gpu.sh: there is no GPU of $driver" >&2; exit 1; }
pack=$("$build/bin/rdna" kernels --target "$target" --json) || exit 1
for family in $(python3 -c 'import json, sys; print(*sorted({c["name"].split(".")[0] for p in json.load(sys.stdin) for c in p["code_objects"]}))' <<<"$pack"); do
  job "kernels like their twins: $family" "$build/bin/rdna" selftest --driver "$driver" --cases "${RDNA_GPU_CASES:-12}" --kernel "$family"
done
# rdna.arrays, but for what is about the processor: memory that it shares with NumPy, its devices
for suite in "" extension fft files grad indexing linalg matrix_grad nn order recorded recurrent values; do
  job "arrays: ${suite:-operators}" env RDNA_DRIVER="$driver" RDNA_LIBRARY="$build/lib/librdna.so" python3 "tests/arrays_${suite:+${suite}_}test.py"
done
for suite in $(<"$build/bin/operator_suites.txt"); do
  job "operators: ${suite%_test}" "$build/bin/$suite"
done
wait # for all
failed=0
rates() { # name, command…: prints its rates; one that no machine has is a failure
  echo "== $1" && shift && "$@" --json >"$logs/rates.json" && python3 tests/rates.py <"$logs/rates.json" || failed=1
}
rates "operators' speed" "$build/bin/rdna" bench --driver "$driver"
rates "demo model's speed" "$build/bin/rdna" bench examples/demo-model/rdna-demo-q8_0.gguf --driver "$driver" --prompt 256 --decode 128
[ -n "$big" ] && rates "large model's speed" "$build/bin/rdna" bench "$big" --driver "$driver"
for number in "${!names[@]}"; do
  grep -q 'passed\|skipped' "$logs/$number.row" || { failed=1 && echo "== ${names[$number]}" && grep -av 'OK \]\|RUN  ' "$logs/$number.log" | tail -40; }
done
cat "$logs"/*.row | sort
exit $failed
