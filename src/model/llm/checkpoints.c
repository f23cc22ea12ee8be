/* States of recurrent layers at earlier positions of a session, since a state cannot be taken back: a session that is
 * rewound goes on from the last checkpoint before that place, and reads again what came between.
 *
 *     slots of each layer's state   | 0: now | 1 | 2 | 3 |     the oldest checkpoint gives way to the next */
#include "base/status.h"
#include "model/llm/llm.h"

/* Copies slot |from| of all states to slot |to|. */
static rdna_status copy_slot(const rdna_llm_session *s, int from, int to) {
  const rdna__nn_pass *pass = &s->pass;
  size_t slots = RDNA__LLM_STATE_SLOTS, conv = pass->conv_layer_bytes / slots, state = pass->state_layer_bytes / slots;
  for (int layer = 0; layer < s->llm->decoder.state_count; layer++) {
    char *convs = (char *)pass->conv_states + pass->conv_layer_bytes * (size_t)layer;
    char *states = (char *)pass->states + pass->state_layer_bytes * (size_t)layer;
    RDNA_TRY(rdna_copy_on_device(pass->stream, convs + conv * (size_t)to, convs + conv * (size_t)from, conv));
    RDNA_TRY(rdna_copy_on_device(pass->stream, states + state * (size_t)to, states + state * (size_t)from, state));
  }
  return RDNA_OK;
}

rdna_status rdna__llm_checkpoint(rdna_llm_session *s) {
  int oldest = 1;
  if (s->position == 0) return RDNA_OK; /* there a state is all zeros */
  for (int i = 1; i < RDNA__LLM_STATE_SLOTS; i++) {
    if (s->checkpoints[i] == s->position) return RDNA_OK;
    if (s->checkpoint_age[i] < s->checkpoint_age[oldest]) oldest = i;
  }
  s->checkpoints[oldest] = 0; /* none, should the copy fail */
  RDNA_TRY(copy_slot(s, 0, oldest));
  s->checkpoints[oldest] = s->position;
  s->checkpoint_age[oldest] = ++s->checkpoint_count;
  return RDNA_OK;
}

rdna_status rdna__llm_restore(rdna_llm_session *s, int position, int *out_from) {
  int best = 0;
  for (int i = 1; i < RDNA__LLM_STATE_SLOTS; i++) {
    if (s->checkpoints[i] > position) s->checkpoints[i] = 0, s->checkpoint_age[i] = 0;
    if (s->checkpoints[i] > 0 && (best == 0 || s->checkpoints[i] > s->checkpoints[best])) best = i;
  }
  *out_from = best ? s->checkpoints[best] : 0;
  if (best) return copy_slot(s, best, 0);
  const rdna__nn_pass *pass = &s->pass;
  size_t layers = (size_t)s->llm->decoder.state_count;
  RDNA_TRY(rdna_fill_bytes(pass->stream, pass->conv_states, 0, layers * pass->conv_layer_bytes));
  return rdna_fill_bytes(pass->stream, pass->states, 0, layers * pass->state_layer_bytes);
}
