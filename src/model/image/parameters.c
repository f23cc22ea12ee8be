#include "model/image/parameters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/image/pipeline.h"

/* In as few digits as give |value| again. */
static void write_number(FILE *to, const char *name, double value) {
  char text[32];
  int digits = 6;
  do snprintf(text, sizeof text, "%.*g", digits, value);
  while (strtod(text, NULL) != value && ++digits < 18);
  fprintf(to, ", %s: %s", name, text);
}

/* |before| and the last part of |path|, without slashes at its end. */
static void write_name(FILE *to, const char *before, const char *path) {
  const char *name = path + strlen(path);
  while (name > path && name[-1] == '/') name--;
  int length = 0;
  for (; name > path && name[-1] != '/'; name--) length++;
  fprintf(to, "%s%.*s", before, length, name);
}

/* With spaces, as commas divide what is said. */
static void write_places(FILE *to, const char *places) {
  fprintf(to, ", PAG layers: ");
  for (; *places; places++) fputc(*places == ',' ? ' ' : *places, to);
}

static void write_loras(FILE *to, const rdna_image_model *m, const rdna_image_request *r) {
  const char *before = ", LoRA: ";
  for (int i = 0; i < rdna__loras_count(m->loras); i++) {
    double scale = r->lora_scales ? r->lora_scales[i] : rdna__loras_opened_scale(m->loras, i);
    if (scale == 0) continue;
    write_name(to, before, rdna__loras_path(m->loras, i));
    fprintf(to, ":%g", scale);
    before = " ";
  }
}

static void write_files(FILE *to, const rdna_image_model *m) {
  if (m->transformer_file) write_name(to, ", Transformer: ", m->transformer_file);
  if (m->t5_file) write_name(to, ", T5: ", m->t5_file);
  if (m->vae_path) write_name(to, ", VAE: ", m->vae_path);
  if (rdna_dtype_block_values(m->weights) > 1) fprintf(to, ", Weights: %s", rdna_dtype_name(m->weights));
  for (int i = 0; m->words && i < m->words->count; i++) {
    const rdna__inversion *word = &m->words->items[i];
    write_name(to, i ? " " : ", Embeddings: ", word->path);
    if (word->chosen) fprintf(to, ":%s", word->name);
  }
}

/* Shares of the steps once, where they are the same for all. */
static void write_guides(FILE *to, const rdna_image_model *m, const rdna_image_request *r) {
  bool part = false, same = true;
  for (size_t i = 0; i < r->guide_count; i++) {
    const rdna_image_guide *g = &r->guides[i];
    write_name(to, i ? " " : ", Control: ", m->control_paths[g->control]);
    fprintf(to, ":%g", g->scale);
    part |= g->start > 0 || g->end < 1;
    same &= g->start == r->guides[0].start && g->end == r->guides[0].end;
  }
  for (size_t i = 0; part && i < (same ? 1 : r->guide_count); i++)
    fprintf(to, "%s%g-%g", i ? " " : ", Control steps: ", r->guides[i].start, r->guides[i].end);
}

static void write_references(FILE *to, const rdna_image_model *m, const rdna_image_request *r) {
  for (size_t i = 0; i < r->reference_count; i++) {
    write_name(to, i ? " " : ", IP-Adapter: ", m->adapter_paths[r->references[i].adapter]);
    fprintf(to, ":%g", r->references[i].scale);
  }
}

static void write_skipping(FILE *to, const rdna_image_request *r) {
  write_number(to, "Skip layers scale", r->skip_guidance);
  fprintf(to, ", Skip layers: %s", r->skip_layers ? r->skip_layers : RDNA__SKIP_LAYERS);
  write_number(to, "Skip layers from", r->skip_start);
  write_number(to, "Skip layers up to", r->skip_end > 0 ? r->skip_end : RDNA__SKIP_END);
}

char *rdna__image_parameters(const rdna_image_model *m, const rdna_image_request *r, int i, const char *path,
                             const char *more) {
  char *text = NULL;
  size_t size;
  FILE *to = open_memstream(&text, &size);
  if (!to) return NULL;
  fprintf(to, "%s\n", r->prompt ? r->prompt : "");
  if (r->negative) fprintf(to, "Negative prompt: %s\n", r->negative);
  fprintf(to, "Steps: %d, Sampler: %s, Schedule type: %s", r->steps, r->sampler, r->spacing);
  write_number(to, "CFG scale", r->guidance);
  if (r->pag > 0) write_number(to, "PAG scale", r->pag);
  if (r->pag > 0) write_places(to, r->pag_layers ? r->pag_layers : "mid");
  if (r->rescale > 0) write_number(to, "CFG rescale", r->rescale);
  if (r->skip_guidance > 0) write_skipping(to, r);
  fprintf(to, ", Seed: %llu, Size: %dx%d", (unsigned long long)(r->seed + (uint64_t)i), r->width, r->height);
  write_name(to, ", Model: ", path);
  if (r->init && !m->looks) write_number(to, "Denoising strength", r->strength);
  if (r->init && m->looks) fprintf(to, ", Context: given");
  if (r->picture_count) fprintf(to, ", Context pictures: %zu", r->picture_count + 1);
  if (r->skip) fprintf(to, ", Clip skip: %d", r->skip + 1);
  fprintf(to, ", Type: %s", rdna_dtype_name(m->dtype));
  if (r->tile) fprintf(to, ", Tile: %d", r->tile);
  if (r->mask) fprintf(to, ", Mask: given");
  if (r->plain) fprintf(to, ", Plain: true");
  if (r->latents) fprintf(to, ", Latents: given");
  if (m->refiner) {
    write_name(to, ", Refiner: ", m->refiner->folder);
    write_number(to, "Refiner switch at", r->refine_from > 0 ? r->refine_from : RDNA__REFINE_FROM);
  }
  write_loras(to, m, r);
  write_files(to, m);
  write_guides(to, m, r);
  write_references(to, m, r);
  fprintf(to, "%s, Version: rdna %s", more, RDNA_VERSION);
  if (fclose(to) == 0) return text;
  free(text);
  return NULL;
}
