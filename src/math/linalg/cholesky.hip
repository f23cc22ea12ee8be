/* A block of columns of Cholesky's factor in panels of TEAM columns. Each value is subtracted from in the order of the
 * columns, whatever the device: the twins give the same bits. */
#include "kernel/prelude.h"
#include "math/common/device/doubles.h"
#include "math/linalg/cholesky_kernels.h"
#include "math/linalg/team.h"

/* Rows of a group: those of the block, and CHOLESKY_ROWS below it. In tiles of TEAM rows and columns:
 *
 *     .             panel 0 goes to group memory at once; the nine others, counted as |tile_row| and |tile_column|
 *     . 5           count them, wait in registers until their panel has its turn. What has to wait longest comes first,
 *     . 6 2         so that in each turn all quarters of the threads have as many
 *     . 7 3 0
 *     . 8 4 1 */
enum { PANELS = CHOLESKY_BLOCK / TEAM, HEIGHT = CHOLESKY_BLOCK + CHOLESKY_ROWS };
static_assert(PANELS == 4 && CHOLESKY_ROWS == TEAM, "tile_row and tile_column");
RDNA_DEVICE uint32_t tile_column(uint32_t t) { return t < 2 ? 3 : t < 5 ? 2 : 1; }
RDNA_DEVICE uint32_t tile_row(uint32_t t) { return t < 2 ? t + 3 : t < 5 ? t : t - 4; }

/* A quarter of the threads has a tile, and a thread SIDE rows and columns of it. */
enum { TILES = 9, SIDE = 4, QUARTER = CHOLESKY_THREADS / 4, SLOTS = (TILES + 3) / 4 };
static_assert(QUARTER * SIDE * SIDE == TEAM * TEAM, "a tile");
template <typename T>
using tile = T[SIDE][SIDE];

template <typename T>
struct panel {
  __attribute__((aligned(16))) T s[TEAM][HEIGHT + 4]; /* [column][row] */
  T inverse[TEAM];                                    /* of the diagonal */
  uint32_t failed;
};

/* A group's work: a block on the diagonal, and rows below it or none. */
template <typename T>
struct work {
  T *block, *rows;
  int64_t row, column;
  uint32_t columns, count; /* of the block, of rows */
  uint32_t below;          /* rows between the first of the block and the first of |rows| */
  uint32_t height;         /* rows in group memory, with those that fill the last tile */
  uint32_t tile, y, x;     /* the thread's quarter, and its place in a tile */
};

RDNA_DEVICE double again(double v) {
#ifdef RDNA_AMD
  __asm__ volatile("" : "+v"(v));
#else
  __asm__ volatile("" : "+d"(v));
#endif
  return v;
}
/* Places that are computed from it are not kept in registers. */
RDNA_DEVICE uint32_t thread_again(void) {
  uint32_t v = thread_id();
#ifdef RDNA_AMD
  __asm__ volatile("" : "+v"(v));
#else
  __asm__ volatile("" : "+r"(v));
#endif
  return v;
}

/* What is not there is as in the identity. */
template <typename T>
RDNA_DEVICE void load_tile(const work<T> &w, uint32_t i, uint32_t k, tile<T> &v) {
  const T *at = i < PANELS ? w.block + i * TEAM * w.row : w.rows;
  uint32_t rows = i < PANELS ? w.columns - min_u32(w.columns, i * TEAM) : w.count;
#pragma unroll
  for (uint32_t r = 0; r < SIDE; r++) {
#pragma unroll
    for (uint32_t c = 0; c < SIDE; c++) {
      uint32_t row = w.y + r, column = k * TEAM + w.x + c;
      bool there = row < rows && column <= i * TEAM + row;
      v[r][c] = there ? at[row * w.row + column * w.column] : (T)(column == i * TEAM + row);
    }
  }
}

template <typename T>
RDNA_DEVICE void put_tile(const work<T> &w, uint32_t i, const tile<T> &v, panel<T> &p) {
#pragma unroll
  for (uint32_t c = 0; c < SIDE; c++) {
#pragma unroll
    for (uint32_t r = 0; r < SIDE; r++) p.s[w.x + c][i * TEAM + w.y + r] = v[r][c];
  }
}

/* Subtracts from tile (i, k) what the panel contributes. */
template <typename T>
RDNA_DEVICE void update_tile(const work<T> &w, uint32_t i, uint32_t k, const panel<T> &p, tile<T> &v) {
#pragma unroll 4
  for (uint32_t j = 0; j < TEAM; j++) {
    const T *left = &p.s[j][i * TEAM + w.y], *right = &p.s[j][k * TEAM + w.x];
#pragma unroll
    for (uint32_t r = 0; r < SIDE; r++) {
#pragma unroll
      for (uint32_t c = 0; c < SIDE; c++) v[r][c] = fused(-left[r], right[c], v[r][c]);
    }
  }
}

enum { AHEAD = 8 }; /* values of the triangle that are loaded at once */
template <typename T, bool diagonal, uint32_t j>
RDNA_DEVICE void eliminate_from(uint32_t i, uint32_t count, uint32_t row, T (&x)[TEAM], uint32_t &failed, panel<T> &p) {
  if (diagonal) {
    T pivot = team_broadcast(x[j], j);
    if (!(pivot > 0) && failed == 0) failed = j + 1;
    T r = root(pivot), inverse = 1 / r;
    x[j] *= inverse;
    if (thread_id() < TEAM) p.s[j][row] = x[j];
    wave_barrier();
    if (thread_id() == 0) p.inverse[j] = inverse, p.s[j][row + j] = r;
  } else {
    x[j] *= p.inverse[j];
  }
#pragma unroll
  for (uint32_t first = (j + 1) / AHEAD * AHEAD; first < TEAM; first += AHEAD) {
    T l[AHEAD];
#pragma unroll
    for (uint32_t k = 0; k < AHEAD; k++) l[k] = p.s[j][i * TEAM + first + k];
#pragma unroll
    for (uint32_t k = 0; k < AHEAD; k++) {
      if (first + k > j) x[first + k] = again(fused(-x[j], l[k], x[first + k]));
    }
  }
  if constexpr (j + 1 < TEAM) {
    if (j + 1 < count) eliminate_from<T, diagonal, j + 1>(i, count, row, x, failed, p);
  }
}

/* Column by column of panel |i|, |count| of them, of which a thread has |row|: divided by the diagonal, then subtracted
 * from the columns right of it. With |diagonal| these are the rows of the triangle itself, of the first wave, and
 * pivots are found. */
template <typename T, bool diagonal>
RDNA_DEVICE void eliminate(uint32_t i, uint32_t count, uint32_t row, panel<T> &p) {
  uint32_t failed = 0;
  T x[TEAM];
#pragma unroll
  for (uint32_t k = 0; k < TEAM; k++) x[k] = p.s[k][row];
  eliminate_from<T, diagonal, 0>(i, count, row, x, failed, p);
  if (diagonal) {
    if (thread_id() == 0) p.failed = failed;
    return;
  }
#pragma unroll
  for (uint32_t k = 0; k < TEAM; k++) p.s[k][row] = x[k];
}

/* Calls visit(i, k) for |count| rows and TEAM columns, so that neighbouring threads have neighbouring values. */
template <typename F>
RDNA_DEVICE void each_of_panel(bool by_rows, uint32_t count, const F &visit) {
  uint32_t thread = thread_again(), lane = thread % TEAM, team = thread / TEAM;
#pragma unroll 1
  for (uint32_t first = 0; first < count; first += TEAM) {
#pragma unroll
    for (uint32_t e = 0; e < TEAM; e += CHOLESKY_THREADS / TEAM) {
      uint32_t i = first + (by_rows ? e + team : lane), k = by_rows ? lane : e + team;
      if (i < count) visit(i, k);
    }
  }
}

/* Writes panel |i|: rows below, or else the block. */
template <typename T>
RDNA_DEVICE void write_panel(const work<T> &w, uint32_t i, const panel<T> &p) {
  uint32_t from = w.count ? (uint32_t)CHOLESKY_BLOCK : i * TEAM, count = w.count ? w.count : w.columns - i * TEAM;
  T *to = (w.count ? w.rows : w.block + i * TEAM * w.row) + i * TEAM * w.column;
  each_of_panel(w.column == 1, count, [&](uint32_t r, uint32_t k) {
    if (k <= w.below + r) to[r * w.row + k * w.column] = p.s[k][from + r];
  });
}

/* Clears what is across the diagonal of rows below, or else of the block. */
template <typename T>
RDNA_DEVICE void clear_across(const work<T> &w) {
  uint32_t count = w.count ? w.count : w.columns;
#pragma unroll 1
  for (uint32_t first = 0; first < w.columns; first += TEAM) {
    T *to = w.block + first * w.row + (int64_t)w.below * w.column;
    each_of_panel(w.column != 1, count, [&](uint32_t r, uint32_t k) {
      if (first + k < w.below + r) to[k * w.row + r * w.column] = 0;
    });
  }
}

/* Returns the column that fails, from 1, or 0. */
template <typename T>
RDNA_DEVICE uint32_t factor(const work<T> &w, panel<T> &p) {
  tile<T> v[SLOTS];
  uint32_t row[SLOTS], column[SLOTS];
  for (uint32_t i = w.tile; i <= PANELS; i += 4) {
    if (i * TEAM >= w.height) continue;
    load_tile<T>(w, i, 0, v[0]);
    put_tile<T>(w, i, v[0], p);
  }
#pragma unroll
  for (uint32_t slot = 0; slot < SLOTS; slot++) {
    uint32_t t = w.tile + slot * 4;
    row[slot] = tile_row(t);
    column[slot] = wave_uniform_u32(t < TILES && row[slot] * TEAM < w.height ? tile_column(t) : 0);
    load_tile<T>(w, row[slot], tile_column(t), v[slot]);
  }
#pragma unroll 1
  for (uint32_t i = 0;; i++) {
    uint32_t count = min_u32(w.columns - i * TEAM, TEAM);
    group_barrier();
    if (thread_id() < WAVE_SIZE) eliminate<T, true>(i, count, i * TEAM + thread_id() % TEAM, p);
    group_barrier();
    if (p.failed) return i * TEAM + p.failed;
    uint32_t below = (i + 1) * TEAM + thread_id();
    if (below < w.height) eliminate<T, false>(i, count, below, p);
    group_barrier();
    write_panel<T>(w, i, p);
    if ((i + 1) * TEAM >= w.columns) return 0;
#pragma unroll
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
      if (column[slot] > i) update_tile<T>(w, row[slot], column[slot], p, v[slot]);
    }
    group_barrier();
#pragma unroll
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
      if (column[slot] == i + 1) put_tile<T>(w, row[slot], v[slot], p);
    }
  }
}

/* Of two blocks that fail in one launch the first counts, whichever group comes first. */
RDNA_DEVICE void report(const struct cholesky_args &a, uint32_t b, uint32_t part, uint32_t failed) {
  uint32_t *info = (uint32_t *)a.info + b;
  if (a.first == 0 && part == 0) *info = failed;
  if (a.first == 0 || failed == 0) return;
  uint32_t other = atomic_swap_if_u32(info, 0, failed);
  if (other > failed) atomic_swap_if_u32(info, other, failed);
}

template <typename T>
RDNA_DEVICE void cholesky(const struct cholesky_args &a, panel<T> &p) {
  uint32_t end = a.first + min_u32(a.n - a.first, CHOLESKY_BLOCK);
  uint32_t below = (a.n - end + CHOLESKY_ROWS - 1) / CHOLESKY_ROWS;
  uint32_t side = TEAM / SIDE;
  for (uint32_t unit = group_id_x(); unit < a.units; unit += group_count_x()) {
    uint32_t b = unit / a.parts, part = unit % a.parts;
    uint32_t begins = wave_uniform_u32(a.first); /* else the compiler makes two loops, one for 0 */
    bool before = begins && part == a.parts - 1;
    uint32_t first = before ? begins - CHOLESKY_BLOCK : begins;
    T *x = (T *)a.a + b * a.stride;
    work<T> w = {};
    w.row = a.row, w.column = a.column, w.tile = wave_uniform_u32(thread_id() / QUARTER);
    w.block = w.rows = x + first * (a.row + a.column);
    w.columns = before ? (uint32_t)CHOLESKY_BLOCK : end - first;
    w.height = (w.columns + TEAM - 1) / TEAM * TEAM;
    if (part < below) {
      w.below = end - first + part * CHOLESKY_ROWS;
      w.rows += w.below * a.row;
      w.count = min_u32(a.n - first - w.below, CHOLESKY_ROWS), w.height = HEIGHT;
    }
    uint32_t u = thread_again() % QUARTER;
    w.y = SIDE * (a.column == 1 ? u / side : u % side), w.x = SIDE * (a.column == 1 ? u % side : u / side);
    clear_across<T>(w);
    uint32_t failed = w.columns ? factor<T>(w, p) : 0;
    if (thread_id() == 0) report(a, b, part, w.count == 0 && failed ? first + failed : 0);
    group_barrier();
  }
}

#define KERNELS(suffix, T)                                                  \
  RDNA_KERNEL(CHOLESKY_THREADS) cholesky_##suffix(struct cholesky_args a) { \
    RDNA_SHARED panel<T> p;                                                 \
    cholesky<T>(a, p);                                                      \
  }
KERNELS(f32, float)
KERNELS(f64, double)
