#!/bin/bash
# Every suite on the everyday build, then a share of them under the sanitizers. tests/run.sh [PRESET]
# Prints last what each step took.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
table='' step='' began=0

next_step() { # its name; none ends the last
  [ -z "$step" ] || table+=$(printf '%5d s  %s' $((SECONDS - began)) "$step")$'\n'
  step=${1:-} began=$SECONDS
  [ -z "$step" ] || echo "== $step"
}
report() {
  next_step
  printf '\n%s%5d s  altogether\n' "$table" "$SECONDS"
}
trap report EXIT

configure_and_build() { # preset, targets…
  next_step "build of $1"
  cmake --preset "$1" >"build/$1.configure.log" || { cat "build/$1.configure.log"; return 1; }
  cmake --build "build/$1" "${@:2}"
}
turn=$((16#$(git rev-parse --short=7 HEAD 2>/dev/null || echo 0)))
suites_of() { # build, pattern, ctest's arguments…: the names of its suites that the pattern has, one a line
  ctest --test-dir "$1" --show-only --tests-regex "$2" "${@:3}" | sed -n 's/^ *Test *#[0-9]*: //p'
}
one_in() { # N, turn: of the names that it reads each Nth, whose turn it is
  awk -v n="$1" -v turn="$2" 'number++ % n == turn % n'
}
but_one_in() { # all others
  awk -v n="$1" -v turn="$2" 'number++ % n != turn % n'
}
as_pattern() { # of the names that it reads
  sed '/^$/d; s/\./\\./g' | paste -sd '|'
}

# Sanitizers look at memory, so suites are left out that look at numbers, at length: those that compare with LLVM's tools,
# run under valgrind, or are of operators on emulated cards, of which the quick ones and a few cases of each kernel stay,
# or of caches there, where llm_test records steps, too; two thousand short processes; the one with a malloc of its own;
# launches, sessions and functions called from Python, which has no sanitizer; and another's project, which is built without one.
left_out='program.arrays_|program.image_|isa_llvm|isa_corpus|isa_kernels|memory_traffic|host_memory|emulator.kernels|emulated_test|sessions_test|plan_test|split_test|rocrand|emulator.opcodes|emulator.launch|emulator.report|emulator.debug|emulator.virtual|emulator.graph|emulator.calls|emulator.texture|emulator.rtc|emulator.consumer'
left_out+='|model.cache_emulated|model.adapter_emulated|emulator.cases_gfx1030|emulator.edges|emulator.gfx1030'
left_out+='|program.(llm_host_benchmark|perplexity|convert_architectures|imatrix|template|unigram|package|serve_draw|serve_edits|serve_extras|serve_images|serve_images_soak|serve_sdapi|serve_upscale|vision|vision_emulated)_test'
left_out+='|emulator.gfx1100.(attention|channel_norm|conv|deterministic|eigen|fft|gemm|indexed|jacobi|layer|linalg|linear|loss|moe_linear|movement|nms|norm|norm_backward|pointwise|quant|reduce|roi|sample|scan_index|sdpa|sort|special|upsample)_test'
program_suites=$(suites_of "build/$preset" '^program\.' --exclude-regex "$left_out")

# Suites take turns with the commit; `ctest` alone runs all. Those that wait are left out.
waiting=''
take_turns() { # N, pattern: one in N of the suites that the pattern has runs
  waiting+=$(suites_of "build/$preset" "$2" | but_one_in "$1" "$turn")$'\n'
}
# Operators run on one of two emulated cards, whose kernels differ little, and on the other with another commit.
take_turns 2 '^emulator\.gfx1100\.'
waiting+=$(suites_of "build/$preset" '^emulator\.gfx1100\.' | but_one_in 2 $((turn + 1)) | sed s/gfx1100/gfx1030/)$'\n'
take_turns 2 '^emulator\.(cases|share)_' # random cases of each kernel, on one card or the other
take_turns 2 '^emulator\.edges_'
take_turns 3 '^emulator\.isa_(llvm|corpus|kernels)_' # the decoder against LLVM's, on each target
take_turns 2 '^emulator\.(opcodes|semantics|conversion|matrix|matrix_rdna4|matrix_cdna|kernels|random|rocrand_test|launch|report)$'
take_turns 2 '^(model|graph)\..*_emulated$|^program\.(emulated|plan|split|sessions|vision_emulated|architectures_emulated)_test$' # what the host does too
take_turns 2 '^program\.(convert_architectures|template|unigram|unigram_sessions|imatrix|vision|host_memory)_test$' # long ones
take_turns 3 '^program\.image_' # kinds of networks for pictures
take_turns 3 '^build\.adding$' # which builds a copy
waiting+=$(one_in 3 "$turn" <<<"$program_suites") # these run under the address sanitizer, below
export RDNA_TEST_SHARE=$((turn / 3 % 3 + 1))/3    # of architectures_test.py's rows

next_step "suites, $preset"
ctest --test-dir "build/$preset" --output-on-failure --parallel "$(nproc)" --exclude-regex "^($(as_pattern <<<"$waiting"))\$"

configure_and_build asan
next_step "address and undefined-behaviour sanitizers"
# Of operators, emulated cards and the program the third whose turn it is; all of the rest, parsers among them, and the
# installation that other suites use: CTest brings no fixture along that its pattern leaves out.
waiting=$(suites_of build/asan '^(math|emulator)\.|_emulated$' --exclude-regex "$left_out|^emulator\.install\$" | but_one_in 3 "$turn")
waiting+=$'\n'$(but_one_in 3 "$turn" <<<"$program_suites")
ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1 \
  ctest --test-dir build/asan --output-on-failure --parallel "$(nproc)" --exclude-regex "$left_out|^($(as_pattern <<<"$waiting"))\$"

threads=(base allocator conformance host_queue profile faults kernel tuner) # these suites
configure_and_build tsan --target "${threads[@]/%/_test}" cases_test rdna_emulator
next_step "thread sanitizer: where threads are"
export TSAN_OPTIONS="halt_on_error=1 die_after_fork=0 suppressions=$PWD/tests/thread_sanitizer.supp"
ctest --test-dir build/tsan --output-on-failure --parallel "$(nproc)" \
  --tests-regex "^(base|device|kernel)\.($(IFS='|' && echo "${threads[*]}"))_[a-z]+$" # conformance_hip too
build/tsan/bin/cases_test host 1 | tail -1
for check in 0 1; do # a launch by several threads of the emulator
  RDNA_EMULATE=gfx1100 RDNA_EMULATE_THREADS=4 RDNA_EMULATE_CHECK=$check build/tsan/bin/cases_test hip 2 compact | tail -1
done

next_step "plugins of PyTorch and TensorFlow, beside each other"
tests/tensorflow.sh "build/$preset" >build/tensorflow.log 2>&1 &
tensorflow=$! failed=0
trap 'kill $tensorflow 2>/dev/null || true; report' EXIT
tests/torch.sh "build/$preset" || failed=1
wait $tensorflow || failed=1
cat build/tensorflow.log
exit $failed
