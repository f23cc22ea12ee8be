#include "command/generation.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/status.h"
#include "picture/decode.h"

enum { CONTEXT_STEP = 256 };

volatile sig_atomic_t generation_interrupted;
void generation_interrupt(int signal_number) { generation_interrupted = 1; }

/* Keeps the text, and prints it unless told not to. */
static rdna_status emit(generation *g, rdna_text text) {
  if (!g->options->silent) {
    fwrite(text.data, 1, text.size, stdout);
    fflush(stdout);
  }
  if (g->text_room - g->text_size < text.size + 1) {
    size_t room = 2 * (g->text_room + text.size + 1);
    char *grown = realloc(g->text, room);
    if (!grown) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the text");
    g->text = grown;
    g->text_room = room;
  }
  if (text.size) memcpy(g->text + g->text_size, text.data, text.size);
  g->text_size += text.size;
  return RDNA_OK;
}

static rdna_status open_sampler(generation *g) {
  const generation_options *o = g->options;
  rdna_sampling sampling = {RDNA_SAMPLING_INIT};
  sampling.temperature = o->greedy ? 0 : (float)o->temperature;
  sampling.top_k = (int32_t)o->top_k;
  sampling.top_p = (float)o->top_p;
  sampling.min_p = (float)o->min_p;
  sampling.repetition_penalty = (float)o->repetition_penalty;
  sampling.repeat_last_n = (int32_t)o->repeat_last_n;
  sampling.seed = o->seed >= 0 ? (uint64_t)o->seed : (uint64_t)time(NULL);
  return rdna_sampler_create(&sampling, &g->sampler);
}

static rdna_status compile_grammar(generation *g, const rdna__file *file, bool schema) {
  const char *text = file->data ? (const char *)file->data : "";
  RDNA_TRY(rdna__vocabulary_of_tokenizer(g->tokenizer, &g->vocabulary));
  g->allowed = malloc((rdna__vocabulary_count(g->vocabulary) / 64 + 1) * sizeof *g->allowed);
  if (!g->allowed) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a grammar");
  if (!schema) return rdna__grammar_compile(g->vocabulary, text, file->size, &g->grammar);
  char *made;
  RDNA_TRY(rdna__grammar_of_schema(text, file->size, &made));
  rdna_status status = rdna__grammar_compile(g->vocabulary, made, strlen(made), &g->grammar);
  free(made);
  return status;
}

/* Reads the file that says what may be written, if there is one. */
static rdna_status open_grammar(generation *g) {
  const generation_options *o = g->options;
  const char *path = o->grammar ? o->grammar : o->json_schema;
  if (!path) return RDNA_OK;
  rdna__file file;
  rdna_status status = rdna__file_map(path, &file);
  if (status == RDNA_OK) {
    status = compile_grammar(g, &file, !o->grammar);
    rdna__file_unmap(&file);
  }
  return rdna__annotate(status, "%s", path);
}

rdna_status generation_open_file(generation *g, const char *path) {
  double start = seconds();
  RDNA_TRY(open_sampler(g));
  RDNA_TRY(rdna_model_open(path, &g->file));
  RDNA_TRY(rdna_tokenizer_open(g->file, &g->tokenizer));
  RDNA_TRY(open_grammar(g));
  g->load_seconds = seconds() - start;
  return RDNA_OK;
}

static rdna_status open_device(generation *g) {
  return g->device ? RDNA_OK : open_chosen_device(&g->options->device, &g->device);
}

/* How large they are, which says how long the prompt is. */
static rdna_status measure_pictures(generation *g) {
  const option_texts *images = &g->options->images;
  g->pictures = calloc((size_t)images->count, sizeof *g->pictures);
  if (!g->pictures) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for pictures");
  for (int i = 0; i < images->count; i++) {
    rdna__picture head;
    RDNA_TRY(rdna__picture_load_with(images->values[i], rdna__picture_measure, &head));
    g->pictures[g->picture_count++] = (rdna__shown){.height = head.height, .width = head.width};
  }
  return RDNA_OK;
}

/* One after another, so that one alone is there in its own size. */
static rdna_status load_pictures(generation *g, const rdna_vision *vision) {
  for (size_t i = 0; i < g->picture_count; i++) {
    rdna__picture loaded;
    RDNA_TRY(rdna__picture_load(g->options->images.values[i], &loaded));
    rdna_status status =
        rdna__shown_take(&g->pictures[i], vision, loaded.pixels, loaded.height, loaded.width, &g->prompt);
    rdna__picture_deinit(&loaded);
    RDNA_TRY(status);
  }
  return RDNA_OK;
}

static rdna_status see_with(generation *g, rdna_vision *vision, const char *text, size_t size, unsigned flags) {
  RDNA_TRY(measure_pictures(g));
  RDNA_TRY(rdna__vision_encode(vision, g->tokenizer, text, size, flags, g->pictures, g->picture_count, &g->prompt));
  RDNA_TRY(load_pictures(g, vision));
  for (size_t i = 0; i < g->picture_count; i++) RDNA_TRY(rdna__shown_see(&g->pictures[i], vision));
  return RDNA_OK;
}

rdna_status generation_see(generation *g, const char *text, size_t size, unsigned flags) {
  const char *path = g->options->mmproj;
  rdna_gguf *file;
  rdna_vision *vision = NULL;
  RDNA_TRY(open_device(g));
  RDNA_TRY(rdna__annotate(rdna_gguf_open(path, &file), "%s", path));
  rdna_status status = rdna__annotate(rdna_vision_open(g->device, file, &vision), "%s", path);
  if (status == RDNA_OK) status = rdna__annotate(rdna_vision_check(vision, g->file), "%s", path);
  if (status == RDNA_OK) status = see_with(g, vision, text, size, flags);
  rdna_vision_release(vision);
  rdna_gguf_close(file);
  return status;
}

static rdna_status check_prompt(const generation *g, int context) {
  if (g->prompt.count <= (size_t)context) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT,
                    "the prompt has %zu tokens and the context room for %d; shorten it or give a larger --context",
                    g->prompt.count, context);
}

/* A prompt that is there already needs no more context than it and what is written take. */
static rdna_status plan(generation *g, rdna_llm_session_options *session, rdna_llm_plan *out_plan) {
  const generation_options *o = g->options;
  int64_t needed = (int64_t)g->prompt.count + o->max_tokens, all = (needed + CONTEXT_STEP - 1) / CONTEXT_STEP;
  *session = (rdna_llm_session_options){RDNA_LLM_SESSION_OPTIONS_INIT, .context = (int)o->context,
                                        .kv_dtype = kv_type(o->kv), .batch = (int)o->batch, .exact = o->exact};
  RDNA_TRY(open_device(g));
  int most = g->prompt.count ? (int)(all * CONTEXT_STEP) : 0;
  RDNA_TRY(plan_model(g->device, g->file, &o->place, session, most, out_plan));
  session->context = out_plan->context, session->batch = out_plan->batch;
  return RDNA_OK;
}

rdna_status generation_plan(generation *g, bool json) {
  rdna_llm_session_options session;
  rdna_llm_plan planned;
  RDNA_TRY(plan(g, &session, &planned));
  return report_plan(g->device, &planned, json) == EXIT_OK ? RDNA_OK : rdna__fail(RDNA_IO_ERROR, "cannot print");
}

rdna_status generation_open_model(generation *g) {
  double start = seconds();
  rdna_llm_session_options session;
  rdna_llm_plan planned;
  RDNA_TRY(plan(g, &session, &planned));
  RDNA_TRY(check_prompt(g, planned.context));
  if (!g->options->silent) say_plan(g->device, &planned);
  RDNA_TRY(open_planned_model(g->device, g->file, &planned, &g->llm));
  RDNA_TRY(rdna_llm_session_create(g->llm, &session, &g->session));
  RDNA_TRY(adapt_session(g->llm, g->session, &g->options->lora));
  RDNA_TRY(rdna_detokenizer_create(g->tokenizer, false, &g->detokenizer));
  g->logits = malloc((size_t)rdna_llm_get_info(g->llm)->vocabulary * sizeof *g->logits);
  if (!g->logits) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for logits");
  g->load_seconds += seconds() - start;
  return RDNA_OK;
}

void generation_close(generation *g) {
  end_progress();
  free(g->logits);
  free(g->text);
  rdna_tokens_deinit(&g->prompt);
  for (size_t i = 0; i < g->picture_count; i++) rdna__shown_deinit(&g->pictures[i]);
  free(g->pictures);
  rdna_tokens_deinit(&g->tokens);
  rdna_tokens_deinit(&g->held);
  rdna__matcher_release(g->matcher);
  rdna__grammar_release(g->grammar);
  rdna__vocabulary_release(g->vocabulary);
  free(g->allowed);
  rdna_detokenizer_release(g->detokenizer);
  rdna_sampler_release(g->sampler);
  rdna_llm_session_release(g->session);
  rdna_llm_release(g->llm);
  rdna_device_release(g->device);
  rdna_tokenizer_close(g->tokenizer);
  rdna_gguf_close(g->file);
}

/* Rules out what the grammar does; |*out_whole| when nothing can follow. */
static rdna_status apply_grammar(generation *g, bool *out_whole) {
  *out_whole = g->matcher && rdna__matcher_must_end(g->matcher);
  if (!g->matcher || *out_whole) return RDNA_OK;
  RDNA_TRY(rdna__matcher_mask(g->matcher, g->allowed));
  size_t vocabulary = (size_t)rdna_llm_get_info(g->llm)->vocabulary, known = rdna__vocabulary_count(g->vocabulary);
  rdna__mask_apply(g->allowed, g->logits, known < vocabulary ? known : vocabulary);
  for (size_t i = known; i < vocabulary; i++) g->logits[i] = -INFINITY; /* padding, which no token is */
  return RDNA_OK;
}

/* Samples and evaluates until an end. The prompt's logits are in g->logits. */
static rdna_status decode(generation *g) {
  size_t vocabulary = (size_t)rdna_llm_get_info(g->llm)->vocabulary;
  g->stop_reason = "length";
  while (g->tokens.count < (size_t)g->options->max_tokens) {
    int32_t id;
    rdna_text text;
    bool whole;
    RDNA_TRY(apply_grammar(g, &whole));
    if (whole) {
      g->stop_reason = "end";
      break;
    }
    RDNA_TRY(rdna_sampler_sample(g->sampler, g->logits, vocabulary, &id));
    if (!g->options->ignore_end && rdna_tokenizer_is_end(g->tokenizer, id)) {
      g->stop_reason = "end";
      break;
    }
    if (g->matcher) RDNA_TRY(rdna__matcher_accept(g->matcher, id));
    RDNA_TRY(rdna_tokens_append(&g->tokens, id));
    RDNA_TRY(rdna_detokenizer_push(g->detokenizer, id, &text));
    RDNA_TRY(emit(g, text));
    if (generation_interrupted) {
      g->stop_reason = "interrupted";
      break;
    }
    if (g->tokens.count == (size_t)g->options->max_tokens) break;
    if (rdna_llm_session_position(g->session) == rdna_llm_session_context(g->session)) {
      g->stop_reason = "context";
      break;
    }
    RDNA_TRY(rdna_llm_session_eval(g->session, &id, 1, g->logits));
    RDNA_TRY(rdna_tokens_append(&g->held, id));
  }
  rdna_text rest;
  rdna_detokenizer_finish(g->detokenizer, &rest);
  return emit(g, rest);
}

/* Forgets what the session holds beyond the beginning of the prompt; the prompt's last token is always computed again.
 */
static rdna_status keep_common(generation *g) {
  size_t common = 0;
  while (common < g->held.count && common + 1 < g->prompt.count && g->held.ids[common] == g->prompt.ids[common])
    common++;
  if (common < g->held.count) RDNA_TRY(rdna_llm_session_rewind(g->session, (int)common));
  g->held.count = common;
  return RDNA_OK;
}

/* Reads the prompt from token |first| on, text by text and picture by picture. */
static rdna_status read_prompt(generation *g, size_t first) {
  const rdna_tokens *prompt = &g->prompt;
  for (size_t i = first, end; i < prompt->count; i = end) {
    end = rdna__shown_until(g->pictures, g->picture_count, i, prompt->count);
    const rdna__shown *shown = rdna__shown_at(g->pictures, g->picture_count, i);
    if (shown)
      RDNA_TRY(rdna_llm_session_see(g->session, &shown->picture));
    else
      RDNA_TRY(rdna_llm_session_eval(g->session, prompt->ids + i, (int)(end - i), g->logits));
    if (shown && end == prompt->count)
      return rdna__fail(RDNA_INVALID_ARGUMENT, "the prompt ends with a picture; some text must follow");
    for (; i < end; i++) RDNA_TRY(rdna_tokens_append(&g->held, prompt->ids[i]));
  }
  return RDNA_OK;
}

rdna_status generation_write(generation *g) {
  const rdna_tokens *prompt = &g->prompt;
  g->tokens.count = g->text_size = 0;
  RDNA_TRY(check_prompt(g, rdna_llm_session_context(g->session)));
  rdna__matcher_release(g->matcher);
  g->matcher = NULL;
  if (g->grammar) RDNA_TRY(rdna__matcher_create(g->grammar, &g->matcher));
  RDNA_TRY(keep_common(g));
  size_t first = g->held.count;
  /* the detokenizer must know what stands before: a leading space is the prompt's to drop, not ours */
  for (size_t i = first; i < prompt->count; i++) {
    rdna_text ignored;
    if (prompt->ids[i] < 0) continue; /* of a picture */
    RDNA_TRY(rdna_sampler_accept(g->sampler, prompt->ids[i]));
    RDNA_TRY(rdna_detokenizer_push(g->detokenizer, prompt->ids[i], &ignored));
  }
  double start = seconds();
  RDNA_TRY(read_prompt(g, first));
  double middle = seconds();
  g->prompt_seconds = middle - start;
  RDNA_TRY(decode(g));
  g->decode_seconds = seconds() - middle;
  return RDNA_OK;
}
