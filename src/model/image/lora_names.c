/* What files of LoRAs call a module, by kohya-ss' scripts and those after them, by diffusers and PEFT, and by programs
 * that call modules as whole files do. */
#include <stdio.h>
#include <string.h>

#include "model/image/lora_files.h"

static const struct {
  const char *prefix;
  rdna__lora_part part;
} owners[] = {{"lora_te_", LORA_ENCODER},
              {"lora_te1_", LORA_ENCODER},
              {"text_encoder.", LORA_ENCODER},
              {"lora_te2_", LORA_ENCODER_2},
              {"lora_te3_", LORA_T5},
              {"text_encoder_2.", LORA_ENCODER_2},
              {"text_encoder_3.", LORA_T5},
              {"lora_unet_", LORA_NETWORK},
              {"unet.", LORA_NETWORK},
              {"diffusion_model.", LORA_NETWORK},
              {"text_encoders.clip_l.", LORA_ENCODER},
              {"text_encoders.clip_g.", LORA_ENCODER_2},
              {"text_encoders.t5xxl.", LORA_T5}};

/* Of transformers any name may be their module's. With one of CLIP's encoders the second is T5. */
rdna__lora_part rdna__lora_owner(const rdna__lora_target *target, const char *name) {
  for (size_t i = 0; i < sizeof owners / sizeof *owners; i++) {
    if (strncmp(name, owners[i].prefix, strlen(owners[i].prefix)) != 0) continue;
    bool second = owners[i].part == LORA_ENCODER_2 && target->flows && target->encoders == 1;
    return second ? LORA_T5 : owners[i].part;
  }
  return target->flows ? LORA_NETWORK : LORA_PARTS;
}

static void underscore(char *name) {
  for (; *name; name++)
    if (*name == '.') *name = '_';
}

typedef struct naming {
  rdna__lora_base *bases;
  int count;
} naming;

/* |before| and |name|, with points as they are or as kohya-ss has them. */
static void add(naming *n, const char *before, const char *name, bool points) {
  rdna__lora_base *base = &n->bases[n->count++];
  *base = (rdna__lora_base){.end = 1, .parts = 1};
  snprintf(base->name, sizeof base->name, "%s%s", before, name);
  if (!points) underscore(base->name);
}

static void name_unet(naming *n, const rdna__lora_module *m) {
  char there[RDNA__LORA_NAME];
  bool known = rdna__checkpoint_name(m->names, m->name, there, sizeof there);
  add(n, "lora_unet_", m->name, false);
  if (known) add(n, "lora_unet_", there, false);
  add(n, "unet.", m->name, true);
  if (known) add(n, "diffusion_model.", there, true);
  const char *last = strstr(m->name, ".to_");
  if (!last) return;
  rdna__lora_base *base =
      &n->bases[n->count++]; /* as processors of attention had them; "to_out.0" without its number */
  int length = (int)strcspn(last + 1, ".");
  *base = (rdna__lora_base){.end = 1, .parts = 1};
  snprintf(base->name, sizeof base->name, "unet.%.*s.processor.%.*s_lora", (int)(last - m->name), m->name, length,
           last + 1);
}

/* XLabs' names, of FLUX.1's attention alone: of single blocks the mixture's rows are not in it. */
static void name_processors(naming *n, const rdna__lora_base *there) {
  static const char *const names[][2] = {
      {".img_attn.qkv", ".processor.qkv_lora1"},   {".txt_attn.qkv", ".processor.qkv_lora2"},
      {".img_attn.proj", ".processor.proj_lora1"}, {".txt_attn.proj", ".processor.proj_lora2"},
      {".linear1", ".processor.qkv_lora"},         {".linear2", ".processor.proj_lora"}};
  size_t length = strlen(there->name);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    size_t end = strlen(names[i][0]);
    if (length < end || strcmp(there->name + length - end, names[i][0]) != 0) continue;
    if (there->parts > 3 && there->first > 2) continue; /* what is behind queries, keys and values */
    for (int k = 0; k < 2; k++) {
      rdna__lora_base *base = &n->bases[n->count++];
      *base = *there;
      if (base->parts > 3) base->parts = 3;
      snprintf(base->name, sizeof base->name, "%s%.*s%s", k ? "diffusion_model." : "", (int)(length - end), there->name,
               names[i][1]);
    }
  }
}

static void name_transformer(naming *n, const rdna__lora_module *m) {
  static const char *const pointed[] = {"transformer.", "diffusion_model.", "model.diffusion_model.",
                                        "base_model.model.", ""},
                           *const others[] = {"lora_unet_", "lora_transformer_", "lycoris_"};
  rdna__lora_base there = {.end = 1, .parts = 1};
  rdna__checkpoint_kind kind = m->names->kind;
  there.made_first = kind == CHECKPOINT_FLUX || kind == CHECKPOINT_SD3;
  bool known =
      rdna__checkpoint_flow_name(kind, m->name, there.name, sizeof there.name, &there.first, &there.end, &there.parts);
  for (int k = 0; k < 1 + known; k++) {
    const char *name = k ? there.name : m->name;
    int first = n->count;
    for (size_t i = 0; i < sizeof pointed / sizeof *pointed; i++) add(n, pointed[i], name, true);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) add(n, others[i], name, false);
    for (int i = first; k && i < n->count; i++) {
      n->bases[i].first = there.first;
      n->bases[i].end = there.end;
      n->bases[i].parts = there.parts;
      n->bases[i].made_first = there.made_first;
    }
  }
  if (known && kind == CHECKPOINT_FLUX) name_processors(n, &there);
}

static void name_encoder(naming *n, const rdna__lora_module *m) {
  static const char *const kinds[2][4] = {
      {"lora_te_", "lora_te1_", "text_encoder.", "text_encoders.clip_l.transformer."},
      {"lora_te2_", "lora_te2_", "text_encoder_2.", "text_encoders.clip_g.transformer."}};
  bool whole = strncmp(m->name, "text_model.", 11) == 0 || strncmp(m->name, "text_projection", 15) == 0;
  char name[RDNA__LORA_NAME];
  snprintf(name, sizeof name, "%s%s", whole ? "" : "text_model.", m->name);
  for (int i = 0; i < 4; i++) add(n, kinds[m->part == LORA_ENCODER_2][i], name, i >= 2);
}

static void name_t5(naming *n, const rdna__lora_module *m) {
  static const char *const kinds[] = {"lora_te3_", "lora_te2_", "text_encoder_3.", "text_encoder_2.",
                                      "text_encoders.t5xxl.transformer."};
  for (int i = 0; i < 5; i++) add(n, kinds[i], m->name, i > 1);
}

int rdna__lora_names(const rdna__lora_module *m, rdna__lora_base out_bases[RDNA__LORA_BASES]) {
  naming n = {.bases = out_bases};
  if (m->part == LORA_T5)
    name_t5(&n, m);
  else if (m->part != LORA_NETWORK)
    name_encoder(&n, m);
  else if (m->names->kind >= CHECKPOINT_FLUX)
    name_transformer(&n, m);
  else
    name_unet(&n, m);
  return n.count;
}
