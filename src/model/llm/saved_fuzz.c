/* Files of saved sequences: bytes as they come, and such whose header and sums are mended so that what is behind them
 * is looked at. What is taken keeps to its counts. */
#include <stdlib.h>
#include <string.h>

#include "model/llm/saved.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const rdna__llm_saved_kind kinds[] = {
    {.model = 1, .setting = 2, .page_bytes = 24, .slot_bytes = 0, .page_rows = 4, .vocabulary = 50},
    {.model = 1, .setting = 2, .page_bytes = 3, .slot_bytes = 8, .page_rows = 1, .vocabulary = 50},
    {.model = 1, .setting = 2, .page_bytes = 0, .slot_bytes = 5, .page_rows = 32, .vocabulary = 7}};

/* Touches all that a text of a file that was taken says is there. */
static uint64_t walk(const rdna__llm_saved *s) {
  const rdna__llm_saved_header *h = &s->header;
  uint64_t sum = 0;
  const int32_t *at = s->words;
  for (uint32_t i = 0; i < h->texts; i++) {
    rdna__llm_saved_head t;
    memcpy(&t, at, sizeof t);
    const int32_t *tokens = at + sizeof t / sizeof *at, *pages = tokens + t.position, *kept = pages + t.pages;
    for (int k = 0; k < t.position; k++)
      if (tokens[k] < 0 || tokens[k] >= (int32_t)h->kind.vocabulary) abort();
    for (int k = 0; k < t.pages; k++)
      for (uint64_t b = 0; b < h->kind.page_bytes; b++) sum += s->data[(uint64_t)pages[k] * h->kind.page_bytes + b];
    for (int k = 0; k < t.checkpoints; k++) {
      if (kept[2 * k] > t.position) abort();
      for (uint64_t b = 0; b < h->kind.slot_bytes; b++)
        sum += s->data[h->pages * h->kind.page_bytes + (uint64_t)kept[2 * k + 1] * h->kind.slot_bytes + b];
    }
    at = kept + 2 * t.checkpoints;
  }
  return sum;
}

static void read_file(const void *bytes, size_t size) {
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    rdna__llm_saved saved;
    rdna_status status = rdna__llm_saved_read(bytes, size, &kinds[i], &saved);
    if (status != RDNA_OK && !*rdna_last_error()) abort();
    volatile uint64_t sum = status == RDNA_OK ? walk(&saved) : 0;
    (void)sum;
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  rdna__llm_saved_header *h = malloc(size + sizeof *h); /* aligned */
  if (!h) return 0;
  memcpy(h, data, size);
  read_file(h, size);
  if (size < 3) {
    free(h);
    return 0;
  }
  memset(h, 0, sizeof *h);
  memcpy(h->magic, RDNA__LLM_SAVED_MAGIC, sizeof h->magic);
  h->kind = kinds[data[0] % 3];
  h->texts = data[1] % 8;
  h->words = (uint32_t)(data[2] & 127) * 2;
  memcpy(h + 1, data + 3, size - 3);
  size_t words = h->words * sizeof(int32_t), rest = size - 3;
  if (words <= rest) {
    rest -= words;
    h->slots = h->kind.slot_bytes ? (uint32_t)(rest / (h->kind.slot_bytes + h->kind.page_bytes)) : 0;
    if (h->kind.page_bytes) h->pages = (uint32_t)((rest - h->slots * h->kind.slot_bytes) / h->kind.page_bytes);
    size_t whole = sizeof *h + words + h->pages * h->kind.page_bytes + h->slots * h->kind.slot_bytes;
    rdna__llm_saved_sign(h);
    read_file(h, whole);
  }
  free(h);
  return 0;
}
