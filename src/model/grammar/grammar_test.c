/* Grammars over a small vocabulary: what they take, what they refuse, and that a mask says the same of each token as
 * accepting it does. Random grammars and schemas are tests/grammar_test.py's. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/testing.h"
#include "model/grammar/grammar.h"

enum { BYTES = 256, END = 256, MARK, FIRST_WORD };
static const char *const words[] = {"true",
                                    "null",
                                    "{\"",
                                    "\":",
                                    "\",",
                                    "\"}",
                                    "\": \"",
                                    "ab",
                                    "abc",
                                    "abcd",
                                    "12",
                                    "345",
                                    "\xc3\xa9",
                                    "\xf0\x9f",
                                    "\x99\x82",
                                    "  ",
                                    "\", \"",
                                    "]}",
                                    "[[",
                                    "}}",
                                    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                                    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"",
                                    "\"]"};
enum { WORDS = sizeof words / sizeof *words, TOKENS = FIRST_WORD + WORDS };
static rdna__vocabulary *vocabulary;

static int open_vocabulary(void **state) {
  static char bytes[BYTES];
  rdna__vocabulary_token tokens[TOKENS];
  memset(tokens, 0, sizeof tokens);
  for (int i = 0; i < BYTES; i++) {
    bytes[i] = (char)i;
    tokens[i].piece = (rdna_text){&bytes[i], 1};
  }
  tokens[END] = (rdna__vocabulary_token){{"</s>", 4}, true, true};
  tokens[MARK] = (rdna__vocabulary_token){{"<|mark|>", 8}, true, false};
  for (int i = 0; i < WORDS; i++) tokens[FIRST_WORD + i].piece = (rdna_text){words[i], strlen(words[i])};
  assert_ok(rdna__vocabulary_create(tokens, TOKENS, &vocabulary));
  return 0;
}

static int close_vocabulary(void **state) {
  rdna__vocabulary_release(vocabulary);
  return 0;
}

static rdna__matcher *open_matcher(const char *text, rdna__grammar **out_grammar) {
  rdna__matcher *matcher;
  assert_ok(rdna__grammar_compile(vocabulary, text, strlen(text), out_grammar));
  assert_ok(rdna__matcher_create(*out_grammar, &matcher));
  return matcher;
}

/* Whether the whole of |text| is one of the grammar's. */
static bool takes_bytes(const char *grammar_text, const char *text, size_t size) {
  rdna__grammar *grammar;
  rdna__matcher *m = open_matcher(grammar_text, &grammar);
  bool taken = true;
  for (size_t i = 0; i < size && taken; i++) taken = rdna__matcher_accept(m, (uint8_t)text[i]) == RDNA_OK;
  taken = taken && rdna__matcher_may_end(m);
  rdna__matcher_release(m);
  rdna__grammar_release(grammar);
  return taken;
}

static bool takes(const char *grammar_text, const char *text) { return takes_bytes(grammar_text, text, strlen(text)); }

static void test_notation(void **state) {
  assert_true(takes("root ::= \"a\" | \"bc\"", "bc"));
  assert_false(takes("root ::= \"a\" | \"bc\"", "b"));
  assert_true(takes("# first\nroot ::= x\n  # second\nx ::= ( \"a\" |\n \"b\" )+ # third", "abba"));
  assert_true(takes("root ::=\n \"a\" |\n \"b\"\n\nunused ::= \"c\"", "b"));
  assert_true(takes("root ::= [a-c\\]x-]+", "]a-x"));
  assert_false(takes("root ::= [a-c\\]x-]+", "d"));
  assert_true(takes("root ::= \"\\n\\t\\\"\\\\\\x41\\u00e9\\U0001F642\"", "\n\t\"\\A\xc3\xa9\xf0\x9f\x99\x82"));
  assert_true(takes("root ::= \"\xc3\xa9\" .", "\xc3\xa9\xe2\x82\xac"));
  assert_true(takes("root ::= \"\"", ""));
  assert_true(takes("root ::= (\"a\"?)*", "aa"));
  assert_true(takes("root ::= (\"a\"?){2,7}", ""));
  assert_false(takes("root ::= (\"a\"?){2,7}", "aaaaaaaa"));
  assert_true(takes("root ::= list\nlist ::= \"[\" (list (\",\" list)*)? \"]\"", "[[],[[]]]"));
  assert_false(takes("root ::= list\nlist ::= \"[\" (list (\",\" list)*)? \"]\"", "[[],[[]]"));
}

static void test_counts(void **state) {
  static const struct {
    const char *grammar;
    int least, most;
  } rows[] = {{"root ::= [ab]{3}", 3, 3},          {"root ::= [ab]{2,}", 2, 1000},         {"root ::= [ab]{0,5}", 0, 5},
              {"root ::= [ab]{7,90}", 7, 90},      {"root ::= (\"a\"){40,}", 40, 1000},    {"root ::= \"a\"?", 0, 1},
              {"root ::= ([ab]{2}){3,4}", -1, -1}, {"root ::= (\"a\" \"b\"?){5,6}", 5, 12}};
  char text[200];
  memset(text, 'a', sizeof text);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    for (int n = 0; n < 130; n++) {
      bool wanted = n >= rows[i].least && n <= rows[i].most;
      if (rows[i].least < 0) wanted = n == 6 || n == 8;
      if (i == 7) wanted = n == 5 || n == 6;
      assert_int_equal(takes_bytes(rows[i].grammar, text, (size_t)n), wanted);
    }
  }
}

/* All characters that a class has, and none besides: each is tried with the bytes of UTF-8. */
static void test_characters(void **state) {
  static const struct {
    const char *text;
    uint32_t low, high;
    bool inverted;
  } rows[] = {{"root ::= [\\u00a0-\\u07ff]", 0xa0, 0x7ff, false},
              {"root ::= [\\u0101-\\U00012345]", 0x101, 0x12345, false},
              {"root ::= [^\\u0010-\\uffee]", 0x10, 0xffee, true},
              {"root ::= .", 0, 0x10ffff, false}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    rdna__grammar *grammar;
    rdna__matcher *m = open_matcher(rows[i].text, &grammar);
    for (uint32_t c = 0; c < 0x110000; c += c < 0x3000 ? 1 : 37) {
      uint8_t bytes[4];
      int size = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
      uint32_t rest = c;
      for (int at = size - 1; at > 0; at--, rest >>= 6) bytes[at] = (uint8_t)(0x80 | (rest & 0x3f));
      bytes[0] = (uint8_t)(size == 1 ? c : (size == 2 ? 0xc0 : size == 3 ? 0xe0 : 0xf0) | rest);
      size_t taken = 0;
      while (taken < (size_t)size && rdna__matcher_accept(m, bytes[taken]) == RDNA_OK) taken++;
      bool surrogate = c >= 0xd800 && c < 0xe000, inside = c >= rows[i].low && c <= rows[i].high;
      assert_int_equal(taken == (size_t)size && rdna__matcher_may_end(m), !surrogate && inside != rows[i].inverted);
      assert_ok(rdna__matcher_rollback(m, taken));
    }
    rdna__matcher_release(m);
    rdna__grammar_release(grammar);
  }
}

static void test_refusals(void **state) {
  static const struct {
    const char *text, *sentence;
  } rows[] = {
      {"", "no rule root"},
      {"x ::= \"a\"", "no rule root"},
      {"root ::= x", "no rule x"},
      {"root ::= \"a\"\nroot ::= \"b\"", "line 2: the rule root stands there twice"},
      {"root ::= root \"a\" | \"b\"", "begins with itself"},
      {"root ::= \"x\" a\na ::= b? c\nb ::= \"x\"\nc ::= a \"y\" | \"z\"", "begins with itself"},
      {"root ::= (root \"a\"){0,9}", "begins with itself"},
      {"root ::= \"a\" root", "never ends"},
      {"root ::= []", "never ends"},
      {"root ::= \"a", "no end"},
      {"root ::= [a", "a class has no end"},
      {"root ::= [a\\", "inside an escape"},
      {"root ::= (\"a\"", "no end"},
      {"root ::= \"a\")", "a group ends that has not begun"},
      {"root ::= \"\\q\"", "no escape"},
      {"root ::= \"\\ud800\"", "no character"},
      {"root ::= \"\xff\"", "not UTF-8"},
      {"root ::= [b-a]", "backwards"},
      {"root ::= \"a\"{3,2}", "at least 3 times and at most 2"},
      {"root ::= \"a\"{99999999999}", "above"},
      {"root ::= (\"a\"?){1000}", "may be empty"},
      {"root ::= <|nothing|>", "no token <|nothing|>"},
      {"root ::= <[99999]>", "no token 99999"},
      {"root ::= \"a\"********************", "in more than"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    rdna__grammar *grammar = NULL;
    rdna_status status = rdna__grammar_compile(vocabulary, rows[i].text, strlen(rows[i].text), &grammar);
    assert_int_not_equal(status, RDNA_OK);
    if (!strstr(rdna_last_error(), rows[i].sentence)) fail_msg("%s: %s", rows[i].text, rdna_last_error());
  }
  size_t deep = 20000;
  char *text = malloc(2 * deep + 64);
  strcpy(text, "root ::= ");
  memset(text + 9, '(', deep);
  strcpy(text + 9 + deep, "\"a\"");
  rdna__grammar *grammar;
  assert_int_equal(rdna__grammar_compile(vocabulary, text, strlen(text), &grammar), RDNA_UNSUPPORTED);
  free(text);
}

/* What the mask says is what accepting does, for every token, at every step of random walks. */
static void test_masks(void **state) {
  static const char *const grammars[] = {
      "root ::= value\nvalue ::= object | array | string | \"true\" | \"null\" | [0-9]+\n"
      "object ::= \"{\" (string \": \"? value (\",\" \" \"? string \":\" value)*)? \"}\"\n"
      "array ::= \"[\" (value (\",\" value)*)? \"]\"\nstring ::= \"\\\"\" [^\"\\\\]* \"\\\"\"",
      "root ::= [a-z]{0,50} \"\\\"\" (\"]\" | \"}\")",
      "root ::= \"[\" (\"\\\"\" .{2,45} \"\\\"\" \"]\"?){3,9}",
      "root ::= ([^\"]{1,3} \"\\\"\"){2,40} <|mark|> \"abc\" <[256]>",
      "root ::= (\"a\" | \"ab\" | \"abc\" | \"b\" | \"c\" \"d\"?)* \"12\"",
      "root ::= a{35,44} \"\\\"\"?\na ::= \"a\" | \"aa\"",
  };
  rdna__random random;
  rdna__random_seed(&random, 5);
  for (size_t g = 0; g < sizeof grammars / sizeof *grammars; g++) {
    rdna__grammar *grammar;
    rdna__matcher *m = open_matcher(grammars[g], &grammar), *copy;
    for (int step = 0; step < 300; step++) {
      uint64_t bits[(TOKENS + 63) / 64];
      int32_t allowed[TOKENS];
      size_t count = 0;
      memset(bits, 0xaa, sizeof bits);
      assert_ok(rdna__matcher_mask(m, bits));
      assert_ok(rdna__matcher_copy(m, &copy));
      for (int32_t id = 0; id < TOKENS; id++) {
        bool taken = rdna__matcher_accept(copy, id) == RDNA_OK, in_mask = bits[id / 64] >> (id % 64) & 1;
        if (taken != in_mask)
          fail_msg("grammar %zu, step %d: token %d is taken %d, in the mask %d", g, step, id, taken, in_mask);
        if (taken) assert_ok(rdna__matcher_rollback(copy, 1));
        if (taken && id != END) allowed[count++] = id;
      }
      rdna__matcher_release(copy);
      assert_int_equal(rdna__matcher_may_end(m), bits[END / 64] >> (END % 64) & (g != 3));
      if (count == 0) {
        rdna__matcher_release(m);
        assert_ok(rdna__matcher_create(grammar, &m));
        continue;
      }
      assert_ok(rdna__matcher_accept(m, allowed[rdna__random_below(&random, count)]));
    }
    rdna__matcher_release(m);
    rdna__grammar_release(grammar);
  }
}

static void test_ends(void **state) {
  rdna__grammar *grammar;
  rdna__matcher *m = open_matcher("root ::= \"a\" \"b\"?", &grammar);
  assert_false(rdna__matcher_may_end(m));
  assert_int_equal(rdna__matcher_accept(m, END), RDNA_INVALID_ARGUMENT);
  assert_int_equal(rdna__matcher_accept(m, TOKENS), RDNA_INVALID_ARGUMENT);
  assert_int_equal(rdna__matcher_accept(m, -1), RDNA_INVALID_ARGUMENT);
  assert_ok(rdna__matcher_accept(m, 'a'));
  assert_true(rdna__matcher_may_end(m));
  assert_false(rdna__matcher_must_end(m));
  assert_ok(rdna__matcher_accept(m, 'b'));
  assert_true(rdna__matcher_must_end(m));
  assert_ok(rdna__matcher_accept(m, END));
  assert_int_equal(rdna__matcher_rollback(m, 4), RDNA_INVALID_ARGUMENT);
  assert_ok(rdna__matcher_rollback(m, 3));
  assert_false(rdna__matcher_may_end(m));
  rdna__matcher_release(m);
  rdna__grammar_release(grammar);

  float logits[70];
  uint64_t bits[2] = {1ull << 3, 1ull << 5};
  for (int i = 0; i < 70; i++) logits[i] = (float)i;
  rdna__mask_apply(bits, logits, 70);
  for (int i = 0; i < 70; i++) assert_true(i == 3 || i == 69 ? logits[i] == (float)i : logits[i] == -INFINITY);
}

/* Nesting without end, and ambiguity without end, cost what the limits say: then a sentence, and the matcher stays. */
static void test_limits(void **state) {
  rdna__grammar *grammar;
  rdna__matcher *m = open_matcher("root ::= \"[\" root \"]\" | \"a\"", &grammar);
  int deep = 0;
  while (deep < 100000 && rdna__matcher_accept(m, '[') == RDNA_OK) deep++;
  assert_in_range(deep, 1000, 99999);
  assert_ok(rdna__matcher_accept(m, 'a'));
  for (int i = 0; i < deep; i++) assert_ok(rdna__matcher_accept(m, ']'));
  assert_true(rdna__matcher_may_end(m));
  rdna__matcher_release(m);
  rdna__grammar_release(grammar);

  m = open_matcher("root ::= ((\"a\"{1,100}){1,100}){1,100}", &grammar);
  uint64_t bits[(TOKENS + 63) / 64];
  assert_int_equal(rdna__matcher_mask(m, bits), RDNA_UNSUPPORTED); /* for the token of 40 letters */
  assert_non_null(strstr(rdna_last_error(), "too many ways"));
  for (int i = 0; i < 8; i++) assert_ok(rdna__matcher_accept(m, 'a'));
  assert_true(rdna__matcher_may_end(m));
  rdna__matcher_release(m);
  rdna__grammar_release(grammar);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_notation), cmocka_unit_test(test_counts), cmocka_unit_test(test_characters),
      cmocka_unit_test(test_refusals), cmocka_unit_test(test_masks),  cmocka_unit_test(test_ends),
      cmocka_unit_test(test_limits),
  };
  return cmocka_run_group_tests(tests, open_vocabulary, close_vocabulary);
}
