"""Wave-instructions a second of processor time on one core, for an f32 matrix product. Usage: speed_bench.py [emu_step]"""
import struct
import sys

import numpy as np

from emulator import MEMORY, Emulator, Kernel, compile_hip, places

SOURCE = """
typedef unsigned u32;
#define FENCE(order) __builtin_amdgcn_fence(order, "workgroup")
#define BARRIER FENCE(__ATOMIC_RELEASE); __builtin_amdgcn_s_barrier(); FENCE(__ATOMIC_ACQUIRE)
extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(256, 256))) void product(
    const float *a, const float *b, float *c, int n, int k) {  // c (.., n) = a (.., k) b (k, n)
  __attribute__((shared)) static float as[16][68], bs[16][68];
  u32 t = __builtin_amdgcn_workitem_id_x(), x = t % 16, y = t / 16;
  u32 row = __builtin_amdgcn_workgroup_id_y() * 64, column = __builtin_amdgcn_workgroup_id_x() * 64;
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
SIZE, RUNS = 512, 5


def main():
    emulator = Emulator(sys.argv[1] if len(sys.argv) > 1 else None)
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((SIZE, SIZE), dtype=np.float32) for _ in range(2))
    for target in ("gfx1100", "gfx1030"):
        kernel = Kernel(compile_hip(SOURCE, target), "product", target)
        buffers = [a, b, np.zeros_like(a)]
        kernarg = struct.pack("<QQQii", *[MEMORY + o for o in places(buffers)[0]], SIZE, SIZE)

        def go(**more):
            return emulator.launch(kernel, kernarg, buffers, (SIZE // 64, SIZE // 64, 1), (256, 1, 1), **more)
        counted = go(counters=True)
        if counted.status:
            print(counted.text)
            return 1
        total = sum(v for name, v in counted.counters.items() if name.startswith("n_"))
        runs = [go() for _ in range(RUNS)]
        error = float(np.abs(runs[0].buffers[2].reshape(SIZE, SIZE) - a.astype(float) @ b).max())
        checked = go(check=True)
        best = min(r.seconds for r in runs)
        print(f"{target}: {total} wave-instructions, {total / best / 1e6:.1f} million a second on one core "
              f"({total / checked.seconds / 1e6:.2f} with the checker), largest error {error:.1e}")
    return emulator.close()


if __name__ == "__main__":
    sys.exit(main())
