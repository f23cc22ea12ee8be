#include "base/deterministic.h"

#include <stdatomic.h>

#include "base/config.h"
#include "rdna/tune.h"

static atomic_int answer = -1; /* -1: nobody asked yet */

bool rdna__deterministic(void) {
  int known = atomic_load_explicit(&answer, memory_order_relaxed);
  if (known >= 0) return known;
  int asked = rdna__config_flag(RDNA__CONFIG_DETERMINISTIC), unknown = -1;
  /* a set meanwhile wins over the environment */
  return atomic_compare_exchange_strong(&answer, &unknown, asked) ? asked : unknown;
}

void rdna_deterministic_set(bool deterministic) { atomic_store(&answer, deterministic); }
bool rdna_deterministic_get(void) { return rdna__deterministic(); }
