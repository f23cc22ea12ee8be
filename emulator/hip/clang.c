#include "hip/clang.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_SAID = 1 << 20 };

extern char **environ;

// ---- finding it

static bool take(char path[EMU_PATH], const char *folder, int length, const char *name) {
  struct stat found;
  int written = snprintf(path, EMU_PATH, "%.*s/%s", length, folder, name);
  return written < EMU_PATH && access(path, X_OK) == 0 && stat(path, &found) == 0 && S_ISREG(found.st_mode);
}

static bool find_in_path(char path[EMU_PATH], const char *name) {
  const char *at = getenv("PATH");
  for (at = at ? at : "/usr/local/bin:/usr/bin"; *at;) {
    int length = (int)strcspn(at, ":");
    if (length && take(path, at, length, name)) return true;
    at += length + (at[length] == ':');
  }
  return false;
}

bool emu_clang_find(char path[EMU_PATH]) {
  static const char *const names[] = {"clang-19", "clang", "amdclang"};
  const char *chosen = getenv("RDNA_EMULATE_CLANG"), *rocm = getenv("ROCM_PATH");
  if (chosen && *chosen) return strchr(chosen, '/') ? take(path, chosen, 0, chosen + 1) : find_in_path(path, chosen);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (find_in_path(path, names[i])) return true;
  rocm = rocm && *rocm ? rocm : "/opt/rocm";
  return take(path, rocm, (int)strlen(rocm), "llvm/bin/clang");
}

// ---- its folder

bool emu_workshop_open(struct emu_workshop *w) {
  const char *temporary = getenv("TMPDIR");
  int length =
      snprintf(w->folder, sizeof w->folder, "%s/rdna-emulator-XXXXXX", temporary && *temporary ? temporary : "/tmp");
  if (length < (int)sizeof w->folder && mkdtemp(w->folder)) return true;
  w->folder[0] = 0;
  return false;
}

static int remove_one(const char *path, const struct stat *found, int kind, struct FTW *at) { return remove(path); }

void emu_workshop_close(const struct emu_workshop *w) {
  if (w->folder[0]) nftw(w->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static bool leads_out(const char *name) {
  if (!*name || *name == '/') return true;
  for (const char *at = name; at; at = strchr(at, '/')) {
    at += *at == '/';
    if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || !at[2])) return true;
  }
  return name[strlen(name) - 1] == '/';
}

bool emu_workshop_write(const struct emu_workshop *w, const char *name, const void *data, size_t size) {
  char path[EMU_PATH];
  if (leads_out(name) || snprintf(path, sizeof path, "%s/%s", w->folder, name) >= (int)sizeof path) return false;
  for (char *slash = path + strlen(w->folder) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
    *slash = 0;
    if (mkdir(path, 0700) != 0 && errno != EEXIST) return false;
  }
  FILE *file = fopen(path, "wbe");
  bool good = file && fwrite(data, 1, size, file) == size;
  return file && fclose(file) == 0 && good;
}

void *emu_workshop_read(const struct emu_workshop *w, const char *name, size_t *out_size) {
  char path[EMU_PATH];
  struct stat found;
  if (snprintf(path, sizeof path, "%s/%s", w->folder, name) >= (int)sizeof path) return NULL;
  FILE *file = fopen(path, "rbe");
  if (!file) return NULL;
  char *data = fstat(fileno(file), &found) == 0 ? malloc((size_t)found.st_size + 1) : NULL;
  if (data) {
    *out_size = fread(data, 1, (size_t)found.st_size, file);
    data[*out_size] = 0;
  }
  fclose(file);
  return data;
}

// ---- running it

void emu_words_add(struct emu_words *words, const char *format, ...) {
  va_list values;
  va_start(values, format);
  char *word = NULL;
  if (words->count == EMU_WORDS || vasprintf(&word, format, values) < 0)
    words->failed = true;
  else
    words->list[words->count++] = word;
  va_end(values);
}

void emu_words_release(struct emu_words *words) {
  for (int i = 0; i < words->count; i++) free(words->list[i]);
  *words = (struct emu_words){0};
}

// Until the other end is closed; of a program that says too much, the beginning.
static char *drain(int from) {
  char *text = NULL, more[4096];
  size_t size = 0;
  for (;;) {
    ssize_t n = read(from, more, sizeof more);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    size_t taken = (size_t)n < MOST_SAID - size ? (size_t)n : MOST_SAID - size;
    char *grown = taken ? realloc(text, size + taken + 1) : NULL;
    if (!grown) continue;
    text = grown;
    memcpy(text + size, more, taken);
    size += taken;
    text[size] = 0;
  }
  return text ? text : calloc(1, 1);
}

static int start(struct emu_words *words, int to, pid_t *out_child) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t none;
  sigemptyset(&none);
  if (posix_spawn_file_actions_init(&actions) != 0) return ENOMEM;
  if (posix_spawnattr_init(&attributes) != 0) {
    posix_spawn_file_actions_destroy(&actions);
    return ENOMEM;
  }
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setsigmask(&attributes, &none);
  int code = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  if (code == 0) code = posix_spawn_file_actions_adddup2(&actions, to, 1);
  if (code == 0) code = posix_spawn_file_actions_adddup2(&actions, to, 2);
  if (code == 0) code = posix_spawn(out_child, words->list[0], &actions, &attributes, words->list, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return code;
}

int emu_words_run(struct emu_words *words, char **out_said) {
  int ends[2], state = 0;
  pid_t child, ended;
  *out_said = NULL;
  if (words->failed || pipe2(ends, O_CLOEXEC) != 0) return -1;
  int code = start(words, ends[1], &child);
  close(ends[1]);
  if (code == 0) *out_said = drain(ends[0]);
  close(ends[0]);
  if (code != 0) return -1;
  while ((ended = waitpid(child, &state, 0)) < 0 && errno == EINTR) {
  }
  // a program that ignores SIGCHLD is not told how its children end: whether there is a file says it
  return ended < 0 ? 0 : WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
}
