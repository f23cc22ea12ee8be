#include "math/common/plan/route.h"

#include <string.h>

#include "math/common/plan/check.h"

const rdna__route *rdna__route_choose(const rdna__route_table *table, const void *problem) {
  const rdna__route *best = NULL;
  double least = 0;
  for (int i = 0; i < table->count; i++) {
    const rdna__route *route = rdna__route_at(table, i);
    if (route->applies && !route->applies(route, problem)) continue;
    if (!route->cost) return route;
    double cost = route->cost(route, problem);
    if (!best || cost < least) best = route, least = cost;
  }
  return best;
}

const char *rdna__route_kernel(char name[RDNA__ROUTE_NAME], const char *pattern, const char *const *words) {
  char *to = name, *end = name + RDNA__ROUTE_NAME - 1;
  for (const char *at = pattern; *at && to < end; at++) {
    if (*at != '{') {
      *to++ = *at;
      continue;
    }
    for (const char *word = *words++; *word && to < end;) *to++ = *word++;
    while (*at != '}') at++;
  }
  *to = 0;
  return name;
}

rdna_status rdna__route_launch(rdna_stream *stream, const char *pattern, rdna_grid grid, const void *args,
                               const char *const *words) {
  char name[RDNA__ROUTE_NAME];
  return rdna__launch_named(stream, rdna__route_kernel(name, pattern, words), grid, args);
}

/* Returns the words, a|b, between the braces that open at |open|: of the set that they name, or as they stand. */
static const char *words_of(const char *open, size_t length, size_t *out_length) {
  *out_length = length;
  for (int i = 0; i < rdna__word_set_count; i++) {
    const rdna__word_set *set = &rdna__word_sets[i];
    if (strlen(set->name) != length || strncmp(set->name, open, length) != 0) continue;
    *out_length = strlen(set->words);
    return set->words;
  }
  return open;
}

typedef struct expansion {
  bool (*visit)(void *context, const char *name);
  void *context;
  char name[RDNA__ROUTE_NAME];
} expansion;

/* Expands what is left of |pattern|, recursively; the first |used| characters of the name are written. */
static bool expand(expansion *e, size_t used, const char *pattern) {
  size_t plain = strcspn(pattern, "{");
  if (used + plain >= sizeof e->name) return false;
  memcpy(e->name + used, pattern, plain);
  used += plain, pattern += plain;
  if (!*pattern) {
    e->name[used] = 0;
    return e->visit(e->context, e->name);
  }
  size_t inside = strcspn(pattern, "}") - 1, length;
  const char *words = words_of(pattern + 1, inside, &length), *end = words + length;
  for (const char *word = words; word <= end;) {
    size_t size = strcspn(word, "|}");
    if (size > (size_t)(end - word)) size = (size_t)(end - word);
    if (used + size >= sizeof e->name) return false;
    memcpy(e->name + used, word, size);
    if (!expand(e, used + size, pattern + inside + 2)) return false;
    word += size + 1;
  }
  return true;
}

bool rdna__route_expand(const char *pattern, bool (*visit)(void *context, const char *name), void *context) {
  expansion e = {.visit = visit, .context = context};
  return expand(&e, 0, pattern);
}

struct sought {
  const char *name;
  bool found;
};

static bool compare(void *context, const char *name) {
  struct sought *sought = context;
  sought->found = strcmp(sought->name, name) == 0;
  return !sought->found;
}

/* A pattern that does not fit ends the expansion too: that is no match. */
bool rdna__route_matches(const char *pattern, const char *name) {
  struct sought sought = {.name = name};
  (void)rdna__route_expand(pattern, compare, &sought);
  return sought.found;
}
