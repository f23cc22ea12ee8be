#include "device/driver/hip/hip_library.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"

#define HIP_NAME "libamdhip64.so"

/* HIP 7 is in ROCm 7 and 10, HIP 6 in ROCm 6, HIP 5 in ROCm 5 and Debian 12. */
static const char *const sonames[] = {HIP_NAME ".7", HIP_NAME ".6", HIP_NAME ".5"};
enum { SONAME_COUNT = sizeof sonames / sizeof *sonames };

static bool open_loaded(rdna__library *library) {
  for (int i = 0; i < SONAME_COUNT; i++) {
    if (rdna__library_open(library, sonames[i], true)) return true;
  }
  return rdna__library_open_loaded(library, HIP_NAME);
}

static bool open_wheel(rdna__library *library) {
  return rdna__library_open_wheel(library, "_rocm_sdk_core/lib", HIP_NAME) ||
         rdna__library_open_wheel(library, "torch/lib", HIP_NAME);
}

static bool open_installed(rdna__library *library) {
  if (rdna__library_open_below(library, getenv("ROCM_PATH"), "lib", HIP_NAME) ||
      rdna__library_open_in_folders(library, "/opt/rocm/lib", HIP_NAME) ||
      rdna__library_open_in_folders(library, "/opt/rocm/core-*/lib", HIP_NAME) ||
      rdna__library_open_in_folders(library, "/opt/rocm-*/lib", HIP_NAME)) {
    return true;
  }
  for (int i = 0; i < SONAME_COUNT; i++) {
    if (rdna__library_open(library, sonames[i], false)) return true;
  }
  static const char *const folders[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib"};
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    if (rdna__library_open_newest(library, folders[i], HIP_NAME ".")) return true;
  }
  return false;
}

static rdna_status open_emulator(rdna__library *library, const char *asked_by) {
  static const char *const places[] = {"", "../lib/", "../lib/rdna/", "../emulator/", "emulator/"};
  char folders[2][PATH_MAX];
  rdna__library_own_folder(folders[0], sizeof folders[0]);
  rdna__library_program_folder(folders[1], sizeof folders[1]);
  for (int f = 0; f < 2; f++) {
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
      char path[2 * PATH_MAX];
      snprintf(path, sizeof path, "%s/%slibrdna_emulator.so", folders[f], places[i]);
      if (folders[f][0] != '\0' && rdna__library_open(library, path, false)) return RDNA_OK;
    }
  }
  return rdna__fail(
      RDNA_UNAVAILABLE,
      "%s asks for the emulator, but librdna_emulator.so does not load from %s or %s, nor from lib, lib/rdna "
      "or emulator beside them (%s); build or install it, or name it in RDNA_HIP_LIBRARY",
      asked_by, folders[0], folders[1], library->failure);
}

rdna_status rdna__hip_library_open_emulator(rdna__library *library, const char *asked_by) {
  const char *chosen = rdna__config_text(RDNA__CONFIG_HIP_LIBRARY);
  if (chosen[0] == '\0') return open_emulator(library, asked_by);
  if (rdna__library_open(library, chosen, false)) return RDNA_OK;
  return rdna__fail(RDNA_UNAVAILABLE, "RDNA_HIP_LIBRARY names '%s', which does not load: %s", chosen, library->failure);
}

/* Whether there is AMD's kernel driver, or what Linux below Windows has for it: without either HIP finds no card. */
static bool has_kernel_driver(void) { return access("/dev/kfd", F_OK) == 0 || access("/dev/dxg", F_OK) == 0; }

rdna_status rdna__hip_library_open(rdna__library *library) {
  const char *chosen = rdna__config_text(RDNA__CONFIG_HIP_LIBRARY);
  const char *emulate = rdna__config_text(RDNA__CONFIG_EMULATE);
  if (chosen[0] != '\0') {
    if (rdna__library_open(library, chosen, false)) return RDNA_OK;
    return rdna__fail(RDNA_UNAVAILABLE, "RDNA_HIP_LIBRARY names '%s', which does not load: %s", chosen,
                      library->failure);
  }
  if (emulate[0] != '\0') {
    char asked_by[256];
    snprintf(asked_by, sizeof asked_by, "RDNA_EMULATE=%s", emulate);
    return open_emulator(library, asked_by);
  }
  if (open_loaded(library)) return RDNA_OK;
  if (rdna__library_meets_llvm() && !has_kernel_driver()) {
    return rdna__fail(
        RDNA_UNAVAILABLE,
        "AMD's HIP runtime was not loaded: this process shows an LLVM (TensorFlow's), which HIP's own need "
        "not survive, and there is neither /dev/kfd nor /dev/dxg, without which HIP finds no card; load "
        "the kernel module amdgpu, give a container /dev/kfd, or set RDNA_HIP_LIBRARY to the file");
  }
  if (open_wheel(library) || open_installed(library)) return RDNA_OK;
  return rdna__fail(RDNA_UNAVAILABLE,
                    "AMD's HIP runtime (%s, .6 or .5) was not found in this process, in Python's rocm or torch wheels, "
                    "in ROCM_PATH, in /opt/rocm or by the dynamic linker (%s); install it (Debian: libamdhip64-5; pip: "
                    "rocm) or set RDNA_HIP_LIBRARY to the file",
                    sonames[0], library->failure);
}
