#include "kernel/loader.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/config.h"
#include "device/targets.h"

enum { PATH_SIZE = 4096, PLACES = 8, LIST_SIZE = 512 };

struct rdna__loader {
  rdna__pack *pack;
  char arch[32];
  bool retargets;
};

static int compute_capability(const char *target) {
  char *end;
  if (strncmp(target, "sm_", 3)) return 0;
  long number = strtol(target + 3, &end, 10);
  return *end == 0 && number > 0 && number < 10000 ? (int)number : 0; /* "sm_90a" runs on nothing else */
}

enum { EXACT = 1 << 20 };

int rdna__target_fitness(const char *target, const char *arch) {
  if (!strcmp(target, arch)) return EXACT;
  int target_capability = compute_capability(target), capability = compute_capability(arch);
  if (target_capability && capability) return target_capability <= capability ? target_capability : 0;
  const rdna__target *gpu = rdna__target_find(arch);
  const char *word = gpu ? gpu->runs : "";
  for (int fitness = EXACT / 2; *word; fitness--) { /* an earlier one is a closer relative */
    size_t length = strcspn(word, " ");
    if (strlen(target) == length && !strncmp(word, target, length)) return fitness;
    word += length + strspn(word + length, " ");
  }
  return 0;
}

/* Gives the folder of the running program or of the library that holds this code, or "". */
static void program_folder(char folder[PATH_SIZE]) {
  ssize_t length = readlink("/proc/self/exe", folder, PATH_SIZE - 1);
  folder[length > 0 ? length : 0] = 0;
  char *slash = strrchr(folder, '/');
  if (slash) *slash = 0;
}

static void library_folder(char folder[PATH_SIZE]) {
  Dl_info info;
  folder[0] = 0;
  if (!dladdr((void *)(uintptr_t)program_folder, &info) || !info.dli_fname) return;
  char *real = realpath(info.dli_fname, NULL);
  char *slash = real ? strrchr(real, '/') : NULL;
  if (slash) snprintf(folder, PATH_SIZE, "%.*s", (int)(slash - real), real);
  free(real);
}

/* Lists the folders where packs may be, best first; returns how many. */
static int search_places(char (*places)[PATH_SIZE]) {
  static const char *const beside[] = {"kernels", "../kernels", "../lib/rdna/kernels", "rdna/kernels"};
  const char *named = rdna__config_text(RDNA__CONFIG_KERNEL_PATH);
  if (named[0]) { /* a person who names a folder means that one */
    snprintf(places[0], PATH_SIZE, "%s", named);
    return 1;
  }
  char program[PATH_SIZE], library[PATH_SIZE];
  program_folder(program);
  library_folder(library);
  int count = 0;
  for (int i = 0; program[0] && i < 3; i++) snprintf(places[count++], PATH_SIZE, "%.4000s/%s", program, beside[i]);
  for (int i = 0; library[0] && strcmp(library, program) && i < 4; i++)
    snprintf(places[count++], PATH_SIZE, "%.4000s/%s", library, beside[i]);
  snprintf(places[count++], PATH_SIZE, "%s", RDNA_KERNEL_DIR);
  return count;
}

typedef struct found {
  rdna_status (*visit)(void *context, const char *path, const char *target);
  void *context;
  char (*targets)[32]; /* visited already */
  int count;
} found;

static rdna_status visit_file(found *f, const char *place, const char *name) {
  char path[PATH_SIZE], target[32];
  size_t length = strlen(name), suffix = strlen(RDNA__PACK_SUFFIX);
  if (length <= suffix || strcmp(name + length - suffix, RDNA__PACK_SUFFIX) || length - suffix >= sizeof target)
    return RDNA_OK;
  snprintf(target, sizeof target, "%.*s", (int)(length - suffix), name);
  for (int i = 0; i < f->count; i++)
    if (!strcmp(f->targets[i], target)) return RDNA_OK;
  char(*grown)[32] = realloc(f->targets, ((size_t)f->count + 1) * sizeof *grown);
  if (!grown) return rdna__fail(RDNA_OUT_OF_MEMORY, "no memory to list kernel packs");
  f->targets = grown;
  strcpy(f->targets[f->count++], target);
  if (snprintf(path, sizeof path, "%s/%s", place, name) >= PATH_SIZE) return RDNA_OK;
  return f->visit(f->context, path, target);
}

rdna_status rdna__loader_visit(rdna_status (*visit)(void *context, const char *path, const char *target),
                               void *context) {
  char(*places)[PATH_SIZE] = malloc(PLACES * sizeof *places);
  if (!places) return rdna__fail(RDNA_OUT_OF_MEMORY, "no memory to look for kernel packs");
  found f = {.visit = visit, .context = context};
  int place_count = search_places(places);
  rdna_status status = RDNA_OK;
  for (int i = 0; i < place_count && status == RDNA_OK; i++) {
    struct dirent **names;
    int count = scandir(places[i], &names, NULL, alphasort);
    for (int n = 0; n < count; n++) {
      if (status == RDNA_OK) status = visit_file(&f, places[i], names[n]->d_name);
      free(names[n]);
    }
    if (count >= 0) free(names);
  }
  free(f.targets);
  free(places);
  return status;
}

typedef struct choice {
  const char *arch;
  rdna__code_format format;
  int fitness;
  char path[PATH_SIZE], target[32];
  char all[LIST_SIZE]; /* "gfx1030, gfx1100" */
} choice;

static rdna_status consider(void *context, const char *path, const char *target) {
  choice *c = context;
  size_t used = strlen(c->all);
  snprintf(c->all + used, sizeof c->all - used, "%s%s", used ? ", " : "", target);
  int fitness = rdna__target_fitness(target, c->arch);
  if (fitness <= c->fitness) return RDNA_OK;
  c->fitness = fitness;
  snprintf(c->path, sizeof c->path, "%s", path);
  snprintf(c->target, sizeof c->target, "%s", target);
  return RDNA_OK;
}

static bool is_built(const rdna__target *target) { return strcmp(target->pack, "none") != 0; }

const char *rdna__target_for(const char *arch) {
  const char *name = NULL;
  int best = 0;
  for (int i = 0; i < rdna__target_count; i++) {
    int fitness = is_built(&rdna__targets[i]) ? rdna__target_fitness(rdna__targets[i].name, arch) : 0;
    if (fitness <= best) continue;
    best = fitness;
    name = rdna__targets[i].name;
  }
  return name;
}

static rdna_status no_pack(const choice *c) {
  const char *buildable = rdna__target_for(c->arch);
  const char *have = c->all[0] ? c->all : "nothing, for no pack was found";
  if (buildable)
    return rdna__fail(RDNA_UNSUPPORTED,
                      "no kernels for %s: the packs here are for %s; build with -DRDNA_TARGETS=%s, or "
                      "name a folder that holds %s%s in RDNA_KERNEL_PATH",
                      c->arch, have, buildable, buildable, RDNA__PACK_SUFFIX);
  char list[LIST_SIZE] = "";
  for (int i = 0; i < rdna__target_count; i++) {
    size_t used = strlen(list);
    if (is_built(&rdna__targets[i]))
      snprintf(list + used, sizeof list - used, "%s%s", used ? "," : "", rdna__targets[i].name);
  }
  return rdna__fail(RDNA_UNSUPPORTED, "no kernels run on %s: this library builds for %s, and none of these fits it",
                    c->arch, list);
}

rdna_status rdna__loader_open(const char *arch, rdna__code_format format, rdna__loader **out_loader) {
  *out_loader = NULL;
  char base[32]; /* "gfx90a:sramecc+:xnack-" is gfx90a */
  snprintf(base, sizeof base, "%.*s", (int)strcspn(arch, ":"), arch);
  choice *c = calloc(1, sizeof *c);
  rdna__loader *loader = calloc(1, sizeof *loader);
  rdna_status status = RDNA_OK;
  if (!c || !loader) {
    status = rdna__fail(RDNA_OUT_OF_MEMORY, "no memory to look for the kernels of %s", base);
  } else {
    c->arch = base;
    status = rdna__loader_visit(consider, c);
    if (status == RDNA_OK && !c->fitness) status = no_pack(c);
    if (status == RDNA_OK) status = rdna__pack_open(c->path, &loader->pack);
    if (status == RDNA_OK && strcmp(rdna__pack_target(loader->pack), c->target))
      status = rdna__fail(RDNA_BAD_DATA, "kernel pack %s holds code for %s", c->path, rdna__pack_target(loader->pack));
  }
  if (status == RDNA_OK) {
    strcpy(loader->arch, base);
    loader->retargets = format == RDNA__CODE_HSACO && c->fitness != EXACT;
    *out_loader = loader;
  } else {
    rdna__loader_close(loader);
  }
  free(c);
  return status;
}

void rdna__loader_close(rdna__loader *loader) {
  if (!loader) return;
  rdna__pack_close(loader->pack);
  free(loader);
}

const rdna__pack *rdna__loader_pack(const rdna__loader *loader) { return loader->pack; }
bool rdna__loader_retargets(const rdna__loader *loader) { return loader->retargets; }

/* NULL: the pack has none. */
static const rdna__pack_entry *find_image(const rdna__loader *loader, const char *family, bool special) {
  char name[128];
  snprintf(name, sizeof name, "%.80s.%sa", family, loader->arch);
  return rdna__pack_find(loader->pack, special ? name : family);
}

uint64_t rdna__loader_hash(const rdna__loader *loader, const char *family) {
  const rdna__pack_entry *entries[] = {find_image(loader, family, false), find_image(loader, family, true)};
  uint64_t hashes[] = {entries[0] ? entries[0]->raw_hash : 0, entries[1] ? entries[1]->raw_hash : 0};
  return entries[0] || entries[1] ? XXH3_64bits(hashes, sizeof hashes) : 0;
}

rdna_status rdna__loader_image(const rdna__loader *loader, const char *family, bool special, void **out_image,
                               size_t *out_size) {
  *out_image = NULL;
  *out_size = 0;
  const rdna__pack_entry *entry = find_image(loader, family, special);
  if (!entry && special)
    return rdna__fail(RDNA_NOT_FOUND, "kernel pack %s has no family '%s' for %s alone", rdna__pack_path(loader->pack),
                      family, loader->arch);
  if (!entry)
    return rdna__fail(RDNA_UNSUPPORTED, "kernel pack %s has no family '%s': it is of another build of this library",
                      rdna__pack_path(loader->pack), family);
  RDNA_TRY(rdna__pack_extract(loader->pack, entry, out_image, out_size));
  if (!loader->retargets) return RDNA_OK;
  rdna_status status = rdna__retarget(*out_image, *out_size, rdna__pack_target(loader->pack), loader->arch);
  if (status == RDNA_OK) return RDNA_OK;
  free(*out_image);
  *out_image = NULL;
  *out_size = 0;
  return rdna__annotate(status, "kernels '%s' of %s", family, rdna__pack_path(loader->pack));
}
