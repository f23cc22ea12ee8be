/* What each public function of the model layer must be given: NULL in its place is refused with the function's name or
 * the thing that is missing, and nothing is written. */
#include "model/llm/testing_model.h"
#include "rdna/llm_cache.h"
#include "rdna/model.h"
#include "rdna/template.h"

#define REFUSED(expression, mentions) assert_refused(expression, RDNA_INVALID_ARGUMENT, mentions)

static void test_files(void **state) {
  rdna_gguf *file = NULL;
  rdna_gguf_writer *writer;
  rdna_gguf_tensor tensor = {.name = "t", .dtype = RDNA_F32, .rank = 1, .shape = {1}};
  rdna_text text = {"a", 1};
  REFUSED(rdna_gguf_open(NULL, &file), "rdna_gguf_open");
  REFUSED(rdna_gguf_open("/nowhere", NULL), "rdna_gguf_open");
  REFUSED(rdna_model_open(NULL, &file), "rdna_model_open");
  REFUSED(rdna_model_open("/nowhere", NULL), "rdna_model_open");
  REFUSED(rdna_gguf_open_memory(NULL, 8, &file), "rdna_gguf_open_memory");
  assert_null(file);
  REFUSED(rdna_gguf_writer_create(NULL), "rdna_gguf_writer_create");
  assert_ok(rdna_gguf_writer_create(&writer));
  REFUSED(rdna_gguf_writer_put(NULL, "k", RDNA_GGUF_TYPE_TEXT, &text), "writer");
  REFUSED(rdna_gguf_writer_put(writer, NULL, RDNA_GGUF_TYPE_TEXT, &text), "name");
  REFUSED(rdna_gguf_writer_put(writer, "k", RDNA_GGUF_TYPE_TEXT, NULL), "value");
  REFUSED(rdna_gguf_writer_put_array(writer, "k", RDNA_GGUF_TYPE_TEXT, NULL, 1), "value");
  REFUSED(rdna_gguf_writer_add_tensor(NULL, &tensor, NULL, NULL), "writer");
  REFUSED(rdna_gguf_writer_add_tensor(writer, NULL, NULL, NULL), "tensor");
  REFUSED(rdna_gguf_writer_write(NULL, "/nowhere", NULL, NULL), "rdna_gguf_writer_write");
  REFUSED(rdna_gguf_writer_write(writer, NULL, NULL, NULL), "rdna_gguf_writer_write");
  rdna_gguf_writer_release(writer);
}

static void test_text(void **state) {
  rdna_sampling sampling = {RDNA_SAMPLING_INIT};
  rdna_sampler *sampler;
  rdna_tokenizer *tokenizer = NULL;
  rdna_detokenizer *detokenizer = NULL;
  rdna_template *compiled;
  rdna_tokens tokens = {0};
  float logits[2] = {1, 2};
  int32_t id = -7;
  char *out = NULL;
  size_t size = 77;
  REFUSED(rdna_sampler_create(&sampling, NULL), "place");
  assert_ok(rdna_sampler_create(&sampling, &sampler));
  REFUSED(rdna_sampler_sample(NULL, logits, 2, &id), "rdna_sampler_sample");
  REFUSED(rdna_sampler_sample(sampler, NULL, 2, &id), "rdna_sampler_sample");
  REFUSED(rdna_sampler_sample(sampler, logits, 2, NULL), "rdna_sampler_sample");
  assert_int_equal(id, -7);
  rdna_sampler_release(sampler);
  REFUSED(rdna_tokenizer_open(NULL, &tokenizer), "rdna_tokenizer_open");
  REFUSED(rdna_tokenizer_encode(NULL, "a", 1, 0, &tokens), "rdna_tokenizer_encode");
  REFUSED(rdna_detokenizer_create(NULL, false, &detokenizer), "rdna_detokenizer_create");
  assert_true(!tokenizer && !detokenizer && tokens.count == 0);
  REFUSED(rdna_template_compile("a", 1, NULL), "the template is NULL");
  REFUSED(rdna_template_compile(NULL, 1, &compiled), "the text is NULL");
  assert_ok(rdna_template_compile("a", 1, &compiled));
  REFUSED(rdna_template_render(NULL, "{}", 2, &out, &size), "rdna_template_render");
  REFUSED(rdna_template_render(compiled, NULL, 2, &out, &size), "rdna_template_render");
  REFUSED(rdna_template_render(compiled, "{}", 2, NULL, &size), "rdna_template_render");
  REFUSED(rdna_template_render(compiled, "{}", 2, &out, NULL), "rdna_template_render");
  assert_true(out == NULL && size == 77);
  rdna_template_release(compiled);
}

static void test_models(void **state) {
  made m = make_model(0);
  rdna_llm *llm = NULL;
  rdna_llm_session_options options = {RDNA_LLM_SESSION_OPTIONS_INIT, .context = 16, .batch = 4};
  rdna_llm_session *session = NULL;
  rdna_llm_plan plan;
  int32_t id = 1;
  REFUSED(rdna_llm_open(NULL, m.file, NULL, NULL, &llm), "device");
  REFUSED(rdna_llm_open(device, NULL, NULL, NULL, &llm), "file");
  REFUSED(rdna_llm_open(device, m.file, NULL, NULL, NULL), "place");
  REFUSED(rdna_llm_session_create(NULL, &options, &session), "rdna_llm_session_create");
  REFUSED(rdna_llm_session_create(m.llm, &options, NULL), "rdna_llm_session_create");
  assert_true(!llm && !session);
  assert_ok(rdna_llm_session_create(m.llm, &options, &session));
  REFUSED(rdna_llm_session_eval(session, &id, 1, NULL), "logits");
  REFUSED(rdna_llm_session_eval_all(session, &id, 1, NULL), "logits");
  assert_int_equal(rdna_llm_session_position(session), 0);
  rdna_llm_session_release(session);
  REFUSED(rdna_llm_make_plan(NULL, m.file, &(rdna_llm_plan_options){RDNA_LLM_PLAN_OPTIONS_INIT}, &plan), "device");
  REFUSED(rdna_llm_make_plan(device, NULL, &(rdna_llm_plan_options){RDNA_LLM_PLAN_OPTIONS_INIT}, &plan), "file");
  REFUSED(rdna_llm_make_plan(device, m.file, &(rdna_llm_plan_options){RDNA_LLM_PLAN_OPTIONS_INIT}, NULL), "place");
  free_model(&m);
}

static void test_caches(void **state) {
  made m = make_model(0);
  rdna_llm_cache_options options = {RDNA_LLM_CACHE_OPTIONS_INIT, .context = 16, .batch = 4};
  rdna_llm_cache *cache = NULL;
  rdna_llm_sequence *sequence = NULL, *fork = NULL;
  rdna_llm_cache_info info = {RDNA_LLM_CACHE_INFO_INIT}, unsized = {0};
  const float *logits = NULL;
  int32_t id = 1;
  REFUSED(rdna_llm_cache_create(NULL, &options, &cache), "rdna_llm_cache_create");
  REFUSED(rdna_llm_cache_create(m.llm, &options, NULL), "rdna_llm_cache_create");
  assert_null(cache);
  assert_ok(rdna_llm_cache_create(m.llm, &options, &cache));
  REFUSED(rdna_llm_cache_get_info(NULL, &info), "rdna_llm_cache_get_info");
  REFUSED(rdna_llm_cache_get_info(cache, NULL), "rdna_llm_cache_get_info");
  REFUSED(rdna_llm_cache_get_info(cache, &unsized), "rdna_llm_cache_get_info");
  REFUSED(rdna_llm_sequence_create(NULL, &sequence), "sequence");
  REFUSED(rdna_llm_sequence_create(cache, NULL), "sequence");
  assert_ok(rdna_llm_sequence_create(cache, &sequence));
  REFUSED(rdna_llm_sequence_fork(NULL, 0, &fork), "fork");
  REFUSED(rdna_llm_sequence_fork(sequence, 0, NULL), "fork");
  REFUSED(rdna_llm_sequence_truncate(NULL, 0), "rdna_llm_sequence_truncate");
  REFUSED(rdna_llm_sequence_checkpoint(NULL), "rdna_llm_sequence_checkpoint");
  const rdna_llm_part part = {.sequence = sequence, .tokens = &id, .count = 1, .logits = 1},
                      none = {.tokens = &id, .count = 1};
  REFUSED(rdna_llm_step(NULL, &part, 1, &logits), "rdna_llm_step");
  REFUSED(rdna_llm_step(cache, NULL, 1, &logits), "rdna_llm_step");
  REFUSED(rdna_llm_step(cache, &part, 0, &logits), "rdna_llm_step");
  REFUSED(rdna_llm_step(cache, &part, 1, NULL), "rdna_llm_step");
  REFUSED(rdna_llm_step(cache, &none, 1, &logits), "sequence");
  assert_true(logits == NULL && fork == NULL && rdna_llm_sequence_position(sequence) == 0);
  rdna_llm_sequence_release(sequence);
  rdna_llm_cache_release(cache);
  free_model(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_files), cmocka_unit_test(test_text),
                                     cmocka_unit_test(test_models), cmocka_unit_test(test_caches)};
  return cmocka_run_group_tests(tests, open_device, close_device);
}
