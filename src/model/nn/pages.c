/* A sequence's rows of a cache as attention over whole sequences reads them: one after the other. */
#include "base/status.h"
#include "model/nn/nn.h"
#include "rdna/op.h"

rdna_status rdna__nn_rows_of(const rdna__nn_pass *pass, const rdna__nn_span *span, const rdna_tensor *cache,
                             rdna__scratch *scratch, rdna_tensor *rows) {
  if (span->base >= 0) {
    *rows = rdna__nn_rows(cache, span->base, span->length);
    return RDNA_OK;
  }
  /* pages are rows of a matrix, and the span's are taken in its order */
  int64_t values = pass->page_rows * cache->shape[1] * cache->shape[2];
  rdna_tensor pages = rdna_tensor_contiguous(cache->data, cache->dtype, 2, (int64_t[]){pass->pages, values}), out;
  RDNA_TRY(rdna__scratch_tensor(scratch, cache->dtype, 2, (int64_t[]){span->pages.shape[0], values}, &out));
  *rows = *cache;
  rows->data = out.data;
  rows->shape[0] = span->length;
  return rdna_op_index_select(pass->stream, &pages, 0, &span->pages, &out, NULL);
}
