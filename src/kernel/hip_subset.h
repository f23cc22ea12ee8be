/* What HIP's headers give a kernel, for sources that users write: read before them when clang compiles at run time
 * (compile.h). Names and meanings are HIP's: "HIP C++ language extensions" and "HIP math API" of its documentation;
 * docs/amd/compiler.md lists them. It is in the library as text, behind scalar.h and scalar64.h, whose functions it
 * uses, so it includes nothing. Not there: printf, textures, cooperative groups, half2 functions, what runs on the
 * host. */
#ifndef RDNA_KERNEL_HIP_SUBSET_H
#define RDNA_KERNEL_HIP_SUBSET_H

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#ifdef __AMDGCN__ /* the most threads of a group; and, if it is given, the waves that a SIMD must hold */
#define RDNA_SUBSET_BOUNDS1(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#define RDNA_SUBSET_BOUNDS2(threads, waves) RDNA_SUBSET_BOUNDS1(threads) __attribute__((amdgpu_waves_per_eu(waves)))
#define RDNA_SUBSET_THIRD(a, b, c, ...) c
#define __launch_bounds__(...) RDNA_SUBSET_THIRD(__VA_ARGS__, RDNA_SUBSET_BOUNDS2, RDNA_SUBSET_BOUNDS1, )(__VA_ARGS__)
#else
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#endif
#define HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];
#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define __HIP_PLATFORM_AMD__ 1
#define RDNA_SUBSET static inline __attribute__((device, always_inline))

typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

/* ---- types -------------------------------------------------------------------------------------------------- */

typedef _Float16 half, __half;
typedef __bf16 hip_bfloat16, __hip_bfloat16;

#define RDNA_SUBSET_VECTORS(scalar, name)                                                        \
  typedef scalar name##2 __attribute__((ext_vector_type(2)));                                    \
  typedef scalar name##3 __attribute__((ext_vector_type(3)));                                    \
  typedef scalar name##4 __attribute__((ext_vector_type(4)));                                    \
  RDNA_SUBSET name##2 make_##name##2(scalar x, scalar y) { return name##2 {x, y}; }              \
  RDNA_SUBSET name##3 make_##name##3(scalar x, scalar y, scalar z) { return name##3 {x, y, z}; } \
  RDNA_SUBSET name##4 make_##name##4(scalar x, scalar y, scalar z, scalar w) { return name##4 {x, y, z, w}; }
RDNA_SUBSET_VECTORS(signed char, char)
RDNA_SUBSET_VECTORS(unsigned char, uchar)
RDNA_SUBSET_VECTORS(short, short)
RDNA_SUBSET_VECTORS(unsigned short, ushort)
RDNA_SUBSET_VECTORS(int, int)
RDNA_SUBSET_VECTORS(unsigned int, uint)
RDNA_SUBSET_VECTORS(long, long)
RDNA_SUBSET_VECTORS(unsigned long, ulong)
RDNA_SUBSET_VECTORS(float, float)
RDNA_SUBSET_VECTORS(double, double)
typedef half half2 __attribute__((ext_vector_type(2)));
typedef half2 __half2;

struct dim3 {
  unsigned int x, y, z;
  __device__ constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
};

/* ---- where a thread is -------------------------------------------------------------------------------------- */

#ifdef __AMDGCN__
#define RDNA_SUBSET_THREAD(side) __builtin_amdgcn_workitem_id_##side()
#define RDNA_SUBSET_GROUP(side) __builtin_amdgcn_workgroup_id_##side()
#define RDNA_SUBSET_GROUP_SIZE(side) __builtin_amdgcn_workgroup_size_##side()
/* the dispatch packet counts threads; HIP only launches whole groups */
#define RDNA_SUBSET_GROUPS(side) (__builtin_amdgcn_grid_size_##side() / __builtin_amdgcn_workgroup_size_##side())
#else
#define RDNA_SUBSET_THREAD(side) __nvvm_read_ptx_sreg_tid_##side()
#define RDNA_SUBSET_GROUP(side) __nvvm_read_ptx_sreg_ctaid_##side()
#define RDNA_SUBSET_GROUP_SIZE(side) __nvvm_read_ptx_sreg_ntid_##side()
#define RDNA_SUBSET_GROUPS(side) __nvvm_read_ptx_sreg_nctaid_##side()
#endif
#define RDNA_SUBSET_SIDE(what, side)                         \
  __declspec(property(get = read_##side)) unsigned int side; \
  __device__ inline __attribute__((always_inline)) unsigned int read_##side() const { return (unsigned int)what(side); }
#define RDNA_SUBSET_SIDES(type, what)                                            \
  struct type {                                                                  \
    RDNA_SUBSET_SIDE(what, x)                                                    \
    RDNA_SUBSET_SIDE(what, y)                                                    \
    RDNA_SUBSET_SIDE(what, z)                                                    \
    __device__ operator dim3() const { return dim3(what(x), what(y), what(z)); } \
  }
RDNA_SUBSET_SIDES(rdna_thread_index, RDNA_SUBSET_THREAD);
RDNA_SUBSET_SIDES(rdna_group_index, RDNA_SUBSET_GROUP);
RDNA_SUBSET_SIDES(rdna_group_sides, RDNA_SUBSET_GROUP_SIZE);
RDNA_SUBSET_SIDES(rdna_grid_sides, RDNA_SUBSET_GROUPS);
/* objects without storage: only their properties are read */
extern const __device__ __attribute__((weak)) rdna_thread_index threadIdx;
extern const __device__ __attribute__((weak)) rdna_group_index blockIdx;
extern const __device__ __attribute__((weak)) rdna_group_sides blockDim;
extern const __device__ __attribute__((weak)) rdna_grid_sides gridDim;
#define hipThreadIdx_x threadIdx.x
#define hipThreadIdx_y threadIdx.y
#define hipThreadIdx_z threadIdx.z
#define hipBlockIdx_x blockIdx.x
#define hipBlockIdx_y blockIdx.y
#define hipBlockIdx_z blockIdx.z
#define hipBlockDim_x blockDim.x
#define hipBlockDim_y blockDim.y
#define hipBlockDim_z blockDim.z
#define hipGridDim_x gridDim.x
#define hipGridDim_y gridDim.y
#define hipGridDim_z gridDim.z

#if defined(__AMDGCN__) && defined(__GFX9__)
#define RDNA_SUBSET_WAVE 64
#else
#define RDNA_SUBSET_WAVE 32
#endif
static constexpr int warpSize = RDNA_SUBSET_WAVE;

/* ---- barriers, shuffles, votes ------------------------------------------------------------------------------ */

#ifdef __AMDGCN__
RDNA_SUBSET void __threadfence_block() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); }
RDNA_SUBSET void __threadfence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
RDNA_SUBSET void __threadfence_system() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, ""); }
RDNA_SUBSET void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
RDNA_SUBSET void __syncwarp(unsigned long mask = ~0ul) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}
RDNA_SUBSET unsigned int __lane_id() {
#if RDNA_SUBSET_WAVE == 64
  return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
#else
  return __builtin_amdgcn_mbcnt_lo(~0u, 0u);
#endif
}
RDNA_SUBSET unsigned int rdna_subset_shuffle(unsigned int v, int lane) {
  return (unsigned int)__builtin_amdgcn_ds_bpermute(lane * 4, (int)v);
}
RDNA_SUBSET unsigned long __ballot(int v) {
#if RDNA_SUBSET_WAVE == 64
  return __builtin_amdgcn_ballot_w64(v != 0);
#else
  return __builtin_amdgcn_ballot_w32(v != 0);
#endif
}
RDNA_SUBSET long long clock64() { return (long long)__builtin_readcyclecounter(); }
#else
RDNA_SUBSET void __threadfence_block() { __nvvm_membar_cta(); }
RDNA_SUBSET void __threadfence() { __nvvm_membar_gl(); }
RDNA_SUBSET void __threadfence_system() { __nvvm_membar_sys(); }
RDNA_SUBSET void __syncwarp(unsigned long mask = ~0ul) { __nvvm_bar_warp_sync((unsigned int)mask); }
RDNA_SUBSET unsigned int __lane_id() { return (unsigned int)__nvvm_read_ptx_sreg_laneid(); }
RDNA_SUBSET unsigned int rdna_subset_shuffle(unsigned int v, int lane) {
  return (unsigned int)__nvvm_shfl_sync_idx_i32(0xffffffffu, (int)v, lane, 31);
}
RDNA_SUBSET unsigned long __ballot(int v) { return __nvvm_vote_ballot_sync(0xffffffffu, v != 0); }
RDNA_SUBSET long long clock64() { return __nvvm_read_ptx_sreg_clock64(); }
#endif
RDNA_SUBSET unsigned long __activemask() { return __ballot(1); }
RDNA_SUBSET int __any(int v) { return __ballot(v) != 0; }
RDNA_SUBSET int __all(int v) { return __ballot(!v) == 0; }

/* A lane outside the |width| lanes around gives the thread's own value. */
template <typename value>
RDNA_SUBSET value rdna_subset_shuffle_any(value v, int lane) {
  static_assert(sizeof(value) <= 8, "shuffles are of up to 8 bytes");
  unsigned int words[2] = {0, 0};
  __builtin_memcpy(words, &v, sizeof v);
  words[0] = rdna_subset_shuffle(words[0], lane);
  if (sizeof v > 4) words[1] = rdna_subset_shuffle(words[1], lane);
  __builtin_memcpy(&v, words, sizeof v);
  return v;
}
template <typename value>
RDNA_SUBSET value __shfl(value v, int lane, int width = RDNA_SUBSET_WAVE) {
  int self = (int)__lane_id();
  return rdna_subset_shuffle_any(v, (self & ~(width - 1)) | (lane & (width - 1)));
}
template <typename value>
RDNA_SUBSET value __shfl_xor(value v, int mask, int width = RDNA_SUBSET_WAVE) {
  int self = (int)__lane_id(), lane = self ^ mask;
  return rdna_subset_shuffle_any(v, lane < ((self + width) & ~(width - 1)) ? lane : self);
}
template <typename value>
RDNA_SUBSET value __shfl_down(value v, unsigned int by, int width = RDNA_SUBSET_WAVE) {
  int self = (int)__lane_id(), lane = (self & (width - 1)) + (int)by;
  return rdna_subset_shuffle_any(v, lane < width ? self + (int)by : self);
}
template <typename value>
RDNA_SUBSET value __shfl_up(value v, unsigned int by, int width = RDNA_SUBSET_WAVE) {
  int self = (int)__lane_id(), lane = (self & (width - 1)) - (int)by;
  return rdna_subset_shuffle_any(v, lane >= 0 ? self - (int)by : self);
}
template <typename value>
RDNA_SUBSET value __shfl_sync(unsigned long mask, value v, int lane, int width = RDNA_SUBSET_WAVE) {
  return __shfl(v, lane, width);
}
template <typename value>
RDNA_SUBSET value __shfl_xor_sync(unsigned long mask, value v, int by, int width = RDNA_SUBSET_WAVE) {
  return __shfl_xor(v, by, width);
}
template <typename value>
RDNA_SUBSET value __shfl_down_sync(unsigned long mask, value v, unsigned int by, int width = RDNA_SUBSET_WAVE) {
  return __shfl_down(v, by, width);
}
template <typename value>
RDNA_SUBSET value __shfl_up_sync(unsigned long mask, value v, unsigned int by, int width = RDNA_SUBSET_WAVE) {
  return __shfl_up(v, by, width);
}

/* ---- atomics: relaxed, in the scope of the device; they return the old value --------------------------------- */

#define RDNA_SUBSET_ATOMIC(hip, builtin, type)                                       \
  RDNA_SUBSET type hip(type *p, type v) {                                            \
    return __hip_atomic_##builtin(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); \
  }
#define RDNA_SUBSET_ATOMICS(type)                                                             \
  RDNA_SUBSET_ATOMIC(atomicAdd, fetch_add, type)                                              \
  RDNA_SUBSET_ATOMIC(atomicMin, fetch_min, type)                                              \
  RDNA_SUBSET_ATOMIC(atomicMax, fetch_max, type)                                              \
  RDNA_SUBSET_ATOMIC(atomicAnd, fetch_and, type)                                              \
  RDNA_SUBSET_ATOMIC(atomicOr, fetch_or, type)                                                \
  RDNA_SUBSET_ATOMIC(atomicXor, fetch_xor, type)                                              \
  RDNA_SUBSET_ATOMIC(atomicExch, exchange, type)                                              \
  RDNA_SUBSET type atomicSub(type *p, type v) { return atomicAdd(p, (type) - v); }            \
  RDNA_SUBSET type atomicCAS(type *p, type expected, type v) {                                \
    __hip_atomic_compare_exchange_strong(p, &expected, v, __ATOMIC_RELAXED, __ATOMIC_RELAXED, \
                                         __HIP_MEMORY_SCOPE_AGENT);                           \
    return expected;                                                                          \
  }
#ifdef __AMDGCN__
RDNA_SUBSET_ATOMICS(int)
RDNA_SUBSET_ATOMICS(unsigned int)
RDNA_SUBSET_ATOMICS(unsigned long long)
RDNA_SUBSET_ATOMIC(atomicAdd, fetch_add, float)
RDNA_SUBSET_ATOMIC(atomicAdd, fetch_add, double)
RDNA_SUBSET_ATOMIC(atomicExch, exchange, float)
#else
RDNA_SUBSET int atomicAdd(int *p, int v) { return __nvvm_atom_add_gen_i(p, v); }
RDNA_SUBSET unsigned int atomicAdd(unsigned int *p, unsigned int v) {
  return (unsigned int)__nvvm_atom_add_gen_i((int *)p, (int)v);
}
RDNA_SUBSET float atomicAdd(float *p, float v) { return __nvvm_atom_add_gen_f(p, v); }
RDNA_SUBSET unsigned int atomicMax(unsigned int *p, unsigned int v) { return __nvvm_atom_max_gen_ui(p, v); }
RDNA_SUBSET int atomicMax(int *p, int v) { return __nvvm_atom_max_gen_i(p, v); }
RDNA_SUBSET unsigned int atomicMin(unsigned int *p, unsigned int v) { return __nvvm_atom_min_gen_ui(p, v); }
RDNA_SUBSET int atomicMin(int *p, int v) { return __nvvm_atom_min_gen_i(p, v); }
RDNA_SUBSET unsigned int atomicCAS(unsigned int *p, unsigned int expected, unsigned int v) {
  return (unsigned int)__nvvm_atom_cas_gen_i((int *)p, (int)expected, (int)v);
}
RDNA_SUBSET int atomicCAS(int *p, int expected, int v) { return __nvvm_atom_cas_gen_i(p, expected, v); }
#endif

/* ---- integers ----------------------------------------------------------------------------------------------- */

RDNA_SUBSET int __popc(unsigned int v) { return __builtin_popcount(v); }
RDNA_SUBSET int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
RDNA_SUBSET int __clz(int v) { return v ? __builtin_clz((unsigned int)v) : 32; }
RDNA_SUBSET int __clzll(long long v) { return v ? __builtin_clzll((unsigned long long)v) : 64; }
RDNA_SUBSET int __ffs(int v) { return v ? __builtin_ctz((unsigned int)v) + 1 : 0; }
RDNA_SUBSET int __ffsll(long long v) { return v ? __builtin_ctzll((unsigned long long)v) + 1 : 0; }
RDNA_SUBSET unsigned int __brev(unsigned int v) { return __builtin_bitreverse32(v); }
RDNA_SUBSET int __mul24(int a, int b) { return (a << 8 >> 8) * (b << 8 >> 8); }
RDNA_SUBSET unsigned int __umulhi(unsigned int a, unsigned int b) {
  return (unsigned int)(((unsigned long long)a * b) >> 32);
}
RDNA_SUBSET int __mulhi(int a, int b) { return (int)(((long long)a * b) >> 32); }
RDNA_SUBSET int abs(int v) { return v < 0 ? -v : v; }
RDNA_SUBSET long long llabs(long long v) { return v < 0 ? -v : v; }
RDNA_SUBSET long abs(long v) { return v < 0 ? -v : v; }
RDNA_SUBSET long long abs(long long v) { return v < 0 ? -v : v; }
#define RDNA_SUBSET_EXTREMES(type)                               \
  RDNA_SUBSET type min(type a, type b) { return b < a ? b : a; } \
  RDNA_SUBSET type max(type a, type b) { return a < b ? b : a; }
RDNA_SUBSET_EXTREMES(int)
RDNA_SUBSET_EXTREMES(unsigned int)
RDNA_SUBSET_EXTREMES(long)
RDNA_SUBSET_EXTREMES(unsigned long)
RDNA_SUBSET_EXTREMES(long long)
RDNA_SUBSET_EXTREMES(unsigned long long)
/* the common type, as C's arithmetic has it */
RDNA_SUBSET unsigned int min(int a, unsigned int b) { return min((unsigned int)a, b); }
RDNA_SUBSET unsigned int min(unsigned int a, int b) { return min(a, (unsigned int)b); }
RDNA_SUBSET unsigned int max(int a, unsigned int b) { return max((unsigned int)a, b); }
RDNA_SUBSET unsigned int max(unsigned int a, int b) { return max(a, (unsigned int)b); }

/* ---- bits and 16-bit floats ---------------------------------------------------------------------------------- */

RDNA_SUBSET int __float_as_int(float v) { return __builtin_bit_cast(int, v); }
RDNA_SUBSET unsigned int __float_as_uint(float v) { return __builtin_bit_cast(unsigned int, v); }
RDNA_SUBSET float __int_as_float(int v) { return __builtin_bit_cast(float, v); }
RDNA_SUBSET float __uint_as_float(unsigned int v) { return __builtin_bit_cast(float, v); }
RDNA_SUBSET long long __double_as_longlong(double v) { return __builtin_bit_cast(long long, v); }
RDNA_SUBSET double __longlong_as_double(long long v) { return __builtin_bit_cast(double, v); }
RDNA_SUBSET float __half2float(half v) { return (float)v; }
RDNA_SUBSET half __float2half(float v) { return (half)v; }
RDNA_SUBSET half __float2half_rn(float v) { return (half)v; }
RDNA_SUBSET unsigned short __half_as_ushort(half v) { return __builtin_bit_cast(unsigned short, v); }
RDNA_SUBSET half __ushort_as_half(unsigned short v) { return __builtin_bit_cast(half, v); }
RDNA_SUBSET float __bfloat162float(__hip_bfloat16 v) {
  return __uint_as_float((unsigned int)__builtin_bit_cast(unsigned short, v) << 16);
}
RDNA_SUBSET __hip_bfloat16 __float2bfloat16(float v) { /* to nearest even; a NaN stays one */
  unsigned int u = __float_as_uint(v), rounded = (u + 0x7fff + ((u >> 16) & 1)) >> 16;
  return __builtin_bit_cast(__hip_bfloat16, (unsigned short)(v != v ? u >> 16 | 0x40 : rounded));
}

/* ---- floating point ------------------------------------------------------------------------------------------ */

/* Name of a float's function, C++'s name of it for float and double, and who computes them. */
#define RDNA_SUBSET_MATH(name, in_float, in_double)          \
  RDNA_SUBSET float name##f(float x) { return in_float(x); } \
  RDNA_SUBSET float name(float x) { return in_float(x); }    \
  RDNA_SUBSET double name(double x) { return in_double(x); }
#define RDNA_SUBSET_MATH2(name, in_float, in_double)                     \
  RDNA_SUBSET float name##f(float x, float y) { return in_float(x, y); } \
  RDNA_SUBSET float name(float x, float y) { return in_float(x, y); }    \
  RDNA_SUBSET double name(double x, double y) { return in_double(x, y); }

RDNA_SUBSET float rdna_subset_tan(float x) { return (float)scalar64_tan((double)x); }
RDNA_SUBSET float rdna_subset_log10(float x) { return (float)scalar64_log10((double)x); }
RDNA_SUBSET float rdna_subset_pow(float x, float y) { return (float)scalar64_pow((double)x, (double)y); }
RDNA_SUBSET float rdna_subset_atan2(float y, float x) { return (float)scalar64_atan2((double)y, (double)x); }
RDNA_SUBSET double rdna_subset_atan64(double x) { return scalar64_atan2(x, 1.0); }
RDNA_SUBSET float rdna_subset_atan(float x) { return (float)rdna_subset_atan64((double)x); }
RDNA_SUBSET double rdna_subset_asin64(double x) { return scalar64_atan2(x, __builtin_sqrt((1.0 - x) * (1.0 + x))); }
RDNA_SUBSET double rdna_subset_acos64(double x) { return scalar64_atan2(__builtin_sqrt((1.0 - x) * (1.0 + x)), x); }
RDNA_SUBSET float rdna_subset_asin(float x) { return (float)rdna_subset_asin64((double)x); }
RDNA_SUBSET float rdna_subset_acos(float x) { return (float)rdna_subset_acos64((double)x); }
RDNA_SUBSET double rdna_subset_sinh64(double x) {
  double e = scalar64_expm1(scalar64_abs(x)), y = 0.5 * (e + e / (e + 1.0));
  return scalar64_copysign(e == __builtin_inf() ? e : y, x);
}
RDNA_SUBSET double rdna_subset_cosh64(double x) {
  double e = scalar64_exp(scalar64_abs(x));
  return 0.5 * e + 0.5 / e;
}
RDNA_SUBSET float rdna_subset_sinh(float x) { return (float)rdna_subset_sinh64((double)x); }
RDNA_SUBSET float rdna_subset_cosh(float x) { return (float)rdna_subset_cosh64((double)x); }
RDNA_SUBSET float rdna_subset_rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
RDNA_SUBSET double rdna_subset_rsqrt64(double x) { return 1.0 / __builtin_sqrt(x); }
RDNA_SUBSET float rdna_subset_hypot(float x, float y) {
  double a = (double)x, b = (double)y; /* squares of floats neither overflow nor vanish in double */
  return __builtin_isinf(x) || __builtin_isinf(y) ? __builtin_inff() : (float)__builtin_sqrt(a * a + b * b);
}
RDNA_SUBSET double rdna_subset_fmod64(double x, double y) {
  x = scalar64_abs(y) < __builtin_inf() || x != x ? x : scalar64_abs(x) < __builtin_inf() ? x : __builtin_nan("");
  double a = scalar64_abs(x), b = scalar64_abs(y);
  if (!(a < __builtin_inf()) || b == 0.0 || b != b) return __builtin_nan("");
  /* shift and subtract: each step is exact */
  for (; a >= b;) {
    double step = b;
    unsigned long long high =
        (__builtin_bit_cast(unsigned long long, a) >> 52) - (__builtin_bit_cast(unsigned long long, b) >> 52);
    if (high > 1 && high < 1023) step = b * __builtin_bit_cast(double, (high - 1 + 1023) << 52);
    a -= step;
  }
  return scalar64_copysign(a, x);
}
RDNA_SUBSET float rdna_subset_fmod(float x, float y) { return (float)rdna_subset_fmod64((double)x, (double)y); }

RDNA_SUBSET_MATH(exp, scalar_exp, scalar64_exp)
RDNA_SUBSET_MATH(exp2, scalar_exp2, scalar64_exp2)
RDNA_SUBSET_MATH(expm1, scalar_expm1, scalar64_expm1)
RDNA_SUBSET_MATH(log, scalar_log, scalar64_log)
RDNA_SUBSET_MATH(log2, scalar_log2, scalar64_log2)
RDNA_SUBSET_MATH(log10, rdna_subset_log10, scalar64_log10)
RDNA_SUBSET_MATH(log1p, scalar_log1p, scalar64_log1p)
RDNA_SUBSET_MATH(sin, scalar_sin, scalar64_sin)
RDNA_SUBSET_MATH(cos, scalar_cos, scalar64_cos)
RDNA_SUBSET_MATH(tan, rdna_subset_tan, scalar64_tan)
RDNA_SUBSET_MATH(asin, rdna_subset_asin, rdna_subset_asin64)
RDNA_SUBSET_MATH(acos, rdna_subset_acos, rdna_subset_acos64)
RDNA_SUBSET_MATH(atan, rdna_subset_atan, rdna_subset_atan64)
RDNA_SUBSET_MATH(sinh, rdna_subset_sinh, rdna_subset_sinh64)
RDNA_SUBSET_MATH(cosh, rdna_subset_cosh, rdna_subset_cosh64)
RDNA_SUBSET_MATH(tanh, scalar_tanh, scalar64_tanh)
RDNA_SUBSET_MATH(erf, scalar_erf, scalar64_erf)
RDNA_SUBSET_MATH(sqrt, __builtin_sqrtf, __builtin_sqrt)
RDNA_SUBSET_MATH(rsqrt, rdna_subset_rsqrt, rdna_subset_rsqrt64)
RDNA_SUBSET_MATH(fabs, __builtin_fabsf, __builtin_fabs)
RDNA_SUBSET_MATH(floor, __builtin_floorf, __builtin_floor)
RDNA_SUBSET_MATH(ceil, __builtin_ceilf, __builtin_ceil)
RDNA_SUBSET_MATH(trunc, __builtin_truncf, __builtin_trunc)
RDNA_SUBSET_MATH(round, __builtin_roundf, __builtin_round)
RDNA_SUBSET_MATH(rint, __builtin_rintf, __builtin_rint)
RDNA_SUBSET_MATH(nearbyint, __builtin_rintf, __builtin_rint)
RDNA_SUBSET_MATH2(pow, rdna_subset_pow, scalar64_pow)
RDNA_SUBSET_MATH2(atan2, rdna_subset_atan2, scalar64_atan2)
RDNA_SUBSET_MATH2(fmod, rdna_subset_fmod, rdna_subset_fmod64)
RDNA_SUBSET_MATH2(fmin, __builtin_fminf, __builtin_fmin)
RDNA_SUBSET_MATH2(fmax, __builtin_fmaxf, __builtin_fmax)
RDNA_SUBSET_MATH2(copysign, __builtin_copysignf, __builtin_copysign)
RDNA_SUBSET float hypotf(float x, float y) { return rdna_subset_hypot(x, y); }
RDNA_SUBSET float powf(float x, int y) { return powf(x, (float)y); }
RDNA_SUBSET float pow(float x, int y) { return powf(x, (float)y); }
RDNA_SUBSET double pow(double x, int y) { return pow(x, (double)y); }
RDNA_SUBSET float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
RDNA_SUBSET float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
RDNA_SUBSET double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
RDNA_SUBSET float min(float a, float b) { return __builtin_fminf(a, b); }
RDNA_SUBSET float max(float a, float b) { return __builtin_fmaxf(a, b); }
RDNA_SUBSET double min(double a, double b) { return __builtin_fmin(a, b); }
RDNA_SUBSET double max(double a, double b) { return __builtin_fmax(a, b); }
RDNA_SUBSET float abs(float x) { return __builtin_fabsf(x); }
RDNA_SUBSET double abs(double x) { return __builtin_fabs(x); }
RDNA_SUBSET bool isnan(float x) { return __builtin_isnan(x); }
RDNA_SUBSET bool isnan(double x) { return __builtin_isnan(x); }
RDNA_SUBSET bool isinf(float x) { return __builtin_isinf(x); }
RDNA_SUBSET bool isinf(double x) { return __builtin_isinf(x); }
RDNA_SUBSET bool isfinite(float x) { return __builtin_isfinite(x); }
RDNA_SUBSET bool isfinite(double x) { return __builtin_isfinite(x); }
RDNA_SUBSET void sincosf(float x, float *s, float *c) { scalar_sincos(x, s, c); }
RDNA_SUBSET int __float2int_rn(float x) { return (int)__builtin_rintf(x); }
RDNA_SUBSET int __float2int_rz(float x) { return (int)x; }
RDNA_SUBSET float __int2float_rn(int x) { return (float)x; }
RDNA_SUBSET float __saturatef(float x) { return x > 0.0f ? x < 1.0f ? x : 1.0f : 0.0f; }
RDNA_SUBSET float __fdividef(float a, float b) { return a / b; }
RDNA_SUBSET float __frcp_rn(float x) { return 1.0f / x; }
RDNA_SUBSET float __fsqrt_rn(float x) { return __builtin_sqrtf(x); }
RDNA_SUBSET float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
/* The hardware's own: about 1 ulp, subnormals may become zero. */
#ifdef __AMDGCN__
RDNA_SUBSET float __expf(float x) { return __builtin_amdgcn_exp2f(x * 1.4426950408889634f); }
RDNA_SUBSET float __logf(float x) { return __builtin_amdgcn_logf(x) * 0.69314718055994531f; }
RDNA_SUBSET float __log2f(float x) { return __builtin_amdgcn_logf(x); }
#else
RDNA_SUBSET float __expf(float x) { return __nvvm_ex2_approx_ftz_f(x * 1.4426950408889634f); }
RDNA_SUBSET float __logf(float x) { return __nvvm_lg2_approx_ftz_f(x) * 0.69314718055994531f; }
RDNA_SUBSET float __log2f(float x) { return __nvvm_lg2_approx_ftz_f(x); }
#endif
RDNA_SUBSET float __log10f(float x) { return __log2f(x) * 0.30102999566398120f; }
RDNA_SUBSET float __powf(float x, float y) { return __expf(y * __logf(x)); }
RDNA_SUBSET float __sinf(float x) { return scalar_sin(x); }
RDNA_SUBSET float __cosf(float x) { return scalar_cos(x); }

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define M_PI 3.14159265358979323846
#define FLT_MAX __FLT_MAX__
#define FLT_MIN __FLT_MIN__
#define FLT_EPSILON __FLT_EPSILON__
#define INT_MAX __INT_MAX__
#define INT_MIN (-__INT_MAX__ - 1)
#define UINT_MAX (2u * __INT_MAX__ + 1u)

#endif
