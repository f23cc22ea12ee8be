/* Objects and arrays of a schema: rows of members, of which some may be missing. */
#include <stdlib.h>
#include <string.h>

#include "model/grammar/schema.h"

/* ---- keys that are none of some names ---- */

typedef struct name_list {
  const char **names;
  size_t count;
} name_list;

/* The bytes of the UTF-8 character at |text|. */
static size_t character_size(const char *text) {
  unsigned char c = (unsigned char)*text;
  return c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

/* Writes a character of a class. */
static void put_class_character(schema_compiler *c, const char *text, size_t size) {
  if (size == 1 && strchr("]^-\\", *text)) rdna__schema_put(c, "\\");
  rdna__schema_put(c, "%.*s", (int)size, text);
}

/* Writes rule x|number|: what may follow in a key where the names in |list| have begun alike, |depth| bytes long, and
 * the key is none of them in the end. Such a key is written without escapes. */
static void put_other_keys(schema_compiler *c, const name_list *list, size_t depth, uint32_t number) {
  const char **deeper = malloc((list->count + 1) * sizeof *deeper);
  uint32_t *numbers = malloc((list->count + 1) * sizeof *numbers);
  size_t *firsts = malloc((list->count + 1) * sizeof *firsts), groups = 0;
  bool ends_here = false;
  if (!deeper || !numbers || !firsts) c->status = rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a schema's keys");
  for (size_t i = 0; i < list->count && c->status == RDNA_OK; i++) { /* names are sorted */
    const char *rest = list->names[i] + depth;
    if (!*rest) {
      ends_here = true;
      continue;
    }
    const char *last = groups ? list->names[firsts[groups - 1]] + depth : NULL;
    if (last && strncmp(last, rest, character_size(rest)) == 0) continue;
    firsts[groups] = i;
    numbers[groups++] = c->helpers++;
  }
  if (c->status == RDNA_OK) {
    rdna__schema_put(c, "x%u ::= [^\"\\\\\\x00-\\x1f", (unsigned)number);
    for (size_t g = 0; g < groups; g++) {
      const char *rest = list->names[firsts[g]] + depth;
      put_class_character(c, rest, character_size(rest));
    }
    rdna__schema_put(c, "] [^\"\\\\\\x00-\\x1f]*");
    for (size_t g = 0; g < groups; g++) {
      const char *rest = list->names[firsts[g]] + depth;
      rdna__schema_put(c, " | ");
      rdna__schema_literal(c, rest, character_size(rest));
      rdna__schema_put(c, " x%u", (unsigned)numbers[g]);
    }
    rdna__schema_put(c, "%s\n", ends_here ? "" : " | \"\"");
  }
  for (size_t g = 0; g < groups && c->status == RDNA_OK; g++) {
    name_list group = {deeper, 0};
    const char *first = list->names[firsts[g]] + depth;
    size_t size = character_size(first);
    for (size_t i = firsts[g]; i < list->count && strncmp(list->names[i] + depth, first, size) == 0; i++)
      deeper[group.count++] = list->names[i];
    put_other_keys(c, &group, depth + size, numbers[g]);
  }
  free(deeper);
  free(numbers);
  free(firsts);
}

static int compare_names(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A rule for keys other than those of |properties|, written aside; its number. */
static uint32_t make_other_keys(schema_compiler *c, json_t *properties) {
  uint32_t number = c->helpers++;
  name_list list = {malloc((json_object_size(properties) + 1) * sizeof *list.names), 0};
  const char *name;
  json_t *value;
  if (!list.names) {
    c->status = rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a schema's keys");
    return number;
  }
  json_object_foreach(properties, name, value) {
    bool plain = strlen(name) <= 128; /* a name with these can be no key without escapes */
    for (const char *at = name; *at; at++) plain = plain && *at != '"' && *at != '\\' && (unsigned char)*at >= 32;
    if (strlen(name) > 128)
      rdna__schema_refuse(c, RDNA_UNSUPPORTED, "a name of more than 128 bytes beside additionalProperties");
    if (plain) list.names[list.count++] = name;
  }
  if (list.count) qsort(list.names, list.count, sizeof *list.names, compare_names);
  if (c->status == RDNA_OK) put_other_keys(c, &list, 0, number);
  free(list.names);
  return number;
}

/* ---- rows of members ---- */

typedef struct object_row {
  json_t *properties;
  const json_t *required, *more; /* |more|: additionalProperties, NULL where none are allowed */
  uint32_t keys;                 /* the rule of their keys */
  uint32_t first;                /* rule x(first + 2 i): from property i on, the first member; + 1: behind another */
} object_row;

static bool is_required(const json_t *required, const char *name) {
  for (size_t i = 0; i < json_array_size(required); i++) {
    const char *each = json_string_value(json_array_get(required, i));
    if (each && strcmp(each, name) == 0) return true;
  }
  return false;
}

static void put_more(schema_compiler *c, const object_row *row, bool behind) {
  if (!row->more) {
    rdna__schema_put(c, "\"\"");
    return;
  }
  const char *comma = "\",\" sp ";
  rdna__schema_put(c, "(%s\"\\\"\" x%u \"\\\":\" sp ", behind ? comma : "", (unsigned)row->keys);
  rdna__schema_value(c, row->more, "/additionalProperties");
  if (behind) {
    rdna__schema_put(c, ")*");
    return;
  }
  rdna__schema_put(c, " (%s\"\\\"\" x%u \"\\\":\" sp ", comma, (unsigned)row->keys);
  rdna__schema_value(c, row->more, "/additionalProperties");
  rdna__schema_put(c, ")*)?");
}

/* "name": value. */
static void put_member(schema_compiler *c, const char *name, const json_t *schema) {
  json_t *key = json_string(name);
  char *text = key ? json_dumps(key, JSON_ENCODE_ANY) : NULL;
  if (text) {
    rdna__schema_literal(c, text, strlen(text));
    rdna__schema_put(c, " \":\" sp ");
    rdna__schema_value(c, schema, "/properties/%s", name);
  } else if (c->status == RDNA_OK) {
    c->status = rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a schema's names");
  }
  free(text);
  json_decref(key);
}

static void put_rows(schema_compiler *c, const object_row *row) {
  uint32_t number = row->first;
  const char *name;
  json_t *value;
  json_object_foreach(row->properties, name, value) {
    for (uint32_t behind = 0; behind < 2; behind++) {
      rdna__schema_put(c, "x%u ::= %s", (unsigned)(number + behind), behind ? "\",\" sp " : "");
      put_member(c, name, value);
      rdna__schema_put(c, " x%u", (unsigned)(number + 3));
      if (!is_required(row->required, name)) rdna__schema_put(c, " | x%u", (unsigned)(number + 2 + behind));
      rdna__schema_put(c, "\n");
    }
    number += 2;
  }
  for (uint32_t behind = 0; behind < 2; behind++) {
    rdna__schema_put(c, "x%u ::= ", (unsigned)(number + behind));
    put_more(c, row, behind);
    rdna__schema_put(c, "\n");
  }
}

static void check_object(schema_compiler *c, const json_t *schema, const object_row *row) {
  if (row->properties && !json_is_object(row->properties))
    rdna__schema_refuse(c, RDNA_INVALID_ARGUMENT, "properties is to be an object of schemas");
  if (row->required && !json_is_array(row->required))
    rdna__schema_refuse(c, RDNA_INVALID_ARGUMENT, "required is to be a list of names");
  for (size_t i = 0; i < json_array_size(row->required); i++) {
    const char *name = json_string_value(json_array_get(row->required, i));
    if (!name || !json_object_get(row->properties, name))
      rdna__schema_refuse(c, RDNA_UNSUPPORTED, "%.100s is required and none of the properties", name ? name : "?");
  }
  uint32_t least = 0;
  rdna__schema_count(c, schema, "minProperties", &least);
  if (least > json_array_size(row->required))
    rdna__schema_refuse(c, RDNA_UNSUPPORTED, "minProperties cannot be enforced beyond what is required");
}

void rdna__schema_object(schema_compiler *c, const json_t *schema) {
  object_row row = {.properties = json_object_get(schema, "properties"),
                    .required = json_object_get(schema, "required"),
                    .more = json_object_get(schema, "additionalProperties")};
  check_object(c, schema, &row);
  if (c->status != RDNA_OK) return;
  if (!row.properties && !row.required && (!row.more || json_is_true(row.more))) {
    rdna__schema_put(c, "object");
    return;
  }
  if (json_is_false(row.more)) row.more = NULL;
  rdna__schema_swap(c);
  if (row.more) row.keys = make_other_keys(c, row.properties);
  row.first = c->helpers;
  c->helpers += 2 * (uint32_t)json_object_size(row.properties) + 2;
  put_rows(c, &row);
  rdna__schema_swap(c);
  rdna__schema_put(c, "\"{\" sp x%u sp \"}\"", (unsigned)row.first);
}

/* ---- arrays ---- */

typedef struct array_row {
  const json_t *first, *items; /* prefixItems; |items| NULL where none are allowed */
  uint32_t prefix, least, most;
} array_row;

/* |least| to |most| more items; the first with a comma before it where it stands |behind| another. */
static void put_items(schema_compiler *c, const array_row *row, uint32_t least, uint32_t most, bool behind) {
  if (!row->items || most == 0) {
    rdna__schema_put(c, "\"\"");
    return;
  }
  if (!behind) {
    rdna__schema_put(c, "(");
    rdna__schema_value(c, row->items, "/items");
    rdna__schema_put(c, " ");
  }
  uint32_t off = behind ? 0 : 1;
  rdna__schema_put(c, "(\",\" sp ");
  rdna__schema_value(c, row->items, "/items");
  rdna__schema_put(c, "){%u,", (unsigned)(least > off ? least - off : 0));
  if (most != UINT32_MAX) rdna__schema_put(c, "%u", (unsigned)(most - off));
  rdna__schema_put(c, "}%s", behind ? "" : least ? ")" : ")?");
}

/* Rules x(first), …: from item i of the prefix on. */
static uint32_t make_prefix(schema_compiler *c, const array_row *row) {
  uint32_t first = c->helpers;
  uint32_t count = row->prefix < row->most ? row->prefix : row->most;
  c->helpers += count + 1;
  rdna__schema_swap(c);
  for (uint32_t i = 0; i < count; i++) {
    rdna__schema_put(c, "x%u ::= %s", (unsigned)(first + i), i ? "\",\" sp " : "");
    rdna__schema_value(c, json_array_get(row->first, i), "/prefixItems/%u", (unsigned)i);
    rdna__schema_put(c, " x%u%s\n", (unsigned)(first + i + 1), i < row->least ? "" : " | \"\"");
  }
  rdna__schema_put(c, "x%u ::= ", (unsigned)(first + count));
  uint32_t least = row->least > count ? row->least - count : 0;
  put_items(c, row, least, row->most == UINT32_MAX ? row->most : row->most - count, count > 0);
  rdna__schema_put(c, "\n");
  rdna__schema_swap(c);
  return first;
}

void rdna__schema_array(schema_compiler *c, const json_t *schema) {
  array_row row = {
      .first = json_object_get(schema, "prefixItems"), .items = json_object_get(schema, "items"), .most = UINT32_MAX};
  if (row.first && !json_is_array(row.first))
    rdna__schema_refuse(c, RDNA_INVALID_ARGUMENT, "prefixItems is to be a list of schemas");
  if (json_is_array(row.items)) rdna__schema_refuse(c, RDNA_UNSUPPORTED, "items as a list is called prefixItems now");
  if (!row.items) row.items = json_true(); /* jansson's own, never released */
  if (json_is_false(row.items)) row.items = NULL;
  row.prefix = (uint32_t)json_array_size(row.first);
  rdna__schema_count(c, schema, "minItems", &row.least);
  rdna__schema_count(c, schema, "maxItems", &row.most);
  if (row.most < row.least || (!row.items && row.prefix < row.least))
    rdna__schema_refuse(c, RDNA_INVALID_ARGUMENT, "more items are wanted than are allowed");
  if (c->status != RDNA_OK) return;
  uint32_t first = make_prefix(c, &row);
  rdna__schema_put(c, "\"[\" sp x%u sp \"]\"", (unsigned)first);
}
