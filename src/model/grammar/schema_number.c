/* Numbers of a schema, within limits. What is from 37 to 1234 is written "3" [7-9] | [4-9] [0-9] | [1-9] [0-9]{2} | "1"
 * … */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/grammar/schema.h"

enum { MOST_DIGITS = 18 };
static const int64_t greatest = 999999999999999999; /* of so many digits */

/* Digits of the same number from |low| to |high|. */
static void put_digits(schema_compiler *c, const char *low, const char *high) {
  size_t size = strlen(low), same = 0;
  while (same < size && low[same] == high[same]) same++;
  if (same) rdna__schema_put(c, "\"%.*s\" ", (int)same, low);
  if (same == size) return;
  const char *a = low + same, *b = high + same;
  size_t rest = size - same - 1;
  bool low_whole = strspn(a + 1, "0") == rest, high_whole = strspn(b + 1, "9") == rest;
  char from = low_whole ? *a : (char)(*a + 1), to = high_whole ? *b : (char)(*b - 1);
  char nines[MOST_DIGITS + 1] = {0}, zeros[MOST_DIGITS + 1] = {0};
  memset(nines, '9', rest);
  memset(zeros, '0', rest);
  rdna__schema_put(c, "(");
  if (from <= to) rdna__schema_put(c, "[%c-%c] [0-9]{%zu}", from, to, rest);
  if (!low_whole) {
    rdna__schema_put(c, "%s\"%c\" ", from <= to ? " | " : "", *a);
    put_digits(c, a + 1, nines);
  }
  if (!high_whole) {
    rdna__schema_put(c, "%s\"%c\" ", from <= to || !low_whole ? " | " : "", *b);
    put_digits(c, zeros, b + 1);
  }
  rdna__schema_put(c, ")");
}

/* Whole numbers from |low| to |high|, from 0 on. */
static void put_range(schema_compiler *c, int64_t low, int64_t high) {
  rdna__schema_put(c, "(");
  for (int64_t from = low, to; from <= high; from = to + 1) {
    int64_t power = 10;
    while (power <= from) power *= 10;
    to = power - 1 < high ? power - 1 : high;
    char a[24], b[24];
    snprintf(a, sizeof a, "%" PRId64, from);
    snprintf(b, sizeof b, "%" PRId64, to);
    if (from > low) rdna__schema_put(c, " | ");
    put_digits(c, a, b);
  }
  rdna__schema_put(c, ")");
}

typedef struct number_range {
  int64_t low, high;      /* inclusive */
  bool low_out, high_out; /* but these themselves are not in it */
} number_range;

static void read_limit(schema_compiler *c, const json_t *schema, const char *keyword, bool integer, bool low,
                       bool exclusive, number_range *range) {
  const json_t *value = json_object_get(schema, keyword);
  if (!value) return;
  if (!json_is_number(value)) {
    rdna__schema_refuse(c, RDNA_INVALID_ARGUMENT, "%s is to be a number", keyword);
    return;
  }
  double number = json_number_value(value), whole = low ? floor(number) : ceil(number);
  if (number != whole && !integer) {
    rdna__schema_refuse(c, RDNA_UNSUPPORTED, "%s of numbers is enforced for whole limits alone", keyword);
    return;
  }
  if (!(fabs(number) <= 1e18)) number = whole = number < 0 ? -1e18 : 1e18;
  int64_t limit = json_is_integer(value) && fabs(number) < 1e18 ? (int64_t)json_integer_value(value) : (int64_t)whole;
  if (integer && number != whole) exclusive = true; /* from 2.5 on is above 2 */
  if (integer && exclusive) limit += low ? 1 : -1;
  bool out = !integer && exclusive;
  if (limit > greatest || limit < -greatest) {
    if ((limit > 0) != low) return; /* no limit at all */
    rdna__schema_refuse(c, RDNA_UNSUPPORTED, "%s is beyond the numbers of %d digits that are written", keyword,
                        MOST_DIGITS);
    return;
  }
  if (low && (limit > range->low || (limit == range->low && out))) {
    range->low = limit;
    range->low_out = out;
  }
  if (!low && (limit < range->high || (limit == range->high && out))) {
    range->high = limit;
    range->high_out = out;
  }
}

/* Numbers from 0 on with a point: the limits, and what is between. */
static void put_reals(schema_compiler *c, number_range r) {
  const char *zeros = "(\".\" \"0\"{1,18})?", *above = "\".\" [0-9]{0,17} [1-9] \"0\"{0,17}";
  const char *before = "";
  rdna__schema_put(c, "(");
  if (r.low == r.high) {
    rdna__schema_put(c, "\"%" PRId64 "\" %s", r.low, zeros);
  } else {
    rdna__schema_put(c, "\"%" PRId64 "\" ", r.low);
    rdna__schema_put(c, "%s%s", r.low_out ? above : "(\".\" [0-9]{1,18})?", "");
    before = " | ";
    if (r.low + 1 <= r.high - 1) {
      rdna__schema_put(c, "%s", before);
      put_range(c, r.low + 1, r.high - 1);
      rdna__schema_put(c, " (\".\" [0-9]{1,18})?");
    }
    if (!r.high_out) rdna__schema_put(c, "%s\"%" PRId64 "\" %s", before, r.high, zeros);
  }
  rdna__schema_put(c, ")");
}

static void put_magnitudes(schema_compiler *c, number_range r, bool integer) {
  if (integer) {
    put_range(c, r.low, r.high);
  } else {
    put_reals(c, r);
  }
}

void rdna__schema_number(schema_compiler *c, const json_t *schema, bool integer) {
  number_range r = {-greatest, greatest, false, false};
  read_limit(c, schema, "minimum", integer, true, false, &r);
  read_limit(c, schema, "exclusiveMinimum", integer, true, true, &r);
  read_limit(c, schema, "maximum", integer, false, false, &r);
  read_limit(c, schema, "exclusiveMaximum", integer, false, true, &r);
  if (c->status != RDNA_OK) return;
  if (r.low > r.high || (r.low == r.high && (r.low_out || r.high_out))) {
    rdna__schema_refuse(c, RDNA_INVALID_ARGUMENT, "no number is within the limits");
    return;
  }
  if (r.low == -greatest && r.high == greatest) {
    rdna__schema_put(c, "%s", integer ? "integer" : "number");
    return;
  }
  rdna__schema_put(c, "(");
  if (r.low < 0) {
    number_range below = {r.high < 0 ? -r.high : 0, -r.low, r.high <= 0 && r.high_out, r.low_out};
    rdna__schema_put(c, "\"-\" ");
    put_magnitudes(c, below, integer);
  }
  bool above = r.high > 0 || (r.high == 0 && !r.high_out);
  if (r.low < 0 && above) rdna__schema_put(c, " | ");
  if (above) {
    number_range rest = {r.low > 0 ? r.low : 0, r.high, r.low >= 0 && r.low_out, r.high_out};
    put_magnitudes(c, rest, integer);
  }
  rdna__schema_put(c, ")");
}
