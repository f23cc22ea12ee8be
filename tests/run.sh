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

# Without those that compare with LLVM's tools or run under valgrind: they look at results, at length.
echo "== address and undefined-behaviour sanitizers"
configure_and_build asan
ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1 \
  ctest --test-dir build/asan --output-on-failure --parallel "$(nproc)" \
  --exclude-regex 'isa_llvm|isa_corpus|isa_kernels|memory_traffic|retarget_test|emulator.kernels|emulated_test|rocrand'

echo "== thread sanitizer: base and device, where the threads are"
configure_and_build tsan --target base_test allocator_test conformance_test kernel_test
TSAN_OPTIONS="halt_on_error=1 die_after_fork=0" ctest --test-dir build/tsan --output-on-failure \
  --tests-regex '^(base|device)\.(base_test|allocator_test|conformance)|^kernel\.kernel_test'

echo "== PyTorch plugin"
tests/torch.sh "build/$preset"
