// What loads and stores leave in the records of checker_race.h, for the lanes of an access together.
//
// Most of the dwords of an access have the same two records, and lanes stand side by side. So lanes are taken in runs,
// each of which covers consecutive dwords, and a run is compared with its first dword in whole vectors:
//
//     lanes   | 0  1  2 … 15 | 16 17 … 31 |         a load of four dwords each, where lane 16 is back at lane 0's place
//     dwords  | 0 … 63       | 0 … 63     |         two runs
#include "machine/checker_note.h"

#include <immintrin.h>

#include "machine/access.h"

static bool is_defined(const struct emu_piece *m, uint64_t i, uint64_t count) {
  if (m->undefined) {  // LDS' shadow has room behind it for two dwords
    const uint8_t *at = m->undefined + 4 * i;
    uint64_t bits = 0, k = 0;
    __m256i any = _mm256_setzero_si256();
    for (; k + 8 <= count; k += 8) any = _mm256_or_si256(any, _mm256_loadu_si256((const __m256i *)(at + 4 * k)));
    for (; k + 2 <= count; k += 2) {
      uint64_t two;
      memcpy(&two, at + 4 * k, 8);
      bits |= two;
    }
    if (k < count) {
      uint32_t one;
      memcpy(&one, at + 4 * k, 4);
      bits |= one;
    }
    return !bits && _mm256_testz_si256(any, any);
  }
  if (!m->written) return true;
  const uint8_t *state = m->written + i;
  uint64_t k = 0;
  __m256i all = _mm256_set1_epi8(15), same = _mm256_set1_epi8(-1);
  for (; k + 32 <= count; k += 32)
    same = _mm256_and_si256(same, _mm256_cmpeq_epi8(all, _mm256_loadu_si256((const __m256i *)(state + k))));
  bool written = _mm256_movemask_epi8(same) == -1;
  for (; k < count; k++) written = written && __atomic_load_n(&state[k], __ATOMIC_RELAXED) == 15;
  return written;
}

static inline __m256i four(const uint64_t *records) { return _mm256_loadu_si256((const __m256i *)records); }

// Notes four dwords if they have the records of `met`, which is not empty, or have been noted already.
static inline bool note_alike(const struct emu_met *met, bool writes, uint64_t *writers, uint64_t *readers) {
  const __m256i writer = _mm256_set1_epi64x((int64_t)met->writer), reader = _mm256_set1_epi64x((int64_t)met->reader);
  const __m256i new = _mm256_set1_epi64x((int64_t)met->new), w = four(writers), r = four(readers);
  __m256i by = _mm256_cmpeq_epi64(w, writer), to = _mm256_cmpeq_epi64(r, reader);
  if (writes) by = _mm256_or_si256(by, _mm256_cmpeq_epi64(w, new));
  if (!writes) to = _mm256_or_si256(to, _mm256_cmpeq_epi64(r, new));
  if (_mm256_movemask_epi8(_mm256_and_si256(by, to)) != -1) return false;
  if (writes) {
    _mm256_storeu_si256((__m256i *)writers, new);
  } else if (met->new != met->reader) {
    _mm256_storeu_si256((__m256i *)readers, new);
  }
  return true;
}

static inline bool note_run(const struct emu_racer *racer, enum emu_touch how, const struct emu_piece *m, uint64_t i,
                            uint64_t count, struct emu_met *met) {
  bool writes = how == EMU_TOUCH_WRITE;
  if (!writes && !is_defined(m, i, count)) return false;
  uint64_t *writers = m->writers + i, *readers = m->readers + i;
  for (uint64_t k = 0; k < count;) {
    if (k + 4 <= count && met->writer != EMU_MET_NONE && note_alike(met, writes, writers + k, readers + k)) {
      k += 4;
      continue;
    }
    for (uint64_t end = k + 4 < count ? k + 4 : count; k < end; k++)
      if (!emu__meets_none(racer, writers + k, readers + k, 15, how, met)) return false;
  }
  if (writes && m->undefined) memset(m->undefined + 4 * i, 0, 4 * count);
  if (writes && m->written && !is_defined(m, i, count)) memset(m->written + i, 15, count);
  return true;
}

uint64_t emu__note_runs(const struct emu_racer *racer, enum emu_touch how, const struct emu_piece *piece,
                        const struct emu_places *p, uint64_t lanes, unsigned dwords) {
  struct emu_met met = {.writer = EMU_MET_NONE};
  uint64_t left = 0, rest = lanes;
  while (rest) {
    unsigned l = (unsigned)__builtin_ctzll(rest);
    uint64_t before = rest, begin = p->at[l], end = begin, last = begin;
    do {  // as long as lanes follow each other or stand where the one before stood
      if (p->at[l] == end) {
        last = end;
        end += 4 * dwords;
      } else if (p->at[l] != last) {
        break;
      }
      rest &= rest - 1;
      l = rest ? (unsigned)__builtin_ctzll(rest) : 0;
    } while (rest);
    bool noted = !(begin & 3) && note_run(racer, how, piece, begin / 4 - piece->first, (end - begin) / 4, &met);
    if (noted) continue;
    left |= before & ~rest;
    met.writer = EMU_MET_NONE;
  }
  return left;
}

// ---- lane after lane

static inline uint32_t bits_at(const uint8_t *from, unsigned bytes) {
  uint32_t bits;
  memcpy(&bits, from, 4);  // LDS' shadow has room behind it
  return bytes < 4 ? bits & ((1u << 8 * bytes) - 1) : bits;
}

static inline void put_bits(uint8_t *to, uint32_t bits, unsigned bytes) {
  if (bytes == 4) memcpy(to, &bits, 4);
  if (bytes == 2) memcpy(to, &bits, 2);
  if (bytes == 1) *to = (uint8_t)bits;
}

uint64_t emu__note_loads(const struct emu_racer *racer, enum emu_touch how, const struct emu_piece *m,
                         const struct emu_places *p, uint64_t lanes, unsigned k, unsigned bytes) {
  const struct emu_racer me = *racer;
  struct emu_met met[4];  // by the place within a dword
  for (int i = 0; i < 4; i++) met[i].writer = EMU_MET_NONE;
  unsigned all = (1u << bytes) - 1;
  uint64_t left = 0;
  for (uint64_t rest = lanes; rest; rest &= rest - 1) {
    unsigned l = (unsigned)__builtin_ctzll(rest);
    uint64_t at = p->at[l] + 4 * k, i = at / 4 - m->first;
    unsigned mask = all << (at & 3);
    bool more = mask > 15;
    if (m->undefined) {
      more = more || bits_at(m->undefined + 4 * i + (at & 3), bytes);
    } else if (m->written) {
      more = more || (mask & ~__atomic_load_n(&m->written[i], __ATOMIC_RELAXED));
    }
    if (more || !emu__meets_none(&me, &m->writers[i], &m->readers[i], mask, how, &met[at & 3]))
      left |= UINT64_C(1) << l;
  }
  return left;
}

uint64_t emu__note_stores(const struct emu_racer *racer, const struct emu_piece *m, const struct emu_places *p,
                          uint64_t lanes, unsigned k, unsigned bytes, const uint32_t *undefined, unsigned low) {
  const struct emu_racer me = *racer;
  struct emu_met met[4];  // by the place within a dword
  for (int i = 0; i < 4; i++) met[i].writer = EMU_MET_NONE;
  unsigned all = (1u << bytes) - 1;
  uint64_t left = 0;
  for (uint64_t rest = lanes; rest; rest &= rest - 1) {
    unsigned l = (unsigned)__builtin_ctzll(rest);
    uint64_t at = p->at[l] + 4 * k, i = at / 4 - m->first;
    unsigned mask = all << (at & 3);
    uint32_t u = undefined ? undefined[l] >> low : 0;
    if (bytes < 4) u &= (1u << 8 * bytes) - 1;
    bool more = mask > 15 || (u && !m->undefined);
    if (more || !emu__meets_none(&me, &m->writers[i], &m->readers[i], mask, EMU_TOUCH_WRITE, &met[at & 3])) {
      left |= UINT64_C(1) << l;
    } else if (m->undefined) {
      put_bits(m->undefined + 4 * i + (at & 3), u, bytes);
    } else if (m->written) {
      emu__mark_written(&m->written[i], mask);
    }
  }
  return left;
}
