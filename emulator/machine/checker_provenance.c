// Which variable of the code object an address was made for: what runs from one array into its neighbour is no access
// outside of memory.
//
// Code makes the address of a variable from its own, and the linker leaves the sum alone:
//
//     s_getpc_b64  s[4:5]
//     s_add_u32    s4, s4, 0x2c50         the variable, or a byte before, in or behind it: of table[i - 1] and of
//     s_addc_u32   s5, s5, 0              "for (p = table + n; p != table;)" a constant has gone into the sum
//
// So the sum alone, called a root here, does not say whose it is. But it was made for one variable, whatever for:
// when accesses through one root meet two, one of them is wrong. Registers that hold addresses carry the number of
// their root, by lane; moves, sums and selects hand it on. Where two meet in one sum, or an address goes into anything
// else, the result is EMU_ROOT_LOST, of which nothing is said, and what is derived from that is lost too. Memory keeps
// no roots.
#include "machine/checker_state.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROOTS = 60000, NAME = 100 };

struct emu_root {
  uint64_t address, made;  // made: offset of the instruction that did it
  // A place is a variable or the bytes between two. This one holds the address itself.
  unsigned home;
  uint64_t low, high;          // of the home
  bool at_home;                // atomic: accesses met it
  unsigned other;              // a place that accesses met before the home; 0: none
  struct emu_report *waiting;  // of that access, which is wrong if one at home follows
};

struct emu_roots {
  const struct emu_variable *variables;
  unsigned count;
  pthread_mutex_t lock;
  unsigned made;
  struct emu_root *root[ROOTS + 1];
};

struct emu_roots *emu__roots_create(const struct emu_variable *variables, unsigned count) {
  struct emu_roots *roots = calloc(1, sizeof(*roots));
  if (!roots) return NULL;
  roots->variables = variables;
  roots->count = count;
  if (!pthread_mutex_init(&roots->lock, NULL)) return roots;
  free(roots);
  return NULL;
}

void emu__roots_release(struct emu_roots *roots) {
  if (!roots) return;
  for (unsigned i = 1; i <= roots->made; i++) {
    free(roots->root[i]->waiting);
    free(roots->root[i]);
  }
  pthread_mutex_destroy(&roots->lock);
  free(roots);
}

static struct emu_roots *roots_of(const struct emu_wave *wave) { return emu__program_roots(wave->group->run->program); }

// ---- places: variable i is 2 i + 2, the bytes before it are 2 i + 1

static unsigned place_of(const struct emu_roots *roots, uint64_t at) {
  unsigned low = 0, high = roots->count;
  while (low < high) {
    unsigned middle = (low + high) / 2;
    if (roots->variables[middle].address <= at) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  bool inside = low && at - roots->variables[low - 1].address < roots->variables[low - 1].bytes;
  return 2 * low + !inside;
}

static const struct emu_variable *variable_at(const struct emu_roots *roots, unsigned place) {
  return place && place % 2 == 0 ? &roots->variables[place / 2 - 1] : NULL;
}

static void bounds(const struct emu_roots *roots, unsigned place, uint64_t *low, uint64_t *high) {
  const struct emu_variable *v = variable_at(roots, place);
  unsigned before = place / 2;  // variables that begin below what lies between two
  *low = v ? v->address : before ? roots->variables[before - 1].address + roots->variables[before - 1].bytes : 0;
  *high = v ? v->address + v->bytes : before < roots->count ? roots->variables[before].address : UINT64_MAX;
}

// ---- roots

// Compilers make a table of pointers one of 32-bit distances from itself, so that one root leads to all of them.
static bool holds_distances(const struct emu_wave *wave, const struct emu_roots *roots, const struct emu_variable *v) {
  const struct emu_variable *last = &roots->variables[roots->count - 1];
  if (v->bytes % 4 || v->address % 4 || emu__memory_scalar((struct emu_wave *)wave, v->address, 4) != 4) return false;
  for (uint64_t at = v->address; at < v->address + v->bytes; at += 4) {
    int32_t distance = *(const int32_t *)(uintptr_t)at;
    uint64_t to = v->address + (uint64_t)(int64_t)distance;
    if (to - v->address < v->bytes) return false;
    if (to < roots->variables[0].address || to >= last->address + last->bytes) return false;
  }
  return true;
}

// The number of the root that the step makes. EMU_ROOT_LOST: it makes another each time, or there are too many.
static uint16_t root_of(struct emu_wave *wave, const struct emu_step *step, struct emu_plan *plan, uint64_t address) {
  struct emu_roots *roots = roots_of(wave);
  unsigned number = __atomic_load_n(&plan->root, __ATOMIC_ACQUIRE);
  if (!number) {
    pthread_mutex_lock(&roots->lock);
    for (unsigned i = 1; i <= roots->made && !number; i++) {
      if (roots->root[i]->made == step->offset && roots->root[i]->address == address) number = i;
    }
    struct emu_root *new = number || roots->made == ROOTS ? NULL : calloc(1, sizeof(*new));
    if (new) {
      *new = (struct emu_root){.address = address, .made = step->offset, .home = place_of(roots, address)};
      bounds(roots, new->home, &new->low, &new->high);
      const struct emu_variable *v = variable_at(roots, new->home);
      if (v && holds_distances(wave, roots, v)) {
        free(new);
        new = NULL;
      }
    }
    if (new) {
      number = ++roots->made;
      roots->root[number] = new;
    }
    if (!number) number = EMU_ROOT_LOST;
    __atomic_store_n(&plan->root, (uint16_t)number, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&roots->lock);
  }
  return number == EMU_ROOT_LOST || roots->root[number]->address != address ? EMU_ROOT_LOST : (uint16_t)number;
}

// ---- registers

static void mark(struct emu_wave_check *c, unsigned i, bool on) {
  emu__set_put(&c->rooted, i, on);
  emu__check_watch(c, i);
}

static uint16_t scalar_root(const struct emu_wave_check *c, unsigned reg) {
  return emu__set_has(&c->rooted, EMU_SET_SCALAR + reg) ? c->scalar_root[reg] : 0;
}

static void set_scalar(struct emu_wave_check *c, unsigned reg, uint16_t root) {
  if (reg == EMU_NULL) return;
  c->scalar_root[reg] = root;
  mark(c, EMU_SET_SCALAR + reg, root);
}

static uint16_t *row_of(const struct emu_wave *wave, unsigned reg) {
  return wave->checker->root + (size_t)reg * wave->lanes;
}

static uint16_t vector_root(const struct emu_wave *wave, unsigned reg, unsigned lane) {
  return emu__set_has(&wave->checker->rooted, reg) ? row_of(wave, reg)[lane] : 0;
}

static void set_vector(struct emu_wave *wave, unsigned reg, const uint16_t *roots, uint64_t mask) {
  struct emu_wave_check *c = wave->checker;
  uint16_t *row = row_of(wave, reg), any = 0;
  if (!emu__set_has(&c->rooted, reg)) memset(row, 0, wave->lanes * sizeof(*row));
  for (unsigned l = 0; l < wave->lanes; l++) {
    if (mask >> l & 1) row[l] = roots[l];
    any |= row[l];
  }
  mark(c, reg, any);
}

static uint16_t operand_root(const struct emu_wave *wave, const struct emu_operand *o, unsigned dword, unsigned lane) {
  if (o->kind == EMU_OPERAND_VECTOR) return vector_root(wave, o->reg + dword, lane);
  if (o->kind == EMU_OPERAND_SCALAR && o->reg != EMU_NULL) return scalar_root(wave->checker, o->reg + dword);
  return 0;
}

// What an instruction writes holds no address, as far as is known here.
static void forget(struct emu_wave_check *c, const struct emu_set *written, unsigned from) {
  for (unsigned i = from / 64; i < EMU_SET_SIZE / 64; i++) {
    for (uint64_t rest = written->word[i] & c->rooted.word[i]; rest; rest &= rest - 1) {
      mark(c, i * 64 + (unsigned)__builtin_ctzll(rest), false);
    }
  }
}

static void forget_all(struct emu_wave_check *c) {
  struct emu_set all;
  memset(&all, 0xff, sizeof(all));
  forget(c, &all, 0);
}

// ---- arithmetic

enum way { WAY_LOSE, WAY_MOVE, WAY_SUM, WAY_LESS, WAY_LESS_REVERSED, WAY_LAST, WAY_SELECT };

static enum way way_of(unsigned op) {
  switch (op) {
    case EMU_V_MOV_B32:
    case EMU_S_MOV_B32:
    case EMU_S_MOV_B64:
      return WAY_MOVE;
    case EMU_V_ADD_NC_U32:
    case EMU_V_ADD_CO_U32:
    case EMU_V_ADD3_U32:
    case EMU_V_OR_B32:  // of what has no bit in common it is the sum
    case EMU_V_OR3_B32:
    case EMU_S_ADD_U32:
    case EMU_S_ADD_I32:
    case EMU_S_OR_B32:
    case EMU_S_OR_B64:
    case EMU_S_ADD_NC_U64:
      return WAY_SUM;
    case EMU_V_SUB_NC_U32:
    case EMU_V_SUB_CO_U32:
    case EMU_S_SUB_U32:
    case EMU_S_SUB_I32:
    case EMU_S_SUB_NC_U64:
      return WAY_LESS;
    case EMU_V_SUBREV_NC_U32:
    case EMU_V_SUBREV_CO_U32:
      return WAY_LESS_REVERSED;
    case EMU_V_LSHL_ADD_U32:
    case EMU_V_LSHL_OR_B32:
    case EMU_V_MAD_U64_U32:
    case EMU_V_MAD_I64_I32:
    case EMU_V_MAD_U32_U24:
    case EMU_V_MAD_I32_I24:
    case EMU_S_LSHL1_ADD_U32:
    case EMU_S_LSHL2_ADD_U32:
    case EMU_S_LSHL3_ADD_U32:
    case EMU_S_LSHL4_ADD_U32:
      return WAY_LAST;
    case EMU_V_CNDMASK_B32:
    case EMU_S_CSELECT_B32:
    case EMU_S_CSELECT_B64:
      return WAY_SELECT;
    default:
      return WAY_LOSE;
  }
}

// `n` sources with the roots `r`; a select has chosen already.
static uint16_t combine(enum way way, const uint16_t *r, unsigned n) {
  uint16_t found = 0;
  unsigned with = 0, where = 0;
  for (unsigned i = 0; i < n; i++) {
    if (!r[i]) continue;
    found = r[i];
    where = i;
    with++;
  }
  if (!with || way == WAY_MOVE || way == WAY_SELECT) return found;
  bool kept = with == 1 && (way == WAY_SUM || (way == WAY_LESS && where == 0) ||
                            (way == WAY_LESS_REVERSED && where == 1) || (way == WAY_LAST && where == n - 1));
  return kept && found < EMU_ROOT_PC ? found : EMU_ROOT_LOST;
}

static bool is_value(const struct emu_operand *o) { return o->kind && o->type != EMU_MASK; }

// The low 32 bits of one half of a VOPD, or of any other vector operation.
static void vector_half(const struct emu_wave *wave, unsigned op, bool plain, const struct emu_operand *src,
                        uint32_t mask_low, uint32_t mask_high, uint16_t out[64]) {
  enum way way = plain ? way_of(op) : WAY_LOSE;
  unsigned n = 0;
  while (n < 3 && is_value(&src[n])) n++;
  for (unsigned l = 0; l < wave->lanes; l++) {
    uint16_t r[3] = {0};
    for (unsigned i = 0; i < n; i++) {
      for (unsigned k = 0; k < src[i].dwords && !r[i]; k++) r[i] = operand_root(wave, &src[i], k, l);
    }
    bool second = ((l < 32 ? mask_low >> l : mask_high >> (l - 32)) & 1) != 0;
    if (way == WAY_SELECT) r[0] = r[second], r[1] = 0;
    out[l] = combine(way, r, n);
  }
}

static void vector(struct emu_wave *wave, const struct emu_step *step, const struct emu_plan *plan) {
  const struct emu_inst *inst = step->inst;
  uint64_t exec = emu__wave_exec(wave);
  bool dual = inst->format == EMU_VOPD, plain = inst->lanes == EMU_LANES_PLAIN && !inst->clamp;
  unsigned mask = EMU_VCC_LO;  // of a select
  if (!dual && inst->src[2].kind == EMU_OPERAND_SCALAR) mask = inst->src[2].reg;
  uint16_t first[64], second[64];
  vector_half(wave, inst->op, plain, inst->src, wave->s[mask], wave->s[mask + 1], first);
  if (dual) vector_half(wave, inst->y.op, plain, inst->y.src, wave->s[EMU_VCC_LO], wave->s[EMU_VCC_HI], second);
  forget(wave->checker, &plan->writes, EMU_SET_SCALAR);
  const uint16_t none[64] = {0};
  const struct emu_operand *dst[2] = {&inst->dst, &inst->y.dst};
  for (int i = 0; i < 1 + dual; i++) {
    if (dst[i]->kind != EMU_OPERAND_VECTOR) continue;
    set_vector(wave, dst[i]->reg, i ? second : first, exec);
    for (unsigned k = 1; k < dst[i]->dwords; k++) set_vector(wave, dst[i]->reg + k, none, exec);
  }
}

static void scalar(struct emu_wave *wave, const struct emu_step *step, struct emu_plan *plan) {
  struct emu_wave_check *c = wave->checker;
  const struct emu_inst *inst = step->inst;
  const struct emu_operand *a = &inst->src[0], *b = &inst->src[1], *dst = &inst->dst;
  if (plan->rule == EMU_RULE_RELATIVE_TO) {
    forget_all(c);
    return;
  }
  enum way way = way_of(inst->op);
  uint16_t out[2] = {0};
  for (unsigned k = 0; k < dst->dwords && k < 2; k++) {
    uint16_t r[2] = {operand_root(wave, a, k < a->dwords ? k : 0, 0), operand_root(wave, b, k < b->dwords ? k : 0, 0)};
    if (way == WAY_SELECT) r[0] = r[!wave->scc], r[1] = 0;
    out[k] = combine(way, r, b->kind ? 2 : 1);
  }
  bool from_pc = a->kind == EMU_OPERAND_SCALAR && scalar_root(c, a->reg) == EMU_ROOT_PC &&
                 b->kind == EMU_OPERAND_CONSTANT && dst->kind == EMU_OPERAND_SCALAR;
  if (inst->op == EMU_S_GETPC_B64) out[0] = out[1] = EMU_ROOT_PC;
  if (inst->op == EMU_S_ADD_U32 && from_pc) out[0] = EMU_ROOT_PC;
  // GFX12's S_GETPC has 48 bits, and compilers extend them
  bool extends = inst->op == EMU_S_SEXT_I32_I16 && a->kind == EMU_OPERAND_SCALAR && a->reg == dst->reg;
  if (extends && scalar_root(c, a->reg) == EMU_ROOT_PC) out[0] = EMU_ROOT_PC;
  if (inst->op == EMU_S_ADDC_U32 && from_pc && dst->reg && scalar_root(c, dst->reg - 1u) == EMU_ROOT_PC) {
    uint64_t high = wave->s[a->reg] + (uint32_t)b->value + wave->scc;
    set_scalar(c, dst->reg - 1u, root_of(wave, step, plan, wave->s[dst->reg - 1] | high << 32));
    out[0] = 0;
  }
  forget(c, &plan->writes, 0);
  if (dst->kind != EMU_OPERAND_SCALAR) return;
  for (unsigned k = 0; k < dst->dwords && k < 2; k++) set_scalar(c, dst->reg + k, out[k]);
}

static void cross(struct emu_wave *wave, const struct emu_step *step, const struct emu_plan *plan) {
  struct emu_wave_check *c = wave->checker;
  const struct emu_inst *inst = step->inst;
  uint64_t exec = emu__wave_exec(wave);
  unsigned lane = exec ? (unsigned)__builtin_ctzll(exec) : 0;
  if (inst->op != EMU_V_READFIRSTLANE_B32) lane = emu__scalar_read(wave, &inst->src[1]) & (wave->lanes - 1);
  uint16_t a[64], b[64];
  switch (inst->op) {
    case EMU_V_READFIRSTLANE_B32:
    case EMU_V_READLANE_B32:
      set_scalar(c, inst->dst.reg, operand_root(wave, &inst->src[0], 0, lane));
      break;
    case EMU_V_WRITELANE_B32:
      a[lane] = operand_root(wave, &inst->src[0], 0, 0);
      set_vector(wave, inst->dst.reg, a, UINT64_C(1) << lane);
      break;
    case EMU_V_SWAP_B32:
      for (unsigned l = 0; l < wave->lanes; l++) {
        a[l] = operand_root(wave, &inst->src[0], 0, l);
        b[l] = operand_root(wave, &inst->dst, 0, l);
      }
      set_vector(wave, inst->dst.reg, a, exec);
      set_vector(wave, inst->src[0].reg, b, exec);
      break;
    case EMU_V_MOVRELD_B32:
    case EMU_V_MOVRELSD_B32:
    case EMU_V_MOVRELSD_2_B32:
    case EMU_V_SWAPREL_B32:
      forget_all(c);
      break;
    default:
      forget(c, &plan->writes, 0);
      break;
  }
}

// ---- accesses

// A static one's is "_ZL5alpha".
static const char *plain_name(const struct emu_variable *v) {
  char *end = NULL;
  unsigned long n = !strncmp(v->name, "_ZL", 3) ? strtoul(v->name + 3, &end, 10) : 0;
  return n && strlen(end) == n ? end : v->name;
}

static void describe(const struct emu_roots *roots, unsigned place, unsigned other, uint64_t at, char *text,
                     size_t room) {
  const struct emu_variable *v = variable_at(roots, place), *o = variable_at(roots, other);
  int used;
  if (v) {
    used = snprintf(text, room, "byte %" PRIu64 " of %.*s", at - v->address, NAME, plain_name(v));
  } else {
    used = snprintf(text, room, "in no variable");
  }
  if (!o) return;
  uint64_t end = o->address + o->bytes;
  snprintf(text + used, room - (size_t)used, "%s%" PRIu64 " bytes %s %.*s, which has %" PRIu64 " bytes",
           v ? " and " : ", ", at >= end ? at - end : o->address - at, at >= end ? "past the end of" : "before", NAME,
           plain_name(o), o->bytes);
}

struct touch {
  int lane;
  uint64_t at;
  unsigned bytes;
  const char *verb;
};

// Accesses through one root met two places, this one at `met`. `held`: keep the report for later.
static void say(struct emu_wave *wave, const struct emu_step *step, const struct emu_root *root, const struct touch *t,
                uint64_t met, unsigned other, struct emu_report *held) {
  const struct emu_roots *roots = roots_of(wave);
  unsigned place = place_of(roots, met);
  const struct emu_variable *o = variable_at(roots, other);
  char where[3 * NAME], message[600];
  describe(roots, place, other, met, where, sizeof(where));
  snprintf(message, sizeof(message),
           "It %s %u bytes at 0x%" PRIx64 ", %s. Through the same address, made at 0x%" PRIx64
           ", %.*s is accessed too; it can be meant for one of them only.",
           t->verb, t->bytes, t->at, where, root->made, NAME, o ? plain_name(o) : "memory of no variable");
  if (held) {
    emu__report_fill(wave, step, EMU_CHECK, "out of bounds", t->lane, t->at, message, held);
  } else {
    emu__check_report(wave, step, "out of bounds", t->lane, t->at, "%s", message);
  }
}

static void arrive(struct emu_wave *wave, struct emu_root *root) {
  if (__atomic_load_n(&root->at_home, __ATOMIC_RELAXED)) return;
  struct emu_roots *roots = roots_of(wave);
  pthread_mutex_lock(&roots->lock);
  struct emu_report *waiting = root->waiting;
  root->waiting = NULL;
  __atomic_store_n(&root->at_home, true, __ATOMIC_RELAXED);
  pthread_mutex_unlock(&roots->lock);
  if (waiting) emu__check_report_later(wave, waiting);
  free(waiting);
}

static void depart(struct emu_wave *wave, const struct emu_step *step, struct emu_root *root, const struct touch *t) {
  struct emu_roots *roots = roots_of(wave);
  unsigned place = place_of(roots, t->at), other = 0;
  if (!variable_at(roots, place) && !variable_at(roots, root->home)) return;
  if (!emu__memory_scalar(wave, t->at, 1)) return;  // it is outside of memory, and will be found there
  pthread_mutex_lock(&roots->lock);
  if (root->at_home) {
    other = root->home;
  } else if (!root->other) {
    root->other = place;
    root->waiting = malloc(sizeof(*root->waiting));
    if (root->waiting) say(wave, step, root, t, t->at, root->home, root->waiting);
  } else if (root->other != place) {
    other = root->other;
  }
  pthread_mutex_unlock(&roots->lock);
  if (other) say(wave, step, root, t, t->at, other, NULL);
}

// An access that begins in one place and ends in the next. Loads may, as emu__memory_scalar says of the end of an
// allocation.
static void check_end(struct emu_wave *wave, const struct emu_step *step, const struct emu_root *root,
                      const struct touch *t) {
  const struct emu_roots *roots = roots_of(wave);
  unsigned place = place_of(roots, t->at);
  uint64_t low, high, last = t->at + t->bytes - 1, size = 1;
  bounds(roots, place, &low, &high);
  while (size < t->bytes) size *= 2;
  uint64_t reach = t->verb[0] == 'r' ? (high - 1) | (size - 1) : high - 1;
  if (last <= reach) return;
  if (!variable_at(roots, place) && !variable_at(roots, place_of(roots, high))) return;
  if (emu__memory_scalar(wave, last, 1)) say(wave, step, root, t, high, place, NULL);
}

static void check_access(struct emu_wave *wave, const struct emu_step *step, const uint16_t *number, const uint64_t *at,
                         uint64_t mask, int first_lane, unsigned bytes, const char *verb) {
  struct emu_roots *roots = roots_of(wave);
  uint64_t away = 0;
  for (uint64_t rest = mask; rest; rest &= rest - 1) {
    unsigned l = (unsigned)__builtin_ctzll(rest);
    if (!number[l] || number[l] >= EMU_ROOT_PC) continue;
    struct emu_root *root = roots->root[number[l]];
    bool home = at[l] >= root->low && at[l] < root->high;
    if (home) arrive(wave, root);
    if (!home) away |= UINT64_C(1) << l;
    if (home && at[l] + bytes <= root->high) continue;
    check_end(wave, step, root, &(struct touch){first_lane + (int)l, at[l], bytes, verb});
  }
  for (; away; away &= away - 1) {  // after all that are at home
    unsigned l = (unsigned)__builtin_ctzll(away);
    depart(wave, step, roots->root[number[l]], &(struct touch){first_lane + (int)l, at[l], bytes, verb});
  }
}

void emu__check_pointed(struct emu_wave *wave, const struct emu_step *step, const struct emu_places *p, unsigned bytes,
                        const char *verb) {
  struct emu_wave_check *c = wave->checker;
  if (p->space == EMU_SPACE_GLOBAL)
    check_access(wave, step, c->pointed_by, p->at, p->mask & ~p->outside, 0, bytes, verb);
}

// The roots of the lanes' addresses are kept until these are known.
static void memory(struct emu_wave *wave, const struct emu_step *step, const struct emu_plan *plan) {
  struct emu_wave_check *c = wave->checker;
  const struct emu_inst *inst = step->inst;
  if (inst->format == EMU_GLOBAL || inst->format == EMU_FLAT) {
    uint16_t any = 0;
    for (unsigned l = 0; l < wave->lanes; l++) {
      uint16_t r[2] = {operand_root(wave, &inst->src[0], 0, l), operand_root(wave, &inst->src[2], 0, l)};
      if (!inst->src[0].kind) r[0] = 0;
      c->pointed_by[l] = combine(WAY_SUM, r, inst->format == EMU_GLOBAL && inst->src[2].kind ? 2 : 1);
      any |= c->pointed_by[l];
    }
    c->pointed = any;
  }
  forget(c, &plan->writes, 0);
}

static void scalar_load(struct emu_wave *wave, const struct emu_step *step, struct emu_plan *plan) {
  struct emu_wave_check *c = wave->checker;
  const struct emu_inst *inst = step->inst;
  bool plain = inst->op >= EMU_S_LOAD_B32 && inst->op <= EMU_S_LOAD_B512;
  uint16_t r[2] = {operand_root(wave, &inst->src[0], 0, 0), operand_root(wave, &inst->src[1], 0, 0)}, loaded = 0;
  uint16_t number = plain ? combine(WAY_SUM, r, 2) : 0;
  uint64_t at = emu__scalar_read64(wave, &inst->src[0]) + (uint64_t)(int64_t)inst->imm;
  if (inst->src[1].kind) at += emu__scalar_read(wave, &inst->src[1]);
  at &= ~UINT64_C(3);
  // without lanes it may be one that a branch would have skipped
  if (number && number < EMU_ROOT_PC && emu__wave_exec(wave)) {
    struct emu_roots *roots = roots_of(wave);
    const struct emu_root *root = roots->root[number];
    check_access(wave, step, &number, &at, 1, -1, inst->dst.dwords * 4u, "reads");
    // the linker's table of addresses, which has no name
    if (inst->op == EMU_S_LOAD_B64 && at == root->address && !variable_at(roots, root->home) &&
        emu__memory_scalar(wave, at, 8) == 8)
      loaded = root_of(wave, step, plan, *(const uint64_t *)(uintptr_t)at);
  }
  forget(c, &plan->writes, 0);
  if (loaded) set_scalar(c, inst->dst.reg, loaded);
}

void emu__check_provenance(struct emu_wave *wave, const struct emu_step *step, struct emu_plan *plan) {
  if (!roots_of(wave)) return;
  switch (plan->kind) {
    case EMU_PLAN_VECTOR:
      vector(wave, step, plan);
      break;
    case EMU_PLAN_CROSS:
      cross(wave, step, plan);
      break;
    case EMU_PLAN_SCALAR:
      scalar(wave, step, plan);
      break;
    case EMU_PLAN_SMEM:
      scalar_load(wave, step, plan);
      break;
    case EMU_PLAN_MEMORY:
      memory(wave, step, plan);
      break;
    default:
      forget(wave->checker, &plan->writes, 0);
      break;
  }
}
