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

#ifdef RDNA_HAS_BASELINE_TWINS
#define BASELINE_TWIN(name) rdna__host_baseline_##name
#else
#define BASELINE_TWIN(name) NULL
#endif
#ifdef RDNA_HAS_AVX2_TWINS
#define AVX2_TWIN(name) rdna__host_avx2_##name
#else
#define AVX2_TWIN(name) NULL
#endif
#ifdef RDNA_HAS_AVX512_TWINS
#define AVX512_TWIN(name) rdna__host_avx512_##name
#else
#define AVX512_TWIN(name) NULL
#endif
#define TWINS(name, args_type, threads, make_case, ...) {BASELINE_TWIN(name), AVX2_TWIN(name), AVX512_TWIN(name)},
#define TWINS_FAMILY(family, list) list(TWINS)
static const rdna__host_kernel twins[][ISA_COUNT] = {FAMILIES(TWINS_FAMILY)};

static bool is_supported(int isa) {
#ifdef __x86_64__
  __builtin_cpu_init();
  if (isa >= AVX2 && (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
                      !__builtin_cpu_supports("f16c") || !__builtin_cpu_supports("bmi2")))
    return false;
  if (isa == AVX512)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vnni");
  return true;
#else
  return isa == BASELINE;
#endif
}

static int isa_index(const char *name) {
  for (int i = 0; i < ISA_COUNT; i++)
    if (!strcmp(isa_names[i], name)) return i;
  return AVX512; /* "auto" */
}

/* The best that the library has, the processor supports and nobody has ruled out; -1 if there is none. */
static int chosen_isa(void) {
  int isa = isa_index(rdna__config_text(RDNA__CONFIG_HOST_ISA));
  while (isa >= 0 && !(twins[0][isa] && is_supported(isa))) isa--;
  return isa;
}

rdna__host_kernel rdna__host_twin(int manifest_index) {
  int isa = chosen_isa();
  return isa < 0 ? NULL : twins[manifest_index][isa];
}

const char *rdna__host_isa(void) {
  int isa = chosen_isa();
  return isa < 0 ? "none" : isa_names[isa];
}

rdna__host_kernel rdna__host_twin_for(const char *isa, int manifest_index) {
  int index = isa_index(isa);
  return is_supported(index) ? twins[manifest_index][index] : NULL;
}
