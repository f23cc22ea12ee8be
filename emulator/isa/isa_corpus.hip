// Kernels that make clang emit as many different instructions as it can. Only their machine code is used:
// isa_objects_test compares its disassembly with LLVM's. Built for every target, at several optimization levels and
// wave sizes.
#define GLOBAL __attribute__((global))
#define DEVICE __attribute__((device))
#define SHARED __attribute__((shared))
typedef _Float16 half;
typedef half half2 __attribute__((ext_vector_type(2)));
typedef half half16 __attribute__((ext_vector_type(16)));
typedef __bf16 bf2 __attribute__((ext_vector_type(2)));
typedef short short2 __attribute__((ext_vector_type(2)));
typedef short short16 __attribute__((ext_vector_type(16)));
typedef unsigned short ushort2 __attribute__((ext_vector_type(2)));
typedef float float4 __attribute__((ext_vector_type(4)));
typedef float float8 __attribute__((ext_vector_type(8)));
typedef int int2 __attribute__((ext_vector_type(2)));
typedef int int4 __attribute__((ext_vector_type(4)));
typedef int int8 __attribute__((ext_vector_type(8)));
typedef unsigned long u64;
typedef long i64;
typedef unsigned u32;

#define ID (__builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x())
#define KERNEL(name, ...) extern "C" GLOBAL void name(__VA_ARGS__)

#define INTEGER_OPERATORS(name, T)               \
  KERNEL(name, T *p, const T *q, int shift) {    \
    unsigned i = ID;                             \
    T a = p[i], b = q[i];                        \
    p[i] = a + b;                                \
    p[i + 1000] = a - b;                         \
    p[i + 2000] = a * b;                         \
    p[i + 3000] = b ? a / b : a;                 \
    p[i + 4000] = b ? a % b : a;                 \
    p[i + 5000] = (T)((a & b) | (a ^ 55));       \
    p[i + 6000] = (T)(a << (shift & 7));         \
    p[i + 7000] = (T)(a >> (shift & 7));         \
    p[i + 8000] = a < b ? a : b;                 \
    p[i + 9000] = a > b ? a : b;                 \
    p[i + 10000] = (T)((a == b) + 2 * (a <= b)); \
    p[i + 11000] = (T)(a & ~b);                  \
    p[i + 12000] = (T)((a << 3) + b);            \
    p[i + 13000] = (T)((a + b) << 5);            \
    p[i + 14000] = (T)(~(a ^ b));                \
    p[i + 15000] = (T)((a + b) + q[i + 9]);      \
    p[i + 16000] = (T)((a * b) + q[i + 7]);      \
    p[i + 17000] = (T)(-a);                      \
  }
INTEGER_OPERATORS(int_i8, signed char)
INTEGER_OPERATORS(int_u8, unsigned char)
INTEGER_OPERATORS(int_i16, short)
INTEGER_OPERATORS(int_u16, unsigned short)
INTEGER_OPERATORS(int_i32, int)
INTEGER_OPERATORS(int_u32, unsigned)
INTEGER_OPERATORS(int_i64, i64)
INTEGER_OPERATORS(int_u64, u64)
INTEGER_OPERATORS(int_short2, short2)
INTEGER_OPERATORS(int_ushort2, ushort2)

#define FLOAT_OPERATORS(name, T)                                                        \
  KERNEL(name, T *p, const T *q, int n) {                                               \
    unsigned i = ID;                                                                    \
    T a = p[i], b = q[i], c = q[i + 1];                                                 \
    p[i] = a + b;                                                                       \
    p[i + 1000] = a * b - c;                                                            \
    p[i + 2000] = a / b;                                                                \
    p[i + 3000] = __builtin_elementwise_max(a, b);                                      \
    p[i + 4000] = __builtin_elementwise_min(a, -b);                                     \
    p[i + 5000] = __builtin_elementwise_fma(a, -b, c);                                  \
    p[i + 6000] = __builtin_elementwise_sqrt(a);                                        \
    p[i + 7000] = __builtin_elementwise_floor(a) + (T)1;                                \
    p[i + 8000] = __builtin_elementwise_ceil(a);                                        \
    p[i + 9000] = __builtin_elementwise_trunc(a);                                       \
    p[i + 10000] = __builtin_elementwise_roundeven(a);                                  \
    p[i + 11000] = __builtin_elementwise_abs(a) * (T)2;                                 \
    p[i + 12000] = __builtin_elementwise_copysign(a, b);                                \
    p[i + 13000] = a < b ? a : c;                                                       \
    p[i + 14000] = a != a ? b : c;                                                      \
    p[i + 15000] = !(a <= b) ? b : a;                                                   \
    p[i + 16000] = (T)n * (T)0.15915494f;                                               \
    p[i + 17000] = __builtin_elementwise_max(a, __builtin_elementwise_min(b, c));       \
    p[i + 18000] = __builtin_elementwise_min(__builtin_elementwise_max(a, (T)0), (T)1); \
  }
FLOAT_OPERATORS(float_f16, half)
FLOAT_OPERATORS(float_f32, float)
FLOAT_OPERATORS(float_f64, double)

KERNEL(float_half2, half2 *p, const half2 *q) {
  unsigned i = ID;
  half2 a = p[i], b = q[i], c = q[i + 1];
  p[i] = a + b;
  p[i + 100] = a * b;
  p[i + 200] = a * b + c.yx;
  p[i + 300] = __builtin_elementwise_max(a, b);
  p[i + 400] = __builtin_elementwise_min(a, -b);
  p[i + 500] = a - b.yx;
  p[i + 600] = half2{a.y, b.x};
}

#define CONVERT(T, U) \
  KERNEL(convert_##T##_##U, T *p, const U *q) { p[ID] = (T)q[ID]; }
#define CONVERT_BRAIN(T)                                            \
  KERNEL(brain_##T, T *p, const __bf16 *q, __bf16 *r, const T *s) { \
    p[ID] = (T)(float)q[ID];                                        \
    r[ID] = (__bf16)(float)s[ID];                                   \
  }
#define CONVERT_ALL(T) \
  CONVERT(T, int)      \
  CONVERT(T, u32)      \
  CONVERT(T, float)    \
  CONVERT(T, half)     \
  CONVERT(T, double)   \
  CONVERT(T, i64)      \
  CONVERT(T, u64)      \
  CONVERT(T, short)    \
  CONVERT_BRAIN(T)
CONVERT_ALL(float)
CONVERT_ALL(half)
CONVERT_ALL(double)
CONVERT_ALL(int)
CONVERT_ALL(u32)
CONVERT_ALL(i64)
CONVERT_ALL(u64)

KERNEL(elementary, float *p, half *h, double *d) {
  unsigned i = ID;
  float x = p[i];
  p[i + 100] = __builtin_amdgcn_sinf(x) + __builtin_amdgcn_cosf(x);
  p[i + 200] = __builtin_amdgcn_logf(x) * __builtin_amdgcn_exp2f(x);
  p[i + 300] = __builtin_amdgcn_rcpf(x) - __builtin_amdgcn_rsqf(x);
  p[i + 400] = __builtin_amdgcn_frexp_mantf(x) + __builtin_amdgcn_frexp_expf(x);
  p[i + 500] = __builtin_amdgcn_fractf(x) + __builtin_amdgcn_sqrtf(x);
  p[i + 600] = __builtin_ldexpf(x, (int)i) + __builtin_exp2f(x) + __builtin_log2f(x);
  p[i + 700] = __builtin_amdgcn_fmed3f(x, p[i + 1], p[i + 2]) + __builtin_amdgcn_cubeid(x, x, p[i]);
  p[i + 800] = __builtin_amdgcn_classf(x, 0x3f) + __builtin_amdgcn_class(d[i], 9) + __builtin_amdgcn_classh(h[i], 7);
  p[i + 900] = __builtin_amdgcn_ubfe((unsigned)i, 3, 4) + __builtin_amdgcn_sbfe((int)i, 5, 7);
  h[i + 100] = __builtin_amdgcn_rcph(h[i]) + __builtin_amdgcn_sqrth(h[i]) + __builtin_amdgcn_rsqh(h[i]);
  h[i + 200] = __builtin_amdgcn_sinh(h[i]) + __builtin_amdgcn_cosh(h[i]) + __builtin_amdgcn_fracth(h[i]);
  h[i + 300] = __builtin_amdgcn_frexp_manth(h[i]) + (half)__builtin_amdgcn_frexp_exph(h[i]);
  h[i + 400] = __builtin_amdgcn_ldexph(h[i], (int)i) + __builtin_amdgcn_fmed3h(h[i], h[i + 1], h[i + 2]);
  d[i + 100] = __builtin_amdgcn_rcp(d[i]) + __builtin_amdgcn_rsq(d[i]) + __builtin_amdgcn_sqrt(d[i]);
  d[i + 200] = __builtin_amdgcn_frexp_mant(d[i]) + __builtin_amdgcn_frexp_exp(d[i]) + __builtin_amdgcn_fract(d[i]);
  d[i + 300] = __builtin_ldexp(d[i], (int)i) + __builtin_amdgcn_trig_preop(d[i], (int)i);
}

KERNEL(bits, u32 *p, u64 *q) {
  unsigned i = ID;
  u32 a = p[i], b = p[i + 1], c = p[i + 2];
  p[i + 100] = __builtin_popcount(a) + __builtin_clz(b) + __builtin_ctz(c);
  p[i + 200] = __builtin_bitreverse32(a) ^ __builtin_bswap32(b);
  p[i + 300] = __builtin_popcountl(q[i]) + __builtin_clzl(q[i]) + __builtin_ctzl(q[i + 1]);
  p[i + 400] =
      __builtin_amdgcn_perm(a, b, c) + __builtin_amdgcn_alignbit(a, b, c) + __builtin_amdgcn_alignbyte(a, b, c);
  p[i + 500] = __builtin_amdgcn_sad_u8(a, b, c) + __builtin_amdgcn_sad_u16(a, b, c) + __builtin_amdgcn_msad_u8(a, b, c);
  p[i + 600] = __builtin_amdgcn_lerp(a, b, c);
  q[i + 100] = __builtin_amdgcn_qsad_pk_u16_u8(q[i], a, q[i + 1]) + __builtin_amdgcn_mqsad_pk_u16_u8(q[i], b, q[i + 1]);
  p[i + 700] = ((a & b) | (~a & c)) + ((a | b) | c) + (a ^ b ^ c);
  p[i + 800] =
      __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)) + ((a & 0xffffff) * (b & 0xffffff) + c);
  p[i + 900] = (u32)(((u64)a * b) >> 32) + (u32)(((i64)(int)a * (int)b) >> 32);
}

KERNEL(lanes, int *p, float *f, int n) {
  unsigned i = ID;
  int x = p[i];
  p[i + 100] = __builtin_amdgcn_ds_bpermute(x * 4, x) + __builtin_amdgcn_ds_permute(x * 4, x);
  p[i + 200] = __builtin_amdgcn_ds_swizzle(x, 0x401f) + __builtin_amdgcn_ds_swizzle(x, 0x80b1) +
               __builtin_amdgcn_ds_swizzle(x, 0x1f) + __builtin_amdgcn_ds_swizzle(x, 0x00e8);
  p[i + 300] = __builtin_amdgcn_readfirstlane(x) + __builtin_amdgcn_readlane(x, n & 31);
#ifndef __GFX9__
  p[i + 400] = __builtin_amdgcn_permlane16(x, x, n, 0x76543210, false, true);
  p[i + 500] = __builtin_amdgcn_permlanex16(x, x, 0x01234567, n, true, false);
#endif
  p[i + 600] = __builtin_amdgcn_update_dpp(x, p[i + 1], 0x111, 0xf, 0xf, true) +
               __builtin_amdgcn_update_dpp(0, x, 0x1b, 0xf, 0xa, false);
  p[i + 700] =
      __builtin_amdgcn_update_dpp(x, x, 0x140, 0x3, 0xf, false) + __builtin_amdgcn_mov_dpp(x, 0x12f, 0xf, 0xf, true);
#ifndef __GFX9__
  p[i + 800] = __builtin_amdgcn_mov_dpp8(x, 0x123456);
  p[i + 900] = __builtin_amdgcn_update_dpp(x, x, 0x155, 0xf, 0xf, false) +
               __builtin_amdgcn_update_dpp(x, x, 0x16a, 0xf, 0xf, true);
#else
  p[i + 900] = __builtin_amdgcn_update_dpp(x, x, 0x138, 0xf, 0xf, false) +
               __builtin_amdgcn_update_dpp(x, x, 0x143, 0xc, 0xf, true);
#endif
  float v = f[i];
  for (int s = 1; s < 8; s++)
    v += __builtin_bit_cast(float, __builtin_amdgcn_update_dpp(0, __builtin_bit_cast(int, v), 0x121, 0xf, 0xf, true));
  f[i + 100] = v;
#if defined(WAVE64)
  p[i + 1000] = (int)__builtin_amdgcn_ballot_w64(x > 3);
#else
  p[i + 1000] = (int)__builtin_amdgcn_ballot_w32(x > 3);
#endif
  p[i + 1100] = (int)__builtin_amdgcn_s_getreg(0x1801) + (int)__builtin_readcyclecounter();
  __builtin_amdgcn_s_sleep(3);
  __builtin_amdgcn_s_setprio(1);
  __builtin_amdgcn_sched_barrier(0);
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_s_barrier();
}

#define ATOMICS(name, T, S)                                                                                           \
  KERNEL(atomic_##name, T *p, T *out, T v) {                                                                          \
    unsigned i = ID;                                                                                                  \
    SHARED static T local[256];                                                                                       \
    T *flat = i & 1 ? p : (T *)local;                                                                                 \
    out[0] = __hip_atomic_fetch_add(p + i, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);                            \
    __hip_atomic_fetch_add(local + i % 7, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);                         \
    __hip_atomic_fetch_add(flat + 3, v, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT);                                  \
    out[1] = __hip_atomic_fetch_min(p + i, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);                            \
    out[2] = __hip_atomic_fetch_max(p + i, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);                           \
    out[3] = __hip_atomic_exchange(p + i, v, __ATOMIC_SEQ_CST, __HIP_MEMORY_SCOPE_SYSTEM);                            \
    out[4] = __hip_atomic_fetch_min(local + i % 9, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);                \
    out[5] = __hip_atomic_exchange(local + i % 9, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);                 \
    T e = out[6];                                                                                                     \
    __hip_atomic_compare_exchange_strong(p + i, &e, v, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); \
    __hip_atomic_compare_exchange_strong(local + i % 5, &e, v, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED,                    \
                                         __HIP_MEMORY_SCOPE_WORKGROUP);                                               \
    __hip_atomic_compare_exchange_strong(flat, &e, v, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);  \
    out[6] = e;                                                                                                       \
    out[7] = __hip_atomic_load(p + i + 1, __ATOMIC_SEQ_CST, __HIP_MEMORY_SCOPE_SYSTEM);                               \
    __hip_atomic_store(p + i + 2, e, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);                                     \
    S(p, local, out, v)                                                                                               \
  }
#define BITWISE(p, local, out, v)                                                           \
  out[8] = __hip_atomic_fetch_and(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);        \
  __hip_atomic_fetch_or(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);                  \
  __hip_atomic_fetch_xor(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);                 \
  __hip_atomic_fetch_sub(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);                 \
  __hip_atomic_fetch_and(local, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);         \
  out[9] = __hip_atomic_fetch_or(local, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP); \
  __hip_atomic_fetch_xor(local, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
#define NOTHING(p, local, out, v)
ATOMICS(i32, int, BITWISE)
ATOMICS(u32, unsigned, BITWISE)
ATOMICS(i64, i64, BITWISE)
ATOMICS(u64, u64, BITWISE)
ATOMICS(f32, float, NOTHING)
ATOMICS(f64, double, NOTHING)

#define MEMORY(T)                                          \
  KERNEL(memory_##T, T *p, const T *q, int n, int k) {     \
    SHARED static T local[1024];                           \
    unsigned i = ID, t = __builtin_amdgcn_workitem_id_x(); \
    T own[24];                                             \
    for (int j = 0; j < 24; j++) own[j] = q[i + j];        \
    own[k & 15] = q[n];                                    \
    local[t] = own[n & 15];                                \
    local[t + 64] = own[(n + 1) & 15];                     \
    local[t + 512] = q[i + 300];                           \
    __builtin_amdgcn_s_barrier();                          \
    T *flat = (n & 1) ? local + 5 : p + 9;                 \
    p[i] = local[t ^ 1];                                   \
    p[i - 3] = local[t + 1];                               \
    p[i + 70] = local[(t + 640) & 1023];                   \
    p[i + 90] = own[(k + t) & 15];                         \
    flat[t] = flat[t + 3];                                 \
    p[i * 3 + 1] = own[n & 7];                             \
  }
MEMORY(char)
MEMORY(short)
MEMORY(half)
MEMORY(int)
MEMORY(i64)
MEMORY(double)
MEMORY(float4)
MEMORY(int2)
MEMORY(half2)
MEMORY(half16)

KERNEL(buffers, void *base, int n, float *out) {
  __amdgpu_buffer_rsrc_t r = __builtin_amdgcn_make_buffer_rsrc(base, 0, 0x7ffffffe, 0x31027000);
  int i = (int)ID;
  out[i] = (float)__builtin_amdgcn_raw_buffer_load_b32(r, i * 4, n, 0);
  int4 v = __builtin_bit_cast(int4, __builtin_amdgcn_raw_buffer_load_b128(r, i * 16 + 64, 0, 1));
  int2 w = __builtin_bit_cast(int2, __builtin_amdgcn_raw_buffer_load_b64(r, i * 8, 16, 2));
  out[i + 1] = (float)(v.x + v.w + w.y + __builtin_amdgcn_raw_buffer_load_b8(r, i, 0, 0) +
                       __builtin_amdgcn_raw_buffer_load_b16(r, i, 0, 0));
  __builtin_amdgcn_raw_buffer_store_b32((unsigned)v.y, r, i * 4 + 4095, n, 0);
  __builtin_amdgcn_raw_buffer_store_b8((unsigned char)v.y, r, i, 0, 0);
  __builtin_amdgcn_raw_buffer_store_b16((unsigned short)v.z, r, 12, n, 0);
}

KERNEL(dots, int *p, float *f, half2 *h, bf2 *b) {
  unsigned i = ID;
  p[i + 100] = __builtin_amdgcn_udot4((unsigned)p[i], (unsigned)p[i + 1], (unsigned)p[i + 2], true);
  p[i + 200] = __builtin_amdgcn_udot8((unsigned)p[i], (unsigned)p[i + 1], (unsigned)p[i + 2], false);
  f[i + 100] = __builtin_amdgcn_fdot2(h[i], h[i + 1], f[i], false);
#if defined(__gfx1100__) || defined(__gfx1201__)
  p[i + 300] = __builtin_amdgcn_sudot4(true, p[i], false, p[i + 1], p[i + 2], false);
  p[i + 400] = __builtin_amdgcn_sudot8(false, p[i], true, p[i + 1], p[i + 2], true);
  f[i + 200] = __builtin_amdgcn_fdot2_f32_bf16(*(short2 *)&b[i], *(short2 *)&b[i + 1], f[i], true);
  h[i + 100].x = __builtin_amdgcn_fdot2_f16_f16(h[i], h[i + 1], h[i + 2].x);
  p[i + 500] = __builtin_amdgcn_permlane64(p[i]);
#else
  p[i + 300] = __builtin_amdgcn_sdot4(p[i], p[i + 1], p[i + 2], true);
  p[i + 400] = __builtin_amdgcn_sdot8(p[i], p[i + 1], p[i + 2], false);
  p[i + 500] = __builtin_amdgcn_sdot2(*(short2 *)&p[i], *(short2 *)&p[i + 1], p[i + 2], false);
#endif
}

KERNEL(mixed, float *f, half *h, half2 *h2) {
  unsigned i = ID;
  f[i] = (float)h[i] * (float)h[i + 1] + f[i + 2];
  f[i + 100] = (float)h2[i].y * f[i + 1] - (float)h2[i + 1].x;
  h[i + 100] = (half)(f[i] * (float)h[i + 1] + (float)h[i + 2]);
  h2[i + 100].y = (half)((float)h2[i].x * (float)h2[i + 1].y + f[i]);
  h2[i + 200] = half2{(half)f[i], (half)f[i + 1]};
}

#if defined(__gfx1100__) && !defined(WAVE64)
KERNEL(wmma, float8 *c, half16 *a, short16 *b, half16 *d, int8 *e, int4 *g, int2 *k) {
  unsigned i = ID;
  c[i] = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(a[i], a[i + 1], c[i]);
  c[i + 1] = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(b[i], b[i + 1], c[i + 1]);
  d[i] = __builtin_amdgcn_wmma_f16_16x16x16_f16_w32(a[i], a[i + 1], d[i], true);
  b[i + 9] = __builtin_amdgcn_wmma_bf16_16x16x16_bf16_w32(b[i], b[i + 1], b[i + 2], false);
  e[i] = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(true, g[i], false, g[i + 1], e[i], true);
  e[i + 1] = __builtin_amdgcn_wmma_i32_16x16x16_iu4_w32(false, k[i], true, k[i + 1], e[i + 1], false);
  float8 zero = {};
  c[i + 2] = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(a[i + 2], a[i + 3], zero);
}
#elif defined(__gfx1201__) && !defined(WAVE64)
typedef _Float16 half8 __attribute__((ext_vector_type(8)));
typedef short short8 __attribute__((ext_vector_type(8)));
KERNEL(wmma, float8 *c, half8 *a, short8 *b, int8 *e, int2 *g, int *k, short16 *s) {
  unsigned i = ID;
  c[i] = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(a[i], a[i + 1], c[i]);
  c[i + 1] = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(b[i], b[i + 1], c[i + 1]);
  a[i + 9] = __builtin_amdgcn_wmma_f16_16x16x16_f16_w32_gfx12(a[i], a[i + 1], a[i + 2]);
  b[i + 9] = __builtin_amdgcn_wmma_bf16_16x16x16_bf16_w32_gfx12(b[i], b[i + 1], b[i + 2]);
  e[i] = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32_gfx12(true, g[i], false, g[i + 1], e[i], true);
  e[i + 1] = __builtin_amdgcn_wmma_i32_16x16x16_iu4_w32_gfx12(false, k[i], true, k[i + 1], e[i + 1], false);
  c[i + 2] = __builtin_amdgcn_wmma_f32_16x16x16_fp8_bf8_w32_gfx12(g[i], g[i + 1], c[i + 2]);
  c[i + 3] = __builtin_amdgcn_swmmac_f32_16x16x32_bf16_w32(b[i], s[i], c[i + 3], k[i + 2]);
}
#endif

DEVICE __attribute__((noinline)) int callee(int a, int *b) { return a * 7 + b[a & 3]; }
KERNEL(calls, int *p, int (*f)(int, int *), int n) {
  int own[4] = {n, 2, 3, p[ID]};
  p[ID] = callee(n, own) + f(n, own) + (n > 5 ? __builtin_amdgcn_readfirstlane(p[n]) : 0);
  if (p[0] == 77) __builtin_trap();
  asm volatile("s_nop 7");
}

KERNEL(scalars, const u64 *p, u64 *out, int a, u32 b, u64 c, i64 d, double e, float f) {
  out[0] = c * (u64)d + p[a];
  out[1] = (c << (a & 63)) | (c >> (b & 63));
  out[2] =
      (u64)__builtin_popcountl(c) + (u64)__builtin_clzl(c | 1) + (u64)__builtin_ctzl(c | 2) + __builtin_bitreverse64(c);
  out[3] = (u64)(a > 5 ? b : (u32)a) + (c == (u64)d ? 1 : 2) + (u64)(d >> 3);
  out[4] = (b & 0xff00) >> 4 | ((u32)a >> 7 & 31) << 3;
  out[5] = (u64)(a * (int)b) + (u64)(((u64)(u32)a * b) >> 32) + (u64)(((i64)a * (int)b) >> 32);
  out[6] = (u64)__builtin_abs(a) + (u64)(a < (int)b ? a : (int)b) + (u64)((u32)a > b ? (u32)a : b);
  out[7] = (u64)(short)a + (u64)(signed char)b + (c & ~(u64)d) + (c ^ ~(u64)d);
  out[8] = (u64)(i64)e + (u64)f + (u64)(a + 100) * 1000;
  for (int i = 0; i < a; i++) out[9 + i] = p[i] + b * (u32)i;
}
