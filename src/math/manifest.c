/* The manifest of all families. A family adds three lines: its header, its FAMILY entry, its INFO_ line. */
#include "kernel/manifest.h"

#include <string.h>

#include "base/config.h"
#include "math/attention/attention_kernels.h"
#include "math/attention/flash_backward_kernels.h"
#include "math/attention/flash_kernels.h"
#include "math/attention/flash_mask_kernels.h"
#include "math/cast/cast_kernels.h"
#include "math/conv/conv_kernels.h"
#include "math/conv/winograd_kernels.h"
#include "math/fill/fill_kernels.h"
#include "math/fused/fused_kernels.h"
#include "math/gemm/gemm_i8_kernels.h"
#include "math/gemm/gemm_kernels.h"
#include "math/gemm/gemv_split_kernels.h"
#include "math/index/compact_kernels.h"
#include "math/index/index_kernels.h"
#include "math/index/indexed_kernels.h"
#include "math/index/segment_kernels.h"
#include "math/loss/loss_kernels.h"
#include "math/movement/movement_kernels.h"
#include "math/norm/channel_norm_kernels.h"
#include "math/norm/long_norm_kernels.h"
#include "math/norm/norm_backward_kernels.h"
#include "math/norm/norm_kernels.h"
#include "math/optim/optim_kernels.h"
#include "math/pointwise/contiguous_kernels.h"
#include "math/pointwise/pointwise_f64_kernels.h"
#include "math/pointwise/pointwise_kernels.h"
#include "math/pool/pool_kernels.h"
#include "math/quant/group_kernels.h"
#include "math/quant/quant_kernels.h"
#include "math/quant/quant_pack_kernels.h"
#include "math/random/random_kernels.h"
#include "math/reduce/reduce_dims_kernels.h"
#include "math/rope/rope_kernels.h"
#include "math/scan/scan_index_kernels.h"
#include "math/scan/scan_kernels.h"
#include "math/softmax/softmax_backward_kernels.h"
#include "math/softmax/softmax_kernels.h"
#include "math/sort/select_kernels.h"
#include "math/sort/sort_kernels.h"
#include "math/upsample/upsample_kernels.h"

/* code object (the stem of the .hip file), list of kernels */
#define FAMILIES(FAMILY)                                  \
  FAMILY(attention, RDNA_ATTENTION_KERNELS)               \
  FAMILY(cast, RDNA_CAST_KERNELS)                         \
  FAMILY(channel_norm, RDNA_CHANNEL_NORM_KERNELS)         \
  FAMILY(compact, RDNA_COMPACT_KERNELS)                   \
  FAMILY(contiguous, RDNA_CONTIGUOUS_KERNELS)             \
  FAMILY(conv, RDNA_CONV_KERNELS)                         \
  FAMILY(conv_f16, RDNA_CONV_F16_KERNELS)                 \
  FAMILY(conv_bf16, RDNA_CONV_BF16_KERNELS)               \
  FAMILY(fill, RDNA_FILL_KERNELS)                         \
  FAMILY(flash, RDNA_FLASH_KERNELS)                       \
  FAMILY(flash_backward, RDNA_FLASH_BACKWARD_KERNELS)     \
  FAMILY(flash_mask, RDNA_FLASH_MASK_KERNELS)             \
  FAMILY(fused, RDNA_FUSED_KERNELS)                       \
  FAMILY(gemm, RDNA_GEMM_KERNELS)                         \
  FAMILY(gemm_f64, RDNA_GEMM_F64_KERNELS)                 \
  FAMILY(gemm_i8, RDNA_GEMM_I8_KERNELS)                   \
  FAMILY(gemm_f16, RDNA_GEMM_F16_KERNELS)                 \
  FAMILY(gemm_bf16, RDNA_GEMM_BF16_KERNELS)               \
  FAMILY(gemv_split, RDNA_GEMV_SPLIT_KERNELS)             \
  FAMILY(index, RDNA_INDEX_KERNELS)                       \
  FAMILY(indexed, RDNA_INDEXED_KERNELS)                   \
  FAMILY(long_norm, RDNA_LONG_NORM_KERNELS)               \
  FAMILY(loss, RDNA_LOSS_KERNELS)                         \
  FAMILY(movement, RDNA_MOVEMENT_KERNELS)                 \
  FAMILY(norm, RDNA_NORM_KERNELS)                         \
  FAMILY(norm_backward, RDNA_NORM_BACKWARD_KERNELS)       \
  FAMILY(optim, RDNA_OPTIM_KERNELS)                       \
  FAMILY(pointwise, RDNA_POINTWISE_KERNELS)               \
  FAMILY(pointwise_f64, RDNA_POINTWISE_F64_KERNELS)       \
  FAMILY(pool, RDNA_POOL_KERNELS)                         \
  FAMILY(quant, RDNA_QUANT_KERNELS)                       \
  FAMILY(quant_gemm, RDNA_QUANT_GEMM_KERNELS)             \
  FAMILY(quant_gemv, RDNA_QUANT_GEMV_KERNELS)             \
  FAMILY(quant_group, RDNA_QUANT_GROUP_KERNELS)           \
  FAMILY(quant_pack, RDNA_QUANT_PACK_KERNELS)             \
  FAMILY(random, RDNA_RANDOM_KERNELS)                     \
  FAMILY(reduce_dims, RDNA_REDUCE_DIMS_KERNELS)           \
  FAMILY(rope, RDNA_ROPE_KERNELS)                         \
  FAMILY(scan, RDNA_SCAN_KERNELS)                         \
  FAMILY(scan_index, RDNA_SCAN_INDEX_KERNELS)             \
  FAMILY(segment, RDNA_SEGMENT_KERNELS)                   \
  FAMILY(select, RDNA_SELECT_KERNELS)                     \
  FAMILY(shifted_norm, RDNA_SHIFTED_NORM_KERNELS)         \
  FAMILY(softmax, RDNA_SOFTMAX_KERNELS)                   \
  FAMILY(softmax_backward, RDNA_SOFTMAX_BACKWARD_KERNELS) \
  FAMILY(sort, RDNA_SORT_KERNELS)                         \
  FAMILY(upsample, RDNA_UPSAMPLE_KERNELS)                 \
  FAMILY(winograd, RDNA_WINOGRAD_KERNELS)

#define INFO_attention(...) INFO(attention, __VA_ARGS__)
#define INFO_cast(...) INFO(cast, __VA_ARGS__)
#define INFO_channel_norm(...) INFO(channel_norm, __VA_ARGS__)
#define INFO_compact(...) INFO(compact, __VA_ARGS__)
#define INFO_contiguous(...) INFO(contiguous, __VA_ARGS__)
#define INFO_conv(...) INFO(conv, __VA_ARGS__)
#define INFO_conv_f16(...) INFO(conv_f16, __VA_ARGS__)
#define INFO_conv_bf16(...) INFO(conv_bf16, __VA_ARGS__)
#define INFO_fill(...) INFO(fill, __VA_ARGS__)
#define INFO_flash(...) INFO(flash, __VA_ARGS__)
#define INFO_flash_backward(...) INFO(flash_backward, __VA_ARGS__)
#define INFO_flash_mask(...) INFO(flash_mask, __VA_ARGS__)
#define INFO_fused(...) INFO(fused, __VA_ARGS__)
#define INFO_gemm(...) INFO(gemm, __VA_ARGS__)
#define INFO_gemm_f64(...) INFO(gemm_f64, __VA_ARGS__)
#define INFO_gemm_i8(...) INFO(gemm_i8, __VA_ARGS__)
#define INFO_gemm_f16(...) INFO(gemm_f16, __VA_ARGS__)
#define INFO_gemm_bf16(...) INFO(gemm_bf16, __VA_ARGS__)
#define INFO_gemv_split(...) INFO(gemv_split, __VA_ARGS__)
#define INFO_index(...) INFO(index, __VA_ARGS__)
#define INFO_indexed(...) INFO(indexed, __VA_ARGS__)
#define INFO_long_norm(...) INFO(long_norm, __VA_ARGS__)
#define INFO_loss(...) INFO(loss, __VA_ARGS__)
#define INFO_movement(...) INFO(movement, __VA_ARGS__)
#define INFO_norm(...) INFO(norm, __VA_ARGS__)
#define INFO_norm_backward(...) INFO(norm_backward, __VA_ARGS__)
#define INFO_optim(...) INFO(optim, __VA_ARGS__)
#define INFO_pointwise(...) INFO(pointwise, __VA_ARGS__)
#define INFO_pointwise_f64(...) INFO(pointwise_f64, __VA_ARGS__)
#define INFO_pool(...) INFO(pool, __VA_ARGS__)
#define INFO_quant(...) INFO(quant, __VA_ARGS__)
#define INFO_quant_gemm(...) INFO(quant_gemm, __VA_ARGS__)
#define INFO_quant_gemv(...) INFO(quant_gemv, __VA_ARGS__)
#define INFO_quant_group(...) INFO(quant_group, __VA_ARGS__)
#define INFO_quant_pack(...) INFO(quant_pack, __VA_ARGS__)
#define INFO_random(...) INFO(random, __VA_ARGS__)
#define INFO_reduce_dims(...) INFO(reduce_dims, __VA_ARGS__)
#define INFO_rope(...) INFO(rope, __VA_ARGS__)
#define INFO_scan(...) INFO(scan, __VA_ARGS__)
#define INFO_scan_index(...) INFO(scan_index, __VA_ARGS__)
#define INFO_segment(...) INFO(segment, __VA_ARGS__)
#define INFO_select(...) INFO(select, __VA_ARGS__)
#define INFO_shifted_norm(...) INFO(shifted_norm, __VA_ARGS__)
#define INFO_softmax(...) INFO(softmax, __VA_ARGS__)
#define INFO_softmax_backward(...) INFO(softmax_backward, __VA_ARGS__)
#define INFO_sort(...) INFO(sort, __VA_ARGS__)
#define INFO_upsample(...) INFO(upsample, __VA_ARGS__)
#define INFO_winograd(...) INFO(winograd, __VA_ARGS__)

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
