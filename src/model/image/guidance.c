#include "model/image/guidance.h"

#include <math.h>
#include <string.h>

/* ---- answers ---- */

static double deviation_of(const float *values, size_t count) {
  double sum = 0, squares = 0;
  for (size_t k = 0; k < count; k++) sum += (double)values[k];
  for (size_t k = 0; k < count; k++)
    squares += ((double)values[k] - sum / (double)count) * ((double)values[k] - sum / (double)count);
  return sqrt(squares / (double)count);
}

void rdna__guidance_mix(const rdna__guidance *g, float *answers, size_t count) {
  const float *prompted = answers + (g->guided ? count : 0), *perturbed = prompted + count;
  bool spread = g->guided && g->rescale > 0;
  double wanted = spread ? deviation_of(prompted, count) : 0;
  float scale = (float)g->scale, pag = (float)g->pag;
  for (size_t k = 0; k < count && (g->guided || pag > 0); k++) {
    float mixed = answers[k];
    if (g->guided) mixed += scale * (prompted[k] - answers[k]);
    if (pag > 0) mixed += pag * (prompted[k] - perturbed[k]);
    answers[k] = mixed;
  }
  double made = spread ? deviation_of(answers, count) : 0;
  if (!(made > 0)) return;
  float by = (float)(1 + g->rescale * (wanted / made - 1));
  for (size_t k = 0; k < count; k++) answers[k] *= by;
}

/* ---- places ---- */

static const char *const ways[] = {"down", "mid", "up"};

static bool is_end(char c) { return c == 0 || c == ',' || c == ' '; }

/* One of |text|, up to its end; NULL: it is none. */
static const char *read_place(const char *text, rdna__unet_way *out_way, int numbers[3]) {
  int way = 0, count = 0;
  while (way < 3 && strncmp(text, ways[way], strlen(ways[way])) != 0) way++;
  if (way == 3) return NULL;
  *out_way = (rdna__unet_way)way;
  for (int i = 0; i < 3; i++) numbers[i] = -1;
  text += strlen(ways[way]);
  if (way == RDNA__UNET_MIDDLE) numbers[count++] = 0, numbers[count++] = 0; /* it has one transformer */
  while (*text == '.' && count < 3) {
    if (text[1] < '0' || text[1] > '9') return NULL;
    int number = 0;
    for (text++; *text >= '0' && *text <= '9'; text++) number = number < 1000 ? 10 * number + (*text - '0') : number;
    numbers[count++] = number;
  }
  return is_end(*text) ? text : NULL;
}

/* Whether transformer |layer| of |stage| is in the network, and of how many blocks. */
static int blocks_of(const rdna__unet_settings *s, rdna__unet_way way, int stage, int layer) {
  int of = way == RDNA__UNET_UP ? s->stages - 1 - stage : stage;
  if (way == RDNA__UNET_MIDDLE) return stage == 0 && layer == 0 ? s->blocks[s->stages - 1] : 0;
  bool attends = way == RDNA__UNET_UP ? s->up_attends[of] : s->down_attends[of];
  return attends && layer < s->layers[of] + (way == RDNA__UNET_UP) ? s->blocks[of] : 0;
}

static bool is_there(const rdna__unet_settings *s, rdna__unet_way way, const int numbers[3]) {
  for (int stage = 0; stage < s->stages; stage++)
    for (int layer = 0; layer <= RDNA__UNET_LAYERS; layer++) {
      int blocks = blocks_of(s, way, stage, layer);
      bool is_one = (numbers[0] < 0 || numbers[0] == stage) && (numbers[1] < 0 || numbers[1] == layer);
      if (is_one && blocks > 0 && numbers[2] < blocks) return true;
    }
  return false;
}

rdna_status rdna__unet_places_read(const char *text, const rdna__unet_settings *s, rdna__unet_places *out) {
  *out = (rdna__unet_places){0};
  for (const char *at = text; *at;) {
    if (*at == ',' || *at == ' ') {
      at++;
      continue;
    }
    rdna__unet_way way = RDNA__UNET_MIDDLE;
    int numbers[3];
    const char *end = out->count < RDNA__UNET_PLACES ? read_place(at, &way, numbers) : NULL;
    if (!end)
      return rdna__fail(RDNA_INVALID_ARGUMENT,
                        "'%.60s' is no list of up to %d places of attention such as mid, down.1 or up.0.2", at,
                        RDNA__UNET_PLACES);
    if (!is_there(s, way, numbers))
      return rdna__fail(RDNA_INVALID_ARGUMENT, "the U-Net attends nowhere at '%.*s'", (int)(end - at), at);
    out->items[out->count].way = way;
    memcpy(out->items[out->count++].numbers, numbers, sizeof numbers);
    at = end;
  }
  return out->count ? RDNA_OK : rdna__fail(RDNA_INVALID_ARGUMENT, "a list of no places of attention");
}

uint32_t rdna__unet_places_in(const rdna__unet_places *p, rdna__unet_way way, int stage, int layer) {
  uint32_t blocks = 0;
  for (int i = 0; i < p->count; i++) {
    const int *n = p->items[i].numbers;
    if (p->items[i].way != way || (n[0] >= 0 && n[0] != stage) || (n[1] >= 0 && n[1] != layer)) continue;
    blocks |= n[2] < 0 ? UINT32_MAX : n[2] < 32 ? UINT32_C(1) << n[2] : 0;
  }
  return blocks;
}
