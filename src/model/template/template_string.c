/* Methods of texts, and what filters share with them. But for "ß" one character becomes one in another case, where
 * Python makes two of some ligatures. */
#include <string.h>

#include "model/template/template.h"

/* Whether |c| is one of |characters|, or white space if that is NULL. */
static bool is_stripped(uint32_t c, const rdna_text *characters) {
  if (!characters) return rdna__tpl_is_space(c);
  for (size_t at = 0; at < characters->size;)
    if (rdna__tpl_next(*characters, &at) == c) return true;
  return false;
}

rdna_text rdna__tpl_strip(rdna_text text, const rdna_text *characters, int sides) {
  size_t begin = 0, end = text.size;
  if (sides & TPL_LEFT)
    for (size_t next = 0; begin < end; begin = next)
      if (!is_stripped(rdna__tpl_next(text, &next), characters)) break;
  while ((sides & TPL_RIGHT) && end > begin) {
    size_t last = end - 1, next;
    while (((unsigned char)text.data[last] & 0xc0) == 0x80) last--;
    next = last;
    if (!is_stripped(rdna__tpl_next(text, &next), characters)) break;
    end = last;
  }
  return (rdna_text){text.data + begin, end - begin};
}

tpl_value rdna__tpl_replace(tpl_run *run, rdna_text text, rdna_text old, rdna_text with, int64_t most) {
  tpl_buffer buffer = {0};
  size_t at = 0;
  while (most != 0 && rdna__tpl_spend(run, 0)) {
    int64_t found = rdna__tpl_find(text, old, at);
    if (found < 0) break;
    rdna__tpl_append(run, &buffer, text.data + at, (size_t)found - at);
    rdna__tpl_append(run, &buffer, with.data, with.size);
    at = (size_t)found + old.size;
    most--;
    if (old.size) continue;
    if (at == text.size) break; /* nothing stands before each character and at the end */
    size_t next = at;
    rdna__tpl_next(text, &next);
    rdna__tpl_append(run, &buffer, text.data + at, next - at);
    at = next;
  }
  rdna__tpl_append(run, &buffer, text.data + at, text.size - at);
  return tpl_buffer_text(&buffer);
}

tpl_value rdna__tpl_escape(tpl_run *run, tpl_value value) {
  static const char characters[] = "&<>\"'", *const names[] = {"&amp;", "&lt;", "&gt;", "&#34;", "&#39;"};
  tpl_value text = rdna__tpl_to_text(run, value);
  if (text.safe || run->status != RDNA_OK) return text;
  tpl_buffer out = {0};
  for (size_t i = 0; i < text.text.size && run->status == RDNA_OK; i++) {
    const char *found = text.text.data[i] ? strchr(characters, text.text.data[i]) : NULL;
    if (found)
      rdna__tpl_append_text(run, &out, names[found - characters]);
    else
      rdna__tpl_append(run, &out, text.text.data + i, 1);
  }
  text = tpl_buffer_text(&out);
  text.safe = true;
  return text;
}

static bool is_cased(uint32_t c) { return rdna__tpl_upper(c) != c || rdna__tpl_lower(c) != c || c == 0xdf; }

tpl_value rdna__tpl_change_case(tpl_run *run, rdna_text text, const char *how) {
  tpl_buffer buffer = {0};
  bool first = true; /* of the text, or of a word */
  for (size_t at = 0; at < text.size && run->status == RDNA_OK;) {
    uint32_t c = rdna__tpl_next(text, &at);
    char bytes[4];
    bool up = how[0] == 'u' || (how[0] != 'l' && first);
    if (how[0] == 's') up = rdna__tpl_lower(c) == c;
    if (up && c == 0xdf) /* the sharp s has no capital of its own */
      rdna__tpl_append(run, &buffer, how[0] == 'u' || how[0] == 's' ? "SS" : "Ss", 2);
    else
      rdna__tpl_append(run, &buffer, bytes, rdna__tpl_put(up ? rdna__tpl_upper(c) : rdna__tpl_lower(c), bytes));
    first = how[0] == 't'   ? !is_cased(c)
            : how[0] == 'w' ? rdna__tpl_is_space(c) || (c && c < 0x80 && strchr("-({[<", (int)c))
                            : false;
  }
  return tpl_buffer_text(&buffer);
}

bool rdna__tpl_has_case(rdna_text text, bool upper) {
  bool any = false;
  for (size_t at = 0; at < text.size;) {
    uint32_t c = rdna__tpl_next(text, &at);
    bool is_upper = rdna__tpl_lower(c) != c, is_lower = rdna__tpl_upper(c) != c || c == 0xdf;
    if (upper ? is_lower : is_upper) return false;
    any |= upper ? is_upper : is_lower;
  }
  return any;
}

tpl_list *rdna__tpl_lines(tpl_run *run, rdna_text text, bool keep_ends) {
  tpl_list *lines = rdna__tpl_new_list(run, 0);
  size_t begin = 0;
  for (size_t at = 0; at < text.size && run->status == RDNA_OK;) {
    size_t end = at;
    uint32_t c = rdna__tpl_next(text, &at);
    bool ends = (c >= 0x0a && c <= 0x0d) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 || c == 0x2029;
    if (!ends) continue;
    if (c == '\r' && at < text.size && text.data[at] == '\n') at++;
    rdna__tpl_list_add(run, lines, tpl_text(text.data + begin, (keep_ends ? at : end) - begin));
    begin = at;
  }
  if (begin < text.size) rdna__tpl_list_add(run, lines, tpl_text(text.data + begin, text.size - begin));
  return lines;
}

tpl_value rdna__tpl_padded(tpl_run *run, rdna_text text, int64_t width, rdna_text fill, int sides) {
  int64_t missing = width - rdna__tpl_count(text);
  if (missing <= 0) return tpl_text(text.data, text.size);
  int64_t left = sides == TPL_LEFT ? missing : sides == TPL_RIGHT ? 0 : missing / 2 + (missing & width & 1);
  tpl_buffer buffer = {0};
  for (int64_t i = 0; i <= missing && run->status == RDNA_OK; i++) {
    if (i == left) rdna__tpl_append(run, &buffer, text.data, text.size);
    if (i < missing) rdna__tpl_append(run, &buffer, fill.data, fill.size);
  }
  return tpl_buffer_text(&buffer);
}

/* ---- methods ---- */

#define METHOD(name) static tpl_value name(tpl_run *run, tpl_value self, const tpl_call *call)

/* A text argument; fails with the run otherwise. None and absence are "" where |optional|. */
static rdna_text text_of(tpl_run *run, tpl_value value, const char *what, bool optional) {
  if (value.kind == TPL_STRING) return value.text;
  if (!optional || (value.kind != TPL_NONE && value.kind != TPL_ABSENT))
    rdna__tpl_fail(run, TPL_INVALID, "%s takes a text, not a value of type %s", what, rdna__tpl_type_name(value));
  return (rdna_text){"", 0};
}

static tpl_value strip(tpl_run *run, tpl_value self, const tpl_call *call, int sides) {
  rdna_text characters = text_of(run, call->at[0], "strip", true);
  rdna_text text = rdna__tpl_strip(self.text, call->at[0].kind == TPL_STRING ? &characters : NULL, sides);
  return tpl_text(text.data, text.size);
}
METHOD(both_strip) { return strip(run, self, call, TPL_LEFT | TPL_RIGHT); }
METHOD(left_strip) { return strip(run, self, call, TPL_LEFT); }
METHOD(right_strip) { return strip(run, self, call, TPL_RIGHT); }

METHOD(to_upper) { return rdna__tpl_change_case(run, self.text, "upper"); }
METHOD(to_lower) { return rdna__tpl_change_case(run, self.text, "lower"); }
METHOD(to_title) { return rdna__tpl_change_case(run, self.text, "title"); }
METHOD(capitalize) { return rdna__tpl_change_case(run, self.text, "capitalize"); }
METHOD(swapcase) { return rdna__tpl_change_case(run, self.text, "swap"); }

METHOD(replace) {
  int64_t most = -1;
  rdna_text old = text_of(run, call->at[0], "replace", false), with = text_of(run, call->at[1], "replace", false);
  if (call->at[2].kind != TPL_ABSENT) rdna__tpl_get_int(run, call->at[2], "replace", &most);
  return run->status == RDNA_OK ? rdna__tpl_replace(run, self.text, old, with, most) : self;
}

static void add_part(tpl_run *run, tpl_list *parts, rdna_text text, size_t begin, size_t end) {
  rdna__tpl_list_add(run, parts, tpl_text(text.data + begin, end - begin));
}

/* Words between white space. */
static void split_words(tpl_run *run, tpl_list *parts, rdna_text text, int64_t most) {
  for (;;) {
    text = rdna__tpl_strip(text, NULL, TPL_LEFT);
    size_t end = 0;
    for (size_t next = 0; end < text.size; end = next)
      if (rdna__tpl_is_space(rdna__tpl_next(text, &next))) break;
    if (text.size == 0 || run->status != RDNA_OK) return;
    if (most-- == 0) end = text.size;
    add_part(run, parts, text, 0, end);
    text = (rdna_text){text.data + end, text.size - end};
  }
}

/* The same from the right: parts come last first. */
static void split_words_right(tpl_run *run, tpl_list *parts, rdna_text text, int64_t most) {
  for (;;) {
    text = rdna__tpl_strip(text, NULL, TPL_RIGHT);
    size_t begin = 0;
    for (size_t at = 0; at < text.size;)
      if (rdna__tpl_is_space(rdna__tpl_next(text, &at))) begin = at;
    if (text.size == 0 || !rdna__tpl_spend(run, text.size / 64)) return;
    if (most-- == 0) begin = 0;
    add_part(run, parts, text, begin, text.size);
    text.size = begin;
  }
}

static void split_at(tpl_run *run, tpl_list *parts, rdna_text text, rdna_text separator, int64_t most) {
  size_t begin = 0;
  for (int64_t at; most-- != 0 && run->status == RDNA_OK && (at = rdna__tpl_find(text, separator, begin)) >= 0;) {
    add_part(run, parts, text, begin, (size_t)at);
    begin = (size_t)at + separator.size;
  }
  add_part(run, parts, text, begin, text.size);
}

static void split_at_right(tpl_run *run, tpl_list *parts, rdna_text text, rdna_text separator, int64_t most) {
  for (size_t at = text.size; most != 0 && at >= separator.size && run->status == RDNA_OK;) {
    if (memcmp(text.data + at - separator.size, separator.data, separator.size) != 0) {
      at--;
      continue;
    }
    add_part(run, parts, text, at, text.size);
    text.size = at -= separator.size;
    most--;
  }
  add_part(run, parts, text, 0, text.size);
}

static void turn_around(tpl_list *list) {
  for (size_t i = 0; i + 1 < list->count - i; i++) {
    tpl_value kept = list->items[i];
    list->items[i] = list->items[list->count - 1 - i];
    list->items[list->count - 1 - i] = kept;
  }
}

static tpl_value split(tpl_run *run, tpl_value self, const tpl_call *call, bool right) {
  rdna_text separator = text_of(run, call->at[0], "split", true);
  int64_t most = -1;
  if (call->at[1].kind != TPL_ABSENT) rdna__tpl_get_int(run, call->at[1], "split", &most);
  tpl_list *parts = rdna__tpl_new_list(run, 0);
  if (call->at[0].kind == TPL_STRING && separator.size == 0)
    return rdna__tpl_fail(run, TPL_INVALID, "split at an empty text");
  if (run->status != RDNA_OK) return self;
  if (call->at[0].kind == TPL_STRING)
    (right ? split_at_right : split_at)(run, parts, self.text, separator, most);
  else
    (right ? split_words_right : split_words)(run, parts, self.text, most);
  if (right && parts->count) turn_around(parts);
  return rdna__tpl_list_value(TPL_LIST, parts);
}
METHOD(split_left) { return split(run, self, call, false); }
METHOD(split_right) { return split(run, self, call, true); }
METHOD(splitlines) {
  return rdna__tpl_list_value(TPL_LIST, rdna__tpl_lines(run, self.text, rdna__tpl_truth(call->at[0])));
}

/* Text before, the separator, text behind. */
static tpl_value partition(tpl_run *run, tpl_value self, const tpl_call *call, bool right) {
  rdna_text separator = text_of(run, call->at[0], "partition", false), text = self.text;
  tpl_list *parts = rdna__tpl_new_list(run, 3);
  if (run->status == RDNA_OK && separator.size == 0) rdna__tpl_fail(run, TPL_INVALID, "partition at an empty text");
  if (run->status != RDNA_OK) return self;
  int64_t at = rdna__tpl_find(text, separator, 0);
  for (int64_t next = at; right && next >= 0; next = rdna__tpl_find(text, separator, (size_t)next + 1)) at = next;
  size_t begin = at >= 0 ? (size_t)at : right ? 0 : text.size, end = at >= 0 ? begin + separator.size : begin;
  add_part(run, parts, text, 0, begin);
  add_part(run, parts, text, begin, end);
  add_part(run, parts, text, end, text.size);
  return rdna__tpl_list_value(TPL_TUPLE, parts);
}
METHOD(partition_left) { return partition(run, self, call, false); }
METHOD(partition_right) { return partition(run, self, call, true); }

/* The part of self that the arguments at |first| leave, as in find(x, begin, end); how many characters are before it.
 */
static rdna_text window(tpl_run *run, tpl_value self, const tpl_call *call, int first, int64_t *out_before) {
  *out_before = 0;
  tpl_value bounds[3] = {tpl_or(call->at[first], tpl_none()), tpl_or(call->at[first + 1], tpl_none()), tpl_none()};
  if (bounds[0].kind == TPL_NONE && bounds[1].kind == TPL_NONE) return self.text;
  tpl_value part = rdna__tpl_slice(run, self, bounds);
  if (run->status != RDNA_OK || part.kind != TPL_STRING) return self.text;
  *out_before = rdna__tpl_count((rdna_text){self.text.data, (size_t)(part.text.data - self.text.data)});
  return part.text;
}

/* Whether self begins, or ends, with a text or one of a tuple of them. */
static tpl_value has_end(tpl_run *run, tpl_value self, const tpl_call *call, bool right) {
  int64_t before;
  rdna_text text = window(run, self, call, 1, &before);
  bool tuple = call->at[0].kind == TPL_TUPLE;
  for (size_t i = 0; i < (tuple ? call->at[0].list->count : 1); i++) {
    rdna_text end =
        text_of(run, tuple ? call->at[0].list->items[i] : call->at[0], right ? "endswith" : "startswith", false);
    if (run->status != RDNA_OK) return self;
    if (end.size <= text.size && memcmp(text.data + (right ? text.size - end.size : 0), end.data, end.size) == 0)
      return tpl_bool(true);
  }
  return tpl_bool(false);
}
METHOD(startswith) { return has_end(run, self, call, false); }
METHOD(endswith) { return has_end(run, self, call, true); }

static tpl_value find(tpl_run *run, tpl_value self, const tpl_call *call, bool right, bool must) {
  int64_t before, at;
  rdna_text part = text_of(run, call->at[0], "find", false), text = window(run, self, call, 1, &before);
  if (run->status != RDNA_OK) return self;
  at = rdna__tpl_find(text, part, 0);
  for (int64_t next = at; right && next >= 0; next = rdna__tpl_find(text, part, (size_t)next + 1)) at = next;
  if (at < 0 && must) return rdna__tpl_fail(run, TPL_INVALID, "index: the text is not there");
  return tpl_int(at < 0 ? -1 : before + rdna__tpl_count((rdna_text){text.data, (size_t)at}));
}
METHOD(find_left) { return find(run, self, call, false, false); }
METHOD(find_right) { return find(run, self, call, true, false); }
METHOD(index_left) { return find(run, self, call, false, true); }
METHOD(index_right) { return find(run, self, call, true, true); }

METHOD(count) {
  int64_t before, found = 0, at = 0;
  rdna_text part = text_of(run, call->at[0], "count", false), text = window(run, self, call, 1, &before);
  if (part.size == 0) return tpl_int(rdna__tpl_count(text) + 1);
  for (; (at = rdna__tpl_find(text, part, (size_t)at)) >= 0; at += (int64_t)part.size) found++;
  return tpl_int(found);
}

METHOD(join) {
  tpl_buffer buffer = {0};
  const tpl_list *items = rdna__tpl_items(run, call->at[0]);
  for (size_t i = 0; i < items->count && run->status == RDNA_OK; i++) {
    if (i) rdna__tpl_append(run, &buffer, self.text.data, self.text.size);
    rdna_text item = text_of(run, items->items[i], "join", false);
    rdna__tpl_append(run, &buffer, item.data, item.size);
  }
  return tpl_buffer_text(&buffer);
}

/* Whether there are characters, and each is of a kind. */
static tpl_value all(tpl_value self, bool (*is)(uint32_t)) {
  for (size_t at = 0; at < self.text.size;)
    if (!is(rdna__tpl_next(self.text, &at))) return tpl_bool(false);
  return tpl_bool(self.text.size > 0);
}
static bool is_digit(uint32_t c) { return c >= '0' && c <= '9'; }
static bool is_alnum(uint32_t c) { return c != '_' && rdna__tpl_is_word(c); }
METHOD(has_only_digit) { return all(self, is_digit); }
METHOD(has_only_alpha) { return all(self, rdna__tpl_is_alpha); }
METHOD(has_only_alnum) { return all(self, is_alnum); }
METHOD(has_only_space) { return all(self, rdna__tpl_is_space); }
METHOD(has_only_upper) { return tpl_bool(rdna__tpl_has_case(self.text, true)); }
METHOD(has_only_lower) { return tpl_bool(rdna__tpl_has_case(self.text, false)); }

METHOD(removeprefix) {
  rdna_text end = text_of(run, call->at[0], "removeprefix", false), text = self.text;
  bool there = end.size <= text.size && memcmp(text.data, end.data, end.size) == 0;
  return there ? tpl_text(text.data + end.size, text.size - end.size) : self;
}
METHOD(removesuffix) {
  rdna_text end = text_of(run, call->at[0], "removesuffix", false), text = self.text;
  bool there = end.size <= text.size && memcmp(text.data + text.size - end.size, end.data, end.size) == 0;
  return there ? tpl_text(text.data, text.size - end.size) : self;
}

static tpl_value pad(tpl_run *run, tpl_value self, const tpl_call *call, int sides) {
  int64_t width = 0;
  rdna_text fill = text_of(run, tpl_or(call->at[1], tpl_text(" ", 1)), "a text's fill", false);
  rdna__tpl_get_int(run, call->at[0], "a text's width", &width);
  if (run->status == RDNA_OK && rdna__tpl_count(fill) != 1)
    rdna__tpl_fail(run, TPL_INVALID, "a text's fill is one character");
  return run->status == RDNA_OK ? rdna__tpl_padded(run, self.text, width, fill, sides) : self;
}
METHOD(ljust) { return pad(run, self, call, TPL_RIGHT); }
METHOD(rjust) { return pad(run, self, call, TPL_LEFT); }
METHOD(center) { return pad(run, self, call, TPL_LEFT | TPL_RIGHT); }

METHOD(zfill) {
  int64_t width;
  if (!rdna__tpl_get_int(run, call->at[0], "zfill", &width)) return self;
  bool sign = self.text.size && strchr("+-", self.text.data[0]) && self.text.data[0];
  rdna_text digits = {self.text.data + sign, self.text.size - sign};
  tpl_value filled = rdna__tpl_padded(run, digits, width - sign, (rdna_text){"0", 1}, TPL_LEFT);
  tpl_buffer buffer = {0};
  rdna__tpl_append(run, &buffer, self.text.data, sign);
  rdna__tpl_append(run, &buffer, filled.text.data, filled.text.size);
  return tpl_buffer_text(&buffer);
}

METHOD(format) { return rdna__tpl_brace_format(run, self.text, call); }

const tpl_function rdna__tpl_text_methods[] = {
    {"strip", "chars?", both_strip},
    {"lstrip", "chars?", left_strip},
    {"rstrip", "chars?", right_strip},
    {"upper", "", to_upper},
    {"lower", "", to_lower},
    {"casefold", "", to_lower},
    {"title", "", to_title},
    {"capitalize", "", capitalize},
    {"swapcase", "", swapcase},
    {"replace", "old new count?", replace},
    {"split", "sep? maxsplit?", split_left},
    {"rsplit", "sep? maxsplit?", split_right},
    {"splitlines", "keepends?", splitlines},
    {"partition", "sep", partition_left},
    {"rpartition", "sep", partition_right},
    {"startswith", "prefix start? end?", startswith},
    {"endswith", "suffix start? end?", endswith},
    {"find", "sub start? end?", find_left},
    {"rfind", "sub start? end?", find_right},
    {"index", "sub start? end?", index_left},
    {"rindex", "sub start? end?", index_right},
    {"count", "sub start? end?", count},
    {"join", "iterable", join},
    {"isdigit", "", has_only_digit},
    {"isdecimal", "", has_only_digit},
    {"isnumeric", "", has_only_digit},
    {"isalpha", "", has_only_alpha},
    {"isalnum", "", has_only_alnum},
    {"isspace", "", has_only_space},
    {"isupper", "", has_only_upper},
    {"islower", "", has_only_lower},
    {"removeprefix", "prefix", removeprefix},
    {"removesuffix", "suffix", removesuffix},
    {"ljust", "width fillchar?", ljust},
    {"rjust", "width fillchar?", rjust},
    {"center", "width fillchar?", center},
    {"zfill", "width", zfill},
    {"format", "* **", format},
};
const size_t rdna__tpl_text_method_count = sizeof rdna__tpl_text_methods / sizeof *rdna__tpl_text_methods;
