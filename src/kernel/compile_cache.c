/* A folder of compiled code, for any number of processes. An entry is written aside and renamed, so that a reader sees
 * all of it or none; its checksum finds what happened to it later. Which was used last is its time of modification. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/config.h"
#include "kernel/compile.h"

enum { STALE_SECONDS = 3600, PATH_ROOM = RDNA__COMPILE_PATH + 64 };

/* What a file begins with; the lines about included files follow, then the code. Little-endian, as all hosts here. */
typedef struct entry_header {
  char magic[8]; /* "RDNAcode" */
  uint64_t files_size, code_size;
  uint64_t checksum; /* XXH3 of the key, the sizes, and all that follows */
} entry_header;

static const char magic[8] = "RDNAcode";

static uint64_t checksum(const char *key, const entry_header *header, const void *rest, size_t size) {
  XXH3_state_t *state = XXH3_createState();
  if (!state) return 0;
  XXH3_64bits_reset(state);
  XXH3_64bits_update(state, key, strlen(key));
  XXH3_64bits_update(state, &header->files_size, 2 * sizeof(uint64_t));
  XXH3_64bits_update(state, rest, size);
  uint64_t sum = XXH3_64bits_digest(state);
  XXH3_freeState(state);
  return sum;
}

rdna_status rdna__cache_parse(const char *key, const uint8_t *entry, size_t size, const uint8_t **out_code,
                              size_t *out_code_size, const char **out_files, size_t *out_files_size) {
  entry_header header;
  if (size < sizeof header) return rdna__fail(RDNA_BAD_DATA, "the entry is %zu bytes short", sizeof header - size);
  memcpy(&header, entry, sizeof header);
  size_t rest = size - sizeof header;
  if (memcmp(header.magic, magic, sizeof magic) != 0 || header.files_size > rest ||
      header.code_size != rest - header.files_size)
    return rdna__fail(RDNA_BAD_DATA, "the entry's sizes are not those of its file");
  if (checksum(key, &header, entry + sizeof header, rest) != header.checksum)
    return rdna__fail(RDNA_BAD_DATA, "the entry's checksum is wrong");
  *out_files = (const char *)entry + sizeof header;
  *out_files_size = header.files_size;
  *out_code = entry + sizeof header + header.files_size;
  *out_code_size = header.code_size;
  return RDNA_OK;
}

static void entry_path(const rdna__cache *cache, const char *key, const char *suffix, char path[PATH_ROOM]) {
  snprintf(path, PATH_ROOM, "%s/%s%s", cache->folder, key, suffix);
}

static void note(rdna__cache *cache, const char *what, const char *why) {
  if (!cache->notice[0])
    snprintf(cache->notice, sizeof cache->notice,
             "%s the cache folder %.700s: %s; the code was made and is not kept. Name another in RDNA_COMPILE_CACHE",
             what, cache->folder, why);
}

static void default_folder(char folder[RDNA__COMPILE_PATH]) {
  const char *chosen = rdna__config_text(RDNA__CONFIG_COMPILE_CACHE), *cache = getenv("XDG_CACHE_HOME"),
             *home = getenv("HOME");
  if (chosen[0])
    snprintf(folder, RDNA__COMPILE_PATH, "%s", chosen);
  else if (cache && cache[0] == '/')
    snprintf(folder, RDNA__COMPILE_PATH, "%s/rdna/compiled", cache);
  else if (home && home[0] == '/')
    snprintf(folder, RDNA__COMPILE_PATH, "%s/.cache/rdna/compiled", home);
  else
    snprintf(folder, RDNA__COMPILE_PATH, "off");
}

static void make_folders(const char *folder) {
  char path[RDNA__COMPILE_PATH];
  snprintf(path, sizeof path, "%s", folder);
  for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = 0;
    mkdir(path, 0700); /* what fails here fails again at the whole path */
    *slash = '/';
  }
  mkdir(path, 0700);
}

void rdna__cache_open(rdna__cache *cache, const char *folder, uint64_t most_entries, uint64_t most_bytes) {
  *cache = (rdna__cache){0};
  if (folder && folder[0])
    snprintf(cache->folder, sizeof cache->folder, "%s", folder);
  else
    default_folder(cache->folder);
  cache->most_entries = most_entries;
  cache->most_bytes = most_bytes;
  if (!most_entries) cache->most_entries = (uint64_t)rdna__config_integer(RDNA__CONFIG_COMPILE_CACHE_ENTRIES);
  if (!most_bytes) cache->most_bytes = (uint64_t)rdna__config_integer(RDNA__CONFIG_COMPILE_CACHE_MB) << 20;
  if (!strcmp(cache->folder, "off")) return;
  struct stat found;
  bool is_there = stat(cache->folder, &found) == 0;
  if (!is_there) {
    make_folders(cache->folder);
    is_there = stat(cache->folder, &found) == 0;
  }
  if (!is_there)
    note(cache, "cannot make", strerror(errno));
  else if (!S_ISDIR(found.st_mode))
    note(cache, "cannot use", "it is not a folder");
  else if ((found.st_uid != geteuid() && found.st_uid != 0) || found.st_mode & S_IWOTH)
    note(cache, "does not trust", "other users can write into it, and its code would run with this one's memory");
  else
    cache->usable = true;
}

/* Reads the file that |fd| is open on; NULL when that fails. */
static uint8_t *read_all(int fd, size_t size) {
  uint8_t *bytes = malloc(size ? size : 1);
  size_t got = 0;
  while (bytes && got < size) {
    ssize_t n = read(fd, bytes + got, size - got);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      free(bytes);
      return NULL;
    }
    got += (size_t)n;
  }
  return bytes;
}

/* Whether each file of the lines "SIZE SECONDS NANOSECONDS PATH" still is what it was. */
static bool files_unchanged(const char *lines, size_t size) {
  while (size) {
    const char *end = memchr(lines, '\n', size);
    if (!end) return false;
    char line[PATH_ROOM];
    long long bytes, seconds, nanoseconds;
    int path = 0;
    struct stat now;
    if ((size_t)(end - lines) >= sizeof line) return false;
    snprintf(line, sizeof line, "%.*s", (int)(end - lines), lines);
    if (sscanf(line, "%lld %lld %lld %n", &bytes, &seconds, &nanoseconds, &path) != 3 || !path) return false;
    if (stat(line + path, &now) != 0 || now.st_size != bytes || now.st_mtim.tv_sec != seconds ||
        now.st_mtim.tv_nsec != nanoseconds)
      return false;
    size -= (size_t)(end + 1 - lines);
    lines = end + 1;
  }
  return true;
}

static rdna_status take_entry(const char *key, const uint8_t *bytes, size_t size, void **out_data, size_t *out_size) {
  const uint8_t *code;
  const char *files;
  size_t files_size;
  RDNA_TRY(rdna__cache_parse(key, bytes, size, &code, out_size, &files, &files_size));
  if (!files_unchanged(files, files_size)) return rdna__fail(RDNA_NOT_FOUND, "a file that the source includes changed");
  *out_data = malloc(*out_size ? *out_size : 1);
  if (!*out_data) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %zu bytes of code", *out_size);
  memcpy(*out_data, code, *out_size);
  return RDNA_OK;
}

rdna_status rdna__cache_read(rdna__cache *cache, const char *key, void **out_data, size_t *out_size) {
  char path[PATH_ROOM];
  struct stat found;
  *out_data = NULL;
  if (!cache->usable) return rdna__fail(RDNA_NOT_FOUND, "no cache is in use");
  entry_path(cache, key, ".code", path);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return rdna__fail(RDNA_NOT_FOUND, "no entry %s", path);
  uint8_t *bytes = fstat(fd, &found) == 0 && S_ISREG(found.st_mode) ? read_all(fd, (size_t)found.st_size) : NULL;
  rdna_status status = bytes ? take_entry(key, bytes, (size_t)found.st_size, out_data, out_size)
                             : rdna__fail(RDNA_BAD_DATA, "the entry cannot be read");
  free(bytes);
  if (status == RDNA_OK) futimens(fd, NULL); /* used now; a read-only folder keeps its order */
  close(fd);
  if (status == RDNA_BAD_DATA) {
    snprintf(cache->notice, sizeof cache->notice, "%.900s: %s; it was made again", path, rdna_last_error());
    unlink(path);
  }
  return status;
}

int rdna__cache_lock(rdna__cache *cache, const char *key) {
  char path[PATH_ROOM];
  if (!cache->usable) return -1;
  entry_path(cache, key, ".lock", path);
  for (;;) {
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
      note(cache, "cannot write into", strerror(errno));
      return -1;
    }
    /* the system lets go of it when its holder ends, however that comes */
    while (flock(fd, LOCK_EX) != 0 && errno == EINTR) {
    }
    struct stat held, named; /* the holder before us removed the file; then another may hold a new one */
    if (fstat(fd, &held) == 0 && stat(path, &named) == 0 && held.st_ino == named.st_ino) return fd;
    close(fd);
  }
}

void rdna__cache_unlock(rdna__cache *cache, const char *key, int lock) {
  char path[PATH_ROOM];
  if (lock < 0) return;
  entry_path(cache, key, ".lock", path);
  unlink(path);
  close(lock);
}

static char *file_lines(const char *files) {
  char *lines = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&lines, &size);
  if (!out) return NULL;
  for (const char *at = files; at && *at;) {
    size_t length = strcspn(at, "\n");
    char path[RDNA__COMPILE_PATH], *real;
    struct stat now;
    snprintf(path, sizeof path, "%.*s", (int)(length < sizeof path ? length : 0), at);
    real = realpath(path, NULL); /* another process may stand in another folder */
    if (real && stat(real, &now) == 0)
      fprintf(out, "%lld %lld %ld %s\n", (long long)now.st_size, (long long)now.st_mtim.tv_sec, now.st_mtim.tv_nsec,
              real);
    else
      fprintf(out, "-1 0 0 %s\n", path); /* never the same again */
    free(real);
    at += length + (at[length] == '\n');
  }
  return fclose(out) == 0 ? lines : NULL;
}

static bool write_all(int fd, const void *bytes, size_t size) {
  for (const char *at = bytes; size;) {
    ssize_t n = write(fd, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    size -= (size_t)n;
  }
  return true;
}

typedef struct kept {
  char name[64];
  uint64_t bytes;
  struct timespec used;
} kept;

static int by_use(const void *a, const void *b) {
  const struct timespec *x = &((const kept *)a)->used, *y = &((const kept *)b)->used;
  if (x->tv_sec != y->tv_sec) return x->tv_sec < y->tv_sec ? -1 : 1;
  return x->tv_nsec < y->tv_nsec ? -1 : x->tv_nsec > y->tv_nsec;
}

static bool has_suffix(const char *name, const char *suffix) {
  size_t length = strlen(name), end = strlen(suffix);
  return length > end && !strcmp(name + length - end, suffix);
}

/* Drops the least recently used entries until |most_entries| and |most_bytes| hold, and what a killed writer left. */
static void trim(const rdna__cache *cache, uint64_t most_entries, uint64_t most_bytes) {
  DIR *folder = opendir(cache->folder);
  if (!folder) return;
  kept *all = NULL;
  size_t count = 0, room = 0;
  uint64_t bytes = 0;
  for (struct dirent *file; (file = readdir(folder));) {
    struct stat found;
    bool is_entry = has_suffix(file->d_name, ".code"), is_part = has_suffix(file->d_name, ".part");
    if ((!is_entry && !is_part) || fstatat(dirfd(folder), file->d_name, &found, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (is_part && time(NULL) - found.st_mtim.tv_sec > STALE_SECONDS) unlinkat(dirfd(folder), file->d_name, 0);
    if (!is_entry || strlen(file->d_name) >= sizeof all->name) continue;
    if (count == room) {
      room = room ? 2 * room : 64;
      kept *grown = realloc(all, room * sizeof *all);
      if (!grown) break;
      all = grown;
    }
    kept *entry = &all[count++];
    *entry = (kept){.bytes = (uint64_t)found.st_size, .used = found.st_mtim};
    memcpy(entry->name, file->d_name, strlen(file->d_name) + 1);
    bytes += entry->bytes;
  }
  if (count) qsort(all, count, sizeof *all, by_use);
  for (size_t i = 0; i < count && (count - i > most_entries || bytes > most_bytes); i++) {
    unlinkat(dirfd(folder), all[i].name, 0);
    bytes -= all[i].bytes;
  }
  free(all);
  closedir(folder);
}

void rdna__cache_write(rdna__cache *cache, const char *key, const void *data, size_t size, const char *files) {
  char path[PATH_ROOM], part[PATH_ROOM + 16];
  if (!cache->usable) return;
  entry_path(cache, key, ".code", path);
  snprintf(part, sizeof part, "%s/%s.XXXXXX.part", cache->folder, key);
  char *lines = file_lines(files);
  size_t lines_size = lines ? strlen(lines) : 0, rest = lines_size + size;
  uint8_t *bytes = malloc(sizeof(entry_header) + rest);
  int fd = bytes && lines ? mkstemps(part, (int)strlen(".part")) : -1;
  if (fd < 0) {
    note(cache, "cannot write into", strerror(errno));
  } else {
    entry_header header = {.files_size = lines_size, .code_size = size};
    memcpy(header.magic, magic, sizeof magic);
    memcpy(bytes + sizeof header, lines, lines_size);
    memcpy(bytes + sizeof header + lines_size, data, size);
    header.checksum = checksum(key, &header, bytes + sizeof header, rest);
    memcpy(bytes, &header, sizeof header);
    bool written = write_all(fd, bytes, sizeof header + rest);
    if (close(fd) != 0 || !written || rename(part, path) != 0) {
      note(cache, "cannot write into", strerror(errno));
      unlink(part);
    }
    trim(cache, cache->most_entries, cache->most_bytes);
  }
  free(bytes);
  free(lines);
}

rdna_status rdna_compile_clear_cache(const char *folder) {
  rdna__cache cache;
  struct stat found;
  if (folder && folder[0])
    snprintf(cache.folder, sizeof cache.folder, "%s", folder);
  else
    default_folder(cache.folder);
  if (!strcmp(cache.folder, "off") || stat(cache.folder, &found) != 0) return RDNA_OK;
  trim(&cache, 0, 0);
  DIR *left = opendir(cache.folder);
  int entries = 0;
  if (!left) return rdna__fail(RDNA_IO_ERROR, "cannot read the cache folder %s: %s", cache.folder, strerror(errno));
  for (struct dirent *file; (file = readdir(left));) entries += has_suffix(file->d_name, ".code");
  closedir(left);
  if (entries)
    return rdna__fail(RDNA_IO_ERROR, "%d entries of the cache folder %s cannot be removed", entries, cache.folder);
  return RDNA_OK;
}
