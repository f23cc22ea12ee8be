/* What a C++ symbol says of a kernel: "_Z3addPKfS0_Pfi" is add(const float*, const float*, float*, int). The code
 * object itself tells sizes and which arguments are pointers, but not of what.
 *
 * Only what a kernel's arguments can be is understood; at anything else the types stay unknown. Grammar: "Itanium C++
 * ABI", 5.1, name mangling. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/code_object.h"

enum { MOST_SUBSTITUTES = 64, MOST_PARAMETERS = 8, MOST_DEPTH = 32, NAME_SIZE = 48 };

typedef struct type {
  char name[NAME_SIZE]; /* "float"; "" of what has no name here */
  rdna_number number;   /* of what is left when all pointers are followed */
  uint32_t size;        /* of that, 0 when unknown */
  bool is_const;
  int pointers;
} type;

typedef struct symbol {
  const char *at, *end;
  bool failed;
  int depth;
  type substitutes[MOST_SUBSTITUTES]; /* what S_, S0_, … stand for */
  int substitute_count;
  type parameters[MOST_PARAMETERS]; /* of the template whose instance the kernel is: T_, T0_, … */
  int parameter_count;
  const char *name; /* the last component */
  size_t name_length;
} symbol;

static const struct {
  char letter;
  const char *name;
  rdna_number number;
  uint32_t size;
} builtins[] = {
    {'v', "void", RDNA_NUMBER_UNKNOWN, 0},
    {'f', "float", RDNA_NUMBER_FLOAT, 4},
    {'d', "double", RDNA_NUMBER_FLOAT, 8},
    {'b', "bool", RDNA_NUMBER_INTEGER, 1},
    {'c', "char", RDNA_NUMBER_INTEGER, 1},
    {'a', "signed char", RDNA_NUMBER_INTEGER, 1},
    {'h', "unsigned char", RDNA_NUMBER_INTEGER, 1},
    {'s', "short", RDNA_NUMBER_INTEGER, 2},
    {'t', "unsigned short", RDNA_NUMBER_INTEGER, 2},
    {'i', "int", RDNA_NUMBER_INTEGER, 4},
    {'j', "unsigned int", RDNA_NUMBER_INTEGER, 4},
    {'l', "long", RDNA_NUMBER_INTEGER, 8},
    {'m', "unsigned long", RDNA_NUMBER_INTEGER, 8},
    {'x', "long long", RDNA_NUMBER_INTEGER, 8},
    {'y', "unsigned long long", RDNA_NUMBER_INTEGER, 8},
};

/* Classes by which HIP's headers have 16-bit floats. */
static const struct {
  const char *name;
  rdna_number number;
} halves[] = {{"__half", RDNA_NUMBER_FLOAT},
              {"half", RDNA_NUMBER_FLOAT},
              {"__hip_bfloat16", RDNA_NUMBER_BFLOAT},
              {"hip_bfloat16", RDNA_NUMBER_BFLOAT},
              {"__bf16", RDNA_NUMBER_BFLOAT}};

static bool peek(const symbol *s, const char *text) {
  size_t length = strlen(text);
  return !s->failed && (size_t)(s->end - s->at) >= length && !memcmp(s->at, text, length);
}

static bool accept(symbol *s, const char *text) {
  if (!peek(s, text)) return false;
  s->at += strlen(text);
  return true;
}

static bool at_digit(const symbol *s) { return !s->failed && s->at < s->end && *s->at >= '0' && *s->at <= '9'; }

static void substitute_later(symbol *s, const type *t) {
  if (s->substitute_count == MOST_SUBSTITUTES)
    s->failed = true;
  else
    s->substitutes[s->substitute_count++] = *t;
}

static size_t read_decimal(symbol *s) {
  size_t number = 0;
  if (!at_digit(s)) s->failed = true;
  for (; at_digit(s) && number < 100000; s->at++) number = 10 * number + (size_t)(*s->at - '0');
  return number;
}

/* "_" is the first, "0_" the second; in base 36. */
static int read_sequence(symbol *s) {
  if (accept(s, "_")) return 0;
  int number = 0;
  for (; s->at < s->end && *s->at != '_' && number < 1000; s->at++) {
    char c = *s->at;
    if (!(c >= '0' && c <= '9') && !(c >= 'A' && c <= 'Z')) break;
    number = 36 * number + (c <= '9' ? c - '0' : c - 'A' + 10);
  }
  if (!accept(s, "_")) s->failed = true;
  return number + 1;
}

/* "3add" */
static type read_source_name(symbol *s) {
  type t = {.number = RDNA_NUMBER_UNKNOWN};
  size_t length = read_decimal(s);
  if (s->failed || length == 0 || (size_t)(s->end - s->at) < length) {
    s->failed = true;
    return t;
  }
  s->name = s->at;
  s->name_length = length;
  snprintf(t.name, sizeof t.name, "%.*s", (int)(length < NAME_SIZE ? length : 0), s->at);
  for (size_t i = 0; i < sizeof halves / sizeof *halves; i++)
    if (!strcmp(t.name, halves[i].name)) t.number = halves[i].number, t.size = 2;
  s->at += length;
  return t;
}

static type read_type(symbol *s);

/* "IfLi4EE": types, and constants as L type value E. Kept as what T_ stands for when |keep|. */
static void read_template_arguments(symbol *s, bool keep) {
  const char *name = s->name; /* names among the arguments are not the kernel's */
  size_t name_length = s->name_length;
  if (!accept(s, "I")) s->failed = true;
  int count = 0;
  while (!s->failed && !accept(s, "E")) {
    type t = {.number = RDNA_NUMBER_UNKNOWN};
    if (accept(s, "L")) {
      read_type(s);
      while (s->at < s->end && (*s->at == 'n' || at_digit(s))) s->at++;
      if (!accept(s, "E")) s->failed = true;
    } else {
      t = read_type(s);
    }
    if (keep && count < MOST_PARAMETERS) s->parameters[count++] = t;
  }
  if (keep) s->parameter_count = count;
  s->name = name;
  s->name_length = name_length;
}

static type read_substitute(symbol *s) {
  int number = read_sequence(s);
  if (s->failed || number >= s->substitute_count) {
    s->failed = true;
    return (type){.number = RDNA_NUMBER_UNKNOWN};
  }
  return s->substitutes[number];
}

/* "N5outer5inner3addE", behind its N. Every component but the last can be substituted later. |of_kernel|: its
 * template's arguments are kept; sets *out_template when the last component has some. */
static type read_nested(symbol *s, bool of_kernel, bool *out_template) {
  type t = {.number = RDNA_NUMBER_UNKNOWN};
  int lists = 0;
  while (!s->failed && !accept(s, "E")) {
    bool old = false;
    *out_template = false;
    if (accept(s, "S")) {
      t = read_substitute(s);
      old = true;
    } else if (peek(s, "I")) {
      read_template_arguments(s, of_kernel);
      *out_template = true;
      if (of_kernel && lists++) s->failed = true; /* T_ of which of them? */
    } else {
      accept(s, "L"); /* internal linkage */
      t = read_source_name(s);
    }
    if (!old && !peek(s, "E")) substitute_later(s, &t);
  }
  return t;
}

static type read_vendor_type(symbol *s) {
  type t = {.number = RDNA_NUMBER_FLOAT, .size = 2};
  if (accept(s, "F16_") || accept(s, "h")) {
    strcpy(t.name, "_Float16");
  } else if (accept(s, "F16b")) {
    strcpy(t.name, "__bf16");
    t.number = RDNA_NUMBER_BFLOAT;
  } else if (accept(s, "v")) { /* a vector: "Dv4_f" */
    size_t lanes = read_decimal(s);
    if (!accept(s, "_")) s->failed = true;
    type lane = read_type(s);
    t = (type){.number = RDNA_NUMBER_UNKNOWN};
    if (lane.pointers == 0 && strlen(lane.name) + 8 < sizeof t.name)
      snprintf(t.name, sizeof t.name, "%.32s%zu", lane.name, lanes);
    substitute_later(s, &t);
  } else {
    s->failed = true;
  }
  return t;
}

/* A name as a type, with the arguments of its template. */
static type read_class(symbol *s) {
  type t = {.number = RDNA_NUMBER_UNKNOWN};
  bool is_template;
  if (accept(s, "N"))
    t = read_nested(s, false, &is_template);
  else if (accept(s, "u") || at_digit(s))
    t = read_source_name(s);
  else
    s->failed = true;
  substitute_later(s, &t);
  if (!peek(s, "I")) return t;
  read_template_arguments(s, false);
  t = (type){.number = RDNA_NUMBER_UNKNOWN};
  substitute_later(s, &t);
  return t;
}

static type read_qualified(symbol *s) {
  bool is_const = false;
  for (; peek(s, "K") || peek(s, "V") || peek(s, "r"); s->at++) is_const = is_const || *s->at == 'K';
  type t = read_type(s);
  if (t.pointers == 0) t.is_const = is_const;
  substitute_later(s, &t);
  return t;
}

static type read_type_within(symbol *s) {
  type t = {.number = RDNA_NUMBER_UNKNOWN};
  if (s->at == s->end) s->failed = true;
  if (s->failed) return t;
  for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++) {
    if (*s->at != builtins[i].letter) continue;
    s->at++;
    strcpy(t.name, builtins[i].name);
    t.number = builtins[i].number;
    t.size = builtins[i].size;
    return t;
  }
  if (accept(s, "P")) {
    t = read_type(s);
    t.pointers++;
    substitute_later(s, &t);
    return t;
  }
  if (peek(s, "K") || peek(s, "V") || peek(s, "r")) return read_qualified(s);
  if (accept(s, "D")) return read_vendor_type(s);
  if (accept(s, "S")) {
    t = read_substitute(s);
    if (!peek(s, "I")) return t;
    read_template_arguments(s, false);
    t = (type){.number = RDNA_NUMBER_UNKNOWN};
    substitute_later(s, &t);
    return t;
  }
  if (accept(s, "T")) {
    int number = read_sequence(s);
    if (number >= s->parameter_count) s->failed = true;
    if (!s->failed) t = s->parameters[number];
    substitute_later(s, &t);
    return t;
  }
  return read_class(s);
}

static type read_type(symbol *s) {
  if (s->depth == MOST_DEPTH) s->failed = true;
  s->depth++;
  type t = read_type_within(s);
  s->depth--;
  return t;
}

/* "_Z" and the name; false when it cannot be understood. *out_template: the type of the result follows. */
static bool read_name(symbol *s, bool *out_template) {
  *out_template = false;
  if (!accept(s, "_Z")) return false;
  if (accept(s, "N")) {
    read_nested(s, true, out_template);
  } else {
    accept(s, "L");
    type t = read_source_name(s);
    *out_template = peek(s, "I");
    if (*out_template) {
      substitute_later(s, &t);
      read_template_arguments(s, true);
    }
  }
  return !s->failed && s->name;
}

/* Whether |t| can be what the code object says of |argument|. */
static bool agrees(const type *t, const rdna_code_argument *argument, bool pointers_are_known) {
  if (t->pointers) return argument->size == sizeof(void *) && (argument->is_pointer || !pointers_are_known);
  return !argument->is_pointer && (!t->size || t->size == argument->size);
}

static rdna_status set_type(rdna__code_description *description, rdna_code_argument *argument, const type *t) {
  char text[NAME_SIZE + 48];
  int length = snprintf(text, sizeof text, "%s%s%.*s", t->is_const && t->pointers ? "const " : "", t->name,
                        t->pointers < 32 ? t->pointers : 32, "********************************");
  argument->is_pointer = t->pointers != 0;
  if (t->pointers < 2) {
    argument->number = t->number;
    argument->number_size = t->size;
  }
  if (!t->name[0]) return RDNA_OK;
  argument->type = rdna__code_text_add(description, text, (size_t)length);
  return argument->type ? RDNA_OK : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the types of a kernel");
}

/* The types of |count| parameters, which are all that is left. */
static bool read_parameters(symbol *s, bool has_result, type *types, int count) {
  if (has_result) read_type(s);
  if (count == 0) return accept(s, "v") && s->at == s->end;
  for (int i = 0; i < count && !s->failed; i++) types[i] = read_type(s);
  return !s->failed && s->at == s->end;
}

static rdna_status name_kernel(rdna__code_description *description, rdna_code_kernel *kernel, symbol *s, type *types) {
  bool is_template;
  if (!read_name(s, &is_template)) return RDNA_OK;
  const char *name = rdna__code_text_add(description, s->name, s->name_length);
  if (!name) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the names of kernels");
  kernel->name = name;
  rdna_code_argument *arguments = (rdna_code_argument *)(uintptr_t)kernel->arguments;
  if (!read_parameters(s, is_template, types, kernel->argument_count)) return RDNA_OK;
  bool pointers_are_known = strncmp(description->target, "sm_", 3) != 0; /* PTX has them as integers */
  for (int i = 0; i < kernel->argument_count; i++)
    if (!agrees(&types[i], &arguments[i], pointers_are_known)) return RDNA_OK;
  for (int i = 0; i < kernel->argument_count; i++) RDNA_TRY(set_type(description, &arguments[i], &types[i]));
  return RDNA_OK;
}

rdna_status rdna__code_name_kernel(rdna__code_description *description, rdna_code_kernel *kernel) {
  kernel->name = kernel->symbol;
  symbol *s = calloc(1, sizeof *s);
  type *types = calloc((size_t)kernel->argument_count + 1, sizeof *types);
  rdna_status status;
  if (s && types) {
    s->at = kernel->symbol;
    s->end = kernel->symbol + strlen(kernel->symbol);
    status = name_kernel(description, kernel, s, types);
  } else {
    status = rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the types of a kernel");
  }
  free(s);
  free(types);
  return status;
}
