/* Strings of a schema: of a length, a pattern or a format. */
#include <string.h>

#include "model/grammar/schema.h"

/* A day of the Gregorian calendar from the year 1000 on, times of RFC 3339, and what else has a name. */
#define MONTHS_AND_DAYS                                                                                         \
  "((\"0\" [13578] | \"1\" [02]) \"-\" (\"0\" [1-9] | [12] [0-9] | \"3\" [01]) | (\"0\" [469] | \"11\") \"-\" " \
  "(\"0\" [1-9] | [12] [0-9] | \"30\") | \"02-\" (\"0\" [1-9] | \"1\" [0-9] | \"2\" [0-8]))"
#define LEAP_YEAR "([1-9] [0-9] (\"0\" [48] | [2468] [048] | [13579] [26]) | ([2468] [048] | [13579] [26]) \"00\")"
#define DATE "([1-9] [0-9]{3} \"-\" " MONTHS_AND_DAYS " | " LEAP_YEAR " \"-02-29\")"
#define HOUR "([01] [0-9] | \"2\" [0-3])"
#define TIME HOUR " \":\" [0-5] [0-9] \":\" [0-5] [0-9] (\".\" [0-9]{1,6})? (\"Z\" | [+-] " HOUR " \":\" [0-5] [0-9])"
#define LABEL "[a-zA-Z0-9] ([a-zA-Z0-9-]{0,30} [a-zA-Z0-9])?"
#define HOST LABEL " (\".\" " LABEL "){0,7}"
#define OCTET "([1-9]? [0-9] | \"1\" [0-9] [0-9] | \"2\" [0-4] [0-9] | \"25\" [0-5])"

static const struct {
  const char *name, *body;
} formats[] = {
    {"date", DATE},
    {"time", TIME},
    {"date-time", DATE " \"T\" " TIME},
    {"uuid", "hex{8} \"-\" hex{4} \"-\" hex{4} \"-\" hex{4} \"-\" hex{12}"},
    {"email", "[a-zA-Z0-9_+-]{1,30} (\".\" [a-zA-Z0-9_+-]{1,30}){0,3} \"@\" " LABEL " (\".\" " LABEL "){1,7}"},
    {"hostname", HOST},
    {"ipv4", OCTET " \".\" " OCTET " \".\" " OCTET " \".\" " OCTET},
    {"uri",
     "[a-zA-Z] [a-zA-Z0-9+.-]{0,20} \"://\" " HOST " (\":\" [1-9] [0-9]{0,3})? (\"/\" ([a-zA-Z0-9._~!$&'()*+,;=:@-] | "
     "\"%\" hex hex)*)* (\"?\" [a-zA-Z0-9._~!$&'()*+,;=:@/?-]*)? (\"#\" [a-zA-Z0-9._~-]*)?"}};

static void put_format(schema_compiler *c, const json_t *format) {
  const char *name = json_string_value(format);
  for (size_t i = 0; name && i < sizeof formats / sizeof *formats; i++) {
    if (strcmp(name, formats[i].name) != 0) continue;
    rdna__schema_put(c, "\"\\\"\" (");
    rdna__schema_put_text(c, formats[i].body);
    rdna__schema_put(c, ") \"\\\"\"");
    return;
  }
  rdna__schema_refuse(c, RDNA_UNSUPPORTED, "the format %.60s cannot be enforced", name ? name : "that is no text");
}

void rdna__schema_string(schema_compiler *c, const json_t *schema) {
  const json_t *pattern = json_object_get(schema, "pattern"), *format = json_object_get(schema, "format");
  uint32_t least = 0, most = UINT32_MAX;
  rdna__schema_count(c, schema, "minLength", &least);
  rdna__schema_count(c, schema, "maxLength", &most);
  if (most < least) rdna__schema_refuse(c, RDNA_INVALID_ARGUMENT, "a string is to be longer than it may be");
  bool counted = least > 0 || most != UINT32_MAX;
  if ((pattern != NULL) + (format != NULL) + counted > 1)
    rdna__schema_refuse(c, RDNA_UNSUPPORTED, "of pattern, format and lengths of a string only one can be enforced");
  if (c->status != RDNA_OK) return;
  if (pattern) {
    if (!json_is_string(pattern)) {
      rdna__schema_refuse(c, RDNA_INVALID_ARGUMENT, "pattern is to be a text");
      return;
    }
    rdna__schema_put(c, "\"\\\"\" (");
    rdna__schema_pattern(c, json_string_value(pattern));
    rdna__schema_put(c, ") \"\\\"\"");
  } else if (format) {
    put_format(c, format);
  } else if (counted) {
    rdna__schema_put(c, "\"\\\"\" char{%u,", (unsigned)least);
    if (most != UINT32_MAX) rdna__schema_put(c, "%u", (unsigned)most);
    rdna__schema_put(c, "} \"\\\"\"");
  } else {
    rdna__schema_put(c, "string");
  }
}
