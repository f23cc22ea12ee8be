/* The interface of the template engine. */
#include "rdna/template.h"

#include <stdlib.h>
#include <string.h>

#include "model/template/template.h"

/* A copy of |text| whose newlines are all \n, without the last one, as Jinja reads it. */
static rdna_text normalized(const char *text, size_t size, char *out) {
  size_t kept = 0;
  for (size_t i = 0; i < size; i++) {
    if (text[i] == '\r' && i + 1 < size && text[i + 1] == '\n') continue;
    out[kept++] = text[i] == '\r' ? '\n' : text[i];
  }
  if (kept && out[kept - 1] == '\n') kept--;
  return (rdna_text){out, kept};
}

rdna_status rdna_template_compile(const char *text, size_t size, rdna_template **out_template) {
  if (!out_template || (!text && size))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_template_compile: the %s is NULL",
                      out_template ? "text" : "template");
  if (!rdna__tpl_is_utf8(text, size)) return rdna__fail(RDNA_BAD_DATA, "the template's text is not UTF-8");
  rdna_template *compiled = calloc(1, sizeof *compiled);
  if (!compiled) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a template");
  compiled->arena.limit = SIZE_MAX / 4;
  char *copy = rdna__tpl_arena_alloc(&compiled->arena, size + 1);
  rdna_status status =
      copy ? RDNA_OK : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a template of %zu bytes", size);
  tpl_tokens tokens = {0};
  if (status == RDNA_OK) status = rdna__tpl_lex(&compiled->arena, normalized(text, size, copy), &tokens);
  if (status == RDNA_OK) status = rdna__tpl_parse(&compiled->arena, &tokens, &compiled->root);
  if (status != RDNA_OK) {
    rdna_template_release(compiled);
    return status;
  }
  *out_template = compiled;
  return RDNA_OK;
}

void rdna_template_release(rdna_template *compiled) {
  if (!compiled) return;
  rdna__tpl_arena_deinit(&compiled->arena);
  free(compiled);
}

static rdna_status render(const rdna_template *compiled, const json_t *variables, int64_t steps, char **out_text,
                          size_t *out_size) {
  tpl_run run = {.arena.limit = TPL_MAX_MEMORY, .most_steps = steps};
  tpl_buffer out = {0};
  tpl_scope top = {0};
  run.variables = &run.no_dict;
  tpl_value names = rdna__tpl_from_json(&run, variables);
  if (run.status == RDNA_OK) {
    run.variables = names.dict;
    run.scope = &top;
    run.out = &out;
    rdna__tpl_execute(&run, compiled->root);
  }
  char *text = run.status == RDNA_OK ? malloc(out.size + 1) : NULL;
  if (run.status == RDNA_OK && !text) run.status = rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the prompt");
  if (text) {
    if (out.size) memcpy(text, out.data, out.size);
    text[out.size] = 0;
    *out_text = text;
    *out_size = out.size;
  }
  rdna__tpl_arena_deinit(&run.arena);
  return run.status;
}

rdna_status rdna__tpl_render(const rdna_template *compiled, const char *variables, size_t size, int64_t steps,
                             char **out_text, size_t *out_size) {
  json_error_t error;
  json_t *json = json_loadb(variables, size, JSON_ALLOW_NUL, &error);
  if (!json)
    return rdna__fail(RDNA_BAD_DATA, "a template's variables are not JSON: line %d, column %d: %s", error.line,
                      error.column, error.text);
  rdna_status status = json_is_object(json) ? render(compiled, json, steps, out_text, out_size)
                                            : rdna__fail(RDNA_BAD_DATA, "a template's variables are not a JSON object");
  json_decref(json);
  return status;
}

rdna_status rdna_template_render(const rdna_template *compiled, const char *variables, size_t size, char **out_text,
                                 size_t *out_size) {
  if (!compiled || !variables || !out_text || !out_size)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_template_render: an argument is NULL");
  return rdna__tpl_render(compiled, variables, size, TPL_MAX_STEPS, out_text, out_size);
}
