/* The kernels of PTX text:
 *
 *     .target sm_80
 *     .visible .entry _Z3addPKfi(
 *             .param .u64 _Z3addPKfi_param_0,
 *             .param .align 4 .b8 _Z3addPKfi_param_1[12]
 *     )
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/code_object.h"

enum { MOST_ARGUMENTS = 1024 };

/* Passes over blanks and comments. */
static const char *skip_blanks(const char *at) {
  for (;;) {
    at += strspn(at, " \t\r\n");
    if (at[0] != '/' || at[1] != '/') return at;
    at += strcspn(at, "\n");
  }
}

/* One word: up to a blank or a mark of its own. */
static const char *word_end(const char *at) { return at + strcspn(at, " \t\r\n,()[];{}"); }

static bool is_word(const char *at, const char *word) {
  size_t length = strlen(word);
  return (size_t)(word_end(at) - at) == length && !memcmp(at, word, length);
}

/* Bytes of ".u64", 0 when it is no type. */
static uint32_t type_bytes(const char *at) {
  static const struct {
    const char *name;
    uint32_t bytes;
  } types[] = {{".u8", 1},  {".s8", 1},  {".b8", 1},  {".u16", 2}, {".s16", 2}, {".b16", 2}, {".f16", 2}, {".u32", 4},
               {".s32", 4}, {".b32", 4}, {".f32", 4}, {".u64", 8}, {".s64", 8}, {".b64", 8}, {".f64", 8}};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (is_word(at, types[i].name)) return types[i].bytes;
  return 0;
}

/* Reads one .param behind that word, up to its comma or the parenthesis; NULL when it is none. */
static const char *read_parameter(const char *at, rdna_code_argument *out, uint32_t *offset) {
  uint32_t align = 0, bytes = 0;
  bool pointer = false;
  *out = (rdna_code_argument){.name = "", .type = "", .space = ""};
  for (at = skip_blanks(at); *at == '.'; at = skip_blanks(word_end(at))) {
    if (is_word(at, ".align")) {
      at = skip_blanks(word_end(at));
      unsigned long asked = strtoul(at, NULL, 10);
      if (asked == 0 || asked > 128 || asked & (asked - 1)) return NULL;
      if (!pointer) align = (uint32_t)asked; /* else that of what it points to */
    } else if (is_word(at, ".ptr")) {
      pointer = true;
    } else if (type_bytes(at)) {
      bytes = type_bytes(at);
    }
  }
  if (!bytes) return NULL;
  uint32_t natural = align ? align : bytes;
  at = skip_blanks(word_end(at)); /* its name */
  if (*at == '[') {
    char *end;
    unsigned long count = strtoul(at + 1, &end, 10);
    if (count == 0 || count > 65536 || *end != ']') return NULL;
    bytes *= (uint32_t)count;
    at = skip_blanks(end + 1);
  }
  if (*offset > 1 << 20) return NULL;
  out->offset = (*offset + natural - 1) & ~(natural - 1);
  out->size = bytes;
  out->is_pointer = pointer && bytes == sizeof(void *);
  *offset = out->offset + bytes;
  return at;
}

static rdna_status broken(const char *what, const char *at) {
  return rdna__fail(RDNA_BAD_DATA, "the PTX has %s, at '%.40s'", what, at);
}

static rdna_status read_entry(const char **text, rdna__code_description *d) {
  const char *at = skip_blanks(*text), *end = word_end(at);
  rdna_code_kernel *grown = realloc(d->kernels, ((size_t)d->kernel_count + 1) * sizeof *grown);
  rdna_code_argument *arguments = calloc(MOST_ARGUMENTS, sizeof *arguments);
  if (grown) d->kernels = grown;
  const char *symbol = rdna__code_text_add(d, at, (size_t)(end - at));
  if (!grown || !arguments || !symbol) {
    free(arguments);
    return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the kernels of PTX");
  }
  rdna_code_kernel *kernel = &d->kernels[d->kernel_count++];
  *kernel = (rdna_code_kernel){
      .name = symbol, .symbol = symbol, .arguments = arguments, .max_group_threads = 1024, .wave_size = 32};
  uint32_t offset = 0;
  if (at == end) return broken("an entry without a name", at);
  at = skip_blanks(end);
  if (*at == '(') {
    for (at = skip_blanks(at + 1); *at != ')';) {
      if (!is_word(at, ".param") || kernel->argument_count == MOST_ARGUMENTS) return broken("no parameter", at);
      const char *after = read_parameter(word_end(at), &arguments[kernel->argument_count], &offset);
      if (!after) return broken("a parameter of no known type", at);
      kernel->argument_count++;
      at = after;
      if (*at == ',') at = skip_blanks(at + 1);
    }
  }
  *text = at;
  return RDNA_OK;
}

rdna_status rdna__code_describe_ptx(const char *text, size_t size, rdna__code_description *d) {
  for (const char *at = skip_blanks(text); *at;) {
    const char *end = word_end(at);
    if (is_word(at, ".target")) {
      at = skip_blanks(end);
      snprintf(d->target, sizeof d->target, "%.*s", (int)(word_end(at) - at), at);
    } else if (is_word(at, ".entry")) {
      at = end;
      RDNA_TRY(read_entry(&at, d));
    } else if (is_word(at, ".maxntid") && d->kernel_count) {
      at = skip_blanks(end);
      unsigned long most = strtoul(at, NULL, 10);
      for (const char *more = skip_blanks(word_end(at)); *more == ',' && most <= 1024; more = skip_blanks(more)) {
        more = skip_blanks(more + 1);
        most *= strtoul(more, NULL, 10);
        more = word_end(more);
      }
      if (most && most <= 1024) d->kernels[d->kernel_count - 1].max_group_threads = (uint32_t)most;
    }
    at = skip_blanks(word_end(at) == at && *at ? at + 1 : word_end(at));
  }
  if (strncmp(d->target, "sm_", 3)) return rdna__fail(RDNA_BAD_DATA, "the PTX names no target such as sm_80");
  return RDNA_OK;
}
