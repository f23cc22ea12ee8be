# make demo   install what is missing, build the command, show the devices, let the demo model write
# make test   install what is missing, build everything, run every test
# The build itself is CMake's; this file only saves typing.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PRESET ?= release
BUILD = build/$(PRESET)
DEMO_MODEL := examples/demo-model/rdna-demo-q8_0.gguf

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

.PHONY: help setup configure build demo test format lint dist fuzz mutate nightly clean

setup:
	@packaging/setup.sh

configure: setup
	@cmake --preset $(PRESET) >$(or $(TMPDIR),/tmp)/rdna-configure.log || { cat $(or $(TMPDIR),/tmp)/rdna-configure.log; exit 1; }

build: configure
	@cmake --build $(BUILD)

# The command with the host kernels of this processor alone, and kernels for the GPUs that are here, or that RDNA_EMULATE
# names.
demo: PRESET := demo
demo: configure
	@cmake --build $(BUILD) --target rdna $(if $(RDNA_EMULATE),rdna_emulator)
	@needed=$$($(BUILD)/bin/rdna kernels --needed) && \
	  { [ -z "$$needed" ] || cmake --build $(BUILD) --target $$(printf 'kernels_%s ' $$needed); }
	@$(BUILD)/bin/rdna info
	@echo
	@$(BUILD)/bin/rdna run $(DEMO_MODEL) "And the king said unto his servants," \
	  --max-tokens 110 --temperature 0.8 --repeat-penalty 1.15 --repeat-last 64 --seed 3

test: build
	@tests/run.sh $(PRESET)

# make dist   build with kernels for every GPU and report the packs' sizes
dist:
	@$(MAKE) --no-print-directory build PRESET=dist
	@build/dist/bin/rdna kernels

# make fuzz   run each libFuzzer target for FUZZ_SECONDS (600)
fuzz: build
	@tests/fuzz.sh $(or $(FUZZ_SECONDS),600)

# make mutate   plant 60 mistakes in a copy, one at a time, and see that the tests find them
mutate: setup
	@tools/mutate.py --count 60

# make nightly   hours: what is too long for make test
nightly: build
	@tests/nightly.sh

# make format   lay out every C, HIP and C++ file
format: setup
	@git ls-files '*.c' '*.h' '*.hip' '*.cpp' | xargs clang-format-19 -i

# make lint   layout, clang-tidy, and that no folder includes upward
lint: build
	@tools/lint.sh $(BUILD)

clean:
	rm -rf build
