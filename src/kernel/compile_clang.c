/* clang as a process of its own: no shell, a folder of its own that is gone afterwards. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel/compile.h"

enum { MOST_TEXT = 64 << 10, MOST_ARGUMENTS = 256, PATH_ROOM = RDNA__COMPILE_PATH + 64 };

extern char **environ;

/* ---- finding it --------------------------------------------------------------------------------------------- */

bool rdna__compiler_identify(rdna__compiler *compiler, const char *version) {
  struct stat found;
  if (stat(compiler->path, &found) != 0 || !S_ISREG(found.st_mode)) return false;
  snprintf(compiler->identity, sizeof compiler->identity, "%s %lld %lld.%09ld", version, (long long)found.st_size,
           (long long)found.st_mtim.tv_sec, found.st_mtim.tv_nsec);
  return true;
}

static bool take_program(const char *path, rdna__compiler *compiler) {
  if (access(path, X_OK) != 0) return false;
  char *real = realpath(path, NULL);
  if (real) snprintf(compiler->path, sizeof compiler->path, "%s", real);
  free(real);
  return real && rdna__compiler_identify(compiler, "clang");
}

static bool find_in_path(const char *name, rdna__compiler *compiler) {
  const char *folders = getenv("PATH");
  char path[RDNA__COMPILE_PATH];
  for (const char *at = folders ? folders : "/usr/local/bin:/usr/bin"; *at;) {
    size_t length = strcspn(at, ":");
    int written = snprintf(path, sizeof path, "%.*s/%s", (int)length, at, name);
    if (length && written < (int)sizeof path && take_program(path, compiler)) return true;
    at += length + (at[length] == ':');
  }
  return false;
}

static rdna_status compile(const rdna__compiler *compiler, const rdna__compile_job *job, rdna__compile_result *result);

rdna_status rdna__clang_find(const char *chosen, rdna__compiler *compiler) {
  static const char *const names[] = {"clang-19", "clang", "amdclang"};
  compiler->compile = compile;
  compiler->is_library = false;
  if (chosen[0]) {
    if (strchr(chosen, '/') ? take_program(chosen, compiler) : find_in_path(chosen, compiler)) return RDNA_OK;
    return rdna__fail(RDNA_UNAVAILABLE, "RDNA_COMPILER names '%s', which is no program that can be run", chosen);
  }
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (find_in_path(names[i], compiler)) return RDNA_OK;
  char path[RDNA__COMPILE_PATH];
  const char *rocm = getenv("ROCM_PATH");
  snprintf(path, sizeof path, "%s/llvm/bin/clang", rocm && rocm[0] ? rocm : "/opt/rocm");
  if (take_program(path, compiler)) return RDNA_OK;
  return rdna__fail(
      RDNA_UNAVAILABLE,
      "there is no compiler for kernels: no clang-19, clang or amdclang in PATH, and no %s; install clang "
      "and lld (Debian: clang-19 and lld-19), or name one in RDNA_COMPILER",
      path);
}

/* ---- its folder --------------------------------------------------------------------------------------------- */

typedef struct workshop {
  char folder[RDNA__COMPILE_PATH];
} workshop;

/* Headers of HIP's and C's that sources include and whose contents are in ours. */
static const char *const empty_headers[] = {
    "hip/hip_runtime.h",        "hip/hip_fp16.h", "hip/hip_bf16.h", "hip/hip_bfloat16.h",
    "hip/hip_math_constants.h", "math.h",         "cmath",          "cuda_runtime.h"};

static rdna_status write_file(const workshop *w, const char *name, const char *const *parts, const size_t *sizes,
                              int count) {
  char path[PATH_ROOM];
  snprintf(path, sizeof path, "%s/%s", w->folder, name);
  FILE *file = fopen(path, "wbe");
  bool good = file != NULL;
  for (int i = 0; i < count && good; i++) good = fwrite(parts[i], 1, sizes[i], file) == sizes[i];
  if (file && fclose(file) != 0) good = false;
  return good ? RDNA_OK : rdna__fail(RDNA_IO_ERROR, "cannot write %s for the compiler: %s", path, strerror(errno));
}

/* Whether a product and a sum may be rounded once, as the header's own functions must not: what the flags say, else as
 * HIP has it. */
static const char *contraction(const rdna__compile_job *job) {
  const char *mode = "fast";
  for (int i = 0; i < job->flag_count; i++)
    if (!strncmp(job->flags[i], "-ffp-contract=", 14)) mode = job->flags[i] + 14;
  return !strcmp(mode, "off") || !strcmp(mode, "on") ? mode : "fast";
}

static rdna_status write_header(const workshop *w, const rdna__compile_job *job) {
  static const char head[] = "#pragma clang system_header\n#pragma clang fp contract(off)\n";
  char tail[64];
  snprintf(tail, sizeof tail, "#pragma clang fp contract(%s)\n", contraction(job));
  return write_file(w, "rdna_hip.h", (const char *const[]){head, rdna__hip_header, tail},
                    (const size_t[]){strlen(head), rdna__hip_header_size, strlen(tail)}, 3);
}

static rdna_status write_source(const workshop *w, const rdna__compile_job *job) {
  char line[RDNA__COMPILE_PATH];
  rdna__compile_line(job, line);
  return write_file(w, "source.hip", (const char *const[]){line, job->source},
                    (const size_t[]){strlen(line), strlen(job->source)}, 2);
}

static rdna_status open_workshop(workshop *w, const rdna__compile_job *job) {
  const char *temporary = getenv("TMPDIR");
  char path[PATH_ROOM];
  snprintf(w->folder, sizeof w->folder, "%.2000s/rdna-compile-XXXXXX", temporary && temporary[0] ? temporary : "/tmp");
  if (!mkdtemp(w->folder)) {
    rdna_status status = rdna__fail(RDNA_IO_ERROR, "cannot make a folder for the compiler, %s: %s; set TMPDIR to one",
                                    w->folder, strerror(errno));
    w->folder[0] = 0;
    return status;
  }
  static const char *const folders[] = {"include", "include/hip"};
  for (int i = 0; i < 2; i++) {
    snprintf(path, sizeof path, "%s/%s", w->folder, folders[i]);
    if (mkdir(path, 0700) != 0)
      return rdna__fail(RDNA_IO_ERROR, "cannot make %s for the compiler: %s", path, strerror(errno));
  }
  for (size_t i = 0; i < sizeof empty_headers / sizeof *empty_headers; i++) {
    snprintf(path, sizeof path, "include/%s", empty_headers[i]);
    RDNA_TRY(write_file(w, path, NULL, NULL, 0));
  }
  RDNA_TRY(write_file(w, "include/assert.h",
                      (const char *const[]){"#undef assert\n#define assert(condition) ((void)0)\n"},
                      (const size_t[]){51}, 1));
  RDNA_TRY(write_header(w, job));
  return write_source(w, job);
}

static int remove_one(const char *path, const struct stat *found, int kind, struct FTW *at) { return remove(path); }

static void close_workshop(const workshop *w) {
  if (w->folder[0]) nftw(w->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* ---- running it --------------------------------------------------------------------------------------------- */

typedef struct words {
  const char *list[MOST_ARGUMENTS + 1];
  int count;
} words;

static void add(words *w, const char *word) {
  if (w->count < MOST_ARGUMENTS) w->list[w->count++] = word;
}

typedef struct paths {
  char header[PATH_ROOM], include[PATH_ROOM], source[PATH_ROOM], code[PATH_ROOM], files[PATH_ROOM], target[64];
} paths;

static void fill_words(words *all, paths *p, const rdna__compiler *compiler, const workshop *w,
                       const rdna__compile_job *job) {
  /* -mcode-object-version=4: HIP 5.2 and everything since loads it. -munsafe-fp-atomics: the hardware's, right on the
   * device-local memory that rdna allocates. -fuse-cuid=none: the same source gives the same bytes anywhere */
  static const char *const amd[] = {"-x",
                                    "hip",
                                    "-nogpuinc",
                                    "-nogpulib",
                                    "--offload-device-only",
                                    "--no-gpu-bundle-output",
                                    "-mcode-object-version=4",
                                    "-munsafe-fp-atomics",
                                    "-fuse-cuid=none",
                                    "-fhip-kernel-arg-name"};
  static const char *const nvidia[] = {"-x",
                                       "cuda",
                                       "-nocudainc",
                                       "-nocudalib",
                                       "--cuda-path=/nonexistent",
                                       "--cuda-device-only",
                                       "-Wno-unknown-cuda-version",
                                       "-Xclang",
                                       "-target-feature",
                                       "-Xclang",
                                       "+ptx78",
                                       "-S"};
  static const char *const both[] = {
      "-std=c++17", "-O3", "-ffreestanding", "-fno-exceptions", "-fno-rtti", "-fno-color-diagnostics", "-include"};
  bool is_amd = strncmp(job->target, "sm_", 3) != 0;
  snprintf(p->header, PATH_ROOM, "%s/rdna_hip.h", w->folder);
  snprintf(p->include, PATH_ROOM, "%s/include", w->folder);
  snprintf(p->source, PATH_ROOM, "%s/source.hip", w->folder);
  snprintf(p->code, PATH_ROOM, "%s/code", w->folder);
  snprintf(p->files, PATH_ROOM, "%s/files", w->folder);
  snprintf(p->target, sizeof p->target, "%s=%s", is_amd ? "--offload-arch" : "--cuda-gpu-arch", job->target);
  add(all, compiler->path);
  for (size_t i = 0; i < sizeof amd / sizeof *amd && is_amd; i++) add(all, amd[i]);
  for (size_t i = 0; i < sizeof nvidia / sizeof *nvidia && !is_amd; i++) add(all, nvidia[i]);
  add(all, p->target);
  for (size_t i = 0; i < sizeof both / sizeof *both; i++) add(all, both[i]);
  add(all, p->header);
  add(all, "-isystem");
  add(all, p->include);
  for (int i = 0; i < job->flag_count; i++) add(all, job->flags[i]);
  for (const char *const *more = (const char *const[]){"-MMD", "-MF", p->files, "-o", p->code, p->source, NULL}; *more;
       more++)
    add(all, *more);
}

/* Reads what the compiler says until it closes the pipe; the first MOST_TEXT bytes are kept. */
static char *drain(int fd) {
  char *text = malloc(MOST_TEXT + 1), more[4096];
  size_t size = 0;
  for (;;) {
    ssize_t n = read(fd, more, sizeof more);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    size_t taken = (size_t)n < MOST_TEXT - size ? (size_t)n : MOST_TEXT - size;
    if (text) memcpy(text + size, more, taken);
    size += taken;
  }
  if (text) text[size] = 0;
  return text;
}

/* Starts the program and waits for its end; *out_text is what it said. */
static rdna_status run(char *const *arguments, char **out_text, int *out_exit) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return rdna__fail(RDNA_IO_ERROR, "no pipe to the compiler: %s", strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t none;
  sigemptyset(&none);
  int code = posix_spawn_file_actions_init(&actions);
  if (code == 0) code = posix_spawnattr_init(&attributes);
  if (code != 0) {
    close(ends[0]);
    close(ends[1]);
    return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory to start the compiler");
  }
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setsigmask(&attributes, &none);
  code = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  if (code == 0) code = posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  if (code == 0) code = posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  pid_t child;
  if (code == 0) code = posix_spawn(&child, arguments[0], &actions, &attributes, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(ends[1]);
  if (code != 0) {
    close(ends[0]);
    return rdna__fail(RDNA_UNAVAILABLE, "cannot start the compiler %s: %s", arguments[0], strerror(code));
  }
  *out_text = drain(ends[0]);
  close(ends[0]);
  int state = 0;
  pid_t ended;
  while ((ended = waitpid(child, &state, 0)) < 0 && errno == EINTR) {
  }
  /* a program that ignores SIGCHLD is not told how its children end: whether there is code says it */
  *out_exit = ended < 0 ? 0 : WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
  return RDNA_OK;
}

/* ---- what it made ------------------------------------------------------------------------------------------- */

static char *read_file(const char *path, size_t *out_size) {
  FILE *file = fopen(path, "rbe");
  struct stat found;
  if (!file) return NULL;
  char *data = fstat(fileno(file), &found) == 0 ? malloc((size_t)found.st_size + 1) : NULL;
  if (data) {
    *out_size = fread(data, 1, (size_t)found.st_size, file);
    data[*out_size] = 0;
  }
  fclose(file);
  return data;
}

/* Turns make's rule "code: a.h \ b\ c.h" into lines, without the compiler's own folder; in place. */
static void rule_to_lines(char *rule, const char *folder) {
  char *at = strstr(rule, ": "), *out = rule, *word = rule;
  for (at = at ? at + 2 : rule + strlen(rule); *at; at++) {
    if (at[0] == '\\' && (at[1] == ' ' || at[1] == '#')) {
      *out++ = *++at;
    } else if (at[0] == '$' && at[1] == '$') {
      *out++ = *++at;
    } else if (at[0] != ' ' && at[0] != '\n' && !(at[0] == '\\' && at[1] == '\n')) {
      *out++ = *at;
    } else if (out > word) {
      if (strncmp(word, folder, strlen(folder)) != 0) *out++ = '\n', word = out;
      out = word;
    }
  }
  *out = 0;
}

/* The text without the lines that say nothing of the source, and where it ends in a sentence. */
static const char *trimmed(char *text) {
  if (!text || !text[0]) return "it said nothing";
  size_t length = strlen(text);
  while (length && (text[length - 1] == '\n' || text[length - 1] == ' ')) text[--length] = 0;
  return text;
}

static rdna_status collect(const workshop *w, const paths *p, const rdna__compile_job *job, int exit_code,
                           rdna__compile_result *result) {
  result->data = exit_code == 0 ? read_file(p->code, &result->size) : NULL;
  if (!result->data || !result->size) {
    rdna_status status =
        rdna__fail(RDNA_BAD_DATA, "%s does not compile for %s: %s", job->name, job->target, trimmed(result->text));
    return status;
  }
  if (!strncmp(job->target, "sm_", 3)) result->size++; /* the NUL behind the text */
  size_t size;
  result->files = read_file(p->files, &size);
  if (result->files) rule_to_lines(result->files, w->folder);
  return RDNA_OK;
}

static rdna_status compile(const rdna__compiler *compiler, const rdna__compile_job *job, rdna__compile_result *result) {
  workshop w;
  words all = {.count = 0};
  paths *p = malloc(sizeof *p);
  int exit_code = 1;
  if (!p) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory to start the compiler");
  rdna_status status = open_workshop(&w, job);
  if (status == RDNA_OK) {
    fill_words(&all, p, compiler, &w, job);
    status = run((char *const *)(uintptr_t)all.list, &result->text, &exit_code);
  }
  if (status == RDNA_OK) status = collect(&w, p, job, exit_code, result);
  close_workshop(&w);
  free(p);
  return status;
}
