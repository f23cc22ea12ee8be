/* Device code: the beginning of the source of a chain that is compiled at run time (chain_source.c). It stands for
 * kernel/prelude.h there, of which parts follow, and is for every compiler of rdna/compile.h: clang and hiprtc, which
 * know the same language, and NVRTC, which is told here what clang has built in. Nothing is included: it is in the
 * library as text. */
#if defined(__CUDACC_RTC__) && !defined(__clang__)
#define RDNA_RTC_ 1
#pragma nv_diag_suppress 177 /* functions that this chain does not use */
#define __NVPTX__ 1
#define __asm__ asm
#define __builtin_memcpy memcpy
#define __builtin_fabsf fabsf
#define __builtin_ceilf ceilf
#define __builtin_floorf floorf
#define __builtin_rintf rintf
#define __builtin_truncf truncf
#define __builtin_sqrtf sqrtf
#define __builtin_fmaf fmaf
#define __builtin_copysignf copysignf
#define __builtin_fabs fabs
#define __builtin_ceil ceil
#define __builtin_floor floor
#define __builtin_rint rint
#define __builtin_trunc trunc
#define __builtin_sqrt sqrt
#define __builtin_fma fma
#define __builtin_inff() __int_as_float(0x7f800000)
#define __builtin_nanf(text) __int_as_float(0x7fc00000)
#endif

namespace rdna_chain { /* names of the compilers' own headers are others */
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;

#ifdef __AMDGCN__
#define RDNA_AMD 1
#else
#define RDNA_NVIDIA 1
#endif
#define RDNA_DEVICE static inline __attribute__((device, always_inline))

#ifdef RDNA_RTC_
struct __attribute__((aligned(8))) uint2 {
  uint32_t x, y;
};
struct __attribute__((aligned(16))) uint4 {
  uint32_t x, y, z, w;
  __attribute__((device)) uint32_t &operator[](int i) { return (&x)[i]; }
  __attribute__((device)) const uint32_t &operator[](int i) const { return (&x)[i]; }
};
struct half {
  uint16_t bits;
  half() = default;
  __attribute__((device)) explicit half(float v) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(v)); }
  __attribute__((device)) explicit operator float() const {
    float v;
    asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(bits));
    return v;
  }
};
struct half2 {
  half x, y;
};
#define RDNA_RTC_APPROX_(name, instruction)                 \
  RDNA_DEVICE float name(float v) {                         \
    float r;                                                \
    asm(instruction ".ftz.f32 %0, %1;" : "=f"(r) : "f"(v)); \
    return r;                                               \
  }
RDNA_RTC_APPROX_(__nvvm_ex2_approx_ftz_f, "ex2.approx")
RDNA_RTC_APPROX_(__nvvm_lg2_approx_ftz_f, "lg2.approx")
RDNA_RTC_APPROX_(__nvvm_rsqrt_approx_ftz_f, "rsqrt.approx")
RDNA_RTC_APPROX_(__nvvm_rcp_approx_ftz_f, "rcp.approx")
#else
typedef float float2 __attribute__((ext_vector_type(2)));
typedef float float4 __attribute__((ext_vector_type(4)));
typedef uint32_t uint2 __attribute__((ext_vector_type(2)));
typedef uint32_t uint4 __attribute__((ext_vector_type(4)));
typedef _Float16 half;
typedef _Float16 half2 __attribute__((ext_vector_type(2)));
#endif

template <typename to, typename from>
RDNA_DEVICE to bits_as(from v) {
  static_assert(sizeof(to) == sizeof(from), "bits_as keeps the size");
  to bits;
  __builtin_memcpy(&bits, &v, sizeof bits);
  return bits;
}
