/* Vectors that tokens have for each layer, beside their embeddings (Gemma 3n and 4). */
#include <math.h>

#include "base/status.h"
#include "model/nn/nn.h"
#include "rdna/op.h"

/* (norm(projection x / sqrt(width)) + embedding sqrt(injected)) / sqrt(2), for all layers at once */
rdna_status rdna__nn_prepare_injections(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder,
                                        const rdna_tensor *x) {
  const rdna_scalar zero = rdna_scalar_real(0);
  int64_t columns = (int64_t)decoder->model_layers * decoder->injected, rows = pass->count * decoder->model_layers;
  rdna_tensor projected = rdna__nn_matrix(pass->injected, pass->count, columns);
  rdna_tensor looked_up = rdna__nn_matrix((float *)pass->injected + pass->count * columns, pass->count, columns);
  RDNA_TRY(rdna__nn_linear(pass, &decoder->injected_projection, x, &projected));
  RDNA_TRY(rdna__nn_scale(pass->stream, &projected, 1 / sqrt(decoder->width)));
  rdna_tensor of_layers = rdna__nn_matrix(projected.data, rows, decoder->injected);
  RDNA_TRY(rdna_op_rms_norm(pass->stream, &of_layers, &decoder->injected_norm, decoder->norm_epsilon, &of_layers));
  RDNA_TRY(rdna_op_embedding(pass->stream, &decoder->injected_embedding, &pass->ids, &looked_up, NULL));
  RDNA_TRY(rdna__nn_scale(pass->stream, &looked_up, sqrt(decoder->injected)));
  RDNA_TRY(rdna_op_zip(pass->stream, RDNA_ZIP_ADD, &projected, &looked_up, zero, zero, &projected));
  return rdna__nn_scale(pass->stream, &projected, sqrt(0.5));
}

rdna_status rdna__nn_inject(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder, int index,
                            const rdna_tensor *x) {
  const rdna__nn_injection *injection = &decoder->layers[index].injection;
  const rdna_scalar zero = rdna_scalar_real(0);
  int64_t size = decoder->injected, columns = decoder->model_layers * size;
  rdna_tensor vector = rdna__nn_matrix((float *)pass->injected + (decoder->first + index) * size, pass->count, size);
  vector.stride[0] = columns;
  rdna_tensor gate = rdna__nn_matrix((float *)pass->injected + pass->count * columns, pass->count, size);
  rdna_tensor out = rdna__nn_matrix(pass->projected, pass->count, decoder->width);
  RDNA_TRY(rdna__nn_linear(pass, &injection->gate, x, &gate));
  RDNA_TRY(rdna__nn_gate_with(pass->stream, RDNA__NN_GATE_GELU_TANH, &gate, &vector));
  RDNA_TRY(rdna__nn_linear(pass, &injection->out, &gate, &out));
  RDNA_TRY(rdna_op_rms_norm(pass->stream, &out, &injection->norm, decoder->norm_epsilon, &out));
  return rdna_op_zip(pass->stream, RDNA_ZIP_ADD, x, &out, zero, zero, x);
}
