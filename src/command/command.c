#include "command/command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/status.h"

int fail_with_status(void) {
  end_progress();
  fprintf(stderr, "rdna: %s\n", rdna_last_error());
  return EXIT_FAILED;
}

rdna_status check_not_input(const char *in, const char *out) {
  struct stat of_in, of_out;
  if (stat(in, &of_in) != 0 || stat(out, &of_out) != 0) return RDNA_OK;
  if (of_in.st_dev != of_out.st_dev || of_in.st_ino != of_out.st_ino) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "%s is both what is read and what is written; choose another name", out);
}

double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void show_loading(void *data, double share) { show_progress("loading", share); }

rdna_status parse_numbers(const char *option, const char *text, rdna_tokens *numbers) {
  for (const char *p = text;;) {
    char *end;
    errno = 0;
    long number = strtol(p, &end, 10);
    if (end == p || errno || number < 0 || number > INT32_MAX || (*end != 0 && *end != ','))
      return rdna__fail(RDNA_INVALID_ARGUMENT, "%s '%s' is no list of numbers such as 1,2,3", option, text);
    RDNA_TRY(rdna_tokens_append(numbers, (int32_t)number));
    if (*end == 0) return RDNA_OK;
    p = end + 1;
  }
}

rdna_dtype kv_type(const char *name) {
  static const rdna_dtype types[] = {RDNA_BF16, RDNA_F32, RDNA_Q8_0};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (strcmp(rdna_dtype_name(types[i]), name) == 0) return types[i];
  return RDNA_F16;
}

int print_json(json_t *json) {
  char *text = json_dumps(json, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
  json_decref(json);
  if (!text) {
    fprintf(stderr, "rdna: no host memory for the JSON output\n");
    return EXIT_FAILED;
  }
  puts(text);
  free(text);
  return EXIT_OK;
}

rdna_status open_chosen_device(const device_choice *choice, rdna_device **out_device) {
  char name[64];
  bool is_number = choice->device[0] != 0 && strspn(choice->device, "0123456789") == strlen(choice->device);
  if (choice->device[0] == 0)
    snprintf(name, sizeof name, "%s", choice->driver);
  else if (!is_number)
    snprintf(name, sizeof name, "%s", choice->device);
  else if (strcmp(choice->driver, "auto") != 0)
    snprintf(name, sizeof name, "%s:%s", choice->driver, choice->device);
  else
    return rdna__fail(RDNA_INVALID_ARGUMENT, "--device %s needs --driver too, or a whole name such as hip:%s",
                      choice->device, choice->device);
  return rdna_device_open(name, out_device);
}

const char *format_bytes(double bytes, char text[32]) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  for (; bytes >= 1000 && unit < 4; unit++) bytes /= 1024;
  snprintf(text, 32, unit == 0 || bytes >= 100 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
  return text;
}

rdna_status read_whole(const char *path, char **out_data, size_t *out_size) {
  FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
  if (!file) return rdna__fail(RDNA_IO_ERROR, "cannot open %s: %s", path, strerror(errno));
  char *data = NULL;
  size_t size = 0, room = 0;
  rdna_status status = RDNA_OK;
  for (;;) {
    if (room - size < 4096) {
      room = room ? 2 * room : 65536;
      char *grown = realloc(data, room);
      if (!grown) {
        status = rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the text of %s", path);
        break;
      }
      data = grown;
    }
    size_t got = fread(data + size, 1, room - size, file);
    size += got;
    if (got == 0) break;
  }
  if (status == RDNA_OK && ferror(file))
    status = rdna__fail(RDNA_IO_ERROR, "cannot read %s: %s", path, strerror(errno));
  if (file != stdin) fclose(file);
  if (status != RDNA_OK) {
    free(data);
    return status;
  }
  *out_data = data;
  *out_size = size;
  return RDNA_OK;
}

static bool progress_shown;

void show_progress(const char *what, double share) { show_progress_note(what, share, ""); }

void show_progress_note(const char *what, double share, const char *note) {
  enum { WIDTH = 32 };
  static int last_percent;
  if (!isatty(STDERR_FILENO)) return;
  int percent = (int)(share * 100);
  if (progress_shown && percent == last_percent) return;
  last_percent = percent;
  progress_shown = true;
  int filled = (int)(share * WIDTH);
  fprintf(stderr, "\r%-10s [%.*s%*s] %3d %%%-30s", what, filled, "################################", WIDTH - filled, "",
          percent, note);
}

void end_progress(void) {
  if (progress_shown) fprintf(stderr, "\r%*s\r", 80, "");
  progress_shown = false;
}
