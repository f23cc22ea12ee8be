#!/bin/bash
# Every suite on the everyday build, then a share of them under the sanitizers. tests/run.sh [PRESET]
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}

configure_and_build() { # preset, targets…
  cmake --preset "$1" >"build/$1.configure.log" || { cat "build/$1.configure.log"; return 1; }
  cmake --build "build/$1" "${@:2}"
}

echo "== all suites, $preset"
ctest --test-dir "build/$preset" --output-on-failure --parallel "$(nproc)"

# Without those that compare with LLVM's tools or run under valgrind (they look at results, at length), the one with a
# malloc of its own, and launches and sessions from Python, which has no sanitizer. Of the suites of operators on emulated cards the quick ones.
echo "== address and undefined-behaviour sanitizers"
configure_and_build asan
ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1 \
  ctest --test-dir build/asan --output-on-failure --parallel "$(nproc)" \
  --exclude-regex 'isa_llvm|isa_corpus|isa_kernels|memory_traffic|host_memory|emulator.kernels|emulated_test|sessions_test|plan_test|split_test|rocrand|emulator.opcodes|emulator.launch|emulator.gfx1030|emulator.gfx1100.(attention|channel_norm|conv|deterministic|sdpa|gemm|linear|movement|pointwise|reduce|sort)_test'

echo "== thread sanitizer: where threads are"
threads=(base allocator conformance host_queue profile faults kernel tuner) # these suites
configure_and_build tsan --target "${threads[@]/%/_test}" cases_test rdna_emulator
export TSAN_OPTIONS="halt_on_error=1 die_after_fork=0"
ctest --test-dir build/tsan --output-on-failure \
  --tests-regex "^(base|device|kernel)\.($(IFS='|' && echo "${threads[*]}"))_[a-z]+$" # conformance_hip too
build/tsan/bin/cases_test host 1 | tail -1
for check in 0 1; do # a launch by several threads of the emulator
  RDNA_EMULATE=gfx1100 RDNA_EMULATE_THREADS=4 RDNA_EMULATE_CHECK=$check build/tsan/bin/cases_test hip 2 compact | tail -1
done

echo "== PyTorch plugin"
tests/torch.sh "build/$preset"
