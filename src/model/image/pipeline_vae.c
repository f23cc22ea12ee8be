/* Autoencoders in place of the model's own and beside it: one that makes its pictures (--vae), and one that shows what
 * steps are about (--preview-model), mostly tiny ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/image/autoencoder.h"
#include "model/image/pipeline.h"

/* ---- opening ---- */

/* |path| is for latents as the model has them. Tiny ones for two versions of Stable Diffusion cannot be told apart, as
 * latents of both have one shape; but none is for the latents of films, which Qwen-Image's are. */
static rdna_status check(const rdna_image_model *m, const char *path, rdna__autoencoder_settings *of) {
  RDNA_TRY(rdna__autoencoder_look(path, of));
  int latents = rdna__autoencoder_latents(of), factor = rdna__autoencoder_factor(of);
  if (latents != m->info.latent_channels || factor != m->info.factor)
    return rdna__fail(
        RDNA_BAD_DATA,
        "%s is for latents of %d channels of 1 / %d, and those of %s have %d of 1 / %d: it is for another "
        "model",
        path, latents, factor, m->folder, m->info.latent_channels, m->info.factor);
  bool films = m->family == &rdna__qwen_family;
  if (of->out_channels != 3 || of->in_channels != 3 || films != (of->kind == RDNA__AUTOENCODER_QWEN))
    return rdna__fail(RDNA_BAD_DATA, "%s makes no pictures of the latents of %s, which is %s", path, m->folder,
                      m->info.family);
  return RDNA_OK;
}

/* An autoencoder alone in a file, whose latents are the model's own. */
static rdna_status borrow(rdna_image_model *m, const char *path, rdna__autoencoder_settings *of) {
  char own[4096];
  if (!of->borrows) return RDNA_OK;
  if (!m->own_latents && !(m->own_latents = malloc(sizeof *m->own_latents)))
    return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for settings");
  if (snprintf(own, sizeof own, "%s/vae", m->folder) >= (int)sizeof own)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the path of an autoencoder is too long");
  RDNA_TRY(rdna__autoencoder_look(own, m->own_latents));
  of->upcast = m->own_latents->upcast;
  if (m->own_latents->kind == RDNA__AUTOENCODER_KL) return RDNA_OK;
  return rdna__fail(RDNA_BAD_DATA, "%s is an autoencoder of another kind than that of %s, which is %s", path, m->folder,
                    m->info.family);
}

static rdna_status keep(const char *path, char **out) {
  *out = strdup(path);
  return *out ? RDNA_OK : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the name of an autoencoder");
}

rdna_status rdna__pipeline_keep_autoencoders(rdna_image_model *m, const rdna_image_model_options *o) {
  rdna__autoencoder_settings of;
  if (o->vae) {
    RDNA_TRY(check(m, o->vae, &of));
    RDNA_TRY(borrow(m, o->vae, &of));
    m->vae_borrows = of.borrows;
    RDNA_TRY(keep(o->vae, &m->vae_path));
    m->picture_dtype = of.upcast && m->dtype == RDNA_F16 ? RDNA_F32 : m->dtype;
    m->undrawn = of.kind == RDNA__AUTOENCODER_TINY;
    m->decodes_alone = of.decodes_alone;
  }
  if (!o->preview) return RDNA_OK;
  RDNA_TRY(check(m, o->preview, &of));
  RDNA_TRY(borrow(m, o->preview, &of));
  m->preview_borrows = of.borrows;
  m->preview_dtype = of.upcast && m->dtype == RDNA_F16 ? RDNA_F32 : m->dtype;
  return keep(o->preview, &m->preview_path);
}

/* ---- on the device ---- */

rdna_status rdna__pipeline_need_autoencoder(rdna_image_model *m, bool encodes) {
  if (m->autoencoder && (!encodes || rdna_image_autoencoder_get_info(m->autoencoder)->encodes)) return RDNA_OK;
  rdna__pipeline_drop_autoencoder(m);
  if (m->vae_path) {
    RDNA_TRY(rdna__autoencoder_open(m->device, m->vae_path, m->picture_dtype, encodes, &m->autoencoder));
    if (m->vae_borrows) rdna__autoencoder_borrow(m->autoencoder, m->own_latents);
    return RDNA_OK;
  }
  return rdna_image_autoencoder_create(m->device, m->folder, "vae", m->picture_dtype, encodes, &m->autoencoder);
}

void rdna__pipeline_drop_autoencoder(rdna_image_model *m) {
  if (m->autoencoder)
    rdna__pipeline_note(m, "autoencoder", rdna_image_autoencoder_get_info(m->autoencoder)->weights_bytes);
  rdna_image_autoencoder_release(m->autoencoder);
  if (m->autoencoder) rdna__pipeline_left(m);
  m->autoencoder = NULL;
}

rdna_status rdna__pipeline_need_preview(rdna_image_model *m) {
  if (!m->preview_path || m->preview) return RDNA_OK;
  RDNA_TRY(rdna__autoencoder_open(m->device, m->preview_path, m->preview_dtype, false, &m->preview));
  if (m->preview_borrows) rdna__autoencoder_borrow(m->preview, m->own_latents);
  return RDNA_OK;
}

uint64_t rdna__pipeline_preview_bytes(const rdna_image_model *m) {
  return m->preview ? rdna_image_autoencoder_get_info(m->preview)->weights_bytes : 0;
}

rdna_status rdna__pipeline_preview(rdna_image_model *m, const float *latents, int height, int width, float *out) {
  return rdna_image_autoencoder_decode(m->preview, latents, 1, height, width, 0, out);
}
