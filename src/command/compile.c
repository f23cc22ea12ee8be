/* rdna compile: a HIP source becomes a code object; what its kernels take of a card, as a table. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "command/command.h"
#include "device/targets.h"
#include "rdna/compile.h"

enum { FLAGS_MOST = 100, NAME_ROOM = 4096 };

/* The GPU of this machine that code is made for without --target, or "". */
static const char *first_gpu(void) {
  static rdna_device_info info;
  rdna_driver_info driver;
  for (int i = 0; i < rdna_driver_count(); i++) {
    if (rdna_driver_get_info(i, &driver) != RDNA_OK || driver.device_count == 0) continue;
    if (rdna_device_describe(driver.name, 0, &info) != RDNA_OK) continue;
    info.arch[strcspn(info.arch, ":")] = 0;
    if (rdna__target_find(info.arch) || !strncmp(info.arch, "sm_", 3)) return info.arch;
  }
  return "";
}

/* "add.gfx1100.hsaco" of "src/add.hip". */
static void default_out(const char *source, const char *target, char out[NAME_ROOM]) {
  const char *slash = strrchr(source, '/'), *name = slash ? slash + 1 : source, *dot = strrchr(name, '.');
  if (!strcmp(name, "-")) name = "kernel", dot = NULL;
  snprintf(out, NAME_ROOM, "%.*s.%s.%s", dot ? (int)(dot - name) : (int)strlen(name), name, target,
           strncmp(target, "sm_", 3) ? "hsaco" : "ptx");
}

static rdna_status write_code(const rdna_code *code, const char *path) {
  rdna_code_report report;
  size_t size;
  const void *data = rdna_code_data(code, &size);
  rdna_code_get_report(code, &report);
  if (!strncmp(report.target, "sm_", 3)) size--; /* a text file has no NUL at its end */
  FILE *file = strcmp(path, "-") ? fopen(path, "wb") : stdout;
  bool written = file && fwrite(data, 1, size, file) == size;
  if (file && (file == stdout ? fflush(file) : fclose(file)) != 0) written = false;
  return written ? RDNA_OK : rdna__fail(RDNA_IO_ERROR, "cannot write %s: %s", path, strerror(errno));
}

static void print_arguments(const rdna_code_kernel *kernel) {
  for (int i = 0; i < kernel->argument_count; i++) {
    const rdna_code_argument *a = &kernel->arguments[i];
    char bytes[32];
    snprintf(bytes, sizeof bytes, "%u bytes", a->size);
    const char *type = a->type[0] ? a->type : a->is_pointer ? "pointer" : bytes;
    printf("%s%s%s%s", i ? ", " : "", type, a->name[0] ? " " : "", a->name);
  }
}

/* One line a kernel; what spills or needs scratch is slow, and says so. */
static void print_table(const rdna_code *code) {
  rdna_code_report report;
  rdna_code_get_report(code, &report);
  bool amd = strncmp(report.target, "sm_", 3) != 0; /* NVIDIA's driver allots registers when it loads the code */
  if (amd)
    printf("%-24s %5s %5s %7s %8s %7s %6s  %s\n", "kernel", "VGPRs", "SGPRs", "LDS", "scratch", "threads", "spills",
           "arguments");
  for (int i = 0; i < rdna_code_kernel_count(code); i++) {
    const rdna_code_kernel *k = rdna_code_get_kernel(code, i);
    if (amd)
      printf("%-24s %5u %5u %7u %8u %7u %6u  ", k->name, k->vector_registers, k->scalar_registers, k->group_memory,
             k->private_memory, k->max_group_threads, k->vector_spills + k->scalar_spills);
    else
      printf("%-24s ", k->name);
    print_arguments(k);
    printf("\n");
  }
}

static json_t *json_of(const rdna_code *code, const char *out) {
  rdna_code_report report;
  size_t size;
  rdna_code_data(code, &size);
  rdna_code_get_report(code, &report);
  json_t *kernels = json_array();
  for (int i = 0; i < rdna_code_kernel_count(code); i++) {
    const rdna_code_kernel *k = rdna_code_get_kernel(code, i);
    json_t *arguments = json_array();
    for (int a = 0; a < k->argument_count; a++)
      json_array_append_new(arguments, json_pack("{s:s, s:s, s:b, s:i, s:i}", "name", k->arguments[a].name, "type",
                                                 k->arguments[a].type, "pointer", k->arguments[a].is_pointer, "offset",
                                                 (int)k->arguments[a].offset, "size", (int)k->arguments[a].size));
    json_array_append_new(
        kernels,
        json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:o}", "name", k->name, "symbol", k->symbol,
                  "vector_registers", (int)k->vector_registers, "scalar_registers", (int)k->scalar_registers,
                  "vector_spills", (int)k->vector_spills, "scalar_spills", (int)k->scalar_spills, "group_memory",
                  (int)k->group_memory, "private_memory", (int)k->private_memory, "max_group_threads",
                  (int)k->max_group_threads, "wave_size", (int)k->wave_size, "arguments", arguments));
  }
  return json_pack("{s:s, s:s, s:I, s:s, s:b, s:f, s:o}", "target", report.target, "out", out, "bytes",
                   (json_int_t)size, "compiler", report.compiler, "cached", report.cached, "milliseconds",
                   report.milliseconds, "kernels", kernels);
}

/* Takes the compiler's own flags, such as -DN=4, out of the command line; the rest moves together. */
static int take_flags(int argc, char **argv, const char **flags, int *out_count) {
  int kept = 1;
  for (int i = 1; i < argc; i++) {
    bool is_flag = argv[i][0] == '-' && argv[i][1] != 0 && argv[i][1] != '-' && strcmp(argv[i], "-h") != 0;
    if (is_flag && *out_count < FLAGS_MOST)
      flags[(*out_count)++] = argv[i];
    else
      argv[kept++] = argv[i];
  }
  return kept;
}

int command_compile(int argc, char **argv) {
  const char *target = "", *out = "", *cache = "";
  bool json = false;
  const option_row options[] = {
      {"--target", OPTION_TEXT, &target, "GPU", "such as gfx1100 or sm_80 (the first GPU here)", 0, 0},
      {"--out", OPTION_TEXT, &out, "FILE", "the code; - is standard output (NAME.GPU.hsaco, or .ptx, in this folder)",
       0, 0},
      {"--cache", OPTION_TEXT, &cache, "DIR", "folder of compiled kernels, or off (RDNA_COMPILE_CACHE)", 0, 0},
      {"--json", OPTION_FLAG, &json, NULL, "print JSON", 0, 0},
  };
  const command_line line = {"rdna compile",
                             "Compiles a HIP source for a GPU and lists its kernels: registers, LDS and scratch in "
                             "bytes, the most threads of a\n"
                             "group, spilled registers, arguments. FLAG is one of the compiler's: -DNAME=VALUE -UNAME "
                             "-IDIR -O0 to -O3 -std=…\n"
                             "-f… -m… -W…, each one word.",
                             "FILE.hip [FLAG ...]",
                             1,
                             1,
                             options,
                             4};
  const char *positionals[POSITIONAL_MAX], *flags[FLAGS_MOST + 1];
  char include[NAME_ROOM], default_name[NAME_ROOM];
  int count, exit_status, flag_count = 0;
  argc = take_flags(argc, argv, flags, &flag_count);
  if (!parse_command_line(&line, argc, argv, positionals, &count, &exit_status)) return exit_status;
  const char *path = positionals[0], *slash = strrchr(path, '/');
  /* what the source includes stands beside it */
  snprintf(include, sizeof include, "-iquote%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
  flags[flag_count++] = include;
  if (!target[0]) target = first_gpu();
  if (!target[0]) {
    fprintf(stderr, "rdna compile: there is no GPU here to compile for; name one, such as --target gfx1100\n");
    return EXIT_USAGE;
  }
  char *source;
  size_t size;
  if (read_whole(path, &source, &size) != RDNA_OK) return fail_with_status();
  char *text = strndup(source, size);
  free(source);
  rdna_code *code = NULL;
  rdna_compile_options chosen = {
      RDNA_COMPILE_OPTIONS_INIT,       .target = target, .name = path, .flags = flags, .flag_count = flag_count,
      .cache = cache[0] ? cache : NULL};
  rdna_status status =
      text ? rdna_compile(text, &chosen, &code) : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %s", path);
  free(text);
  if (!out[0]) {
    default_out(path, target, default_name);
    out = default_name;
  }
  if (status == RDNA_OK) status = check_not_input(path, out);
  if (status == RDNA_OK) status = write_code(code, out);
  if (status == RDNA_OK) {
    rdna_code_report report;
    rdna_code_get_report(code, &report);
    fputs(report.warnings, stderr);
    if (report.notice[0]) fprintf(stderr, "rdna compile: %s\n", report.notice);
    bool shown = strcmp(out, "-") != 0; /* else the code is the output */
    if (json && shown) print_json(json_of(code, out));
    if (!json && shown) {
      print_table(code);
      printf("%s, by %s%s\n", out, report.compiler, report.cached ? ", from the cache" : "");
    }
  }
  rdna_code_release(code);
  return status == RDNA_OK ? EXIT_OK : fail_with_status();
}
