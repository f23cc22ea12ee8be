/* Real vocabularies against the ids that another engine's tests expect: llama.cpp's models/ggml-vocab-*.gguf with their
 * .inp and .out, in the folder vocab of ../shared/data beside the repository or of RDNA_SHARED_DATA. They are no part
 * of the repository: exit status 77 where there is no such folder; once there is one, a file that it lacks is a
 * failure. (tokenizer_test has vocabularies of its own.) */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/testing.h"
#include "rdna/model.h"

static char folder[4096];

static char *read_file(const char *name, const char *suffix, size_t *out_size) {
  char path[4300];
  snprintf(path, sizeof path, "%s/vocab/ggml-vocab-%s.gguf%s", folder, name, suffix);
  FILE *from = fopen(path, "rb");
  if (!from) return NULL;
  assert_int_equal(fseek(from, 0, SEEK_END), 0);
  long size = ftell(from);
  assert_true(size >= 0);
  rewind(from);
  char *data = malloc((size_t)size + 1);
  assert_non_null(data);
  assert_int_equal(fread(data, 1, (size_t)size, from), size);
  data[size] = 0;
  fclose(from);
  *out_size = (size_t)size;
  return data;
}

static rdna_gguf *open_vocabulary(const char *name, rdna_tokenizer **out_tokenizer) {
  char path[4300];
  snprintf(path, sizeof path, "%s/vocab/ggml-vocab-%s.gguf", folder, name);
  rdna_gguf *file = NULL;
  if (rdna_gguf_open(path, &file) != RDNA_OK || rdna_tokenizer_open(file, out_tokenizer) != RDNA_OK)
    fail_msg("%s", rdna_last_error());
  return file;
}

/* The text that |tokens| decode to, one at a time. Free with free(). */
static char *decode(const rdna_tokenizer *tokenizer, const rdna_tokens *tokens, size_t *out_size) {
  rdna_detokenizer *d = NULL;
  assert_ok(rdna_detokenizer_create(tokenizer, true, &d));
  char *text = NULL;
  size_t size = 0, capacity = 0;
  for (size_t i = 0; i <= tokens->count; i++) {
    rdna_text part;
    if (i < tokens->count) {
      assert_ok(rdna_detokenizer_push(d, tokens->ids[i], &part));
    } else {
      rdna_detokenizer_finish(d, &part);
    }
    if (size + part.size + 1 > capacity) {
      capacity = (size + part.size + 1) * 2;
      text = realloc(text, capacity);
      assert_non_null(text);
    }
    memcpy(text + size, part.data, part.size);
    size += part.size;
  }
  rdna_detokenizer_release(d);
  *out_size = size;
  return text;
}

/* Encodes |text|, compares with the ids on |line|, and where the vocabulary is |lossless| decodes back. False, with a
 * message, when they differ. */
static bool check_case(const rdna_tokenizer *tokenizer, const char *text, size_t size, const char *line,
                       bool lossless) {
  rdna_tokens tokens = {0};
  assert_ok(rdna_tokenizer_encode(tokenizer, text, size, 0, &tokens));
  bool same = true;
  size_t at = 0;
  for (;; at++) {
    char *end;
    long wanted = strtol(line, &end, 10);
    if (end == line) break;
    line = end;
    if (at >= tokens.count || tokens.ids[at] != wanted) same = false;
  }
  if (at != tokens.count) same = false;
  if (!same) print_error("differs: '%.*s' gave %zu tokens\n", (int)(size < 60 ? size : 60), text, tokens.count);
  size_t decoded_size;
  char *decoded = decode(tokenizer, &tokens, &decoded_size);
  if (lossless) assert_int_equal(decoded_size, size);
  if (lossless && size) assert_memory_equal(decoded, text, size);
  free(decoded);
  rdna_tokens_deinit(&tokens);
  return same;
}

static void check_vocabulary(const char *name, bool lossless) {
  rdna_tokenizer *tokenizer = NULL;
  rdna_gguf *file = open_vocabulary(name, &tokenizer);
  size_t input_size, output_size;
  char *input = read_file(name, ".inp", &input_size), *output = read_file(name, ".out", &output_size);
  assert_non_null(input);
  assert_non_null(output);
  static const char separator[] = "\n__ggml_vocab_test__\n";
  char *text = input, *line = output;
  int cases = 0, wrong = 0;
  for (;;) {
    char *end = strstr(text, separator), *line_end = strchr(line, '\n');
    if (!end) break;
    assert_non_null(line_end);
    *line_end = 0;
    wrong += !check_case(tokenizer, text, (size_t)(end - text), line, lossless);
    cases++;
    text = end + sizeof separator - 1;
    line = line_end + 1;
  }
  print_message("%s: %d of %d cases\n", name, cases - wrong, cases);
  assert_true(cases > 40);
  assert_int_equal(wrong, 0);
  free(input);
  free(output);
  rdna_tokenizer_close(tokenizer);
  rdna_gguf_close(file);
}

static void test_llama_spm(void **state) { check_vocabulary("llama-spm", true); }
static void test_phi3(void **state) { check_vocabulary("phi-3", true); }
static void test_gpt2(void **state) { check_vocabulary("gpt-2", true); }
static void test_deepseek_coder(void **state) { check_vocabulary("deepseek-coder", true); }
static void test_bert(void **state) { check_vocabulary("bert-bge", false); }

static void test_special_tokens(void **state) {
  rdna_tokenizer *tokenizer = NULL;
  rdna_gguf *file = open_vocabulary("phi-3", &tokenizer);
  int32_t user = 0, end = 0;
  assert_ok(rdna_tokenizer_find(tokenizer, "<|user|>", 8, &user));
  assert_ok(rdna_tokenizer_find(tokenizer, "<|end|>", 7, &end));
  assert_true(rdna_tokenizer_is_end(tokenizer, end));
  assert_false(rdna_tokenizer_is_end(tokenizer, user));
  static const char text[] = "<|user|>\nHello<|end|>\n";
  rdna_tokens tokens = {0};
  unsigned flags = RDNA_ENCODE_PARSE_SPECIAL | RDNA_ENCODE_ADD_SPECIAL;
  assert_ok(rdna_tokenizer_encode(tokenizer, text, strlen(text), flags, &tokens));
  /* BOS, <|user|> with the newline behind it, "▁Hello" as in the vocabulary's own test, <|end|> */
  const int32_t wanted[] = {1, user, 15043, end};
  assert_int_equal(tokens.count, 4);
  assert_memory_equal(tokens.ids, wanted, sizeof wanted);
  tokens.count = 0; /* unless asked for, they are text like any other */
  assert_ok(rdna_tokenizer_encode(tokenizer, text, strlen(text), 0, &tokens));
  for (size_t i = 0; i < tokens.count; i++) assert_true(tokens.ids[i] != user && tokens.ids[i] != end);
  rdna_tokens_deinit(&tokens);
  rdna_tokenizer_close(tokenizer);
  rdna_gguf_close(file);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* a busy machine adds nothing to it */
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Ten times the text takes about ten times as long, also when it is a single word. A square would take a hundred. */
static void check_time(const rdna_tokenizer *tokenizer, const char *name, const char *what, const char *unit) {
  double seconds[2];
  size_t unit_size = strlen(unit);
  for (int big = 0; big < 2; big++) {
    size_t size = big ? 2560 << 10 : 256 << 10;
    char *text = malloc(size);
    assert_non_null(text);
    for (size_t i = 0; i < size; i++) text[i] = unit[i % unit_size];
    rdna_tokens tokens = {0};
    double start = now();
    assert_ok(rdna_tokenizer_encode(tokenizer, text, size, 0, &tokens));
    seconds[big] = now() - start;
    rdna_tokens_deinit(&tokens);
    free(text);
  }
  print_message("%s, %s: 256 KiB in %.3f s, 2560 KiB in %.3f s\n", name, what, seconds[0], seconds[1]);
  assert_true(seconds[1] < 40 * seconds[0] + 1);
}

static void test_time(void **state) {
  static const char *const names[] = {"llama-spm", "gpt-2", "deepseek-coder"};
  for (int i = 0; i < 3; i++) {
    rdna_tokenizer *tokenizer = NULL;
    rdna_gguf *file = open_vocabulary(names[i], &tokenizer);
    check_time(tokenizer, names[i], "prose",
               "The quick brown fox, aged 12, jumps over the lazy dog's 3 bones; \xd0\xbd\xd0\xb5\xd1\x89\xd0\xbe.\n");
    check_time(tokenizer, names[i], "one word", "thequickbrownfoxjumpsoverthelazydog");
    check_time(tokenizer, names[i], "spaces", "                                ");
    check_time(tokenizer, names[i], "digits", "1234567890");
    check_time(tokenizer, names[i], "not UTF-8", "\xff\xc0 a\x80");
    rdna_tokenizer_close(tokenizer);
    rdna_gguf_close(file);
  }
}

int main(void) {
  const char *given = getenv("RDNA_SHARED_DATA");
  snprintf(folder, sizeof folder, "%s", given ? given : TEST_ROOT "/../shared/data");
  char path[4300];
  snprintf(path, sizeof path, "%s/vocab", folder);
  if (access(path, F_OK) != 0) {
    printf("skipped: there is no folder %s; RDNA_SHARED_DATA names the one that holds vocab\n", path);
    return 77;
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_llama_spm), cmocka_unit_test(test_phi3),           cmocka_unit_test(test_gpt2),
      cmocka_unit_test(test_bert),      cmocka_unit_test(test_deepseek_coder), cmocka_unit_test(test_special_tokens),
      cmocka_unit_test(test_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
