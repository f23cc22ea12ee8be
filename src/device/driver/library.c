#include "device/driver/library.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void note_failure(rdna__library *library, const char *name) {
  const char *said = dlerror();
  /* of many candidates, one that exists but does not load says more than those that are not there */
  bool exists = strchr(name, '/') != NULL && access(name, F_OK) == 0;
  if (said == NULL || (library->failure[0] != '\0' && !exists)) return;
  snprintf(library->failure, sizeof library->failure, "%s", said);
}

static void set_path(rdna__library *library, const char *path) {
  char resolved[PATH_MAX];
  if (path != NULL && realpath(path, resolved) != NULL) path = resolved;
  snprintf(library->path, sizeof library->path, "%.*s", (int)sizeof library->path - 1, path == NULL ? "" : path);
}

bool rdna__library_meets_llvm(void) {
  static const char llvm_class[] = "_ZTVN4llvm19raw_svector_ostreamE";
  return dlsym(RTLD_DEFAULT, llvm_class) != NULL;
}

/* A process that shows an LLVM binds libraries to their own names first. Elsewhere it does not, since an allocator that
 * somebody preloaded would be left out, and the address sanitizer refuses it. */
static int binding(void) { return rdna__library_meets_llvm() ? RTLD_DEEPBIND : 0; }

bool rdna__library_open(rdna__library *library, const char *name, bool only_if_loaded) {
  void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | (only_if_loaded ? RTLD_NOLOAD : binding()));
  if (handle == NULL) {
    if (only_if_loaded) {
      dlerror();
    } else {
      note_failure(library, name);
    }
    return false;
  }
  library->handle = handle;
  struct link_map *map = NULL;
  set_path(library, dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != NULL ? map->l_name : name);
  return true;
}

typedef struct loaded_search {
  const char *prefix;
  char path[PATH_MAX];
} loaded_search;

static int match_loaded(struct dl_phdr_info *info, size_t size, void *data) {
  loaded_search *search = data;
  const char *name = info->dlpi_name;
  const char *slash = name == NULL ? NULL : strrchr(name, '/');
  if (slash == NULL || strncmp(slash + 1, search->prefix, strlen(search->prefix)) != 0) return 0;
  snprintf(search->path, sizeof search->path, "%s", name);
  return 1;
}

bool rdna__library_open_loaded(rdna__library *library, const char *prefix) {
  loaded_search search = {.prefix = prefix};
  if (dl_iterate_phdr(match_loaded, &search) == 0) return false;
  return rdna__library_open(library, search.path, true);
}

/* Newest first, comparing runs of digits as numbers. */
static int compare_versions(const void *a, const void *b) {
  return -strverscmp(*(const char *const *)a, *(const char *const *)b);
}

/* Opens the first that it can of the files that |pattern| matches, newest first; with |prefix|, of the files PREFIX* in
 * the folders that it matches. */
static bool open_matching(rdna__library *library, const char *pattern, const char *prefix) {
  glob_t found = {0};
  bool opened = false;
  if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0) {
    qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, compare_versions);
    for (size_t i = 0; i < found.gl_pathc && !opened; i++) {
      const char *path = found.gl_pathv[i];
      opened =
          prefix == NULL ? rdna__library_open(library, path, false) : rdna__library_open_newest(library, path, prefix);
    }
  }
  globfree(&found);
  return opened;
}

bool rdna__library_open_newest(rdna__library *library, const char *folder, const char *prefix) {
  char pattern[PATH_MAX];
  if (snprintf(pattern, sizeof pattern, "%s/%s*", folder, prefix) >= (int)sizeof pattern) return false;
  return open_matching(library, pattern, NULL);
}

bool rdna__library_open_in_folders(rdna__library *library, const char *pattern, const char *prefix) {
  return open_matching(library, pattern, prefix);
}

bool rdna__library_open_below(rdna__library *library, const char *base, const char *below, const char *prefix) {
  char pattern[PATH_MAX];
  if (base == NULL || base[0] == '\0') return false;
  if (snprintf(pattern, sizeof pattern, "%s/%s", base, below) >= (int)sizeof pattern) return false;
  return rdna__library_open_in_folders(library, pattern, prefix);
}

bool rdna__library_open_wheel(rdna__library *library, const char *package, const char *prefix) {
  char own[PATH_MAX], program[PATH_MAX], beside[128], above[128], environment[160], around[160];
  rdna__library_own_folder(own, sizeof own);
  rdna__library_program_folder(program, sizeof program);
  /* our own wheel's library is site-packages/rdna/x.so or site-packages/rdna/lib/x.so */
  snprintf(beside, sizeof beside, "../%s", package);
  snprintf(above, sizeof above, "../../%s", package);
  snprintf(environment, sizeof environment, "lib/python3*/site-packages/%s", package);
  snprintf(around, sizeof around, "../lib/python3*/site-packages/%s", package);
  return rdna__library_open_below(library, own, beside, prefix) ||
         rdna__library_open_below(library, own, above, prefix) ||
         rdna__library_open_below(library, getenv("VIRTUAL_ENV"), environment, prefix) ||
         rdna__library_open_below(library, program, around, prefix);
}

const char *rdna__library_bind(rdna__library *library, const rdna__symbol *symbols, size_t count, void *table) {
  bool located = false;
  for (size_t i = 0; i < count; i++) {
    void *address = dlsym(library->handle, symbols[i].name);
    if (address == NULL && symbols[i].required) return symbols[i].name;
    memcpy((char *)table + symbols[i].offset, &address, sizeof address);
    /* the file that the code is in, which a preloaded or interposed library can make another than we opened */
    Dl_info where;
    if (address != NULL && !located && dladdr(address, &where) != 0) {
      set_path(library, where.dli_fname);
      located = true;
    }
  }
  return NULL;
}

static void keep_folder(char *path) {
  char *slash = strrchr(path, '/');
  if (slash == NULL) {
    path[0] = '\0';
  } else {
    *slash = '\0';
  }
}

void rdna__library_own_folder(char *out_folder, size_t capacity) {
  Dl_info where;
  char resolved[PATH_MAX] = "";
  if (dladdr((void *)(size_t)&rdna__library_own_folder, &where) == 0 || realpath(where.dli_fname, resolved) == NULL) {
    resolved[0] = '\0';
  }
  keep_folder(resolved);
  snprintf(out_folder, capacity, "%s", resolved);
}

void rdna__library_program_folder(char *out_folder, size_t capacity) {
  char resolved[PATH_MAX];
  if (realpath("/proc/self/exe", resolved) == NULL) resolved[0] = '\0';
  keep_folder(resolved);
  snprintf(out_folder, capacity, "%s", resolved);
}
