"""Wave-instructions a second of processor time on one core, of kernels of six kinds, without and with the checker.

Usage: speed_bench.py [--runs N] [--only NAME,…] [emu_step …]

Several programs have their turns run after run, and of each the fastest counts: other work on the machine slows all of
them alike. Each kernel's result is compared with NumPy's once.
"""
import argparse
import struct
import sys

import numpy as np

from emulator import MEMORY, Emulator, Kernel, compile_hip, places

HEAD = """
typedef unsigned u32;
typedef unsigned short u16;
#define FENCE(order) __builtin_amdgcn_fence(order, "workgroup")
#define BARRIER FENCE(__ATOMIC_RELEASE); __builtin_amdgcn_s_barrier(); FENCE(__ATOMIC_ACQUIRE)
#define KERNEL(threads) \\
  extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(threads, threads))) void
#define SHARED __attribute__((shared)) static
#define THREAD __builtin_amdgcn_workitem_id_x()
#define GROUP_X __builtin_amdgcn_workgroup_id_x()
#define GROUP_Y __builtin_amdgcn_workgroup_id_y()
#define DEVICE __attribute__((device)) inline
typedef _Float16 half4 __attribute__((ext_vector_type(4)));
typedef _Float16 half16 __attribute__((ext_vector_type(16)));
typedef float float4 __attribute__((ext_vector_type(4)));
typedef float float8 __attribute__((ext_vector_type(8)));
// of waves of 32 lanes
DEVICE float of_lane(float v, u32 lane) {
  return __builtin_bit_cast(float, __builtin_amdgcn_ds_bpermute((int)lane * 4, __builtin_bit_cast(int, v)));
}
DEVICE float sum_of(float v) {
  for (u32 d = 16; d; d /= 2) v += of_lane(v, (THREAD & 31) ^ d);
  return v;
}
DEVICE float max_of(float v) {
  for (u32 d = 16; d; d /= 2) v = __builtin_fmaxf(v, of_lane(v, (THREAD & 31) ^ d));
  return v;
}
DEVICE float exp_of(float x) { return __builtin_amdgcn_exp2f(x * 1.442695041f); }
"""

# c (.., n) = a (.., k) b (k, n), in tiles of 64 x 64
GEMM = """
KERNEL(256) product(const float *a, const float *b, float *c, int n, int k) {
  SHARED float as[16][68], bs[16][68];
  u32 t = THREAD, x = t % 16, y = t / 16;
  u32 row = GROUP_Y * 64, column = GROUP_X * 64;
  float sum[4][4] = {};
  for (int at = 0; at < k; at += 16) {
    for (int i = 0; i < 4; i++) {
      u32 e = t + i * 256;
      as[e % 16][e / 16] = a[(row + e / 16) * k + at + e % 16];
      bs[e / 64][e % 64] = b[(at + e / 64) * n + column + e % 64];
    }
    BARRIER;
#pragma unroll
    for (int s = 0; s < 16; s++)
      for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) sum[i][j] = __builtin_fmaf(as[s][y * 4 + i], bs[s][x * 4 + j], sum[i][j]);
    BARRIER;
  }
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) c[(row + y * 4 + i) * n + column + x * 4 + j] = sum[i][j];
}
"""

# c (.., n) = a (.., k) b (n, k)^T of halves, sums in floats: four waves, each of 2 x 2 tiles of 16 x 16
WMMA = """
KERNEL(128) product(const _Float16 *a, const _Float16 *b, float *c, int n, int k) {
  SHARED half16 as[64][3], bs[64][3];
  u32 t = THREAD, wave = t / 32, lane = t % 32, row = GROUP_Y * 64, column = GROUP_X * 64;
  float8 sum[2][2] = {};
  for (int at = 0; at < k; at += 32) {
    as[t / 2][t % 2] = *(const half16 *)(a + (row + t / 2) * k + at + t % 2 * 16);
    bs[t / 2][t % 2] = *(const half16 *)(b + (column + t / 2) * k + at + t % 2 * 16);
    BARRIER;
    for (int s = 0; s < 2; s++)
      for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
          sum[i][j] = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(as[wave / 2 * 32 + i * 16 + lane % 16][s],
                                                                 bs[wave % 2 * 32 + j * 16 + lane % 16][s], sum[i][j]);
    BARRIER;
  }
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++)
      for (int e = 0; e < 8; e++)
        c[(row + wave / 2 * 32 + i * 16 + 2 * e + lane / 16) * n + column + wave % 2 * 32 + j * 16 + lane % 16] =
            sum[i][j][e];
}
"""

# the same by MFMA, in waves of 64 lanes
MFMA = """
KERNEL(256) product(const _Float16 *a, const _Float16 *b, float *c, int n, int k) {
  SHARED half4 as[64][9], bs[64][9];
  u32 t = THREAD, wave = t / 64, lane = t % 64, row = GROUP_Y * 64, column = GROUP_X * 64;
  float4 sum[2][2] = {};
  for (int at = 0; at < k; at += 32) {
    for (int i = 0; i < 2; i++) {
      u32 e = t + i * 256;
      as[e / 8][e % 8] = *(const half4 *)(a + (row + e / 8) * k + at + e % 8 * 4);
      bs[e / 8][e % 8] = *(const half4 *)(b + (column + e / 8) * k + at + e % 8 * 4);
    }
    BARRIER;
    for (int s = 0; s < 2; s++)
      for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
          sum[i][j] = __builtin_amdgcn_mfma_f32_16x16x16f16(as[wave / 2 * 32 + i * 16 + lane % 16][s * 4 + lane / 16],
                                                            bs[wave % 2 * 32 + j * 16 + lane % 16][s * 4 + lane / 16],
                                                            sum[i][j], 0, 0, 0);
    BARRIER;
  }
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++)
      for (int e = 0; e < 4; e++)
        c[(row + wave / 2 * 32 + i * 16 + lane / 16 * 4 + e) * n + column + wave % 2 * 32 + j * 16 + lane % 16] =
            sum[i][j][e];
}
"""

# of rows of `width` values, one wave each, eight in a group
SOFTMAX = """
KERNEL(256) softmax(const float *from, float *to, u32 width) {
  u32 at = (GROUP_X * 8 + THREAD / 32) * width, lane = THREAD % 32;
  float most = -__builtin_inff(), sum = 0;
  for (u32 i = lane; i < width; i += 32) most = __builtin_fmaxf(most, from[at + i]);
  most = max_of(most);
  for (u32 i = lane; i < width; i += 32) sum += exp_of(from[at + i] - most);
  float scale = 1 / sum_of(sum);
  for (u32 i = lane; i < width; i += 32) to[at + i] = exp_of(from[at + i] - most) * scale;
}
"""

# x * sigmoid(x) + y, four values a thread and turn
POINTWISE = """
KERNEL(256) pointwise(const float *x, const float *y, float *z, u32 count) {
  for (u32 i = (GROUP_X * 256 + THREAD) * 4; i < count; i += 16 * 1024) {
    float4 a = *(const float4 *)(x + i), b = *(const float4 *)(y + i);
    for (int k = 0; k < 4; k++) a[k] = a[k] * __builtin_amdgcn_rcpf(1 + exp_of(-a[k])) + b[k];
    *(float4 *)(z + i) = a;
  }
}
"""

# 32 queries a group, one a lane, of heads of 32 values; keys and values through LDS, 32 at a time
ATTENTION = """
KERNEL(32) attention(const float *q, const float *keys, const float *values, float *to, u32 length) {
  SHARED float ks[32][32], vs[32][32];
  u32 t = THREAD, mine = (GROUP_X * 32 + t) * 32;
  float query[32], sum[32] = {}, most = -__builtin_inff(), all = 0;
  for (int i = 0; i < 32; i++) query[i] = q[mine + i] * 0.1767766953f;
  for (u32 at = 0; at < length; at += 32) {
    for (int i = 0; i < 32; i++) ks[i][t] = keys[(at + i) * 32 + t], vs[i][t] = values[(at + i) * 32 + t];
    BARRIER;
    for (int j = 0; j < 32; j++) {
      float score = 0;
      for (int i = 0; i < 32; i++) score += query[i] * ks[j][i];
      float now = __builtin_fmaxf(most, score), old = exp_of(most - now), p = exp_of(score - now);
      all = all * old + p;
      for (int i = 0; i < 32; i++) sum[i] = sum[i] * old + p * vs[j][i];
      most = now;
    }
    BARRIER;
  }
  for (int i = 0; i < 32; i++) to[mine + i] = sum[i] / all;
}
"""


def product_case(rng, size, dtype, transposed):
    a, b = (rng.standard_normal((size, size)).astype(dtype) for _ in range(2))
    expected = a.astype(float) @ (b.astype(float).T if transposed else b)
    return [a, b, np.zeros((size, size), np.float32)], (size, size), (size // 64, size // 64, 1), expected


def softmax_case(rng):
    x = rng.standard_normal((512, 1000), dtype=np.float32)
    e = np.exp(x - x.max(1, keepdims=True).astype(float))
    return [x, np.zeros_like(x)], (1000,), (64, 1, 1), e / e.sum(1, keepdims=True)


def pointwise_case(rng):
    x, y = (rng.standard_normal(1 << 20, dtype=np.float32) for _ in range(2))
    return [x, y, np.zeros_like(x)], (x.size,), (16, 1, 1), x / (1 + np.exp(-x.astype(float))) + y


def attention_case(rng):
    q, k, v = (rng.standard_normal((256, 32), dtype=np.float32) for _ in range(3))
    p = np.exp(q.astype(float) @ k.T / np.sqrt(32))
    return [q, k, v, np.zeros_like(q)], (256,), (8, 1, 1), p / p.sum(1, keepdims=True) @ v


# name: targets, source, kernel, threads, case
KERNELS = {
    "gemm": (("gfx1100", "gfx1030"), GEMM, "product", 256, lambda r: product_case(r, 256, np.float32, False)),
    "wmma": (("gfx1100",), WMMA, "product", 128, lambda r: product_case(r, 512, np.float16, True)),
    "softmax": (("gfx1100", "gfx1030"), SOFTMAX, "softmax", 256, softmax_case),
    "pointwise": (("gfx1100",), POINTWISE, "pointwise", 256, pointwise_case),
    "attention": (("gfx1100",), ATTENTION, "attention", 32, attention_case),
    "mfma": (("gfx942",), MFMA, "product", 256, lambda r: product_case(r, 512, np.float16, True)),
}


def measure(emulators, target, name, runs):
    _, source, function, threads, make = KERNELS[name]
    buffers, numbers, groups, expected = make(np.random.default_rng(1))
    kernel = Kernel(compile_hip(HEAD + source, target), function, target)
    kernarg = struct.pack(f"<{len(buffers)}Q{len(numbers)}I", *[MEMORY + o for o in places(buffers)[0]], *numbers)

    def go(emulator, **more):
        result = emulator.launch(kernel, kernarg, buffers, groups, (threads, 1, 1), **more)
        if result.status or result.report_count:
            raise RuntimeError(f"{name} on {target}: {result.text} {result.reports}")
        return result
    counted = go(emulators[0], counters=True)
    total = sum(v for key, v in counted.counters.items() if key.startswith("n_"))
    error = float(np.abs(counted.buffers[-1].reshape(expected.shape) - expected).max())
    if not error < 1e-3:
        raise RuntimeError(f"{name} on {target} is {error:.1e} from NumPy's")
    least = {(i, check): 1e9 for i in range(len(emulators)) for check in (False, True)}
    for _ in range(runs):
        for i, check in least:
            least[i, check] = min(least[i, check], go(emulators[i], check=check).seconds)
    rate = {key: total / seconds / 1e6 for key, seconds in least.items()}
    print(f"{name:10} {target:8} {total:9} instructions", *(f"{rate[i, False]:7.1f} ({rate[i, True]:5.1f})"
                                                          for i in range(len(emulators))), flush=True)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--only", default=",".join(KERNELS))
    options.add_argument("programs", nargs="*", default=[None])
    given = options.parse_args()
    emulators = [Emulator(program) for program in given.programs]
    print("million wave-instructions a second on one core (with the checker), of each emulator")
    for name in given.only.split(","):
        for target in KERNELS[name][0]:
            measure(emulators, target, name, given.runs)
    return max(emulator.close() for emulator in emulators)


if __name__ == "__main__":
    sys.exit(main())
