/* Frequencies of rotary positions, as files describe them. */
#include <math.h>
#include <stdlib.h>

#include "base/status.h"
#include "model/llm/arch/arch.h"

rdna_status rdna__arch_scaling(const rdna_llm *llm, rdna__rope_scaling *s) {
  const rdna__weights *w = &llm->weights;
  rdna_text type = {"linear", 6};
  *s = (rdna__rope_scaling){.kind = RDNA__ROPE_PLAIN, .factor = 1, .attention_factor = 1};
  RDNA_TRY(rdna__key_text(w, "rope.scaling.type", &type));
  if (rdna__text_is(type, "none")) return RDNA_OK;
  RDNA_TRY(rdna__key_number(w, "rope.scaling.factor", 1, &s->factor));
  s->kind = RDNA__ROPE_LINEAR;
  if (rdna__text_is(type, "linear")) return RDNA_OK;
  if (!rdna__text_is(type, "yarn"))
    return rdna__fail(RDNA_UNSUPPORTED,
                      "the model asks for RoPE scaling '%.*s'; this library has 'none', 'linear' and 'yarn'",
                      (int)(type.size < 64 ? type.size : 64), type.data);
  s->kind = RDNA__ROPE_YARN;
  RDNA_TRY(rdna__key_number(w, "rope.scaling.original_context_length", llm->info.context, &s->original));
  RDNA_TRY(rdna__key_number(w, "rope.scaling.yarn_ext_factor", 1, &s->ext_factor));
  RDNA_TRY(rdna__key_number(w, "rope.scaling.attn_factor", 1, &s->attention_factor));
  RDNA_TRY(rdna__key_number(w, "rope.scaling.yarn_attn_factor", s->attention_factor, &s->attention_factor));
  RDNA_TRY(rdna__key_number(w, "rope.scaling.yarn_beta_fast", 32, &s->beta_fast));
  RDNA_TRY(rdna__key_number(w, "rope.scaling.yarn_beta_slow", 1, &s->beta_slow));
  return rdna__key_number_or_none(w, "rope.scaling.yarn_log_multiplier", &s->log_multiplier);
}

/* YaRN (Peng et al., 2023): pairs that turn often within the original context keep their frequency, those that turn
 * less than once have it divided by the factor, and between them the share of the former falls with the pair's number:
 *
 *     share 1 |-------.
 *             |        \
 *           0 |_________`-------- pair
 *                   low  high */
static double yarn_share(const rdna__rope_scaling *s, int rotated, double base, int64_t pair) {
  double turns = log(s->original / (2 * M_PI)), per_pair = rotated / (2 * log(base));
  double low = per_pair * (turns - log(s->beta_fast)), high = per_pair * (turns - log(s->beta_slow));
  if (!s->unrounded) low = floor(low), high = ceil(high);
  low = fmax(low, 0);
  high = fmin(high, rotated - 1);
  double ramp = ((double)pair - low) / fmax(0.001, high - low);
  return s->ext_factor * (1 - fmin(fmax(ramp, 0), 1));
}

static double yarn_magnitude(const rdna__rope_scaling *s) {
  double stretched = s->factor > 1 ? log(s->factor) : 0;
  return s->attention_factor * (1 + 0.1 * stretched) / (1 + 0.1 * (double)s->log_multiplier * stretched);
}

static rdna_status frequencies(rdna_llm *llm, double base, const rdna__rope_scaling *s, const float *factors,
                               rdna_tensor *out) {
  int rotated = llm->config.rotated;
  int64_t count = rotated / 2;
  float *values = malloc((size_t)(count + 1) * sizeof *values);
  if (!values) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for RoPE's frequencies");
  rdna_status status = RDNA_OK;
  for (int64_t i = 0; status == RDNA_OK && i < count; i++) {
    double frequency = pow(base, -2.0 * (double)i / rotated), share = 0;
    if (s->kind == RDNA__ROPE_YARN) share = yarn_share(s, rotated, base, i);
    frequency *= share + (1 - share) / s->factor;
    if (factors) frequency /= (double)factors[i];
    values[i] = (float)frequency;
    if (!isfinite(values[i]))
      status = rdna__fail(RDNA_BAD_DATA, "RoPE's factor %lld is %g; frequencies are divided by it", (long long)i,
                          factors ? (double)factors[i] : 0.0);
  }
  if (status == RDNA_OK) status = rdna__put_vector(&llm->weights, values, count, out);
  free(values);
  return status;
}

rdna_status rdna__arch_rotation_by(rdna_llm *llm, double base, const float *factors, rdna_tensor *out_inv_freq) {
  const rdna__rope_scaling plain = {.kind = RDNA__ROPE_PLAIN, .factor = 1};
  return frequencies(llm, base, &plain, factors, out_inv_freq);
}

rdna_status rdna__arch_rotation(rdna_llm *llm, double base, rdna_rope_layout layout, const rdna__rope_scaling *scaling,
                                rdna__nn_rotation *out) {
  float *factors = NULL;
  if (rdna_gguf_has_tensor(llm->weights.file, "rope_freqs.weight"))
    RDNA_TRY(rdna__read_vector(&llm->weights, "rope_freqs.weight", llm->config.rotated / 2, &factors));
  out->layout = layout;
  out->magnitude = scaling->kind == RDNA__ROPE_YARN ? (float)yarn_magnitude(scaling) : 1;
  rdna_status status = frequencies(llm, base, scaling, factors, &out->inv_freq);
  free(factors);
  return status;
}

rdna_status rdna__arch_rope_of_windows(rdna_llm *llm, double base, int rotated) {
  rdna__nn_rotation *rotation = &llm->rotations[1];
  int of_others = llm->config.rotated;
  *rotation = (rdna__nn_rotation){.layout = RDNA_ROPE_LAYOUT_HALVES, .magnitude = 1};
  llm->config.rotated = rotated;
  rdna_status status = rdna__arch_rotation_by(llm, base, NULL, &rotation->inv_freq);
  llm->config.rotated = of_others;
  return status;
}

/* By which of a token's positions in a picture pair |i| turns: 0 that of the picture, 1 its row, 2 its column. */
static int position_of(int i, const int32_t sections[3], bool in_turn) {
  if (in_turn) return i % 3 > 0 && i < 3 * sections[i % 3] ? i % 3 : 0;
  return i < sections[0] ? 0 : i < sections[0] + sections[1] ? 1 : 2;
}

rdna_status rdna__arch_rope_in_pictures(rdna_llm *llm, bool in_turn) {
  rdna__nn_rotation *rotation = &llm->rotations[0];
  rdna_tensor *const of[] = {&rotation->row_freq, &rotation->column_freq};
  int pairs = llm->config.rotated / 2;
  int32_t sections[3];
  rdna__rope_scaling scaling;
  if (!rdna__key_is_array(&llm->weights, "rope.dimension_sections")) return RDNA_OK; /* it sees none */
  RDNA_TRY(rdna__key_array(&llm->weights, "rope.dimension_sections", 3, sections));
  for (int i = 0; i < 3; i++)
    if (sections[i] < 0 || sections[i] > pairs)
      return rdna__fail(RDNA_BAD_DATA, "rope.dimension_sections has %d of %d pairs", (int)sections[i], pairs);
  RDNA_TRY(rdna__arch_scaling(llm, &scaling));
  float *factors = malloc(((size_t)pairs + 1) * sizeof *factors);
  if (!factors) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for RoPE's frequencies");
  rdna_status status = RDNA_OK;
  for (int k = 0; status == RDNA_OK && k < 2; k++) {
    for (int i = 0; i < pairs; i++) factors[i] = position_of(i, sections, in_turn) == k + 1 ? 1 : INFINITY;
    status = frequencies(llm, llm->config.rope_base, &scaling, factors, of[k]);
  }
  free(factors);
  return status;
}

rdna__nn_rotation rdna__arch_no_rotation(void) {
  int64_t none = 0;
  return (rdna__nn_rotation){.inv_freq = rdna_tensor_contiguous(NULL, RDNA_F32, 1, &none), .magnitude = 1};
}

rdna_status rdna__arch_rope(rdna_llm *llm, rdna_rope_layout layout) {
  rdna__rope_scaling scaling;
  RDNA_TRY(rdna__arch_scaling(llm, &scaling));
  return rdna__arch_rotation(llm, llm->config.rope_base, layout, &scaling, &llm->rotations[0]);
}
