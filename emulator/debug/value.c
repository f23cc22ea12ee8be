// Variables of a lane: where they are, what stands there, and their parts.
#include "debug/value.h"

#include <string.h>

enum { SGPR0 = 32, SGPR64 = 1088, SCALARS = 106, STACK_POINTER = SGPR0 + 32, FRAME_POINTER = SGPR0 + 33 };
enum { PC_32 = 0, EXEC_32 = 1, PC_64 = 16, EXEC_64 = 17, VCC_32 = 512, VCC_64 = 768 };
enum { VGPR_32 = 1536, AGPR_32 = 2048, VGPR_64 = 2560, AGPR_64 = 3072, ROWS = 256 };

// ---- registers and memory of the lane

// Source of the numbers: LLVM "User Guide for AMDGPU Backend", table "AMDGPU DWARF Register Mapping".
static bool read_register(const struct emu_looker *k, uint64_t number, bool at_entry, uint64_t *out) {
  const struct emu_wave_view *view = &k->view;
  const uint32_t *s = at_entry ? k->frame->entry_s : k->frame->s, *v = at_entry ? k->frame->entry_v : k->frame->v;
  uint64_t scalar = number >= SGPR64 ? number - SGPR64 + 64 : number - SGPR0;
  if (!s) return false;
  if ((number >= SGPR0 && number < SGPR0 + 64) || (number >= SGPR64 && scalar < SCALARS)) {
    *out = s[scalar];
    return true;
  }
  if (number == PC_32 || number == PC_64) {
    *out = k->frame->pc;
    return !at_entry;
  }
  if (number == EXEC_32 || number == EXEC_64) {
    *out = s[EMU_EXEC_LO] | (view->lanes == 64 ? (uint64_t)s[EMU_EXEC_LO + 1] << 32 : 0);
    return true;
  }
  if (number == VCC_32 || number == VCC_64) {
    *out = s[EMU_VCC_LO] | (view->lanes == 64 ? (uint64_t)s[EMU_VCC_LO + 1] << 32 : 0);
    return true;
  }
  uint64_t vectors = view->lanes == 64 ? VGPR_64 : VGPR_32, accumulators = view->lanes == 64 ? AGPR_64 : AGPR_32;
  uint64_t row = UINT64_MAX;
  if (number >= vectors && number < vectors + ROWS) row = number - vectors;
  if (view->accumulators && number >= accumulators && number < accumulators + ROWS)
    row = number - accumulators + view->accumulators;
  if (row >= view->vgprs) return false;
  *out = v[row * view->lanes + k->lane];
  return true;
}

static bool register_as_address(void *context, uint64_t number, bool at_entry, uint64_t *out,
                                enum emu_address_space *space) {
  const struct emu_looker *k = context;
  if (!read_register(k, number, at_entry, out)) return false;
  if (at_entry || (number != STACK_POINTER && number != FRAME_POINTER)) return true;
  // what compilers count the stack in: bytes of a lane where scratch instructions address it, else of all lanes
  if (k->view.target->scratch_offset) *out /= k->view.lanes;
  *space = EMU_ADDRESS_PRIVATE;
  return true;
}

static uint64_t flat_address(const struct emu_looker *k, enum emu_address_space space, uint64_t address) {
  if (space == EMU_ADDRESS_PRIVATE) return emu_scratch_window() + (uint32_t)address;
  if (space == EMU_ADDRESS_LOCAL) return emu_lds_window() + (uint32_t)address;
  return space == EMU_ADDRESS_LINKED ? address - k->linked + k->view.base : address;
}

static bool read_space(void *context, enum emu_address_space space, uint64_t address, void *data, size_t bytes) {
  const struct emu_looker *k = context;
  return emu_wave_read(k->wave, k->lane, flat_address(k, space, address), data, bytes) == bytes;
}

static bool frame_base(void *context, uint64_t *out);

static unsigned locate(const struct emu_looker *k, uint32_t entry, const struct emu_place *place,
                       struct emu_piece pieces[EMU_PIECES_MOST], const char **why) {
  struct emu_location_machine machine = {(void *)k, register_as_address, read_space, frame_base};
  struct emu_section expression;
  *why = NULL;
  if (!emu_dwarf_expression(k->dwarf, entry, place, k->frame->look, &expression) || !expression.bytes) return 0;
  return emu_locate(k->dwarf, entry, &expression, &machine, pieces, why);
}

static bool frame_base(void *context, uint64_t *out) {
  const struct emu_looker *k = context;
  struct emu_piece pieces[EMU_PIECES_MOST];
  const char *why;
  enum emu_address_space space;
  const struct emu_entry *function = emu_dwarf_entry(k->dwarf, k->frame->outermost);
  // a base that stands on a base would not end
  if (!function || function->frame_base.kind != EMU_PLACE_EXPRESSION || !function->frame_base.bytes ||
      function->frame_base.data[0] == 0x91)
    return false;
  if (locate(k, k->frame->outermost, &function->frame_base, pieces, &why) != 1) return false;
  *out = pieces[0].value;
  if (pieces[0].kind == EMU_PIECE_REGISTER) return register_as_address(context, pieces[0].value, false, out, &space);
  return pieces[0].kind == EMU_PIECE_MEMORY;
}

// ---- values

// Clang leaves the offsets of LDS variables out of the object: all of them are said to be at 0. That is so of one which
// is all that the kernel has.
static bool is_placed(const struct emu_looker *k, const struct emu_value *v) {
  bool in_lds = v->count == 1 && v->pieces[0].kind == EMU_PIECE_MEMORY && v->pieces[0].space == EMU_ADDRESS_LOCAL;
  return !in_lds || v->pieces[0].value || emu_value_bytes(k, v) == k->view.dispatch->kernel.lds_bytes;
}

void emu_value_of(const struct emu_looker *k, uint32_t entry, struct emu_value *out) {
  const struct emu_entry *e = emu_dwarf_entry(k->dwarf, entry);
  *out = (struct emu_value){.type = emu_dwarf_type(k->dwarf, entry)};
  const struct emu_entry *origin = e->origin ? emu_dwarf_entry(k->dwarf, emu_dwarf_at(k->dwarf, e->origin)) : NULL;
  const struct emu_entry *constant = e->has_value ? e : origin && origin->has_value ? origin : NULL;
  out->count = locate(k, entry, &e->location, out->pieces, &out->why);
  if (!out->count && !out->why) {
    out->count = 1;
    out->pieces[0] = (struct emu_piece){.kind = EMU_PIECE_NOWHERE};
    if (constant && constant->literal.bytes) {
      out->pieces[0] = (struct emu_piece){.kind = EMU_PIECE_LITERAL, .literal = constant->literal};
    } else if (constant) {
      out->pieces[0] = (struct emu_piece){.kind = EMU_PIECE_VALUE, .value = (uint64_t)constant->value};
    }
  }
  if (!out->why && !is_placed(k, out)) out->why = "where in LDS it is, the object does not say";
}

uint64_t emu_value_bytes(const struct emu_looker *k, const struct emu_value *v) {
  return v->points || v->type == EMU_NO_ENTRY ? 8 : emu_type_bytes(k->dwarf, v->type, v->dimension);
}

// Bytes from `from` on of one piece.
static enum emu_fetched fetch_piece(const struct emu_looker *k, const struct emu_piece *p, uint64_t from, void *out,
                                    size_t bytes, uint64_t *bad_address) {
  uint64_t bits = p->value;
  switch (p->kind) {
    case EMU_PIECE_MEMORY: {
      uint64_t address = flat_address(k, p->space, p->value + from);
      size_t got = emu_wave_read(k->wave, k->lane, address, out, bytes);
      *bad_address = address + got;
      return got == bytes ? EMU_FETCHED : EMU_FETCHED_NO_MEMORY;
    }
    case EMU_PIECE_REGISTER:
      if (from + bytes > 4 || !read_register(k, p->value, false, &bits)) return EMU_FETCHED_NOTHING;
      __attribute__((fallthrough));
    case EMU_PIECE_VALUE:
      if (from + bytes > sizeof bits) return EMU_FETCHED_NOTHING;
      memcpy(out, (const uint8_t *)&bits + from, bytes);
      return EMU_FETCHED;
    case EMU_PIECE_LITERAL:
      if (from > p->literal.bytes || bytes > p->literal.bytes - from) return EMU_FETCHED_NOTHING;
      memcpy(out, p->literal.data + from, bytes);
      return EMU_FETCHED;
    default:
      return EMU_FETCHED_NOTHING;
  }
}

enum emu_fetched emu_value_fetch(const struct emu_looker *k, const struct emu_value *v, uint64_t from, void *out,
                                 size_t bytes, uint64_t *bad_address) {
  uint8_t *to = out;
  uint64_t at = v->from + from, start = 0;
  for (unsigned i = 0; i < v->count && bytes; i++) {
    const struct emu_piece *p = &v->pieces[i];
    uint64_t end = p->bytes ? start + p->bytes : UINT64_MAX;
    if (at < end) {
      size_t some = end - at < bytes ? (size_t)(end - at) : bytes;
      enum emu_fetched how = fetch_piece(k, p, at - start, to, some, bad_address);
      if (how != EMU_FETCHED) return how;
      to += some;
      at += some;
      bytes -= some;
    }
    start = end;
  }
  return bytes ? EMU_FETCHED_NOTHING : EMU_FETCHED;
}

bool emu_value_address(const struct emu_looker *k, const struct emu_value *v, uint64_t *out) {
  if (v->why || v->count != 1 || v->pieces[0].kind != EMU_PIECE_MEMORY || v->bit_size) return false;
  *out = flat_address(k, v->pieces[0].space, v->pieces[0].value + v->from);
  return true;
}

// ---- parts

// A member by name, also of what has no name itself, and of classes that it inherits.
static bool find_member(const struct emu_looker *k, uint32_t type, const char *name, int nesting,
                        struct emu_value *value) {
  const struct emu_entry *e = emu_dwarf_entry(k->dwarf, emu_type_plain(k->dwarf, type));
  if (!e || nesting > 8) return false;
  for (uint32_t i = emu_type_plain(k->dwarf, type) + 1; i < e->end;) {
    const struct emu_entry *m = emu_dwarf_entry(k->dwarf, i);
    bool inherited = m->tag == EMU_TAG_INHERITANCE, member = m->tag == EMU_TAG_MEMBER && !m->declaration;
    if (member && m->name && strcmp(m->name, name) == 0) {
      value->type = emu_dwarf_type(k->dwarf, i);
      value->from += m->member_at + m->bit_at / 8;
      value->bit_from = (unsigned)(m->bit_at % 8);
      value->bit_size = (unsigned)(m->bit_size < 64 ? m->bit_size : 64);
      return true;
    }
    if (inherited || (member && !m->name)) {
      value->from += m->member_at;
      if (find_member(k, emu_dwarf_type(k->dwarf, i), name, nesting + 1, value)) return true;
      value->from -= m->member_at;
    }
    i = m->end;
  }
  return false;
}

const char *emu_value_member(const struct emu_looker *k, const struct emu_value *v, const char *name,
                             struct emu_value *out) {
  struct emu_value found = *v;
  found.dimension = 0;
  if (!find_member(k, v->type, name, 0, &found)) return "it has no such member";
  *out = found;
  return NULL;
}

const char *emu_value_whole(const struct emu_looker *k, const struct emu_value *v, int64_t *out) {
  uint64_t bytes = emu_value_bytes(k, v), bits = 0, bad;
  const struct emu_entry *e = v->points ? NULL : emu_dwarf_entry(k->dwarf, emu_type_plain(k->dwarf, v->type));
  bool whole = !e || e->tag == EMU_TAG_POINTER || e->tag == EMU_TAG_ENUMERATION || e->tag == EMU_TAG_REFERENCE ||
               e->tag == EMU_TAG_RVALUE_REFERENCE || (e->tag == EMU_TAG_BASE && e->encoding != EMU_ENCODING_FLOAT);
  if (v->why) return v->why;
  if (!whole || !bytes || bytes > 8) return "it is no whole number";
  if (v->bit_size) bytes = (v->bit_from + v->bit_size + 7) / 8;
  if (bytes > 8) return "it is no whole number";
  enum emu_fetched how = emu_value_fetch(k, v, 0, &bits, (size_t)bytes, &bad);
  if (how != EMU_FETCHED) return how == EMU_FETCHED_NOTHING ? "it is optimized out" : "its memory cannot be read";
  unsigned used = v->bit_size ? v->bit_size : (unsigned)bytes * 8, up = 64 - used;
  bits = used < 64 ? bits >> v->bit_from << up : bits;
  bool negative = e && (e->encoding == EMU_ENCODING_SIGNED || e->encoding == EMU_ENCODING_SIGNED_CHAR);
  *out = negative ? (int64_t)bits >> up : (int64_t)(bits >> up);
  return NULL;
}

const char *emu_value_target(const struct emu_looker *k, const struct emu_value *pointer, struct emu_value *out) {
  const struct emu_entry *e = emu_dwarf_entry(k->dwarf, emu_type_plain(k->dwarf, pointer->type));
  int64_t address;
  if (pointer->points) {
    struct emu_value target = {.type = pointer->type, .count = 1};
    target.pieces[0] = (struct emu_piece){.kind = EMU_PIECE_MEMORY, .value = pointer->pieces[0].value};
    *out = target;
    return NULL;
  }
  if (!e || (e->tag != EMU_TAG_POINTER && e->tag != EMU_TAG_REFERENCE && e->tag != EMU_TAG_RVALUE_REFERENCE))
    return "it is no pointer";
  const char *why = emu_value_whole(k, pointer, &address);
  if (why) return why;
  struct emu_value target = {.type = emu_dwarf_type(k->dwarf, emu_type_plain(k->dwarf, pointer->type)), .count = 1};
  target.pieces[0] =
      (struct emu_piece){.kind = EMU_PIECE_MEMORY, .space = emu_type_space(e), .value = (uint64_t)address};
  *out = target;
  return NULL;
}

const char *emu_value_element(const struct emu_looker *k, const struct emu_value *v, int64_t index,
                              struct emu_value *out) {
  const struct emu_entry *e = emu_dwarf_entry(k->dwarf, emu_type_plain(k->dwarf, v->type));
  struct emu_value of = *v;
  if (e && e->tag == EMU_TAG_POINTER) {
    const char *why = emu_value_target(k, v, &of);
    if (why) return why;
  } else if (e && e->tag == EMU_TAG_ARRAY) {
    bool there;
    (void)emu_type_elements(k->dwarf, emu_type_plain(k->dwarf, v->type), v->dimension + 1, &there);
    of.type = emu_type_plain(k->dwarf, v->type);
    of.dimension = v->dimension + 1;
    if (!there) {
      of.type = emu_dwarf_type(k->dwarf, of.type);
      of.dimension = 0;
    }
  } else {
    return "it has no elements";
  }
  uint64_t bytes = emu_value_bytes(k, &of);
  if (!bytes) return "the size of its elements is not known";
  of.from += (uint64_t)index * bytes;
  *out = of;
  return NULL;
}

// ---- names

// The variable directly in a scope.
static uint32_t find_in(const struct emu_looker *k, uint32_t scope, const char *name) {
  const struct emu_entry *e = emu_dwarf_entry(k->dwarf, scope);
  for (uint32_t i = scope + 1; e && i < e->end;) {
    const struct emu_entry *child = emu_dwarf_entry(k->dwarf, i);
    const char *its = emu_dwarf_name(k->dwarf, i);
    bool variable = child->tag == EMU_TAG_VARIABLE || child->tag == EMU_TAG_PARAMETER;
    if (variable && its && strcmp(its, name) == 0) return i;
    i = child->end;
  }
  return EMU_NO_ENTRY;
}

// One outside of functions, by the last part of its name.
static uint32_t find_global(const struct emu_looker *k, const char *name) {
  const char *last = name;
  for (const char *c = name; (c = strstr(c, "::")) != NULL; c += 2) last = c + 2;
  for (uint32_t i = 0; i < emu_dwarf_count(k->dwarf); i++) {
    const struct emu_entry *e = emu_dwarf_entry(k->dwarf, i), *parent = emu_dwarf_entry(k->dwarf, e->parent);
    if (e->tag != EMU_TAG_VARIABLE || !parent || e->location.kind == EMU_PLACE_NONE) continue;
    if (parent->tag != EMU_TAG_UNIT && parent->tag != EMU_TAG_NAMESPACE) continue;
    const char *its = emu_dwarf_name(k->dwarf, i);
    if (its && strcmp(its, last) == 0) return i;
  }
  return EMU_NO_ENTRY;
}

bool emu_value_named(const struct emu_looker *k, const char *name, struct emu_value *out) {
  uint32_t found = EMU_NO_ENTRY, scope = k->frame->scope;
  struct emu_value object;
  for (; scope != EMU_NO_ENTRY && found == EMU_NO_ENTRY; scope = emu_dwarf_entry(k->dwarf, scope)->parent) {
    found = find_in(k, scope, name);
    if (scope == k->frame->function) break;
  }
  if (found == EMU_NO_ENTRY && strcmp(name, "this") != 0 && emu_value_named(k, "this", &object) &&
      !emu_value_target(k, &object, &object) && !emu_value_member(k, &object, name, out))
    return true;
  if (found == EMU_NO_ENTRY) found = find_global(k, name);
  if (found == EMU_NO_ENTRY) return false;
  emu_value_of(k, found, out);
  const struct emu_entry *type = emu_dwarf_entry(k->dwarf, emu_type_plain(k->dwarf, out->type));
  // a reference is what it refers to
  if (type && (type->tag == EMU_TAG_REFERENCE || type->tag == EMU_TAG_RVALUE_REFERENCE)) {
    struct emu_value target;
    if (!emu_value_target(k, out, &target)) *out = target;
  }
  return true;
}
