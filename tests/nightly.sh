#!/bin/bash
# What is too long for `make test`, from a finished build of the release preset: tests/nightly.sh [NAME…]
# Prints a table last, and fails where a row does. Names are those of the rows; none means all.
set -u
cd "$(dirname "$0")/.."
build=$PWD/build/release
only=("$@")
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
failed=0
row() { # name, command…
  local name=$1 began=$SECONDS result=passed code=0
  shift
  [ ${#only[@]} -eq 0 ] || [[ " ${only[*]} " == *" $name "* ]] || return 0
  echo "== $name"
  "$@" >"$logs/$name.log" 2>&1 || code=$?
  if [ $code -eq 77 ]; then
    result=skipped
  elif [ $code -ne 0 ]; then
    result=FAILED failed=1
    tail -40 "$logs/$name.log"
  fi
  printf '%-20s %-7s %5d s  %s\n' "$name" "$result" $((SECONDS - began)) "$(tail -1 "$logs/$name.log" | cut -c1-90)" >>"$logs/table"
}
decoder() { # random words against LLVM's disassembler
  local target wave
  for target in gfx1100 gfx1030 gfx1201 gfx1103 gfx1150 gfx1010 gfx1012; do
    for wave in 32 64; do "$build/bin/isa_llvm_test" $target --wave $wave --count 1000000 || return 1; done
  done
}
suites() { # all, those that `make test` never runs and those that take turns there among them
  ctest --test-dir "$build" -C nightly --no-tests=error --output-on-failure --parallel "$(nproc)"
}
cases() { # every kernel
  local target
  cmake --build "$build" --target kernels_gfx1200 kernels_gfx1150 kernels_gfx1010 || return 1 # what gfx1201 and gfx1151 run
  for target in gfx1100 gfx1030 gfx1201 gfx1151 gfx1010; do
    RDNA_EMULATE=$target RDNA_EMULATE_CHECK=1 "$build/bin/cases_test" hip 16 "" $((16#$(git rev-parse --short=7 HEAD))) || return 1
  done
}
operators() { # their suites on cards that `make test` has no kernels for
  tests/emulated_suites.sh "$build" gfx1201 gfx1200 && tests/emulated_suites.sh "$build" gfx1151 gfx1150 &&
    tests/emulated_suites.sh "$build" gfx906 gfx906 && tests/emulated_suites.sh "$build" gfx942 gfx942
}
opinfo() { # PyTorch's samples: all types and kinds on the host, f32 with gradients on an emulated card
  local python
  python=$(packaging/torch-venv.sh) || return 1
  export PYTHONPATH=$PWD/build/torch PYTHONDONTWRITEBYTECODE=1
  RDNA_DRIVER=host "$python" bindings/torch/tests/opinfo.py --all && RDNA_DRIVER=host "$python" bindings/torch/tests/cuda_types.py || return 1
  RDNA_DRIVER=hip RDNA_EMULATE=gfx1100 RDNA_EMULATE_CHECK=1 "$python" bindings/torch/tests/opinfo.py --kind forward,grad
}
libraries() { # accelerate, Trainer and lightning train on the device that they found; others on the one that was named
  local python
  python=$(packaging/torch-libraries-venv.sh) || return 1
  PYTHONPATH=$PWD/build/torch PYTHONDONTWRITEBYTECODE=1 RDNA_DRIVER=host "$python" -m pytest -q -p no:cacheprovider bindings/torch/tests/libraries.py bindings/torch/tests/walks.py bindings/torch/tests/pure_libraries.py bindings/torch/tests/architectures.py bindings/torch/tests/workloads.py &&
    PYTHONPATH=$PWD/build/torch RDNA_DRIVER=hip RDNA_EMULATE=gfx1100 "$python" bindings/torch/tests/triton_libraries.py
}
models() { # fifty kinds of models against float64, and the bench of them with its processes, table, JSON and picture
  local python bench=bindings/torch/bench/models.py made
  python=$(packaging/torch-venv.sh) && made=$(mktemp -d) || return 1
  export PYTHONPATH=$PWD/build/torch PYTHONDONTWRITEBYTECODE=1 RDNA_DRIVER=host
  "$python" $bench --losses 3 --devices rdna,cpu --only 'GPT|Swin' &&
    "$python" $bench --tiny --compile --devices rdna --only 'GPT|VGG' --json "$made/json" --plot "$made/svg" &&
    [ -s "$made/json" ] && [ -s "$made/svg" ] && "$python" $bench --check
  local result=$?
  rm -rf "$made"
  return $result
}
tensorflow() { # ten thousand steps in flat memory; losses of ResNet-50 and a transformer beside the CPU's; beside PyTorch
  local python torch
  tests/tensorflow.sh "$build" soak.py && python=$(packaging/tensorflow-venv.sh) || return 1
  TF_PLUGGABLE_DEVICE_LIBRARY_PATH=$PWD/build/tensorflow/tensorflow-plugins PYTHONPATH=$PWD/build/tensorflow PYTHONDONTWRITEBYTECODE=1 \
    RDNA_DRIVER=host "$python" bindings/tensorflow/bench/models.py --losses 20 && torch=$(packaging/torch-venv.sh) || return 1
  TF_PLUGGABLE_DEVICE_LIBRARY_PATH=$PWD/build/tensorflow/tensorflow-plugins PYTHONPATH=$PWD/build/tensorflow:$PWD/build/torch RDNA_DRIVER=host \
    PYTHONDONTWRITEBYTECODE=1 "$python" bindings/tensorflow/tests/with_torch.py "$("$torch" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
}
instructions() { # tinygrad's checks of single instructions, from its sources beside this repository or in RDNA_TINYGRAD
  local python
  python=$(packaging/torch-venv.sh) || return 1
  PYTHONDONTWRITEBYTECODE=1 "$python" emulator/tests/tinygrad_checks.py "$build/emulator/librdna_emulator.so"
}
wheel() { # the emulator's and the repository's, built and installed into fresh environments, the latter beside TensorFlow
  local python
  PYTHONDONTWRITEBYTECODE=1 python3 emulator/tests/wheel_test.py && python=$(packaging/tensorflow-venv.sh) || return 1
  PYTHONDONTWRITEBYTECODE=1 python3 tests/tensorflow_wheel.py "$python" "$build"
}
every_target() { # no kernel spills on any GPU
  cmake --preset dist && cmake --build build/dist && build/dist/bin/manifest_test
}
browser() { # the web page of rdna serve in Chromium
  packaging/setup.sh packaging/browser-packages.txt && RDNA_PROGRAM=$build/bin/rdna python3 tests/serve_browser_test.py &&
    RDNA_PROGRAM=$build/bin/rdna python3 tests/serve_draw_test.py
}
soak() { # a thousand requests for pictures, of which some are left, interrupted or get no memory
  RDNA_PROGRAM=$build/bin/rdna RDNA_FAILING_MALLOC=$build/tests/libfailing_malloc.so \
    python3 tests/serve_images_soak_test.py 1000 $((16#$(git rev-parse --short=7 HEAD)))
}
containers() { # the image of rdna serve and the Kubernetes example, by podman
  packaging/setup.sh packaging/container-packages.txt && tests/containers.sh "$build"
}
row mutants tools/mutate.py --count 200
row decoder decoder
row instructions instructions
row wheel wheel
row suites suites
row cases cases
row operators operators
row opinfo opinfo
row libraries libraries
row models models
row tensorflow tensorflow
row tensorflow_versions tests/tensorflow_versions.sh -b "$build" 2.16.2 2.17.1 2.18.1 2.19.1 2.20.0
row architectures env RDNA_TEST_DEVICE=hip RDNA_EMULATE=gfx1100 RDNA_EMULATE_CHECK=1 python3 tests/architectures_test.py
row every_target every_target
row lean python3 tools/lean_table.py "$build/lib/librdna.so"
row schemas python3 tests/grammar_test.py --count 1000
row ray python3 tests/ray_replicas.py
row replies python3 tests/serve_schemas.py 1000
row load python3 tests/serve_load.py 600
row malformed python3 tests/malformed_requests.py 1000000
row soak soak
row browser browser
row containers containers
row fuzz tests/fuzz.sh 120
[ -e "$logs/table" ] || { echo "nightly: there is no row ${only[*]}; there is mutants decoder instructions wheel suites cases operators opinfo libraries models tensorflow tensorflow_versions architectures every_target lean schemas ray replies load malformed soak browser containers fuzz" >&2; exit 2; }
cat "$logs/table"
exit $failed
