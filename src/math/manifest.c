/* The manifest of all families. Their list is made when the library is built: cmake/families.cmake. */
#include "kernel/manifest.h"

#include <string.h>

#include "base/config.h"
#include "math/families.h"

#define DECLARE(name, args_type, threads, make_case, ...)                                                           \
  void rdna__host_baseline_##name(const void *args, rdna_grid grid);                                                \
  void rdna__host_avx2_##name(const void *args, rdna_grid grid);                                                    \
  void rdna__host_avx512_##name(const void *args, rdna_grid grid);                                                  \
  rdna_status make_case(const rdna__kernel_info *kernel, rdna__random *random, int n, rdna__kernel_case *out_case); \
  _Static_assert(sizeof(args_type) <= sizeof(((rdna__kernel_case *)0)->args), "argument struct of " #name);         \
  _Static_assert((threads) >= 64 && (threads) <= 1024 && ((threads) & ((threads) - 1)) == 0, "work-group of " #name);
#define DECLARE_FAMILY(family, list) list(DECLARE)
FAMILIES(DECLARE_FAMILY)

/* A list's optional fifth and sixth entries are the shared memory that the NVIDIA kernel asks for at launch. */
#define INFO(family, name, args_type, threads, make_case, ...) \
  {#name, #family, sizeof(args_type), threads, make_case, {0 __VA_OPT__(+) __VA_ARGS__}},
#define INFO_FAMILY(family, list) list(INFO_##family)
const rdna__kernel_info rdna__manifest[] = {FAMILIES(INFO_FAMILY)};
const int rdna__manifest_count = sizeof rdna__manifest / sizeof rdna__manifest[0];

enum { BASELINE, AVX2, AVX512, ISA_COUNT };
static const char *const isa_names[ISA_COUNT] = {"baseline", "avx2", "avx512"};

#ifdef RDNA_HOST_VARIANTS
#define TWINS(name, args_type, threads, make_case, ...) \
  {rdna__host_baseline_##name, rdna__host_avx2_##name, rdna__host_avx512_##name},
#else
#define TWINS(name, args_type, threads, make_case, ...) {rdna__host_baseline_##name},
#endif
#define TWINS_FAMILY(family, list) list(TWINS)
static const rdna__host_kernel twins[][ISA_COUNT] = {FAMILIES(TWINS_FAMILY)};

static int best_isa(void) {
#ifdef RDNA_HOST_VARIANTS
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("f16c") ||
      !__builtin_cpu_supports("bmi2"))
    return BASELINE;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni"))
    return AVX512;
  return AVX2;
#else
  return BASELINE;
#endif
}

static int isa_index(const char *name) {
  for (int i = 0; i < ISA_COUNT; i++)
    if (!strcmp(isa_names[i], name)) return i;
  return ISA_COUNT; /* "auto" */
}

static int chosen_isa(void) {
  int wanted = isa_index(rdna__config_text(RDNA__CONFIG_HOST_ISA)), best = best_isa();
  return wanted < best ? wanted : best;
}

rdna__host_kernel rdna__host_twin(int manifest_index) { return twins[manifest_index][chosen_isa()]; }

const char *rdna__host_isa(void) { return isa_names[chosen_isa()]; }

rdna__host_kernel rdna__host_twin_for(const char *isa, int manifest_index) {
  int index = isa_index(isa);
  return index <= best_isa() ? twins[manifest_index][index] : NULL;
}
