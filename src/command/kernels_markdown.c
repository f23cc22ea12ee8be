/* rdna kernels --markdown: docs/kernels.md, from the tables of routes and the places of kernels. Without the lines,
 * which move with every change; `rdna kernels --where` has them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/options.h"
#include "command/places.h"
#include "command/where.h"
#include "kernel/manifest.h"

/* Files that were named already, so that each is named once. */
typedef struct files {
  const char *name[64];
  int count;
} files;

static void print_file(files *seen, const char *file) {
  for (int i = 0; i < seen->count; i++)
    if (strcmp(seen->name[i], file) == 0) return;
  if (seen->count == 64) return;
  const char *base = strrchr(file, '/');
  printf("%s[%s](../%s)", seen->count ? " " : "", base ? base + 1 : file, file);
  seen->name[seen->count++] = file;
}

/* In a table a bar is written \|. */
static void print_code(const char *text) {
  putchar('`');
  for (; *text; text++) printf(*text == '|' ? "\\|" : "%c", *text);
  putchar('`');
}

static void print_route(const rdna__route *route) {
  files seen = {.count = 0};
  printf("| %s | %s | ", route->name, route->when);
  for (int k = 0; k < RDNA__ROUTE_KERNELS && route->kernels[k]; k++) {
    if (k > 0) printf(" ");
    print_code(route->kernels[k]);
  }
  printf(" | ");
  for (int i = 0; i < kernel_place_count; i++)
    if (is_chosen_by(&kernel_places[i], route)) print_file(&seen, kernel_places[i].at.device.file);
  printf(" | %s |\n", route->measured_on ? route->measured_on : "");
}

static void print_table(const rdna__route_table *table) {
  const char *rule = table->fixed                     ? "Each row is a part of the work, and the operator knows which."
                     : rdna__route_at(table, 0)->cost ? "The row of the least cost among those that apply."
                                                      : "The first row that applies.";
  printf("\n### %s\n\n%s Table: [src/%s](../src/%s).\n\n", table->title, rule, route_source(table),
         route_source(table));
  printf("| route | when | kernels | device code | measured on |\n|---|---|---|---|---|\n");
  for (int i = 0; i < table->count; i++) print_route(rdna__route_at(table, i));
}

static const kernel_place *place_of(const char *kernel) {
  for (int i = 0; i < kernel_place_count; i++)
    if (strcmp(kernel_places[i].kernel, kernel) == 0) return &kernel_places[i];
  return NULL;
}

/* A code object's kernels are neighbours in the manifest. */
static void print_family(int first, int end) {
  files device = {.count = 0}, twins = {.count = 0}, cases = {.count = 0};
  printf("| %s | %d | ", rdna__manifest[first].family, end - first);
  for (int i = first; i < end; i++) print_file(&device, place_of(rdna__manifest[i].name)->at.device.file);
  printf(" | ");
  for (int i = first; i < end; i++) print_file(&twins, place_of(rdna__manifest[i].name)->at.twin.file);
  printf(" | ");
  for (int i = first; i < end; i++) print_file(&cases, place_of(rdna__manifest[i].name)->at.cases.file);
  printf(" |\n");
}

int show_markdown(void) {
  for (int i = 0; i < rdna__manifest_count; i++) {
    if (place_of(rdna__manifest[i].name)) continue;
    fprintf(stderr, "rdna kernels: the table of places lacks %s; it is of another build\n", rdna__manifest[i].name);
    return EXIT_FAILED;
  }
  printf(
      "# Kernels, and what chooses them\n\n"
      "Made by `rdna kernels --markdown > docs/kernels.md` from the tables that the operators themselves choose from; "
      "a "
      "test compares. `rdna kernels --where NAME` has the lines.\n\n"
      "`{a|b}` stands for one of these words. Sets of words:");
  for (int i = 0; i < rdna__word_set_count; i++)
    printf("%s `{%s}` is `%s`", i ? "," : "", rdna__word_sets[i].name, rdna__word_sets[i].words);
  printf(
      ".\n\nWhere a row's limits and shares come from a card, the last column names it. Nobody has measured them on "
      "AMD's cards: there they are guesses, and `rdna tune` may find better ones for products.\n\n## Routes\n");
  for (int t = 0; t < rdna__route_table_count; t++) print_table(rdna__route_tables[t]);
  printf("\n## Code objects\n\n| code object | kernels | device code | host twins | cases |\n|---|---|---|---|---|\n");
  for (int first = 0, end; first < rdna__manifest_count; first = end) {
    for (end = first; end < rdna__manifest_count; end++)
      if (strcmp(rdna__manifest[end].family, rdna__manifest[first].family) != 0) break;
    print_family(first, end);
  }
  return EXIT_OK;
}
