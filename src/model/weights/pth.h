/* Files that PyTorch's torch.save writes since 1.6: a zip whose entries are stored as they are, of which data.pkl is a
 * pickle that says what the others, data/0 and so on, hold.
 *
 *     data.pkl      a dictionary of names and tensors, each a call of torch._utils._rebuild_tensor_v2 of a storage
 *     data/KEY      the bytes of a storage
 *
 * A pickle is a program for a machine with a stack, and PyTorch's reader runs whatever it calls. Here nothing is run:
 * the few instructions are known that tensors and plain values are made of, and every call but those that rebuild
 * tensors and make dictionaries is refused. */
#ifndef RDNA_MODEL_WEIGHTS_PTH_H
#define RDNA_MODEL_WEIGHTS_PTH_H

#include <jansson.h>

#include "model/weights/safetensors.h"

/* What a header of safetensors would say of the tensors in |size| bytes of |data|, with offsets from |data| on, to be
 * given back by json_decref: those of the dictionary "params_ema", "params" or "state_dict" in the file's, or of that
 * itself. RDNA_BAD_DATA: it breaks a format. RDNA_UNSUPPORTED: calls or instructions that are not known, files
 * before 1.6, entries that are packed, tensors that are not contiguous. RDNA_OUT_OF_MEMORY. */
rdna_status rdna__pth_header(const uint8_t *data, size_t size, json_t **out_header);
/* The tensors of the file at |path|, of that format or safetensors, which its first bytes tell. */
rdna_status rdna__pth_open_either(const char *path, rdna__safetensors **out_tensors);

#endif
