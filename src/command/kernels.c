/* rdna kernels: what is in the packs, and their code objects as files. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/status.h"
#include "command/command.h"
#include "command/where.h"
#include "device/targets.h"
#include "kernel/loader.h"
#include "kernel/pack.h"

typedef struct listing {
  const char *target;  /* a GPU; "" is every pack */
  char pack[32];       /* whose pack serves it best, its own or a relative's */
  int fitness;         /* of that one; 0: none */
  const char *extract; /* folder, or "" */
  json_t *json;        /* NULL prints a table */
  int packs;
  uint64_t bytes;
} listing;

/* A relative's code object gets the name of the GPU that was asked for, as when it is loaded there. */
static rdna_status extract(const listing *list, const rdna__pack *pack, const rdna__pack_entry *entry) {
  char path[4096];
  bool object = entry->format == RDNA__PACK_HSACO;
  const char *own = rdna__pack_target(pack), *target = list->target[0] && object ? list->target : own;
  snprintf(path, sizeof path, "%s/%s.%s.%s", list->extract, entry->name, target, object ? "hsaco" : "ptx");
  void *image;
  size_t size;
  RDNA_TRY(rdna__pack_extract(pack, entry, &image, &size));
  rdna_status renamed = strcmp(target, own) ? rdna__retarget(image, size, own, target) : RDNA_OK;
  if (renamed != RDNA_OK) {
    free(image);
    return renamed;
  }
  FILE *file = fopen(path, "wb");
  /* PTX in a pack ends with a NUL, which a text file does not */
  size_t wanted = entry->format == RDNA__PACK_PTX && size > 0 ? size - 1 : size;
  bool written = file && fwrite(image, 1, wanted, file) == wanted;
  if (file && fclose(file) != 0) written = false;
  free(image);
  if (!written) return rdna__fail(RDNA_IO_ERROR, "cannot write %s: %s", path, strerror(errno));
  return RDNA_OK;
}

static rdna_status list_pack(listing *list, const rdna__pack *pack) {
  char text[32];
  uint64_t raw = 0;
  json_t *entries = list->json ? json_array() : NULL;
  for (int i = 0; i < rdna__pack_entry_count(pack); i++) {
    const rdna__pack_entry *entry = rdna__pack_entry_at(pack, i);
    raw += entry->raw_size;
    rdna_status status = list->extract[0] ? extract(list, pack, entry) : RDNA_OK;
    if (status != RDNA_OK) {
      json_decref(entries);
      return status;
    }
    if (entries)
      json_array_append_new(
          entries, json_pack("{s:s, s:I, s:I}", "name", entry->name, "bytes", (json_int_t)entry->raw_size, "compressed",
                             (json_int_t)entry->compressed_size));
  }
  list->packs++;
  list->bytes += rdna__pack_size(pack);
  if (list->json) {
    json_array_append_new(
        list->json, json_pack("{s:s, s:s, s:I, s:o}", "target", rdna__pack_target(pack), "path", rdna__pack_path(pack),
                              "bytes", (json_int_t)rdna__pack_size(pack), "code_objects", entries));
    return RDNA_OK;
  }
  printf("%-9s %3d code objects  %9s", rdna__pack_target(pack), rdna__pack_entry_count(pack),
         format_bytes((double)raw, text));
  printf(", compressed %9s  %s\n", format_bytes((double)rdna__pack_size(pack), text), rdna__pack_path(pack));
  if (list->target[0] && strcmp(list->target, rdna__pack_target(pack)))
    printf("  %s has no pack of its own and runs these\n", list->target);
  if (list->target[0])
    for (int i = 0; i < rdna__pack_entry_count(pack); i++) {
      const rdna__pack_entry *entry = rdna__pack_entry_at(pack, i);
      printf("  %-24s %9s\n", entry->name, format_bytes((double)entry->raw_size, text));
    }
  return RDNA_OK;
}

static rdna_status weigh(void *context, const char *path, const char *target) {
  listing *list = context;
  int fitness = rdna__target_fitness(target, list->target);
  if (fitness <= list->fitness) return RDNA_OK;
  list->fitness = fitness;
  snprintf(list->pack, sizeof list->pack, "%s", target);
  return RDNA_OK;
}

static rdna_status visit(void *context, const char *path, const char *target) {
  listing *list = context;
  if (list->target[0] && strcmp(list->pack, target) != 0) return RDNA_OK;
  rdna__pack *pack;
  RDNA_TRY(rdna__pack_open(path, &pack));
  rdna_status status = list_pack(list, pack);
  rdna__pack_close(pack);
  return status;
}

/* One line for each target whose pack serves a GPU that is here. */
static int print_needed(void) {
  for (const rdna__target *t = rdna__targets; t < rdna__targets + rdna__target_count; t++) {
    bool needed = false;
    for (int i = 0; i < rdna_driver_count(); i++) {
      rdna_driver_info driver;
      if (rdna_driver_get_info(i, &driver) != RDNA_OK) return fail_with_status();
      for (int j = 0; j < driver.device_count; j++) {
        rdna_device_info device;
        if (rdna_device_describe(driver.name, j, &device) != RDNA_OK) return fail_with_status();
        const char *target = rdna__target_for(device.arch);
        needed = needed || (target && !strcmp(target, t->name));
      }
    }
    if (needed) printf("%s\n", t->name);
  }
  return EXIT_OK;
}

int command_kernels(int argc, char **argv) {
  listing list = {.target = "", .extract = ""};
  bool json = false, markdown = false, needed = false;
  const char *where = "";
  const option_row options[] = {
      {"--target", OPTION_TEXT, &list.target, "GPU",
       "only the pack that this GPU runs, such as gfx1100, with its contents", 0, 0},
      {"--extract", OPTION_TEXT, &list.extract, "DIR", "write each code object as NAME.TARGET.hsaco or .ptx", 0, 0},
      {"--where", OPTION_TEXT, &where, "KERNEL",
       "instead: where its code, its host twin and its cases stand, and what chooses it; a part of a name, or all", 0,
       0},
      {"--markdown", OPTION_FLAG, &markdown, NULL, "instead: docs/kernels.md, the tables by which operators choose", 0,
       0},
      {"--needed", OPTION_FLAG, &needed, NULL, "instead: the targets whose packs the GPUs here run, one a line", 0, 0},
      {"--json", OPTION_FLAG, &json, NULL, "print JSON", 0, 0},
  };
  const command_line line = {"rdna kernels", "Lists the kernel packs, or takes them apart.", "", 0, 0, options, 6};
  const char *positionals[POSITIONAL_MAX];
  int count, exit_status;
  if (!parse_command_line(&line, argc, argv, positionals, &count, &exit_status)) return exit_status;
  bool instead = markdown || needed;
  if (markdown + needed + (where[0] != 0) > 1 || (json && instead)) {
    fprintf(stderr, "rdna kernels: --where, --markdown and --needed exclude each other, and the last two --json\n");
    return EXIT_USAGE;
  }
  if (markdown) return show_markdown();
  if (where[0]) return show_where(where, json);
  if (needed) return print_needed();
  if (list.extract[0] && mkdir(list.extract, 0777) != 0 && errno != EEXIST) {
    (void)!rdna__fail(RDNA_IO_ERROR, "cannot make the folder %s: %s", list.extract, strerror(errno));
    return fail_with_status();
  }
  if (json) list.json = json_array();
  rdna_status status = list.target[0] ? rdna__loader_visit(weigh, &list) : RDNA_OK;
  if (status == RDNA_OK) status = rdna__loader_visit(visit, &list);
  if (status == RDNA_OK && list.packs == 0)
    status = list.target[0] ? rdna__fail(RDNA_NOT_FOUND,
                                         "there is no pack for '%s'; rdna kernels lists those that "
                                         "there are",
                                         list.target)
                            : rdna__fail(RDNA_NOT_FOUND,
                                         "there are no kernel packs; build them, or name their folder "
                                         "in RDNA_KERNEL_PATH");
  if (status != RDNA_OK) {
    json_decref(list.json);
    return fail_with_status();
  }
  if (json) return print_json(list.json);
  char text[32];
  printf("%d pack%s, %s\n", list.packs, list.packs == 1 ? "" : "s", format_bytes((double)list.bytes, text));
  return EXIT_OK;
}
