/* Rewrites PTX in one scan, without parsing more of it than it needs:
 *
 *     .version 8.3                                             at least 7.8
 *     .target sm_80                 ->  .target sm_90          older targets lack griddepcontrol
 *     .visible .entry f(…) {        ->  .visible .entry f(…) {
 *                                         griddepcontrol.wait;
 *                                       … and at the end the variable RDNA__OVERLAP_MARK */
#include "device/driver/cuda/overlap.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

static const char wait[] = "\n\tgriddepcontrol.wait;";
static const char mark[] = "\n.visible .global .align 4 .u32 " RDNA__OVERLAP_MARK " = 1;\n";
static const char target[] = "sm_90";
enum { FIRST_VERSION = 708, FIRST_TARGET = 90 };

static bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' || c == '%';
}

/* The end of the comment or string that begins at |at|; |at| itself where none does. */
static const char *past_aside(const char *at) {
  if (at[0] == '/' && at[1] == '/') return at + strcspn(at, "\n");
  if (at[0] == '/' && at[1] == '*') {
    const char *end = strstr(at + 2, "*/");
    return end == NULL ? at + strlen(at) : end + 2;
  }
  if (at[0] == '"') {
    const char *end = strchr(at + 1, '"');
    return end == NULL ? at + strlen(at) : end + 1;
  }
  return at;
}

static const char *past_space(const char *at) {
  for (;;) {
    const char *next = past_aside(at + strspn(at, " \t\r\n"));
    if (next == at || *next == '"') return next;
    at = next;
  }
}

static bool is_directive(const char *at, const char *name) {
  size_t length = strlen(name);
  return strncmp(at, name, length) == 0 && !is_name(at[length]);
}

/* A number of at most 4 digits, which |*at| is moved behind; -1 where there is none. */
static int read_number(const char **at) {
  int number = 0, digits = 0;
  for (; **at >= '0' && **at <= '9' && digits < 4; digits++) number = 10 * number + *(*at)++ - '0';
  return digits == 0 ? -1 : number;
}

static bool new_enough(const char *version) {
  int major = read_number(&version);
  if (major < 0 || *version != '.') return false;
  version++;
  return 100 * major + read_number(&version) >= FIRST_VERSION;
}

typedef struct rewriting {
  const char *from; /* the text before it is copied */
  char *to;         /* where what comes next goes */
} rewriting;

static void copy_until(rewriting *r, const char *end) {
  memcpy(r->to, r->from, (size_t)(end - r->from));
  r->to += end - r->from;
  r->from = end;
}

static void insert(rewriting *r, const char *text, size_t length) {
  memcpy(r->to, text, length);
  r->to += length;
}

/* Copies and rewrites the text up to the last change; the caller copies the rest. False where the text must stay as it
 * is: its version is too old, it has no target of the form sm_NN, or no kernel with a body. */
static bool rewrite(rewriting *r) {
  bool version = false, aimed = false, waits = false;
  bool heading = false, pragma = false; /* between .entry and its body; in a .pragma, whose ; ends no declaration */
  for (const char *at = r->from; *at != '\0';) {
    const char *next = past_aside(at);
    if (next != at) {
      at = next;
      continue;
    }
    if (is_directive(at, ".version")) {
      version = new_enough(past_space(at + strlen(".version")));
    } else if (is_directive(at, ".target")) {
      const char *name = past_space(at + strlen(".target")), *end = name + strlen("sm_");
      if (strncmp(name, "sm_", strlen("sm_")) != 0) return false;
      int number = read_number(&end);
      aimed = number > 0;
      if (aimed && number < FIRST_TARGET) {
        copy_until(r, name);
        insert(r, target, strlen(target));
        r->from = end;
      }
      at = end;
      continue;
    } else if (is_directive(at, ".entry")) {
      heading = true;
    } else if (is_directive(at, ".pragma")) {
      pragma = true;
    } else if (*at == ';') {
      heading = heading && pragma; /* else a declaration without a body */
      pragma = false;
    } else if (*at == '{' && heading) {
      copy_until(r, at + 1);
      insert(r, wait, strlen(wait));
      heading = false, waits = true;
    }
    at++;
  }
  return version && aimed && waits;
}

rdna_status rdna__ptx_with_waits(const char *ptx, char **out_ptx) {
  *out_ptx = NULL;
  size_t length = strlen(ptx), bodies = 0, targets = 0;
  for (const char *at = ptx; (at = strchr(at, '{')) != NULL; at++) bodies++;
  for (const char *at = ptx; (at = strstr(at, ".target")) != NULL; at++) targets++;
  char *text = malloc(length + bodies * strlen(wait) + targets * strlen(target) + sizeof mark);
  if (text == NULL) return rdna__fail(RDNA_OUT_OF_MEMORY, "host memory for %zu bytes of PTX", length);
  rewriting r = {.from = ptx, .to = text};
  if (!rewrite(&r)) {
    free(text);
    return RDNA_OK;
  }
  copy_until(&r, ptx + length);
  insert(&r, mark, sizeof mark); /* with its NUL */
  *out_ptx = text;
  return RDNA_OK;
}
