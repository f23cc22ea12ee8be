// MIMG, and what GFX12 makes of it: VIMAGE and VSAMPLE. Images of one sample, whole descriptors, no status behind the
// data; the rest is graphics'.
#include "isa/decode.h"

// The words of an address in their order: bias, gradients, coordinates, level (or its clamp).
enum { SAMPLES = 1, BIAS = 2, GRADIENTS = 4, HALVES = 8, LEVEL = 16, GATHERS = 32 };

static unsigned parts_of(unsigned op) {
  switch (op) {
    case EMU_IMAGE_LOAD_MIP:
    case EMU_IMAGE_STORE_MIP:
      return LEVEL;
    case EMU_IMAGE_SAMPLE:
    case EMU_IMAGE_SAMPLE_LZ:
      return SAMPLES;
    case EMU_IMAGE_SAMPLE_CL:
    case EMU_IMAGE_SAMPLE_L:
      return SAMPLES | LEVEL;
    case EMU_IMAGE_SAMPLE_D:
      return SAMPLES | GRADIENTS;
    case EMU_IMAGE_SAMPLE_D_CL:
      return SAMPLES | GRADIENTS | LEVEL;
    case EMU_IMAGE_SAMPLE_D_G16:
      return SAMPLES | GRADIENTS | HALVES;
    case EMU_IMAGE_SAMPLE_D_CL_G16:
      return SAMPLES | GRADIENTS | HALVES | LEVEL;
    case EMU_IMAGE_SAMPLE_B:
      return SAMPLES | BIAS;
    case EMU_IMAGE_SAMPLE_B_CL:
      return SAMPLES | BIAS | LEVEL;
    case EMU_IMAGE_GATHER4:
    case EMU_IMAGE_GATHER4_LZ:
      return SAMPLES | GATHERS;
    case EMU_IMAGE_GATHER4_CL:
    case EMU_IMAGE_GATHER4_L:
      return SAMPLES | GATHERS | LEVEL;
    case EMU_IMAGE_GATHER4_B:
      return SAMPLES | GATHERS | BIAS;
    case EMU_IMAGE_GATHER4_B_CL:
      return SAMPLES | GATHERS | BIAS | LEVEL;
    default:
      return 0;
  }
}

bool emu_isa_gathers(unsigned op) { return parts_of(op) & GATHERS; }

// By enum emu_image_dim.
static const uint8_t coordinates[] = {1, 2, 3, 3, 2, 3}, gradients[] = {2, 4, 6, 4, 2, 4};

static void count_words(unsigned parts, struct emu_image_access *im) {
  unsigned along = gradients[im->dim], numbers = coordinates[im->dim] + (parts & LEVEL ? 1 : 0);
  if (parts & HALVES) along = (along / 2 + 1) / 2 * 2;  // each direction's halves begin a word
  im->first = (uint8_t)((parts & BIAS ? 1 : 0) + (parts & GRADIENTS ? along : 0));
  im->words = (uint8_t)(im->first + (im->a16 ? (numbers + 1) / 2 : numbers));
}

static unsigned most_words(unsigned parts) {
  struct emu_image_access im = {.dim = EMU_IMAGE_3D};
  count_words(parts, &im);
  return im.words;
}

// Registers that follow the last one that is named.
static enum emu_decode_status fill_rest(struct emu_image_access *im, unsigned named) {
  for (unsigned k = named; k < im->words; k++) {
    if (im->reg[k - 1] == 255) return EMU_DECODE_OPERAND;
    im->reg[k] = (uint8_t)(im->reg[k - 1] + 1);
  }
  return EMU_DECODE_OK;
}

static enum emu_decode_status decode_address(struct emu_decoder *d, const struct emu_image_fields *f, unsigned parts) {
  struct emu_image_access *im = &d->inst->image;
  for (unsigned k = 0; k < f->slots; k++) im->reg[k] = (uint8_t)emu__decode_field(d, f->address[k]);
  if (f->slots > 1) {  // each has its place; the last begins what there is more
    im->named = im->words < f->slots ? im->words : f->slots;
    unsigned most = parts & SAMPLES ? most_words(parts) : 4;
    for (unsigned k = most; k < f->slots; k++)  // what the opcode never has; as LLVM has it, four without a sampler
      if (k >= im->named && im->reg[k]) return EMU_DECODE_RESERVED;
    return fill_rest(im, im->named);
  }
  unsigned more = emu__decode_field(d, f->nsa);
  if (more == 0) return fill_rest(im, 1);
  for (unsigned w = 0; w < more; w++) {
    uint32_t word;
    EMU_DECODE_TRY(emu__decode_word(d, &word));
    for (unsigned k = 0; k < 4; k++) im->reg[1 + 4 * w + k] = (uint8_t)emu__bits(word, 8 * k, 8);
  }
  unsigned room = 1 + 4 * more;
  bool tight = im->words > room - 4 && (im->words <= room || f->nsa_goes_on);
  if (!tight) return EMU_DECODE_GRAPHICS;
  im->named = im->words < room ? im->words : (uint8_t)room;
  return fill_rest(im, im->named);
}

static enum emu_decode_status decode_data(struct emu_decoder *d, const struct emu_image_fields *f, bool gathers) {
  struct emu_inst *inst = d->inst;
  const uint8_t *type = emu__op_rows[inst->op].type;
  unsigned dwords = gathers ? 4 : (unsigned)__builtin_popcount(inst->image.dmask);
  if (inst->image.d16) dwords = (dwords + 1) / 2;
  struct emu_operand *operand = type[0] ? &inst->dst : &inst->src[1];
  EMU_DECODE_TRY(emu__decode_vector(d, emu__decode_field(d, f->data), EMU_B32, operand));
  operand->dwords = (uint8_t)dwords;
  return operand->reg + dwords <= EMU_ACCUMULATOR ? EMU_DECODE_OK : EMU_DECODE_OPERAND;
}

enum emu_decode_status emu__decode_image(struct emu_decoder *d) {
  const struct emu_encoding *e = d->target->encoding;
  struct emu_inst *inst = d->inst;
  struct emu_image_access *im = &inst->image;
  bool sampler = d->word[0] >> 26 == e->sampler_mark;
  const struct emu_image_fields *f = &e->image[sampler];
  if (f->words > 2) EMU_DECODE_TRY(emu__decode_word(d, &d->word[2]));
  enum emu_format base;
  unsigned code = emu__decode_field(d, f->op) | emu__decode_field(d, f->op_high) << f->op.bits;
  inst->op = (uint16_t)emu__op_find(d->target, EMU_MIMG, code, &base);
  if (!inst->op) return EMU_DECODE_GRAPHICS;
  unsigned parts = parts_of(inst->op);
  if (e->sampler_mark && sampler != (bool)(parts & SAMPLES)) return EMU_DECODE_GRAPHICS;
  im->dim = (uint8_t)emu__decode_field(d, f->dim);
  im->dmask = (uint8_t)emu__decode_field(d, f->dmask);
  im->unorm = emu__decode_field(d, f->unorm) & 1;
  im->a16 = emu__decode_field(d, f->a16) & 1;
  im->d16 = emu__decode_field(d, f->d16) & 1;
  inst->glc = emu__decode_field(d, f->glc) & 1;
  inst->slc = emu__decode_field(d, f->slc) & 1;
  inst->dlc = emu__decode_field(d, f->dlc) & 1;
  inst->temporal = (uint8_t)emu__decode_field(d, f->temporal);
  inst->scope = (uint8_t)emu__decode_field(d, f->scope);
  bool rest = emu__decode_field(d, f->r128) || emu__decode_field(d, f->tfe) || emu__decode_field(d, f->lwe);
  if (rest || im->dim > EMU_IMAGE_2D_ARRAY || !im->dmask) return EMU_DECODE_GRAPHICS;
  // gradients are halves with a16, where no opcode says that they are
  bool apart = emu__op_code(d->target, EMU_IMAGE_SAMPLE_D_G16)->present;
  if (im->a16 && parts & GRADIENTS && !apart) return EMU_DECODE_GRAPHICS;
  count_words(parts, im);
  EMU_DECODE_TRY(decode_data(d, f, parts & GATHERS));
  EMU_DECODE_TRY(decode_address(d, f, parts));
  unsigned resource = emu__decode_field(d, f->resource) * f->resource_unit;
  if (resource >= EMU_SCALAR_COUNT) return EMU_DECODE_OPERAND;
  EMU_DECODE_TRY(emu__decode_scalar(d, resource, EMU_B256, &inst->src[2]));
  unsigned sampling = emu__decode_field(d, f->sampler) * f->resource_unit;
  if (!(parts & SAMPLES)) return sampling ? EMU_DECODE_RESERVED : EMU_DECODE_OK;
  if (sampling >= EMU_SCALAR_COUNT) return EMU_DECODE_OPERAND;
  return emu__decode_scalar(d, sampling, EMU_B128, &inst->src[3]);
}
