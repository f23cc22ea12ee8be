// clang-format off: a mistake and the words that mark it stand on one line
// Mistakes of the memory model, one a kernel, and (with REPAIRED) the same without it: a release, an acquire or a scope
// that is missing between waves, and atomic operations beside plain accesses. As in planted.hip, a line that says FINDS
// and a kernel's name is where the checker must report that kernel. Kernels model_right_… are correct in both objects.
//
// Where a mistake compiles to what the right program compiles to, there is none in the object, and the kernel is left
// out for that target: waves of gfx1030 and gfx1100 wait for the same at work-group scope as at agent scope, and those of
// one group on GFX9 share the caches.
#include "planted.h"

#define RELAXED __ATOMIC_RELAXED
#define ACQUIRE __ATOMIC_ACQUIRE
#define RELEASE __ATOMIC_RELEASE
#define ACQ_REL __ATOMIC_ACQ_REL
#define SEQ_CST __ATOMIC_SEQ_CST
#define WORKGROUP __HIP_MEMORY_SCOPE_WORKGROUP
#define AGENT __HIP_MEMORY_SCOPE_AGENT
#define SYSTEM __HIP_MEMORY_SCOPE_SYSTEM
#define LOAD __hip_atomic_load
#define STORE __hip_atomic_store
#define ADD __hip_atomic_fetch_add
#define SWAP __hip_atomic_exchange
#define COMPARE_SWAP __hip_atomic_compare_exchange_strong
#define FENCE __builtin_amdgcn_fence
#define NOTHING ((void)0)
#define PAUSE __builtin_amdgcn_s_sleep(1)
#define GROUPS 4

#if defined(__gfx1030__) || defined(__gfx1100__)
#define SAME_AT_GROUP_SCOPE 1
#endif
#if defined(__gfx942__) || defined(__gfx1201__)
#define STORES_TELL 1  // whether they are atomic
#endif

// ---- a value passed through a flag, from the group that runs first to the next ones

#define PASS(release, acquire)                       \
  if (GROUP == 0) {                                  \
    tmp[LANE] = in[LANE & 63];                       \
    barrier();                                       \
    if (LANE == 0) STORE(counter, 1, release, AGENT); \
    return;                                          \
  }                                                  \
  while (!LOAD(counter, acquire, AGENT)) PAUSE

KERNEL(model_pass_no_acquire) {
  PASS(RELEASE, EITHER(RELAXED, ACQUIRE));
  if (GROUP == 1) tmp[2048 + LANE] = tmp[LANE];  // FINDS model_pass_no_acquire
}

// The reader waits first: it has a lower number.
KERNEL(model_late_no_acquire) {
  if (LANE) return;
  if (GROUP == 1) {
    tmp[0] = in[0];
    STORE(counter, 1, RELEASE, AGENT);
  } else if (GROUP == 0) {
    while (!LOAD(counter, EITHER(RELAXED, ACQUIRE), AGENT)) PAUSE;
    out[0] = tmp[0];  // FINDS model_late_no_acquire
  }
}

KERNEL(model_pass_no_release) {
  if (LANE) return;
  if (GROUP == 0) {
    tmp[0] = in[0];
    STORE(counter, 1, EITHER(RELAXED, RELEASE), AGENT);
  } else if (GROUP == 1) {
    while (!LOAD(counter, ACQUIRE, AGENT)) PAUSE;
    out[0] = tmp[0];  // FINDS model_pass_no_release
  }
}

// A plain store in place of the atomic one.
KERNEL(model_pass_plain_store) {
  if (LANE) return;
  if (GROUP == 0) {
    tmp[0] = in[0];
    EITHER(*(volatile int *)counter = 1, STORE(counter, 1, RELEASE, AGENT));
  } else if (GROUP == 1) {
    while (!LOAD(counter, ACQUIRE, AGENT)) PAUSE;
    out[0] = tmp[0];  // FINDS model_pass_plain_store
  }
}

// What GFX9 compiles this acquire to are plain loads.
KERNEL(model_pass_narrow_acquire) {
  if (LANE) return;
  if (GROUP == 0) {
    tmp[0] = in[0];
    STORE(counter, 1, RELEASE, AGENT);
  } else if (GROUP == 1) {
    while (!LOAD(counter, ACQUIRE, EITHER(WORKGROUP, AGENT))) PAUSE; out[0] = tmp[0];  // FINDS model_pass_narrow_acquire
  }
}

#ifndef SAME_AT_GROUP_SCOPE
KERNEL(model_pass_narrow_release) {
  if (LANE) return;
  if (GROUP == 0) {
    tmp[0] = in[0];
    STORE(counter, 1, RELEASE, EITHER(WORKGROUP, AGENT));
  } else if (GROUP == 1) {
    while (!LOAD(counter, ACQUIRE, AGENT)) PAUSE;
    out[0] = tmp[0];  // FINDS model_pass_narrow_release
  }
}
#endif

// The flag is looked at by an atomic operation.
KERNEL(model_pass_by_add) {
  if (LANE) return;
  if (GROUP == 0) {
    tmp[0] = in[0];
    ADD(counter, 1, EITHER(RELAXED, RELEASE), AGENT);
  } else if (GROUP == 1) {
    while (!ADD(counter, 0, ACQUIRE, AGENT)) PAUSE;
    out[0] = tmp[0];  // FINDS model_pass_by_add
  }
}

KERNEL(model_add_no_acquire) {
  if (LANE) return;
  if (GROUP == 0) {
    tmp[0] = in[0];
    ADD(counter, 1, RELEASE, AGENT);
  } else if (GROUP == 1) {
    while (!ADD(counter, 0, EITHER(RELAXED, ACQUIRE), AGENT)) PAUSE;
    out[0] = tmp[0];  // FINDS model_add_no_acquire
  }
}

// ---- fences

KERNEL(model_fence_no_release) {
  if (LANE) return;
  if (GROUP == 0) {
    tmp[0] = in[0];
    EITHER(NOTHING, FENCE(RELEASE, "agent"));
    STORE(counter, 1, RELAXED, AGENT);
  } else if (GROUP == 1) {
    while (!LOAD(counter, RELAXED, AGENT)) PAUSE;
    FENCE(ACQUIRE, "agent");
    out[0] = tmp[0];  // FINDS model_fence_no_release
  }
}

KERNEL(model_fence_no_acquire) {
  if (LANE) return;
  if (GROUP == 0) {
    tmp[0] = in[0];
    FENCE(RELEASE, "agent");
    STORE(counter, 1, RELAXED, AGENT);
  } else if (GROUP == 1) {
    while (!LOAD(counter, RELAXED, AGENT)) PAUSE;
    EITHER(NOTHING, FENCE(ACQUIRE, "agent"));
    out[0] = tmp[0];  // FINDS model_fence_no_acquire
  }
}

KERNEL(model_fence_narrow) {
  if (LANE) return;
  if (GROUP == 0) {
    tmp[0] = in[0];
    FENCE(RELEASE, "agent");
    STORE(counter, 1, RELAXED, AGENT);
  } else if (GROUP == 1) {
    while (!LOAD(counter, RELAXED, AGENT)) PAUSE;
    FENCE(ACQUIRE, EITHER("workgroup", "agent"));
    out[0] = tmp[0];  // FINDS model_fence_narrow
  }
}

// The fence stands before what it should release.
KERNEL(model_fence_too_early) {
  if (LANE) return;
  if (GROUP == 0) {
    EITHER(FENCE(RELEASE, "agent"), NOTHING);
    tmp[0] = in[0];
    EITHER(NOTHING, FENCE(RELEASE, "agent"));
    STORE(counter, 1, RELAXED, AGENT);
  } else if (GROUP == 1) {
    while (!LOAD(counter, RELAXED, AGENT)) PAUSE;
    FENCE(ACQUIRE, "agent");
    out[0] = tmp[0];  // FINDS model_fence_too_early
  }
}

// One flag is released, and another one told of.
KERNEL(model_other_flag) {
  if (LANE) return;
  if (GROUP == 0) {
    STORE(counter + 8, 1, RELEASE, AGENT);
    tmp[0] = in[0];
    STORE(counter + EITHER(16, 8), 2, RELEASE, AGENT);
  } else if (GROUP == 1) {
    while (!LOAD(counter + 8, ACQUIRE, AGENT)) PAUSE;
    out[0] = tmp[0];  // FINDS model_other_flag
  }
}

// ---- locks

KERNEL(model_lock_no_acquire) {
  if (LANE) return;
  while (SWAP(counter, 1, EITHER(RELAXED, ACQUIRE), AGENT)) PAUSE;
  counter[1] = counter[1] + 1;  // FINDS model_lock_no_acquire
  STORE(counter, 0, RELEASE, AGENT);
}

KERNEL(model_lock_no_release) {
  if (LANE) return;
  while (SWAP(counter, 1, ACQUIRE, AGENT)) PAUSE;
  counter[1] = counter[1] + 1;  // FINDS model_lock_no_release
  STORE(counter, 0, EITHER(RELAXED, RELEASE), AGENT);
}

KERNEL(model_lock_swapped_back) {
  if (LANE) return;
  while (SWAP(counter, 1, ACQUIRE, AGENT)) PAUSE;
  counter[1] = counter[1] + 1;  // FINDS model_lock_swapped_back
  (void)SWAP(counter, 0, EITHER(RELAXED, RELEASE), AGENT);
}

KERNEL(model_ticket_no_acquire) {
  if (LANE) return;
  int mine = ADD(counter, 1, RELAXED, AGENT);
  while (LOAD(counter + 1, EITHER(RELAXED, ACQUIRE), AGENT) != mine) PAUSE;
  counter[2] = counter[2] + 1;  // FINDS model_ticket_no_acquire
  STORE(counter + 1, mine + 1, RELEASE, AGENT);
}

KERNEL(model_ticket_no_release) {
  if (LANE) return;
  int mine = ADD(counter, 1, RELAXED, AGENT);
  while (LOAD(counter + 1, ACQUIRE, AGENT) != mine) PAUSE;
  counter[2] = counter[2] + 1;  // FINDS model_ticket_no_release
  STORE(counter + 1, mine + 1, EITHER(RELAXED, RELEASE), AGENT);
}

// ---- the last of the groups sums what all have written

KERNEL(model_last_no_fence) {
  if (LANE) return;
  tmp[GROUP * 128] = in[GROUP];
  EITHER(NOTHING, FENCE(SEQ_CST, "agent"));
  if (ADD(counter, 1, RELAXED, AGENT) != GROUPS - 1) return;
  FENCE(SEQ_CST, "agent");
  float sum = 0;
  for (int g = 0; g < GROUPS; g++) sum += tmp[g * 128];  // FINDS model_last_no_fence
  out[0] = sum;
}

KERNEL(model_last_no_acquire) {
  __shared__ int arrived;
  tmp[GROUP * 128 + LANE] = in[LANE & 63];
  FENCE(SEQ_CST, "agent");
  barrier();
  if (LANE == 0) arrived = ADD(counter, 1, RELAXED, AGENT);
  barrier();
  if (arrived != GROUPS - 1) return;
  EITHER(NOTHING, FENCE(SEQ_CST, "agent"));
  float sum = 0;
  for (int g = 0; g < GROUPS; g++) sum += tmp[g * 128 + LANE];  // FINDS model_last_no_acquire
  tmp[2048 + LANE] = sum;
}

// The group's other waves may still be writing.
KERNEL(model_last_no_barrier) {
  __shared__ int arrived;
  tmp[GROUP * 128 + 127 - LANE] = in[LANE & 63];
  FENCE(SEQ_CST, "agent");
  EITHER(NOTHING, barrier());
  if (LANE == 0) arrived = ADD(counter, 1, RELAXED, AGENT);
  barrier();
  if (arrived != GROUPS - 1) return;
  FENCE(SEQ_CST, "agent");
  float sum = 0;
  for (int g = 0; g < GROUPS; g++) sum += tmp[g * 128 + LANE];  // FINDS model_last_no_barrier
  tmp[2048 + LANE] = sum;
}

// ---- scans that look back at the groups before

#define LOOK_BACK(acquire)                                   \
  float sum = 0;                                                      \
  for (int g = GROUP - 1; g >= 0; g--) {                              \
    int state;                                                        \
    while (!(state = LOAD(counter + g, acquire, AGENT))) PAUSE;       \
    sum += tmp[state == 2 ? 64 + g : g]; /* of that group, or all */  \
    if (state == 2) break;                                            \
  }

KERNEL(model_scan_no_acquire) {
  if (LANE) return;
  tmp[GROUP] = in[GROUP];
  STORE(counter + GROUP, 1, RELEASE, AGENT);
  LOOK_BACK(EITHER(RELAXED, ACQUIRE))  // FINDS model_scan_no_acquire
  tmp[64 + GROUP] = sum + in[GROUP];
  STORE(counter + GROUP, 2, RELEASE, AGENT);
}

KERNEL(model_scan_no_release) {
  if (LANE) return;
  tmp[GROUP] = in[GROUP];
  STORE(counter + GROUP, 1, RELEASE, AGENT);
  LOOK_BACK(ACQUIRE)  // FINDS model_scan_no_release
  tmp[64 + GROUP] = sum + in[GROUP];
  STORE(counter + GROUP, 2, EITHER(RELAXED, RELEASE), AGENT);
}

// ---- barriers of the grid

static __attribute__((device)) inline __attribute__((always_inline)) void meet(int *counter, int to) {
  if (LANE == 0) {
    (void)ADD(counter, 1, RELAXED, AGENT);
    while (LOAD(counter, RELAXED, AGENT) < to) PAUSE;
  }
}

KERNEL(model_grid_no_release) {
  tmp[GROUP * 128 + LANE] = in[LANE & 63];
  EITHER(NOTHING, barrier());
  EITHER(NOTHING, FENCE(RELEASE, "agent"));
  meet(counter, GROUPS);
  barrier();
  FENCE(ACQUIRE, "agent");
  float v = tmp[(GROUP ^ 1) * 128 + LANE];  // FINDS model_grid_no_release
  tmp[2048 + GROUP * 128 + LANE] = v;
}

KERNEL(model_grid_no_acquire) {
  tmp[GROUP * 128 + LANE] = in[LANE & 63];
  barrier();
  FENCE(RELEASE, "agent");
  meet(counter, GROUPS);
  barrier();
  EITHER(NOTHING, FENCE(ACQUIRE, "agent"));
  float v = tmp[(GROUP ^ 1) * 128 + LANE];  // FINDS model_grid_no_acquire
  tmp[2048 + GROUP * 128 + LANE] = v;
}

// ---- waves of one group

#ifndef __GFX9__
KERNEL(model_waves_no_release) {
  if (LANE & 31) return;
  if (LANE == 0) {
    tmp[0] = in[0];
    STORE(counter, 1, EITHER(RELAXED, RELEASE), WORKGROUP);
  } else if (LANE == 32) {
    while (!LOAD(counter, ACQUIRE, WORKGROUP)) PAUSE;
    out[0] = tmp[0];  // FINDS model_waves_no_release
  }
}

KERNEL(model_waves_no_acquire) {
  if (LANE & 31) return;
  if (LANE == 0) {
    tmp[0] = in[0];
    STORE(counter, 1, RELEASE, WORKGROUP);
  } else if (LANE == 32) {
    while (!LOAD(counter, EITHER(RELAXED, ACQUIRE), WORKGROUP)) PAUSE;
    out[0] = tmp[0];  // FINDS model_waves_no_acquire
  }
}
#endif

// ---- atomic operations beside plain accesses

KERNEL(model_sum_read_plainly) {
  if (LANE) return;
  if (GROUP < 3) (void)ADD(counter + 1, 5, RELAXED, AGENT);
  EITHER(NOTHING, FENCE(SEQ_CST, "agent"));
  if (ADD(counter, 1, RELAXED, AGENT) != GROUPS - 1) return;
  EITHER(NOTHING, FENCE(SEQ_CST, "agent"));
  out[0] = (float)counter[1];  // FINDS model_sum_read_plainly
}

// A group sets back what others count with: before one of them, and behind all.
KERNEL(model_set_back) {
  if (LANE) return;
  if (GROUP == 2) {
    EITHER(*counter = 7, (void)SWAP(counter, 7, RELAXED, AGENT));  // FINDS model_set_back
  } else {
    (void)ADD(counter, 1, RELAXED, AGENT);  // FINDS model_set_back
  }
}

#ifndef STORES_TELL
#define SET_BACK(at, value) EITHER(*(at) = value, (void)SWAP(at, value, RELAXED, AGENT))
#else
#define SET_BACK(at, value) EITHER(*(at) = value, STORE(at, value, RELAXED, AGENT))
#endif
KERNEL(model_set_back_last) {
  if (LANE) return;
  if (GROUP == 3) {
    SET_BACK(counter, 7);  // FINDS model_set_back_last
  } else {
    (void)ADD(counter, 1, RELAXED, AGENT);
  }
}

// ---- right in both objects

// What the first group has written reaches the third by way of the second.
KERNEL(model_right_chain) {
  if (LANE) return;
  if (GROUP == 0) tmp[0] = in[0];
  while (LOAD(counter, ACQUIRE, AGENT) != GROUP) PAUSE;
  if (GROUP == 3) out[0] = tmp[0];
  STORE(counter, GROUP + 1, RELEASE, AGENT);
}

// Stores stand between the fence and the flag.
KERNEL(model_right_fence) {
  if (LANE) return;
  if (GROUP == 0) {
    tmp[0] = in[0];
    FENCE(RELEASE, "agent");
    tmp[200] = in[1];
    STORE(counter, 1, RELAXED, AGENT);
  } else if (GROUP == 1) {
    while (!LOAD(counter, RELAXED, AGENT)) PAUSE;
    FENCE(ACQUIRE, "agent");
    out[0] = tmp[0];
  }
}

// One wave asks, and all read.
KERNEL(model_right_spread) {
  __shared__ int value;
  if (GROUP == 0) tmp[LANE] = in[LANE & 63];
  barrier();
  if (LANE == 0) {
    if (GROUP == 0) STORE(counter, 1, RELEASE, AGENT);
    while (!LOAD(counter, ACQUIRE, AGENT)) PAUSE;
    value = LANE;
  }
  barrier();
  if (GROUP == 3) tmp[2048 + LANE] = tmp[(LANE + value) & 127];
}

// Sums of floats by comparison and swap, whose first look is a plain load.
KERNEL(model_right_swap_loop) {
  if (LANE & 31) return;
  int seen = *counter;
  while (!COMPARE_SWAP(counter, &seen, seen + 2, RELAXED, RELAXED, AGENT)) {}
}

// Several rounds of a barrier of the grid, each behind the next value of its counter.
KERNEL(model_right_rounds) {
  float v = in[LANE & 63];
  for (int round = 1; round <= 5; round++) {
    tmp[(round & 1) * 1024 + GROUP * 128 + LANE] = v;
    barrier();
    FENCE(RELEASE, "agent");
    meet(counter, round * GROUPS);
    barrier();
    FENCE(ACQUIRE, "agent");
    v += tmp[(round & 1) * 1024 + ((GROUP + 1) & 3) * 128 + (LANE ^ 33)];
  }
  if (v == 77) PAUSE;
}

// The system's scope where the agent's would do.
KERNEL(model_right_system) {
  if (LANE) return;
  if (GROUP == 0) {
    tmp[0] = in[0];
    STORE(counter, 1, RELEASE, SYSTEM);
  } else if (GROUP == 1) {
    while (!LOAD(counter, ACQUIRE, SYSTEM)) PAUSE;
    out[0] = tmp[0];
  }
}

// The lock's next owner writes what the owners before have read.
KERNEL(model_right_readers) {
  if (LANE) return;
  int expected = 0;
  while (!COMPARE_SWAP(counter, &expected, 1, ACQUIRE, RELAXED, AGENT)) {
    expected = 0;
    PAUSE;
  }
  int v = counter[1];
  if (GROUP == 3) counter[1] = 5;
  if (v == 77) PAUSE;
  STORE(counter, 0, RELEASE, AGENT);
}

// The last group sets the counter back for the next launch.
KERNEL(model_right_set_back) {
  if (LANE) return;
  if (ADD(counter, 1, ACQ_REL, AGENT) != GROUPS - 1) return;
  *counter = 0;
}

// A value and its state in one word of 64 bits need no order at all.
KERNEL(model_right_together) {
  if (LANE) return;
  unsigned long long *at = (unsigned long long *)counter;
  unsigned sum = 1, seen = 0;
  if (GROUP) {
    unsigned long long v;
    while (!((v = LOAD(at + GROUP - 1, RELAXED, AGENT)) >> 32)) PAUSE;
    seen = (unsigned)v;
  }
  STORE(at + GROUP, (1ull << 32) | (sum + seen), RELAXED, AGENT);
}

#ifndef __GFX9__
KERNEL(model_right_waves) {
  if (LANE & 31) return;
  if (LANE == 0) {
    tmp[0] = in[0];
    STORE(counter, 1, RELEASE, WORKGROUP);
  } else if (LANE == 32) {
    while (!LOAD(counter, ACQUIRE, WORKGROUP)) PAUSE;
    out[0] = tmp[0];
  }
}
#endif

// Tickets through LDS, and what a wave has read from another group is told on through them.
KERNEL(model_right_lds_ticket) {
  __shared__ int turn;
  if (LANE == 0) turn = 0;
  barrier();
  if (LANE & 63) return;
  while (ADD(&turn, 0, ACQUIRE, WORKGROUP) != LANE / 64) PAUSE;
  tmp[GROUP] = (float)LANE;
  (void)ADD(&turn, 1, RELEASE, WORKGROUP);
}
