/* rdna kernels --where: the source of a kernel, and what chooses it. */
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "command/command.h"
#include "command/where.h"
#include "math/common/plan/route.h"

bool is_chosen_by(const kernel_place *place, const rdna__route *route) {
  for (int i = 0; i < RDNA__ROUTE_KERNELS && route->kernels[i]; i++)
    if (rdna__route_matches(route->kernels[i], place->kernel)) return true;
  return false;
}

const char *route_source(const rdna__route_table *table) {
  const char *source = table->source;
  for (const char *next; (next = strstr(source, "/math/")) != NULL;) source = next + 1;
  return source;
}

static void print_place(const kernel_place *place) {
  printf("%s\n", place->kernel);
  printf("  device code  %s:%d\n", place->at.device.file, place->at.device.line);
  printf("  host twin    %s:%d\n", place->at.twin.file, place->at.twin.line);
  printf("  cases        %s:%d, %s\n", place->at.cases.file, place->at.cases.line, place->case_maker);
  for (int t = 0; t < rdna__route_table_count; t++) {
    const rdna__route_table *table = rdna__route_tables[t];
    for (int i = 0; i < table->count; i++) {
      const rdna__route *route = rdna__route_at(table, i);
      if (is_chosen_by(place, route))
        printf("  route        src/%s: %s, %s: %s\n", route_source(table), table->title, route->name, route->when);
    }
  }
}

static json_t *place_json(const source_place *at) { return json_pack("{ss si}", "file", at->file, "line", at->line); }

static json_t *kernel_json(const kernel_place *place) {
  json_t *routes = json_array();
  for (int t = 0; t < rdna__route_table_count; t++) {
    const rdna__route_table *table = rdna__route_tables[t];
    for (int i = 0; i < table->count; i++) {
      const rdna__route *route = rdna__route_at(table, i);
      if (!is_chosen_by(place, route)) continue;
      json_array_append_new(
          routes, json_pack("{s:o ss ss ss ss?}", "file", json_sprintf("src/%s", route_source(table)), "operators",
                            table->title, "name", route->name, "when", route->when, "measured_on", route->measured_on));
    }
  }
  return json_pack("{ss so so so ss so}", "kernel", place->kernel, "device", place_json(&place->at.device), "twin",
                   place_json(&place->at.twin), "cases", place_json(&place->at.cases), "case_maker", place->case_maker,
                   "routes", routes);
}

/* The kernel of that name; where there is none, those with |name| in theirs, or all. */
static bool is_meant(const kernel_place *place, const char *name, bool exact) {
  if (exact) return strcmp(place->kernel, name) == 0;
  return strcmp(name, "all") == 0 || strstr(place->kernel, name);
}

int show_where(const char *name, bool json) {
  bool exact = false;
  int found = 0;
  json_t *all = json ? json_array() : NULL;
  for (int i = 0; i < kernel_place_count; i++) exact = exact || strcmp(kernel_places[i].kernel, name) == 0;
  for (int i = 0; i < kernel_place_count; i++) {
    if (!is_meant(&kernel_places[i], name, exact)) continue;
    found++;
    if (json)
      json_array_append_new(all, kernel_json(&kernel_places[i]));
    else
      print_place(&kernel_places[i]);
  }
  if (found == 0) {
    json_decref(all);
    if (kernel_place_count == 0) {
      (void)!rdna__fail(RDNA_UNSUPPORTED,
                        "this command was built without RDNA_PLACES, the table of where kernels stand");
      return fail_with_status();
    }
    (void)!rdna__fail(RDNA_NOT_FOUND, "no kernel of the %d has '%s' in its name; '--where all' lists them",
                      kernel_place_count, name);
    return fail_with_status();
  }
  return json ? print_json(all) : EXIT_OK;
}
