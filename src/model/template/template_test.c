/* The interface: what is refused, with which sentence and line; limits; threads. What templates render is compared with
 * jinja2 in tests/template_test.py. */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/testing.h"
#include "model/template/template.h"

static rdna_status compile(const char *text, rdna_template **out) {
  return rdna_template_compile(text, strlen(text), out);
}

static rdna_status render(const char *text, const char *variables, char **out_text) {
  rdna_template *compiled;
  size_t size;
  rdna_status status = compile(text, &compiled);
  if (status != RDNA_OK) return status;
  status = rdna_template_render(compiled, variables, strlen(variables), out_text, &size);
  rdna_template_release(compiled);
  if (status == RDNA_OK) assert_int_equal(size, strlen(*out_text));
  return status;
}

static void renders(const char *text, const char *variables, const char *want) {
  char *got;
  assert_ok(render(text, variables, &got));
  assert_string_equal(got, want);
  free(got);
}

static void test_renders(void **state) {
  renders("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}",
          "{\"messages\": [{\"role\": \"user\", \"content\": \"Grüße\"}, {\"role\": \"a\", \"content\": 5}]}",
          "<user>Grüße<a>5");
  renders("", "{}", "");
  /* a macro keeps the item that it was defined with */
  renders(
      "{% set ns = namespace(f=[]) %}{% for x in 'abc' %}{% macro f() %}{{ x }}{% endmacro %}{% set ns.f = ns.f + [f] "
      "%}"
      "{% endfor %}{% for f in ns.f %}{{ f() }}{% endfor %}",
      "{}", "abc");
}

static void test_keeps_zeros(void **state) {
  rdna_template *compiled;
  char *text;
  size_t size;
  assert_ok(rdna_template_compile("{{ x }}\0!", 9, &compiled));
  assert_ok(rdna_template_render(compiled, "{\"x\": \"a\\u0000b\"}", 17, &text, &size));
  assert_int_equal(size, 5);
  assert_memory_equal(text, "a\0b\0!", 6);
  free(text);
  rdna_template_release(compiled);
  rdna_template_release(NULL);
}

static void test_refuses_texts(void **state) {
  static const struct {
    const char *text;
    rdna_status status;
    const char *line, *sentence;
  } bad[] = {
      {"a\nb {% if x %}\n c", RDNA_BAD_DATA, "line 3", "elif else endif is missing"},
      {"{{ 1 + }}", RDNA_BAD_DATA, "line 1", "an expression is missing; there is '}}'"},
      {"\n\n{{ 'a }}", RDNA_BAD_DATA, "line 3", "has no end"},
      {"{{ (1] }}", RDNA_BAD_DATA, "line 1", "']' stands where ')' is missing"},
      {"{# x", RDNA_BAD_DATA, "line 1", "no #}"},
      {"{% raw %}x", RDNA_BAD_DATA, "line 1", "no endraw"},
      {"{{ x", RDNA_BAD_DATA, "line 1", "no }}"},
      {"{% frobnicate %}", RDNA_BAD_DATA, "line 1", "no statement begins here; there is 'frobnicate'"},
      {"{% include 'x' %}", RDNA_UNSUPPORTED, "line 1", "'include' is not offered"},
      {"\n{% import 'x' as y %}", RDNA_UNSUPPORTED, "line 2", "'import' is not offered"},
      {"{% for x in y recursive %}{% endfor %}", RDNA_BAD_DATA, "line 1", "recursive loops are not offered"},
      {"{{ 99999999999999999999 }}", RDNA_BAD_DATA, "line 1", "64 bits"},
      {"{{ \"\\ud800\" }}", RDNA_BAD_DATA, "line 1", "U+D800 is no character"},
      {"{% break %}", RDNA_BAD_DATA, "line 1", "belong in a loop"},
      {"{% set 1 = 2 %}", RDNA_BAD_DATA, "line 1", "only names can be set"},
      {"\xff", RDNA_BAD_DATA, "not UTF-8", ""},
      {"\xed\xa0\x80", RDNA_BAD_DATA, "not UTF-8", ""},
      {"\xc0\x80", RDNA_BAD_DATA, "not UTF-8", ""},
  };
  rdna_template *compiled;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_refused(compile(bad[i].text, &compiled), bad[i].status, bad[i].line, bad[i].sentence);
  assert_refused(rdna_template_compile(NULL, 1, &compiled), RDNA_INVALID_ARGUMENT, "NULL");
  assert_refused(rdna_template_compile("", 0, NULL), RDNA_INVALID_ARGUMENT, "NULL");
}

static void test_refuses_variables(void **state) {
  static const struct {
    const char *text, *variables;
    rdna_status status;
    const char *sentence, *line;
  } bad[] = {
      {"", "[]", RDNA_BAD_DATA, "not a JSON object", ""},
      {"", "{", RDNA_BAD_DATA, "not JSON", "line 1"},
      {"\n{{ raise_exception('Roles must ' ~ x) }}", "{\"x\": \"alternate\"}", RDNA_INVALID_ARGUMENT,
       "refuses these messages: Roles must alternate", "line 2"},
      {"{{ messages[0].role }}", "{}", RDNA_INVALID_ARGUMENT, "'messages' is undefined", "line 1"},
      {"{{ x.y.z }}", "{\"x\": {}}", RDNA_INVALID_ARGUMENT, "'y' is undefined and has no attribute 'z'", "line 1"},
      {"\n\n{{ x + 1 }}", "{\"x\": \"a\"}", RDNA_INVALID_ARGUMENT, "types str and int", "line 3"},
      {"{{ x | frobnicate }}", "{}", RDNA_UNSUPPORTED, "no filter 'frobnicate'", "line 1"},
      {"{{ x is frobnicate }}", "{}", RDNA_UNSUPPORTED, "no test 'frobnicate'", "line 1"},
      {"{{ [1].append(2) }}", "{}", RDNA_INVALID_ARGUMENT, "templates cannot change lists", "line 1"},
      {"{{ 9223372036854775807 + 1 }}", "{}", RDNA_UNSUPPORTED, "64 bits", "line 1"},
      {"{{ x | tojson }}", "{}", RDNA_INVALID_ARGUMENT, "'x' is of type undefined", "line 1"},
      {"{% macro f(a) %}{% endmacro %}{{ f(b=1) }}", "{}", RDNA_INVALID_ARGUMENT, "macro f has no argument 'b'",
       "line 1"},
      {"{{ 'a'.replace('b') }}", "{}", RDNA_INVALID_ARGUMENT, "replace lacks its argument 'new'", "line 1"},
  };
  char *text;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_refused(render(bad[i].text, bad[i].variables, &text), bad[i].status, bad[i].sentence, bad[i].line);
}

/* Whatever a template does, it ends, with a sentence. */
static void test_limits(void **state) {
  char *text;
  assert_refused(
      render("{% set r = range(99999) %}{% for a in r %}{% for b in r %}{% endfor %}{% endfor %}", "{}", &text),
      RDNA_UNSUPPORTED, "still runs after");
  assert_refused(render("{% set r = range(99999) %}{% for a in r %}{{ r | sum }}{% endfor %}", "{}", &text),
                 RDNA_UNSUPPORTED, "still runs after");
  assert_refused(render("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "{}", &text), RDNA_UNSUPPORTED, "deep");
  assert_refused(render("{{ 'abcdefgh' * 999999999999 }}", "{}", &text), RDNA_UNSUPPORTED, "");
  assert_refused(render("{{ range(100001) }}", "{}", &text), RDNA_UNSUPPORTED, "a range of 100001 numbers");
  assert_refused(render("{{ '%999999999d' % 1 }}{{ 'x'.rjust(9999999999999) }}", "{}", &text), RDNA_UNSUPPORTED, "");
  const char *doubling =
      "{% set ns = namespace(x='0123456789') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}";
  assert_refused(render(doubling, "{}", &text), RDNA_UNSUPPORTED, "memory");
  const char *nested =
      "{% set ns = namespace(x=[]) %}{% for i in range(5000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}";
  assert_refused(render(nested, "{}", &text), RDNA_UNSUPPORTED, "deep");
}

/* |count| times |open|, then |close|. */
static char *repeated(const char *open, size_t count, const char *close) {
  size_t size = strlen(open);
  char *text = malloc(count * size + strlen(close) + 1);
  assert_non_null(text);
  for (size_t i = 0; i < count; i++) memcpy(text + i * size, open, size);
  strcpy(text + count * size, close);
  return text;
}

static void test_nesting(void **state) {
  static const char *const opens[] = {"{{ (",
                                      "{{ [",
                                      "{{ not ",
                                      "{{ -",
                                      "{{ {1: ",
                                      "{% if x %}",
                                      "{% for x in y %}",
                                      "{% set a %}",
                                      "{% if x %}{% elif y %}",
                                      "{{ x if x else "};
  for (size_t i = 0; i < sizeof opens / sizeof *opens; i++) {
    rdna_template *compiled;
    char *text = repeated(opens[i] + (i < 5 || i == 9 ? 3 : 0), 5000, "");
    char *whole = malloc(strlen(text) + 8);
    assert_non_null(whole);
    sprintf(whole, "%s%s", i < 5 || i == 9 ? "{{ " : "", text);
    assert_int_not_equal(rdna_template_compile(whole, strlen(whole), &compiled), RDNA_OK);
    free(whole);
    free(text);
  }
  char *sum = repeated("{{ 1", 1, ""), *terms = repeated(" + 1", 5000, " }}"), *text;
  char *whole = malloc(strlen(sum) + strlen(terms) + 1);
  assert_non_null(whole);
  sprintf(whole, "%s%s", sum, terms);
  assert_refused(render(whole, "{}", &text), RDNA_UNSUPPORTED, "deep");
  free(whole);
  free(terms);
  free(sum);
}

/* Commas in numbers, and other letters' capitals, are the locale's business and not a template's. */
static void test_locale(void **state) {
  char folder[] = "/tmp/rdna_template_test_XXXXXX", command[64];
  assert_non_null(mkdtemp(folder));
#ifdef __SANITIZE_ADDRESS__ /* the C library's newlocale loses what it makes of LOCPATH */
  renders("{{ 'é' | upper }}", "{}", "É");
#endif
  use_commas_or_skip(folder);
  renders(
      "{{ 1.5 + 0.25 }} {{ 2.675 | round(2) }} {{ '%.2f' % 1.5 }} {{ '1.5' | float }} {{ 'é' | upper }} {{ [1e-7] | "
      "tojson }}",
      "{}", "1.75 2.67 1.50 1.5 É [1e-07]");
  use_locale("C");
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
}

static void *render_often(void *data) {
  for (int i = 0; i < 200; i++) {
    char *text;
    size_t size;
    if (rdna_template_render(data, "{\"x\": [\"é\", 1.5]}", 18, &text, &size) != RDNA_OK) return "failed";
    bool same = strcmp(text, "É 1.5 [1, 2] ['é', 1.5]") == 0;
    free(text);
    if (!same) return "differs";
  }
  return NULL;
}

static void test_threads(void **state) {
  enum { THREADS = 4 };
  pthread_t threads[THREADS];
  rdna_template *compiled;
  assert_ok(compile("{% set a = [1] %}{{ x[0] | upper }} {{ x[1] }} {{ a + [2] }} {{ x }}", &compiled));
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, render_often, compiled), 0);
  for (int i = 0; i < THREADS; i++) {
    void *result;
    pthread_join(threads[i], &result);
    assert_null(result);
  }
  rdna_template_release(compiled);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_renders),       cmocka_unit_test(test_keeps_zeros),
      cmocka_unit_test(test_refuses_texts), cmocka_unit_test(test_refuses_variables),
      cmocka_unit_test(test_limits),        cmocka_unit_test(test_nesting),
      cmocka_unit_test(test_locale),        cmocka_unit_test(test_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
