/* JSON schemas as grammars (json-schema.org, draft 2020-12, and what OpenAPI 3.0 adds).
 *
 * Every text of the grammar is a value that the schema allows. The other way there are limits: properties come in the
 * order in which the schema has them, and none besides unless additionalProperties says so; between values there is
 * nothing, a space, or an end of line with up to 40 spaces; numbers have up to 18 digits on either side of the point
 * and two in an exponent. Where a schema has no type, its keywords say which is meant.
 *
 *   any value     type (a list too), nullable, enum, const, anyOf, oneOf of alternatives that evidently exclude each
 *                 other, allOf, $ref into the schema itself, recursive too
 *   objects       properties, required, additionalProperties, minProperties up to what is required
 *   arrays        items, prefixItems, minItems, maxItems
 *   strings       minLength, maxLength; or pattern; or format: date, time, date-time, uuid, email, ipv4, hostname, uri
 *   integers      minimum, maximum, exclusiveMinimum, exclusiveMaximum
 *   numbers       the same, with whole numbers as limits
 *
 * All other keywords are refused with their path, but for annotations: title, description, default, examples, … */
#ifndef RDNA_MODEL_GRAMMAR_SCHEMA_H
#define RDNA_MODEL_GRAMMAR_SCHEMA_H

#include <jansson.h>

#include "model/grammar/grammar.h"

enum {
  SCHEMA_MOST_RULES = 8192,
  SCHEMA_MOST_MERGES = 4096,   /* of allOf, and of alternatives with what stands beside them */
  SCHEMA_MOST_TEXT = 1 << 21,  /* bytes of the grammar */
  SCHEMA_MOST_LENGTH = 1 << 20 /* in minLength and its kin */
};

/* Text that grows. */
typedef struct schema_text {
  char *data;
  size_t size, room;
} schema_text;

/* A schema that has, or gets, a rule s0, s1, …. */
typedef struct schema_rule {
  const json_t *schema;
  char *path;
} schema_rule;

typedef struct schema_compiler {
  json_t *root;
  json_t *made;       /* an array of the schemas that merging makes */
  schema_rule *rules; /* (rule_count) compiled in order */
  size_t rule_count, rule_room;
  size_t merges;
  uint32_t helpers; /* rules x0, x1, … of parts of a schema */
  schema_text out, aside;
  const char *path; /* of the schema that is being compiled */
  rdna_status status;
} schema_compiler;

/* Each does nothing after a failure, which |status| is. */
__attribute__((format(printf, 2, 3))) void rdna__schema_put(schema_compiler *c, const char *format, ...);
void rdna__schema_put_text(schema_compiler *c, const char *text); /* of any length */
__attribute__((format(printf, 3, 4))) void rdna__schema_refuse(schema_compiler *c, rdna_status status,
                                                               const char *format, ...);
/* Writes aside, where rules x0, x1, … stand whole until the one that is being written is; and back. */
void rdna__schema_swap(schema_compiler *c);
/* Writes the name of a rule for |schema|, which is |path| and what |format| makes. */
__attribute__((format(printf, 3, 4))) void rdna__schema_value(schema_compiler *c, const json_t *schema,
                                                              const char *format, ...);
/* Writes |text| as a literal of the grammar. */
void rdna__schema_literal(schema_compiler *c, const char *text, size_t size);
/* The schemas |a| and |b| in one, borrowed; NULL after a failure. */
json_t *rdna__schema_merge(schema_compiler *c, const json_t *a, const json_t *b);

/* An integer from |low| to |high| of |schema|'s |keyword|; what |*out| is when there is none. */
void rdna__schema_count(schema_compiler *c, const json_t *schema, const char *keyword, uint32_t *out);

/* Each writes an alternative of a rule's body. */
void rdna__schema_object(schema_compiler *c, const json_t *schema);
void rdna__schema_array(schema_compiler *c, const json_t *schema);
void rdna__schema_string(schema_compiler *c, const json_t *schema);
void rdna__schema_number(schema_compiler *c, const json_t *schema, bool integer);
/* What a string matches that |pattern|, a regular expression, is found in, with its escapes. */
void rdna__schema_pattern(schema_compiler *c, const char *pattern);

#endif
