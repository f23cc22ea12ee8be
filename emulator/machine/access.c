// Loads, stores and atomics on the places that lanes point to.
#include "machine/access.h"

#include "machine/valu.h"

static inline void *host(uint64_t at) { return (void *)(uintptr_t)at; }

static void load_small(struct emu_wave *wave, const struct emu_places *p, const struct emu_shape *shape, unsigned reg) {
  uint32_t *to = emu__vector(wave, reg, 0);
  for (unsigned l = 0; l < wave->lanes; l++) {
    if (!(p->mask >> l & 1)) continue;
    uint32_t value = 0;
    if (!(p->outside >> l & 1)) memcpy(&value, host(p->at[l]), shape->bytes);
    unsigned up = 32 - 8 * shape->bytes;
    if (shape->is_signed) value = (uint32_t)((int32_t)(value << up) >> up);
    if (!shape->half) {
      to[l] = value;
    } else {
      to[l] = shape->high ? (to[l] & 0xffff) | value << 16 : (to[l] & 0xffff0000) | (value & 0xffff);
    }
  }
}

// Two neighbouring dwords move at once. 64 aligned bits are one access on the card, and look-back scans rely on it: a
// flag must never be seen without the value beside it.
static void load_pair(const struct emu_places *p, uint64_t along, uint32_t *low, uint32_t *high) {
  for (uint64_t rest = p->mask; rest; rest &= rest - 1) {
    unsigned l = (unsigned)__builtin_ctzll(rest);
    uint64_t value = 0;
    if (!(p->outside >> l & 1)) memcpy(&value, host(p->at[l] + along), 8);
    low[l] = (uint32_t)value;
    high[l] = (uint32_t)(value >> 32);
  }
}

static void store_pair(const struct emu_places *p, uint64_t along, const uint32_t *low, const uint32_t *high) {
  for (uint64_t rest = p->mask & ~p->outside; rest; rest &= rest - 1) {
    unsigned l = (unsigned)__builtin_ctzll(rest);
    uint64_t value = low[l] | (uint64_t)high[l] << 32;
    memcpy(host(p->at[l] + along), &value, 8);
  }
}

void emu__places_load(struct emu_wave *wave, const struct emu_places *p, const struct emu_shape *shape, unsigned reg) {
  if (shape->bytes < 4) {
    load_small(wave, p, shape, reg);
    return;
  }
  unsigned dwords = shape->bytes / 4u, k = 0;
  for (; p->stride == 4 && k + 2 <= dwords; k += 2)
    load_pair(p, 4 * k, emu__vector(wave, reg + k, 0), emu__vector(wave, reg + k + 1, 0));
  for (; k < dwords; k++) {
    uint32_t *to = emu__vector(wave, reg + k, 0);
    uint64_t along = (uint64_t)k * p->stride;
    if (p->mask == UINT32_MAX && !p->outside && wave->lanes == 32) {
      for (unsigned l = 0; l < 32; l++) memcpy(&to[l], host(p->at[l] + along), 4);
      continue;
    }
    for (uint64_t rest = p->mask; rest; rest &= rest - 1) {
      unsigned l = (unsigned)__builtin_ctzll(rest);
      uint32_t value = 0;
      if (!(p->outside >> l & 1)) memcpy(&value, host(p->at[l] + along), 4);
      to[l] = value;
    }
  }
}

void emu__places_store(struct emu_wave *wave, const struct emu_places *p, const struct emu_shape *shape, unsigned reg) {
  unsigned dwords = shape->bytes < 4 ? 1 : shape->bytes / 4u, bytes = shape->bytes < 4 ? shape->bytes : 4;
  unsigned k = 0;
  for (; p->stride == 4 && k + 2 <= dwords; k += 2)
    store_pair(p, 4 * k, emu__vector(wave, reg + k, 0), emu__vector(wave, reg + k + 1, 0));
  for (; k < dwords; k++) {
    const uint32_t *from = emu__vector(wave, reg + k, 0);
    uint64_t along = (uint64_t)k * p->stride;
    for (uint64_t rest = p->mask & ~p->outside; rest; rest &= rest - 1) {
      unsigned l = (unsigned)__builtin_ctzll(rest);
      uint32_t value = shape->high ? from[l] >> 16 : from[l];
      if (bytes == 4) {
        memcpy(host(p->at[l] + along), &value, 4);
      } else {
        memcpy(host(p->at[l]), &value, bytes);
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
