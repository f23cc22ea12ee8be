#include "server/job.h"

#include <stdlib.h>
#include <string.h>

void settings_deinit(settings *s) {
  for (size_t i = 0; i < s->stop_count; i++) free(s->stops[i]);
  free(s->bias_ids);
  free(s->biases);
  if (s->grammar) grammars_put(s->grammars, s->grammar);
  *s = (settings){0};
}

static void choice_deinit(choice *c) {
  rdna_tokens_deinit(&c->history);
  rdna_sampler_release(c->sampler);
  rdna_detokenizer_release(c->detokenizer);
  free(c->offsets);
  rdna__matcher_release(c->matcher);
  free(c->allowed);
  bytes_deinit(&c->held);
  bytes_deinit(&c->text);
  free(c->ids);
  free(c->values);
  free(c->tops);
  free(c->ends);
}

void job_free(job *j) {
  if (!j) return;
  for (int i = 0; i < j->choice_count; i++) choice_deinit(&j->choices[i]);
  for (size_t i = 0; i < j->prompt_count; i++) rdna_tokens_deinit(&j->prompts[i]);
  for (size_t i = 0; i < j->picture_count; i++) rdna__shown_deinit(&j->pictures[i]);
  free(j->pictures);
  free(j->choices);
  free(j->prompts);
  free(j->seconds);
  free(j->vectors);
  settings_deinit(&j->settings);
  free(j);
}

job *job_create(settings *settings_, rdna_tokens *prompts, size_t prompt_count, int n) {
  job *j = calloc(1, sizeof *j);
  choice *choices = calloc(prompt_count * (size_t)n, sizeof *choices);
  if (!j || !choices) {
    free(j);
    free(choices);
    return NULL;
  }
  j->settings = *settings_;
  *settings_ = (settings){0};
  j->prompts = prompts;
  j->prompt_count = prompt_count;
  j->choices = choices;
  j->choice_count = j->unfinished = (int)prompt_count * n;
  j->references = 1;
  for (int i = 0; i < j->choice_count; i++)
    choices[i] = (choice){.job = j,
                          .index = i,
                          .seed = j->settings.sampling.seed + (uint64_t)(i % n),
                          .prompt = &prompts[i / n],
                          .cached_tokens = -1};
  return j;
}

job *job_create_embedding(settings *settings_, rdna_tokens *prompts, size_t prompt_count, int32_t *seconds) {
  job *j = job_create(settings_, prompts, prompt_count, 1);
  if (!j) return NULL;
  j->embeds = true;
  j->seconds = seconds;
  j->choice_count = j->unfinished = 1;
  return j;
}
