// Loads, stores and atomics on the places that lanes point to.
#include "machine/access.h"

#include "machine/valu.h"

static inline void *host(uint64_t at) { return (void *)(uintptr_t)at; }

// What lanes read that are off or outside: as much as the dwords of a lane lie apart where memory interleaves lanes.
static const uint8_t nothing[1024] __attribute__((aligned(64)));

// Where the 32 lanes of a half read. *on: those that are on.
static const uint64_t *sources(const struct emu_places *p, unsigned half, uint64_t room[EMU_HALF], uint32_t *on) {
  const uint64_t *at = p->at + half * EMU_HALF;
  *on = (uint32_t)(p->mask >> half * EMU_HALF);
  uint32_t there = *on & ~(uint32_t)(p->outside >> half * EMU_HALF);
  if (there == UINT32_MAX) return at;
  EMU_EACH room[l] = there >> l & 1 ? at[l] : (uint64_t)(uintptr_t)nothing;
  return room;
}

// Where lanes load from: addresses, or offsets to one base.
struct lanes_at {
  const uint64_t *at;
  const uint32_t *offset;  // NULL: `at` holds
  uint64_t base;
};
__attribute__((always_inline)) static inline uint64_t place_of(const struct lanes_at *a, int l) {
  return a->offset ? a->base + a->offset[l] : a->at[l] + a->base;
}

// Whether the lanes follow each other without gaps, dword after dword.
static inline bool are_consecutive(const uint64_t *at) {
  uint64_t differs = at[EMU_HALF - 1] ^ (at[0] + 4 * (EMU_HALF - 1));
  if (differs) return false;
  EMU_EACH differs |= at[l] ^ (at[0] + 4 * (uint64_t)l);
  return !differs;
}

static inline __m128i quad_at(uint64_t at) { return _mm_loadu_si128(host(at)); }
static inline __m256i quads_at(uint64_t low, uint64_t high) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(quad_at(low)), quad_at(high), 1);
}
static inline __m128i pairs_at(uint64_t low, uint64_t high) {
  int64_t first, second;  // at any place, which _mm_load_sd's argument may not be
  memcpy(&first, host(low), sizeof first);
  memcpy(&second, host(high), sizeof second);
  return _mm_set_epi64x(second, first);
}
static inline void put(uint32_t *to, __m256i value) { _mm256_storeu_si256((__m256i *)to, value); }
static inline __m256i row(const uint32_t *from) { return _mm256_loadu_si256((const __m256i *)from); }

// Of one dword, two neighbours or four, from each lane's place to rows of 32 lanes. Neighbours move at once: 64 aligned
// bits are one access on the card, and look-back scans rely on it: a flag must never be seen without the value beside
// it.
static inline void load_one(const uint64_t *at, uint64_t along, uint32_t *to) {
  if (are_consecutive(at)) {
    emu__copy(to, host(at[0] + along));
  } else {
    EMU_EACH memcpy(&to[l], host(at[l] + along), 4);
  }
}

__attribute__((always_inline)) static inline void load_two(const struct lanes_at *a, uint32_t *const to[2]) {
#define AT(i) place_of(a, l + i)
  for (int l = 0; l < EMU_HALF; l += 8) {
    __m256i even = _mm256_setr_m128i(pairs_at(AT(0), AT(1)), pairs_at(AT(4), AT(5)));
    __m256i odd = _mm256_setr_m128i(pairs_at(AT(2), AT(3)), pairs_at(AT(6), AT(7)));
    __m256 x = _mm256_castsi256_ps(even), y = _mm256_castsi256_ps(odd);
    put(to[0] + l, _mm256_castps_si256(_mm256_shuffle_ps(x, y, 0x88)));
    put(to[1] + l, _mm256_castps_si256(_mm256_shuffle_ps(x, y, 0xdd)));
  }
}

//     lanes 0 and 4   | d0 d1 d2 d3 | d0 d1 d2 d3 |        row 0   | d0 of lanes 0 … 3 | d0 of lanes 4 … 7 |
//     lanes 1 and 5   |  …                                 row 1   | d1 …
__attribute__((always_inline)) static inline void load_four(const struct lanes_at *a, uint32_t *const to[4]) {
  for (int l = 0; l < EMU_HALF; l += 8) {
    __m256i r0 = quads_at(AT(0), AT(4)), r1 = quads_at(AT(1), AT(5)), r2 = quads_at(AT(2), AT(6)),
            r3 = quads_at(AT(3), AT(7));
    __m256i low01 = _mm256_unpacklo_epi32(r0, r1), high01 = _mm256_unpackhi_epi32(r0, r1);
    __m256i low23 = _mm256_unpacklo_epi32(r2, r3), high23 = _mm256_unpackhi_epi32(r2, r3);
    put(to[0] + l, _mm256_unpacklo_epi64(low01, low23));
    put(to[1] + l, _mm256_unpackhi_epi64(low01, low23));
    put(to[2] + l, _mm256_unpacklo_epi64(high01, high23));
    put(to[3] + l, _mm256_unpackhi_epi64(high01, high23));
  }
#undef AT
}

static inline void load_narrow(const uint64_t *at, const struct emu_shape *shape, const uint32_t *old, uint32_t *to) {
  if (shape->bytes == 1) {
    EMU_EACH to[l] = *(const uint8_t *)host(at[l]);
  } else {
    EMU_EACH {
      uint16_t value;
      memcpy(&value, host(at[l]), 2);
      to[l] = value;
    }
  }
  int up = 32 - 8 * shape->bytes;
  if (shape->is_signed) EMU_EACH to[l] = (uint32_t)((int32_t)(to[l] << up) >> up);
  if (!shape->half) return;
  if (shape->high) {
    EMU_EACH to[l] = (old[l] & 0xffff) | to[l] << 16;
  } else {
    EMU_EACH to[l] = (old[l] & 0xffff0000) | (to[l] & 0xffff);
  }
}

void emu__places_load(struct emu_wave *wave, const struct emu_places *p, const struct emu_shape *shape, unsigned reg) {
  if (wave->tag) emu__tell_places(wave, p, shape->bytes, true, false);
  uint32_t rows[4][EMU_HALF] __attribute__((aligned(64)));
  uint64_t room[EMU_HALF];
  unsigned dwords = shape->bytes < 4 ? 1 : shape->bytes / 4u;
  for (unsigned half = 0; half < wave->lanes / EMU_HALF; half++) {
    uint32_t on, *to[4] = {0}, *final[4] = {0};
    const uint64_t *at = sources(p, half, room, &on);
    if (!on) continue;
    for (unsigned k = 0; k < dwords; k++) {
      final[k] = emu__vector(wave, reg + k, half * EMU_HALF);
      to[k] = on == UINT32_MAX && shape->bytes >= 4 ? final[k] : rows[k];
    }
    unsigned k = 0;
    if (shape->bytes < 4) {
      load_narrow(at, shape, final[0], to[0]);
      k = 1;
    } else if (p->stride == 4 && dwords == 4) {
      load_four(&(struct lanes_at){.at = at}, to);
      k = 4;
    } else if (p->stride == 4 && dwords >= 2) {
      load_two(&(struct lanes_at){.at = at}, to);
      k = 2;
    }
    for (; k < dwords; k++) load_one(at, (uint64_t)k * p->stride, to[k]);
    for (k = 0; k < dwords && to[k] != final[k]; k++) emu__store_masked(final[k], to[k], on);
  }
}

void emu__rows_load(struct emu_wave *wave, const uint8_t *base, const uint32_t offset[EMU_HALF], bool alike,
                    unsigned dwords, unsigned reg) {
  uint32_t *to[4];
  for (unsigned k = 0; k < 4; k++) to[k] = wave->v + (size_t)(reg + k) * EMU_HALF;
  const struct lanes_at lanes = {.offset = offset, .base = (uint64_t)(uintptr_t)base};
  if (alike) {
    uint32_t value[4];
    memcpy(value, base + offset[0], 4 * dwords);
    for (unsigned k = 0; k < dwords; k++) EMU_EACH to[k][l] = value[k];
  } else if (dwords == 4) {
    load_four(&lanes, to);
  } else if (dwords == 2) {
    load_two(&lanes, to);
  } else {
    for (unsigned k = 0; k < dwords; k++) EMU_EACH memcpy(&to[k][l], base + offset[l] + 4 * k, 4);
  }
}

// Neighbouring dwords, lane after lane as store_four does.
static void store_lanes(struct emu_wave *wave, const struct emu_places *p, unsigned dwords, unsigned reg) {
  for (uint64_t rest = p->mask & ~p->outside; rest; rest &= rest - 1) {
    unsigned l = (unsigned)__builtin_ctzll(rest);
    uint32_t value[4];
    for (unsigned k = 0; k < dwords; k++) value[k] = *emu__vector(wave, reg + k, l);
    memcpy(host(p->at[l]), value, 8);
    if (dwords == 3) memcpy(host(p->at[l] + 8), value + 2, 4);
    if (dwords == 4) memcpy(host(p->at[l] + 8), value + 2, 8);
  }
}

// Of several lanes that store to one place the last one wins: lanes in ascending order.
static inline void store_four(const uint64_t *at, const uint32_t *const from[4]) {
  for (int l = 0; l < EMU_HALF; l += 8) {
    __m256i r0 = row(from[0] + l), r1 = row(from[1] + l), r2 = row(from[2] + l), r3 = row(from[3] + l);
    __m256i low01 = _mm256_unpacklo_epi32(r0, r1), high01 = _mm256_unpackhi_epi32(r0, r1);
    __m256i low23 = _mm256_unpacklo_epi32(r2, r3), high23 = _mm256_unpackhi_epi32(r2, r3);
    __m256i quads[4] = {_mm256_unpacklo_epi64(low01, low23), _mm256_unpackhi_epi64(low01, low23),
                        _mm256_unpacklo_epi64(high01, high23), _mm256_unpackhi_epi64(high01, high23)};
    for (int i = 0; i < 4; i++) _mm_storeu_si128(host(at[l + i]), _mm256_castsi256_si128(quads[i]));
    for (int i = 0; i < 4; i++) _mm_storeu_si128(host(at[l + 4 + i]), _mm256_extracti128_si256(quads[i], 1));
  }
}

static inline void store_one(const uint64_t *at, uint64_t along, const uint32_t *from) {
  if (are_consecutive(at)) {
    emu__copy(host(at[0] + along), from);
  } else {
    EMU_EACH memcpy(host(at[l] + along), &from[l], 4);
  }
}

// All lanes are on and none is outside.
static void store_whole(struct emu_wave *wave, const struct emu_places *p, unsigned dwords, unsigned reg) {
  for (unsigned half = 0; half < wave->lanes / EMU_HALF; half++) {
    const uint64_t *at = p->at + half * EMU_HALF;
    const uint32_t *from[4];
    for (unsigned k = 0; k < dwords; k++) from[k] = emu__vector(wave, reg + k, half * EMU_HALF);
    if (dwords == 4) {
      store_four(at, from);
    } else {
      store_one(at, 0, from[0]);
    }
  }
}

void emu__places_store(struct emu_wave *wave, const struct emu_places *p, const struct emu_shape *shape, unsigned reg) {
  if (wave->tag) emu__tell_places(wave, p, shape->bytes, false, true);
  unsigned dwords = shape->bytes < 4 ? 1 : shape->bytes / 4u, bytes = shape->bytes < 4 ? shape->bytes : 4;
  bool whole = !p->outside && p->mask == (wave->lanes == 64 ? UINT64_MAX : UINT32_MAX);
  if (whole && ((dwords == 1 && bytes == 4) || (dwords == 4 && p->stride == 4))) {
    store_whole(wave, p, dwords, reg);
    return;
  }
  if (p->stride == 4 && dwords > 1) {
    store_lanes(wave, p, dwords, reg);
    return;
  }
  for (unsigned k = 0; k < dwords; k++) {
    const uint32_t *from = emu__vector(wave, reg + k, 0);
    uint64_t along = (uint64_t)k * p->stride;
    for (uint64_t rest = p->mask & ~p->outside; rest; rest &= rest - 1) {
      unsigned l = (unsigned)__builtin_ctzll(rest);
      uint32_t value = shape->high ? from[l] >> 16 : from[l];
      uint8_t *to = (uint8_t *)host(p->at[l] + along);
      if (bytes == 4) {
        memcpy(to, &value, 4);
      } else if (bytes == 2) {
        memcpy(to, &value, 2);
      } else {
        *to = (uint8_t)value;
      }
    }
  }
}

// ---- counters

static unsigned lines(const struct emu_wave *wave, const struct emu_places *p, unsigned bytes, unsigned shift) {
  uint64_t seen[160];
  unsigned count = 0;
  for (unsigned l = 0; l < wave->lanes; l++) {
    if (!(p->mask & ~p->outside) || !((p->mask & ~p->outside) >> l & 1)) continue;
    uint64_t last = (p->at[l] + bytes - 1) >> shift;
    for (uint64_t line = p->at[l] >> shift; line <= last; line++) {
      unsigned i = count;
      while (i && seen[i - 1] != line) i--;  // the newest is the likeliest
      if (!i) seen[count++] = line;
    }
  }
  return count;
}

void emu__count_access(struct emu_wave *wave, const struct emu_places *p, unsigned bytes, bool write) {
  struct emu_counters *c = wave->counters;
  if (!c || p->space != EMU_SPACE_GLOBAL) return;
  uint64_t total = (uint64_t)__builtin_popcountll(p->mask & ~p->outside) * bytes;
  if (write) {
    c->store_bytes += total;
    c->store_lines_64 += lines(wave, p, bytes, 6);
    c->store_lines_128 += lines(wave, p, bytes, 7);
  } else {
    c->load_bytes += total;
    c->load_lines_64 += lines(wave, p, bytes, 6);
    c->load_lines_128 += lines(wave, p, bytes, 7);
  }
}

// ---- atomics

static bool less(uint64_t a, uint64_t b, bool is_signed, bool wide) {
  if (!is_signed) return a < b;
  return wide ? (int64_t)a < (int64_t)b : (int32_t)a < (int32_t)b;
}

static double number(uint64_t bits, bool wide) { return wide ? emu__f64(bits) : (double)emu__f32((uint32_t)bits); }

static uint64_t bits_of(double value, bool wide) { return wide ? emu__bits64(value) : emu__bits32((float)value); }

// The smaller or larger number; a NaN loses, and -0 is below +0.
static uint64_t select_float(uint64_t old, uint64_t data, bool wide, bool maximum) {
  double a = number(old, wide), b = number(data, wide);
  if (a != a) return data;
  if (b != b) return old;
  if (a == b) {
    bool negative = wide ? old >> 63 : old >> 31 & 1;
    return negative == maximum ? data : old;
  }
  return (a < b) == maximum ? data : old;
}

// The sum of two 16-bit floats, rounded to the nearest once: as floats the sum of halves is exact, that of brain floats
// is exact in double.
static uint32_t add_half(uint32_t a, uint32_t b, bool bfloat) {
  if (!bfloat) {
    if (emu__is_nan16(a) || emu__is_nan16(b)) return emu__nan16(a, b, 0);
    uint32_t r = emu__f32_to_f16(emu__f16_to_f32((uint16_t)a) + emu__f16_to_f32((uint16_t)b));
    return emu__is_nan16(r) ? 0xfe00 : r;
  }
  if (emu__is_nan32(a << 16) || emu__is_nan32(b << 16)) return emu__nan32(a << 16, b << 16, 0) >> 16;
  double exact = (double)emu__f32(a << 16) + (double)emu__f32(b << 16);
  if (exact != exact) return 0xffc0;
  float rough = (float)exact;  // to odd, so that the second rounding sees no tie that is none
  uint32_t bits = emu__bits32(rough);
  if ((double)rough != exact) {
    if (__builtin_fabs((double)rough) > __builtin_fabs(exact)) bits--;
    bits |= 1;
  }
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
static uint32_t add_halves(uint32_t old, uint32_t data, bool bfloat) {
  return add_half(data & 0xffff, old & 0xffff, bfloat) | add_half(data >> 16, old >> 16, bfloat) << 16;
}

static uint64_t changed(enum emu_atomic kind, bool wide, uint64_t old, uint64_t data, uint64_t compare) {
  switch (kind) {
    case EMU_ATOMIC_SWAP:
      return data;
    case EMU_ATOMIC_CMPSWAP:
      return old == compare ? data : old;
    case EMU_ATOMIC_ADD:
      return old + data;
    case EMU_ATOMIC_SUB:
      return old - data;
    case EMU_ATOMIC_RSUB:
      return data - old;
    case EMU_ATOMIC_CSUB:
      return old < data ? 0 : old - data;
    case EMU_ATOMIC_MIN_I:
      return less(data, old, true, wide) ? data : old;
    case EMU_ATOMIC_MIN_U:
      return less(data, old, false, wide) ? data : old;
    case EMU_ATOMIC_MAX_I:
      return less(old, data, true, wide) ? data : old;
    case EMU_ATOMIC_MAX_U:
      return less(old, data, false, wide) ? data : old;
    case EMU_ATOMIC_AND:
      return old & data;
    case EMU_ATOMIC_OR:
      return old | data;
    case EMU_ATOMIC_XOR:
      return old ^ data;
    case EMU_ATOMIC_INC:
      return old >= data ? 0 : old + 1;
    case EMU_ATOMIC_DEC:
      return !old || old > data ? data : old - 1;
    case EMU_ATOMIC_CMPSWAP_F:
      return number(old, wide) == number(compare, wide) ? data : old;
    case EMU_ATOMIC_MIN_F:
      return select_float(old, data, wide, false);
    case EMU_ATOMIC_MAX_F:
      return select_float(old, data, wide, true);
    case EMU_ATOMIC_ADD_F:
      return wide ? bits_of(number(old, true) + number(data, true), true)
                  : emu__bits32(emu__f32((uint32_t)old) + emu__f32((uint32_t)data));
    case EMU_ATOMIC_COND_SUB:
      return old < data ? old : old - data;
    case EMU_ATOMIC_PK_ADD_F16:
      return add_halves((uint32_t)old, (uint32_t)data, false);
    case EMU_ATOMIC_PK_ADD_BF16:
      return add_halves((uint32_t)old, (uint32_t)data, true);
    case EMU_ATOMIC_MSKOR:
      return (old & ~data) | compare;
    case EMU_ATOMIC_WRAP:
      return old >= data ? old - data : old + compare;
  }
  return old;
}

_Thread_local bool emu__atomic_changed;

uint64_t emu__atomic(enum emu_atomic kind, unsigned bytes, uint64_t at, uint64_t data, uint64_t compare) {
  if (bytes == 4) {
    uint32_t *word = host(at), old = __atomic_load_n(word, __ATOMIC_RELAXED), new;
    do {
      new = (uint32_t)changed(kind, false, old, (uint32_t)data, (uint32_t)compare);
    } while (!__atomic_compare_exchange_n(word, &old, new, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    if (new != old) emu__atomic_changed = true;
    return old;
  }
  uint64_t *word = host(at), old = __atomic_load_n(word, __ATOMIC_RELAXED), new;
  do {
    new = changed(kind, true, old, data, compare);
  } while (!__atomic_compare_exchange_n(word, &old, new, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
  if (new != old) emu__atomic_changed = true;
  return old;
}

void emu__places_atomic(struct emu_wave *wave, const struct emu_places *p, enum emu_atomic kind, unsigned bytes,
                        unsigned data, int compare, int dst) {
  if (wave->tag) emu__tell_places(wave, p, bytes, true, true);
  bool wide = bytes == 8;
  for (uint64_t rest = p->mask; rest; rest &= rest - 1) {
    unsigned l = (unsigned)__builtin_ctzll(rest);
    uint64_t value = *emu__vector(wave, data, l), other = 0, old = 0;
    if (wide) value |= (uint64_t)*emu__vector(wave, data + 1, l) << 32;
    if (compare >= 0) other = *emu__vector(wave, (unsigned)compare, l);
    if (compare >= 0 && wide) other |= (uint64_t)*emu__vector(wave, (unsigned)compare + 1, l) << 32;
    if (!(p->outside >> l & 1)) old = emu__atomic(kind, bytes, p->at[l], value, other);
    if (dst < 0) continue;
    *emu__vector(wave, (unsigned)dst, l) = (uint32_t)old;
    if (wide) *emu__vector(wave, (unsigned)dst + 1, l) = (uint32_t)(old >> 32);
  }
}
