/* A short convolution between two gates (Liquid AI, 2025), which knows the last few tokens alone:
 *
 *     h -- b, c, x        b x -- convolution over time -- times c -- output */
#include "base/status.h"
#include "model/nn/nn.h"
#include "rdna/op.h"

rdna_status rdna__nn_convolve(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder, int index,
                              const rdna_tensor *h, const rdna_tensor *projected) {
  const rdna_scalar zero = rdna_scalar_real(0);
  const rdna__nn_layer *layer = &decoder->layers[index];
  const rdna__nn_recurrent *r = &layer->recurrent;
  int64_t count = pass->count, channels = rdna__nn_recurrent_channels(r);
  float *place = pass->recurrent;
  rdna_tensor all = rdna__nn_matrix(place, count, 3 * channels), b = all, c, x;
  rdna_tensor gated = rdna__nn_matrix(place + 3 * count * channels, count, channels);
  rdna_tensor out = rdna__nn_matrix(place + 4 * count * channels, count, channels);
  rdna_tensor state = rdna__nn_conv_state(pass, layer);
  rdna_sequences sequences = rdna__nn_sequences(pass);
  b.shape[1] = channels;
  c = x = b;
  c.data = place + channels;
  x.data = place + 2 * channels;
  RDNA_TRY(rdna__nn_linear(pass, &r->qkv, h, &all));
  RDNA_TRY(rdna_op_zip(pass->stream, RDNA_ZIP_MUL, &b, &x, zero, zero, &gated));
  RDNA_TRY(rdna_op_causal_conv(pass->stream, &sequences, &gated, &r->convolution, RDNA_ACTIVATION_NONE, &state, &out));
  RDNA_TRY(rdna_op_zip(pass->stream, RDNA_ZIP_MUL, &out, &c, zero, zero, &out));
  return rdna__nn_linear_out(pass, &r->output, &out, projected);
}
