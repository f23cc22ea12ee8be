// Kernels for the tests of the loader and of the HIP interface: one of each kind of argument.
extern "C" {
struct pair {
  int a, b;
};
__attribute__((device)) int table[4] = {10, 20, 30, 40};
__attribute__((device)) int *pointer_to_table = &table[2];

__attribute__((global)) void arguments(char c, long long wide, pair both, const int *in, int *out) {
  out[0] = c;
  out[1] = static_cast<int>(wide >> 32);
  out[2] = both.a - both.b;
  out[3] = in[1];
  out[4] = table[1];
  out[5] = *pointer_to_table;
}

__attribute__((global)) void sizes(unsigned *out) {
  if (__builtin_amdgcn_workitem_id_x() || __builtin_amdgcn_workgroup_id_x()) return;
  const auto *hidden = static_cast<const __attribute__((address_space(4))) unsigned *>(
      (const __attribute__((address_space(4))) void *)__builtin_amdgcn_implicitarg_ptr());
  for (int i = 0; i < 3; i++) out[i] = hidden[i];  // block counts
  const auto *halves = reinterpret_cast<const __attribute__((address_space(4))) unsigned short *>(hidden);
  for (int i = 0; i < 6; i++) out[3 + i] = halves[6 + i];  // group sizes, remainders
  out[9] = halves[32];                                     // dimensions of the grid
}

// The second float of LDS on is accessed as four floats at once, which is defined and not a place for four.
__attribute__((global)) void casts(float *out) {
  typedef float four __attribute__((ext_vector_type(4)));
  typedef volatile __attribute__((address_space(3))) four there;
  static __attribute__((shared)) float lds[8];
  auto *at = (there *)(__attribute__((address_space(3))) float *)(lds + 1);
  *at = four{1, 2, 3, 4};
  out[0] = at->w;
}

// The three numbers are loaded as four dwords: the fourth is past the stated size of the arguments.
__attribute__((global)) void three_last(unsigned *a, unsigned *b, unsigned *out, unsigned x, unsigned y, unsigned z) {
  out[0] = x + *a;
  out[1] = y + *b;
  out[2] = z;
}

// Each group adds to `sum`, all meet as the device libraries have groups meet on RDNA 3, and each tells what it sees
// then.
__attribute__((global)) void meets(unsigned *sum, unsigned *seen, unsigned rounds) {
  const auto *hidden = static_cast<const __attribute__((address_space(4))) unsigned long long *>(
      (const __attribute__((address_space(4))) void *)__builtin_amdgcn_implicitarg_ptr());
  auto *sync = reinterpret_cast<unsigned *>(hidden[11]);  // hidden_multigrid_sync_arg
  unsigned groups = sync[10], group = __builtin_amdgcn_workgroup_id_x();
  volatile unsigned deep[2048];  // so many groups with so much of their own are not begun at once unasked
  deep[rounds] = group;
  for (unsigned i = 0; i < rounds; i++) {
    __builtin_amdgcn_s_barrier();
    if (__builtin_amdgcn_workitem_id_x() == 0) {
      __atomic_fetch_add(sum, deep[rounds] + 1, __ATOMIC_RELAXED);
      unsigned before = __scoped_atomic_fetch_add(&sync[8], 1, __ATOMIC_SEQ_CST, __MEMORY_SCOPE_DEVICE);
      if ((before & 0xffff) == groups - 1) {
        __scoped_atomic_fetch_add(&sync[8], 0x10000 - groups, __ATOMIC_SEQ_CST, __MEMORY_SCOPE_DEVICE);
      } else {
        while (((__scoped_atomic_load_n(&sync[8], __ATOMIC_ACQUIRE, __MEMORY_SCOPE_DEVICE) ^ before) & ~0xffffu) == 0)
          __builtin_amdgcn_s_sleep(1);
      }
      if (i == rounds - 1) seen[group] = *static_cast<volatile unsigned *>(sum);
    }
    __builtin_amdgcn_s_barrier();
  }
}

// What is hidden there.
__attribute__((global)) void hidden_sync(unsigned long long *out) {
  const auto *hidden = static_cast<const __attribute__((address_space(4))) unsigned long long *>(
      (const __attribute__((address_space(4))) void *)__builtin_amdgcn_implicitarg_ptr());
  *out = hidden[11];
}

// How much of the stack it takes is known at run time alone.
__attribute__((device, noinline)) unsigned folded(const unsigned *in, unsigned depth) {
  unsigned own[4];
  for (unsigned i = 0; i < 4; i++) own[i] = in[depth + i];
  unsigned below = depth ? folded(in, depth - 1) : 0;
  return below * 31 + own[below & 3];
}
__attribute__((global)) void recurses(const unsigned *in, unsigned *out, unsigned depth) {
  unsigned lane = __builtin_amdgcn_workitem_id_x();
  out[lane] = folded(in, depth + lane);
}

__attribute__((global)) void past_the_end(int *out, int n) { out[n] = 1; }
// What it does depends on what it reads.
__attribute__((global)) void chooses(const int *in, int *out) {
  if (in[0] == 1) out[0] = 1;
}
__attribute__((global)) void trap(void) { __builtin_trap(); }
}
