/* Which adapters a request's texts have. */
#include "server/catalog.h"
#include "server/request.h"

#include <stdlib.h>
#include <string.h>

/* The number of the model's adapter |id|, a number or a name; below 0 with a problem. */
static int number_of(const exchange *x, const json_t *id, problem *p) {
  const preset *of = &x->hosted->preset;
  const char *name = json_string_value(id);
  const preset_adapter *named = name ? catalog_adapter(x->hosted, name) : NULL;
  if (named) return (int)(named - of->adapters);
  if (json_is_integer(id) && json_integer_value(id) >= 0 && json_integer_value(id) < of->adapter_count)
    return (int)json_integer_value(id);
  char *text = json_dumps(id ? id : NULL, JSON_ENCODE_ANY);
  refuse(p, 400, NULL, "lora", "'lora': the model '%s' has no adapter %.80s; it has %d", x->model->name,
         text ? text : "without an 'id'", of->adapter_count);
  free(text);
  return -1;
}

/* In the order of the model's adapters, without those whose scale is 0, so that equal choices are equal lists. */
static void list_adapters(const served_model *m, const float *scales, settings *s) {
  for (int i = 0; i < m->adapter_count; i++)
    if (scales[i] != 0) s->adapters[s->adapter_count++] = (rdna_llm_adapter_use){m->adapters[i], scales[i]};
}

/* [{"id": 0, "scale": 1}, …]: those that are not in it are off. */
static bool read_list(const exchange *x, const json_t *list, float *scales, problem *p) {
  static const field_row rows[] = {{"id", FIELD_READ}, {"scale", FIELD_READ}};
  bool seen[RDNA_LLM_MOST_ADAPTERS] = {false};
  if (!json_is_array(list)) return refuse(p, 400, NULL, "lora", "'lora' must be a list of {\"id\": …, \"scale\": …}");
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *one = json_array_get(list, i);
    double scale = 1;
    if (!json_is_object(one)) return refuse(p, 400, NULL, "lora", "'lora' must be a list of {\"id\": …, \"scale\": …}");
    if (!check_fields(one, rows, 2, p) || !read_number(one, "scale", -1e6, 1e6, &scale, p)) return false;
    int number = number_of(x, json_object_get(one, "id"), p);
    if (number < 0) return false;
    if (seen[number])
      return refuse(p, 400, NULL, "lora", "'lora' has the adapter '%s' twice", x->hosted->preset.adapters[number].name);
    seen[number] = true;
    scales[number] = (float)scale;
  }
  return true;
}

bool request_take_adapters(const exchange *x, request *r, problem *p) {
  float scales[RDNA_LLM_MOST_ADAPTERS] = {0};
  const json_t *list = json_object_get(r->json, "lora");
  if (list && !json_is_null(list)) {
    if (x->adapter)
      return refuse(p, 400, NULL, "lora", "'lora' and the adapter '%s' as the model; give one of them",
                    x->adapter->name);
    if (!read_list(x, list, scales, p)) return false;
  } else if (x->adapter) {
    scales[x->adapter - x->hosted->preset.adapters] = x->adapter->scale;
  }
  list_adapters(x->model, scales, &r->settings);
  return true;
}
