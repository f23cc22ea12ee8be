// A code segment and its instructions, made ready at their first execution.
//
// Steps (wave.h) lie in pages with one step for each word of code, so that the next instruction is found by adding the
// length of this one:
//
//     word of code    0      1      2      3      4        an instruction of one word, one of two, …
//     step          | s0   | s1   | (s2) | s3   | …        s2 is executed only if code jumps into the instruction
//
// At first the `run` of every step is `emu__step_decode`, which decodes the instruction, puts its own function in place
// of itself, and runs it. So nothing decodes what may be data, and code that never runs costs nothing.
#include <inttypes.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "machine/checker.h"
#include "machine/valu.h"

enum { PAGE_STEPS = 256, SETS = 2 + 128, LONGEST = 5 };  // an instruction has up to five words

// Steps of PAGE_STEPS words of code. Whoever runs past them meets one of the LONGEST behind, which go to the next page.
struct page {
  struct emu_step steps[PAGE_STEPS + LONGEST];
};

struct emu_program {
  const struct emu_isa *target;
  const uint8_t *code;
  size_t bytes, page_count;
  uint64_t address;
  pthread_mutex_t lock;
  struct page **pages[SETS];  // see emu__program_set; entries are published atomically, and so are sets from 2 on
  struct chunk *chunks;       // what steps point to, freed with the program
  struct emu_roots *roots;
};

enum { CHUNK = 1 << 14 };
struct chunk {
  struct chunk *next;
  size_t used, room;
  char bytes[] __attribute__((aligned(64)));
};

static void *keep(struct emu_program *program, size_t bytes) {
  struct chunk *chunk = program->chunks;
  bytes = (bytes + 63) / 64 * 64;
  if (!chunk || chunk->room - chunk->used < bytes) {
    size_t room = bytes < CHUNK ? CHUNK : bytes;
    chunk = aligned_alloc(64, sizeof(*chunk) + room);
    if (!chunk) return NULL;
    memset(chunk, 0, sizeof(*chunk) + room);
    chunk->next = program->chunks;
    chunk->room = room;
    program->chunks = chunk;
  }
  void *at = chunk->bytes + chunk->used;
  chunk->used += bytes;
  return at;
}

void *emu__program_keep(struct emu_program *program, size_t bytes) {
  pthread_mutex_lock(&program->lock);
  void *room = keep(program, bytes);
  pthread_mutex_unlock(&program->lock);
  return room;
}

struct emu_program *emu_program_create(const struct emu_isa *target, const void *code, size_t bytes, uint64_t address) {
  struct emu_program *program = calloc(1, sizeof(*program));
  if (!program) return NULL;
  *program = (struct emu_program){.target = target, .code = code, .bytes = bytes, .address = address};
  program->page_count = bytes / 4 / PAGE_STEPS + 1;
  for (int i = 0; i < 2; i++) program->pages[i] = calloc(program->page_count, sizeof(struct page *));
  if (!program->pages[0] || !program->pages[1] || pthread_mutex_init(&program->lock, NULL)) {
    free(program->pages[0]);
    free(program->pages[1]);
    free(program);
    return NULL;
  }
  return program;
}

void emu_program_release(struct emu_program *program) {
  if (!program) return;
  for (int i = 0; i < SETS; i++) {
    for (size_t p = 0; program->pages[i] && p < program->page_count; p++) free(program->pages[i][p]);
    free(program->pages[i]);
  }
  emu__roots_release(program->roots);
  while (program->chunks) {
    struct chunk *chunk = program->chunks;
    program->chunks = chunk->next;
    free(chunk);
  }
  pthread_mutex_destroy(&program->lock);
  free(program);
}

bool emu_program_variables(struct emu_program *program, const struct emu_variable *variables, unsigned count) {
  if (count && !program->roots) program->roots = emu__roots_create(variables, count);
  return !count || program->roots;
}

struct emu_roots *emu__program_roots(const struct emu_program *program) { return program->roots; }
const struct emu_isa *emu__program_target(const struct emu_program *program) { return program->target; }
uint64_t emu__program_address(const struct emu_program *program) { return program->address; }
size_t emu__program_bytes(const struct emu_program *program) { return program->bytes; }
const void *emu__program_code(const struct emu_program *program) { return program->code; }
uint64_t emu__step_offset(const struct emu_wave *wave, const struct emu_step *step) {
  (void)wave;
  return step->offset;
}

// ---- actions by opcode

static const struct emu_action *actions[EMU_OP_COUNT], *pairs[EMU_OP_COUNT], *fnuz[EMU_OP_COUNT];
static pthread_once_t actions_once = PTHREAD_ONCE_INIT;

static void collect_actions(void) {
  const struct emu_action *tables[] = {
      emu__salu_actions,     emu__smem_actions,   emu__control_actions,        emu__int_actions,
      emu__int16_actions,    emu__float_actions,  emu__half_actions,           emu__double_actions,
      emu__convert_actions,  emu__divide_actions, emu__transcendental_actions, emu__compare_actions,
      emu__fragment_actions, emu__scale_actions,  emu__scalar_float_actions,   emu__cross_actions,
      emu__dot_actions,      emu__matrix_actions, emu__wmma_actions,           emu__lds_actions,
      emu__gws_actions,      emu__global_actions, emu__buffer_actions,         emu__image_actions,
      emu__float8_actions};
  for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
    for (const struct emu_action *a = tables[i]; a->op; a++) actions[a->op] = a;
  }
  for (const struct emu_action *a = emu__pairs_actions; a->op; a++) pairs[a->op] = a;
  for (const struct emu_action *a = emu__fnuz_actions; a->op; a++) fnuz[a->op] = a;
}

const struct emu_action *emu__action_of(const struct emu_isa *target, enum emu_op op) {
  pthread_once(&actions_once, collect_actions);
  if (target->float8_fnuz && fnuz[op]) return fnuz[op];
  return target->dot_pairs && pairs[op] ? pairs[op] : actions[op];
}

// ---- steps

static size_t words_at(const struct emu_program *program, uint64_t offset, uint32_t words[LONGEST + 1]) {
  size_t n = 0;
  for (; n <= LONGEST && offset + 4 * n + 4 <= program->bytes; n++)
    memcpy(&words[n], program->code + offset + 4 * n, 4);
  return n;
}

void emu__step_text(const struct emu_wave *wave, const struct emu_step *step, char text[EMU_ISA_TEXT]) {
  const struct emu_program *program = wave->group->run->program;
  uint32_t words[LONGEST + 1] = {0};
  struct emu_inst inst;
  size_t n = words_at(program, step->offset, words);
  enum emu_decode_status status = emu_isa_decode(program->target, wave->lanes, words, n, &inst);
  if (status == EMU_DECODE_OK) {
    emu_isa_print(&inst, program->target, text, EMU_ISA_TEXT);
    return;
  }
  int at = 0;
  for (size_t i = 0; i < n && i < inst.size / 4u; i++)
    at += snprintf(text + at, EMU_ISA_TEXT - (size_t)at, "%08x ", words[i]);
}

static void run_outside(struct emu_wave *wave, const struct emu_step *step) {
  emu__wave_trap(wave, step, EMU_TRAP, "trap", -1, 0, "The wave went outside of the program's code.");
}
static const struct emu_step outside = {.run = run_outside, .klass = EMU_CLASS_COUNT, .needs = EMU_NEEDS_LOOK};

static void run_undecodable(struct emu_wave *wave, const struct emu_step *step) {
  const struct emu_program *program = wave->group->run->program;
  uint32_t words[LONGEST + 1] = {0};
  struct emu_inst inst;
  size_t n = words_at(program, step->offset, words);
  enum emu_decode_status status = emu_isa_decode(program->target, wave->lanes, words, n, &inst);
  emu__wave_trap(wave, step, EMU_TRAP, "trap", -1, 0, "This is no instruction of %s: %s.", program->target->name,
                 emu_isa_reason(status));
}

static void run_unknown(struct emu_wave *wave, const struct emu_step *step) {
  emu__wave_trap(wave, step, EMU_TRAP, "trap", -1, 0,
                 "The emulator decodes this instruction but does not execute it, or not with these modifiers.");
}

static void run_next_page(struct emu_wave *wave, const struct emu_step *step) {
  wave->next = emu__program_step(wave->group->run->program, wave->group->run->step_set, step->offset);
}

static void need(struct emu_step *step, const struct emu_operand *operand) {
  unsigned end = operand->reg + operand->dwords;
  if (operand->kind == EMU_OPERAND_VECTOR && end > step->vgprs) step->vgprs = (uint16_t)end;
}

// Accumulation registers stand behind the others in the wave's file. `apart`: those are no others' by another number,
// so that what runs past the others goes past the whole file, where it traps.
static void place_accumulators(struct emu_inst *inst, unsigned first, bool apart) {
  struct emu_operand *operands[5] = {&inst->dst, &inst->src[0], &inst->src[1], &inst->src[2], &inst->src[3]};
  for (int i = 0; i < 5; i++) {
    struct emu_operand *o = operands[i];
    if (o->kind == EMU_OPERAND_VECTOR && o->reg >= EMU_ACCUMULATOR)
      o->reg = (uint16_t)(o->reg - EMU_ACCUMULATOR + first);
    else if (o->kind == EMU_OPERAND_VECTOR && apart && o->reg + o->dwords > first)
      o->reg = (uint16_t)(o->reg + first);
  }
}

// Fills everything but `run`, which is returned; NULL: out of memory.
static emu_step_fn *fill_step(struct emu_program *program, unsigned lanes, unsigned accumulators,
                              struct emu_step *step) {
  uint32_t words[LONGEST + 1] = {0};
  struct emu_inst *inst = keep(program, sizeof(*inst));
  if (!inst) return NULL;
  size_t n = words_at(program, step->offset, words);
  enum emu_decode_status status = emu_isa_decode(program->target, lanes, words, n, inst);
  step->inst = inst;
  if (status != EMU_DECODE_OK) return run_undecodable;
  step->words = inst->size / 4;
  place_accumulators(inst, accumulators, program->target->accumulators_apart);
  const struct emu_action *action = emu__action_of(program->target, (enum emu_op)inst->op);
  if (!action) return run_unknown;
  step->action = action;
  step->klass = inst->format == EMU_VOPD ? EMU_CLASS_VOPD : action->klass;
  step->floats = action->floats;
  step->lanes = action->lanes;
  need(step, &inst->dst);
  for (int i = 0; i < 4; i++) need(step, &inst->src[i]);
  for (unsigned k = 0; k < inst->image.words; k++)
    if (inst->image.reg[k] >= step->vgprs) step->vgprs = (uint16_t)(inst->image.reg[k] + 1);
  for (int i = 0; inst->y.op && i < 2; i++) need(step, &inst->y.src[i]);  // scales of a product, or a VOPD's
  step->straight = action->straight;
  if (action->run) return action->run;

  struct emu_step *pair = NULL;
  if (inst->format == EMU_VOPD) {
    need(step, &inst->y.dst);
    for (int i = 0; i < 3; i++) need(step, &inst->y.src[i]);
    pair = keep(program, sizeof(*pair));
    if (!pair) return NULL;
    pair->action = emu__action_of(program->target, (enum emu_op)inst->y.op);
    if (!pair->action || !pair->action->lanes) return run_unknown;
    pair->inst = inst;
    pair->lanes = pair->action->lanes;
    pair->floats = pair->action->floats;
    step->pair = pair;
  }
  return emu__valu_prepare(program->target, lanes, step, pair) ? step->run : run_unknown;
}

void emu__step_decode(struct emu_wave *wave, const struct emu_step *at) {
  struct emu_program *program = wave->group->run->program;
  struct emu_step *step = (struct emu_step *)at;
  pthread_mutex_lock(&program->lock);
  if (__atomic_load_n(&step->run, __ATOMIC_RELAXED) == emu__step_decode) {
    struct emu_step filled = *step;
    emu_step_fn *run = fill_step(program, wave->lanes, wave->group->run->accumulators, &filled);
    if (!run) {
      pthread_mutex_unlock(&program->lock);
      emu__wave_trap(wave, at, EMU_NO_MEMORY, "no memory", -1, 0, "There is no memory to decode it.");
      return;
    }
    // The fields first, `run` last: another thread that sees it sees them. All but `run` are copied, since others read
    // that one meanwhile.
    const size_t fields = offsetof(struct emu_step, src);
    memcpy((char *)step + fields, (char *)&filled + fields, sizeof(filled) - fields);
    __atomic_store_n(&step->run, run, __ATOMIC_RELEASE);
    if (filled.straight) __atomic_store_n(&step->needs, filled.vgprs, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&program->lock);
  wave->next = at;  // again, as what it is
}

static struct page *make_page(struct emu_program *program, unsigned which, size_t index) {
  pthread_mutex_lock(&program->lock);
  struct page *page = program->pages[which][index];
  if (!page) {
    page = aligned_alloc(64, (sizeof(*page) + 63) / 64 * 64);
    if (page) {
      memset(page, 0, sizeof(*page));
      for (unsigned i = 0; i < PAGE_STEPS + LONGEST; i++) {
        page->steps[i].run = i < PAGE_STEPS ? emu__step_decode : run_next_page;
        page->steps[i].klass = EMU_CLASS_COUNT;
        page->steps[i].needs = EMU_NEEDS_LOOK;
        page->steps[i].offset = (uint32_t)((index * PAGE_STEPS + i) * 4);
      }
      __atomic_store_n(&program->pages[which][index], page, __ATOMIC_RELEASE);
    }
  }
  pthread_mutex_unlock(&program->lock);
  return page;
}

static bool has_set(struct emu_program *program, unsigned which) {
  if (__atomic_load_n(&program->pages[which], __ATOMIC_ACQUIRE)) return true;
  struct page **pages = calloc(program->page_count, sizeof(*pages)), **none = NULL;
  if (!pages) return false;
  if (!__atomic_compare_exchange_n(&program->pages[which], &none, pages, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
    free(pages);
  return true;
}

const struct emu_step *emu__program_step(struct emu_program *program, unsigned which, uint64_t offset) {
  if (offset % 4 || offset >= program->bytes || !has_set(program, which)) return &outside;
  size_t index = offset / 4 / PAGE_STEPS;
  struct page *page = __atomic_load_n(&program->pages[which][index], __ATOMIC_ACQUIRE);
  if (!page) page = make_page(program, which, index);
  return page ? &page->steps[offset / 4 % PAGE_STEPS] : &outside;
}
