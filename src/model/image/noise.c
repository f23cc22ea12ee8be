/* The numbers of torch.randn on the CPU: MT19937 (Matsumoto and Nishimura, 1998), and from 16 values on Box and
 * Muller's transform of two eights of a row of 16 uniform numbers of 24 bits:
 *
 *     u  | 0 … 7 | 8 … 15 |     out[j] = r cos a, out[j + 8] = r sin a,  r = sqrt(-2 log(1 - u[j])), a = 2 pi u[j + 8]
 *
 * The last 16 of a count that is no multiple of 16 are drawn anew. Fewer than 16 values are drawn one by one, of pairs
 * of uniform numbers of 53 bits, of whose two results one is kept for the next value. */
#include <math.h>
#include <stdlib.h>

#include "base/status.h"
#include "rdna/image.h"

enum { WORDS = 624, NEAR = 397, ROW = 16 };

struct rdna_image_noise {
  uint32_t state[WORDS];
  int next;    /* the word of |state| that is given next; WORDS: all were */
  double kept; /* of values drawn one by one; NaN: none */
};

static uint32_t next_word(rdna_image_noise *n) {
  if (n->next == WORDS) {
    for (int i = 0; i < WORDS; i++) {
      uint32_t joined = (n->state[i] & 0x80000000u) | (n->state[(i + 1) % WORDS] & 0x7fffffffu);
      n->state[i] = n->state[(i + NEAR) % WORDS] ^ (joined >> 1) ^ (joined & 1 ? 0x9908b0dfu : 0);
    }
    n->next = 0;
  }
  uint32_t word = n->state[n->next++];
  word ^= word >> 11;
  word ^= (word << 7) & 0x9d2c5680u;
  word ^= (word << 15) & 0xefc60000u;
  return word ^ (word >> 18);
}

static float uniform24(rdna_image_noise *n) { return (float)(next_word(n) & 0xffffff) * 0x1p-24f; }

static double uniform53(rdna_image_noise *n) {
  uint64_t high = next_word(n), both = high << 32 | next_word(n);
  return (double)(both & ((1ull << 53) - 1)) * 0x1p-53;
}

static const double circle = 6.283185307179586;

static void draw_row(rdna_image_noise *n, float *row, bool drawn) {
  for (int j = 0; !drawn && j < ROW; j++) row[j] = uniform24(n);
  for (int j = 0; j < ROW / 2; j++) {
    double r = sqrt(-2 * log(1 - (double)row[j])), angle = circle * (double)row[j + ROW / 2];
    row[j] = (float)(r * cos(angle));
    row[j + ROW / 2] = (float)(r * sin(angle));
  }
}

static double draw_one(rdna_image_noise *n) {
  double kept = n->kept;
  n->kept = NAN;
  if (!isnan(kept)) return kept;
  double angle = circle * uniform53(n), r = sqrt(-2 * log1p(-uniform53(n)));
  n->kept = r * sin(angle);
  return r * cos(angle);
}

rdna_status rdna_image_noise_create(uint64_t seed, rdna_image_noise **out_noise) {
  if (!out_noise) return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_image_noise_create needs a place");
  rdna_image_noise *n = malloc(sizeof *n);
  if (!n) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for random numbers");
  n->state[0] = (uint32_t)seed;
  for (uint32_t i = 1; i < WORDS; i++) n->state[i] = 1812433253u * (n->state[i - 1] ^ (n->state[i - 1] >> 30)) + i;
  n->next = WORDS;
  n->kept = NAN;
  *out_noise = n;
  return RDNA_OK;
}

void rdna_image_noise_release(rdna_image_noise *n) { free(n); }

void rdna_image_noise_draw(rdna_image_noise *n, float *out, size_t count) {
  if (count < ROW) {
    for (size_t i = 0; i < count; i++) out[i] = (float)draw_one(n);
    return;
  }
  /* all uniform numbers come first, those of the last row twice */
  for (size_t i = 0; i < count; i++) out[i] = uniform24(n);
  for (size_t i = 0; i + ROW <= count; i += ROW) draw_row(n, out + i, true);
  if (count % ROW != 0) draw_row(n, out + count - ROW, false);
}
