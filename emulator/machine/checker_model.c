#include "machine/checker_model.h"

#include <pthread.h>
#include <stdlib.h>

#include "machine/checker_race.h"

// ---- what a generation needs

// Waves of a group share the caches in front of them, so that work-group scope asks for neither waits nor
// invalidation: on GFX9, unless groups are split between compute units, and in the mode of single compute units.
static bool group_shares_caches(const struct emu_run *run) {
  const struct emu_kernel *k = &run->dispatch->kernel;
  if (run->target->counts_stores) return !(run->target->accumulators && emu__bits(k->rsrc3, EMU_RSRC3_TG_SPLIT));
  return !emu__bits(k->rsrc1, EMU_RSRC1_WGP_MODE);
}

// Stores stay in caches that not all of the agent sees, until these are written back.
static bool writes_back(const struct emu_isa *target) { return target->split_counters || target->dlc_is_scope; }

uint8_t emu__model_cache_of(const struct emu_inst *inst, const struct emu_isa *target) {
  const uint8_t both = EMU_INVALIDATES_NEAR | EMU_INVALIDATES_FAR;
  switch (inst->op) {
    case EMU_BUFFER_GL0_INV:
      return EMU_INVALIDATES_NEAR;
    case EMU_BUFFER_GL1_INV:
      return EMU_INVALIDATES_FAR;
    case EMU_BUFFER_WBINVL1:
    case EMU_BUFFER_WBINVL1_VOL:
      return both;
    case EMU_BUFFER_INV:
      return inst->dlc ? both : inst->glc ? EMU_INVALIDATES_NEAR : 0;
    case EMU_BUFFER_WBL2:
      return inst->dlc && target->dlc_is_scope ? EMU_WRITES_BACK : 0;
    case EMU_GLOBAL_INV:
      return inst->scope >= EMU_SCOPE_DEVICE ? both : inst->scope == EMU_SCOPE_SE ? EMU_INVALIDATES_NEAR : 0;
    case EMU_GLOBAL_WB:
      return inst->scope >= EMU_SCOPE_DEVICE ? EMU_WRITES_BACK : 0;
    case EMU_GLOBAL_WBINV:
      return inst->scope >= EMU_SCOPE_DEVICE ? both | EMU_WRITES_BACK : 0;
    default:
      return 0;
  }
}

// ---- notes: what a wave has released when it stores, by its place in records

enum { NOTES = 1 << 14, STRIPES = 64 };
static struct {
  uint64_t who;  // a record but for its marks
  struct emu_clock *clock;
} notes[NOTES];
static atomic_flag stripe[STRIPES];

static uint32_t note_of(uint64_t who) { return (uint32_t)(who * 0x9e3779b97f4a7c15u >> 50); }
static void lock_note(uint32_t i) {
  while (atomic_flag_test_and_set_explicit(&stripe[i % STRIPES], memory_order_acquire)) __builtin_ia32_pause();
}
static void unlock_note(uint32_t i) { atomic_flag_clear_explicit(&stripe[i % STRIPES], memory_order_release); }

static void put_note(uint64_t record, struct emu_clock *clock) {
  uint64_t who = record >> EMU_RECORD_WAVE;
  uint32_t i = note_of(who);
  lock_note(i);
  struct emu_clock *old = notes[i].clock;
  notes[i].who = who;
  notes[i].clock = emu__clock_keep(clock);
  unlock_note(i);
  emu__clock_drop(old);
}

// NULL: another one has taken its place.
static struct emu_clock *get_note(uint64_t record) {
  uint64_t who = record >> EMU_RECORD_WAVE;
  uint32_t i = note_of(who);
  lock_note(i);
  struct emu_clock *clock = notes[i].who == who ? emu__clock_keep(notes[i].clock) : NULL;
  unlock_note(i);
  return clock;
}

// ---- places of atomic operations

// A wave's number in clocks.
static uint32_t number_of(uint64_t record) {
  return (uint32_t)(record >> EMU_RECORD_GROUP & EMU_RECORD_GROUPS) << 6 |
         ((uint32_t)(record >> EMU_RECORD_WAVE & 31) + 1);
}

enum { BUCKETS = 1 << 14, PLACES = 1 << 17, NOBODY = UINT32_MAX };
struct place {
  struct place *next;
  uint64_t address;
  uint32_t group;  // whose waves' times at work-group scope it holds; NOBODY: of several groups
  bool lost;       // what has been there is not known
  bool changed;    // by more than comparisons, which may leave it as it is
  struct emu_clock *clock;
};
struct emu_model {
  pthread_mutex_t lock;
  unsigned places;
  struct place *bucket[BUCKETS];
};

static struct emu_model *model_of(struct emu_run *run) {
  struct emu_model *model = __atomic_load_n(&run->model, __ATOMIC_ACQUIRE), *none = NULL;
  if (model) return model;
  model = calloc(1, sizeof(*model));
  if (!model) return NULL;
  pthread_mutex_init(&model->lock, NULL);
  if (__atomic_compare_exchange_n(&run->model, &none, model, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return model;
  free(model);
  return none;
}

static struct place **bucket_of(struct emu_model *model, uint64_t address) {
  return &model->bucket[(address / 4) * 0x9e3779b97f4a7c15u >> 50];
}
static struct place *find_place(struct emu_model *model, uint64_t address) {
  struct place *place = *bucket_of(model, address);
  while (place && place->address != address) place = place->next;
  return place;
}
// NULL: there are too many.
static struct place *make_place(struct emu_model *model, uint64_t address) {
  struct place *place = find_place(model, address), **at = bucket_of(model, address);
  if (place || model->places == PLACES) return place;
  place = calloc(1, sizeof(*place));
  if (!place) return NULL;
  *place = (struct place){.next = *at, .address = address, .group = NOBODY};
  model->places++;
  return *at = place;
}

void emu__model_release_run(struct emu_run *run) {
  struct emu_model *model = run->model;
  if (!model) return;
  for (int i = 0; i < BUCKETS; i++) {
    for (struct place *place = model->bucket[i], *next; place; place = next) {
      next = place->next;
      emu__clock_drop(place->clock);
      free(place);
    }
  }
  pthread_mutex_destroy(&model->lock);
  free(model);
  run->model = NULL;
  for (uint32_t i = 0; i < NOTES; i++) {  // what waves knew may be large
    lock_note(i);
    struct emu_clock *clock = notes[i].clock;
    notes[i].clock = NULL;
    notes[i].who = 0;
    unlock_note(i);
    emu__clock_drop(clock);
  }
}

bool emu__model_is_flag(const struct emu_wave *wave, uint64_t address) {
  struct emu_model *model = __atomic_load_n(&wave->group->run->model, __ATOMIC_ACQUIRE);
  if (!model) return false;
  pthread_mutex_lock(&model->lock);
  bool found = find_place(model, address & ~UINT64_C(3));
  pthread_mutex_unlock(&model->lock);
  return found;
}

bool emu__model_is_blind(const struct emu_wave *wave, uint64_t address) {
  struct emu_model *model = __atomic_load_n(&wave->group->run->model, __ATOMIC_ACQUIRE);
  if (!model) return false;
  pthread_mutex_lock(&model->lock);
  const struct place *place = find_place(model, address & ~UINT64_C(3));
  bool blind = place && place->changed && !emu__clock_find(place->clock, number_of(emu__record_of(wave)));
  pthread_mutex_unlock(&model->lock);
  return blind;
}

// ---- a wave's epochs

static struct emu_wave_model *of_wave(const struct emu_wave *wave) { return &wave->checker->model; }
static uint32_t group_of(const struct emu_wave *wave) { return (uint32_t)(wave->group->linear & EMU_RECORD_GROUPS); }
static uint32_t all_of(uint32_t group) { return group << 6; }

static bool is_under_way(const struct emu_wave *wave) {
  const struct emu_wave_model *m = of_wave(wave);
  return m->loads_done != wave->checker->vm_issued || m->stores_done != m->stores_issued;
}

static void begin_epoch(struct emu_wave_model *m, uint64_t now) {
  m->epoch = now;
  emu__clock_drop(m->tells);
  m->tells = NULL;
}

void emu__model_turn(struct emu_wave *wave, uint64_t now) { begin_epoch(of_wave(wave), now); }

static void put_clock(struct emu_clock **to, struct emu_clock *clock) {
  struct emu_clock *old = *to;
  *to = emu__clock_keep(clock);
  emu__clock_drop(old);
}

static void note_released(const struct emu_wave *wave) {
  struct emu_wave_model *m = of_wave(wave);
  bool far = !writes_back(wave->group->run->target) || m->written_back;
  for (int level = 0; level <= far; level++) {
    m->released[level].epoch = m->epoch;
    m->released[level].barrier = m->barrier;
    put_clock(&m->released[level].known, m->known);
  }
  m->moved = false;
}

static void settle(struct emu_wave *wave) {
  struct emu_wave_model *m = of_wave(wave);
  if (!m->moved || is_under_way(wave)) return;
  begin_epoch(m, emu__time_next());
  note_released(wave);
}

// It cannot be followed any more, and counts as ordered behind all that has been.
static void lose(struct emu_wave *wave) { wave->checker->acquires = true; }

static void learned(struct emu_wave *wave) {
  struct emu_wave_model *m = of_wave(wave);
  m->invalidated = 0;
  m->met = false;
  m->moved = true;
  begin_epoch(m, emu__time_next());
  m->heard_at = m->epoch;
  if (group_shares_caches(wave->group->run)) put_clock(&m->fresh[EMU_LEVEL_GROUP], m->known);
  settle(wave);
}

void emu__model_begin(struct emu_wave *wave, uint64_t now) {
  struct emu_wave_model *m = of_wave(wave);
  m->epoch = m->barrier = now;
  m->written_back = true;
  for (int level = 0; level < EMU_LEVELS; level++) m->released[level] = (struct emu_released){now, now, NULL};
}

void emu__model_end(struct emu_wave_model *m) {
  emu__clock_drop(m->known);
  emu__clock_drop(m->coming);
  emu__clock_drop(m->tells);
  for (int level = 0; level < EMU_LEVELS; level++) {
    emu__clock_drop(m->fresh[level]);
    emu__clock_drop(m->released[level].known);
  }
}

void emu__model_waited(struct emu_wave *wave) {
  struct emu_wave_model *m = of_wave(wave);
  bool come = (int32_t)(m->loads_done - m->coming_loads) >= 0 && (int32_t)(m->stores_done - m->coming_stores) >= 0;
  if (m->coming && come) {
    bool news = !emu__clock_has(m->known, m->coming, false);
    if (!emu__clock_join(&m->known, m->coming, false)) lose(wave);
    emu__clock_drop(m->coming);
    m->coming = NULL;
    if (news) learned(wave);
  }
  settle(wave);
}

void emu__model_cache(struct emu_wave *wave, uint8_t does) {
  struct emu_wave_model *m = of_wave(wave);
  const struct emu_isa *target = wave->group->run->target;
  if (does & EMU_WRITES_BACK) {
    m->written_back = m->moved = true;
    // LLVM waits for it where it is one of what VMCNT counts, and elsewhere for the stores before it alone
    if (target->counts_stores) wave->checker->vm_issued++;
    settle(wave);
  }
  m->invalidated |= does & (EMU_INVALIDATES_NEAR | EMU_INVALIDATES_FAR);
  if (does & EMU_INVALIDATES_NEAR) put_clock(&m->fresh[EMU_LEVEL_GROUP], m->known);
  bool far = m->invalidated == (EMU_INVALIDATES_NEAR | EMU_INVALIDATES_FAR);
  if (does & (EMU_INVALIDATES_NEAR | EMU_INVALIDATES_FAR) && far) put_clock(&m->fresh[EMU_LEVEL_AGENT], m->known);
}

// Each wave of the group, or the one with the number `only`, learns what any of them knows.
static void share(struct emu_group *group, int only) {
  struct emu_clock *known = NULL, *fresh[EMU_LEVELS] = {NULL};
  bool kept = true, any = false;
  uint64_t heard = 0;
  for (unsigned i = 0; i < group->waves; i++) {
    const struct emu_wave_model *m = of_wave(&group->wave[i]);
    if (m->heard_at > heard) heard = m->heard_at;
    if (!m->known) continue;
    any = true;
    kept = emu__clock_join(&known, m->known, false) && kept;
    for (int level = 0; level < EMU_LEVELS; level++)
      kept = emu__clock_join(&fresh[level], m->fresh[level], false) && kept;
  }
  for (unsigned i = 0; i < group->waves && any; i++) {
    struct emu_wave_check *c = group->wave[i].checker;
    if (only >= 0 && i != (unsigned)only) continue;
    c->model.heard_at = heard;
    if (!kept) c->sync = emu__time_next();
    if (!emu__clock_has(c->model.known, known, false)) c->model.invalidated = 0;
    put_clock(&c->model.known, known);
    for (int level = 0; level < EMU_LEVELS; level++) put_clock(&c->model.fresh[level], fresh[level]);
  }
  emu__clock_drop(known);
  for (int level = 0; level < EMU_LEVELS; level++) emu__clock_drop(fresh[level]);
}

void emu__model_barrier(struct emu_group *group, uint64_t now) {
  bool written_back = true;
  share(group, -1);
  for (unsigned i = 0; i < group->waves; i++) written_back = written_back && of_wave(&group->wave[i])->written_back;
  for (unsigned i = 0; i < group->waves; i++) {
    struct emu_wave *wave = &group->wave[i];
    struct emu_wave_model *m = of_wave(wave);
    m->met = true;
    m->barrier = now;
    m->written_back = written_back;
    begin_epoch(m, now);
    m->moved = true;
    if (!is_under_way(wave)) note_released(wave);
  }
}

void emu__model_meet(struct emu_wave *wave) {
  if (wave->group->waves == 1) return;
  share(wave->group, (int)wave->index);
  wave->checker->barrier = emu__time_next();
  begin_epoch(of_wave(wave), wave->checker->barrier);
}

// ---- what a wave tells

static uint64_t later(uint64_t a, uint64_t b) { return a > b ? a : b; }
static uint64_t time_in(const struct emu_clock *clock, uint32_t who) {
  const struct emu_clock_entry *e = emu__clock_find(clock, who);
  return e ? later(e->far, e->near) : 0;
}

// What a wave that reads from this one learns: this one's own accesses, its group's before the barrier, and what it
// knew. NULL: no memory.
static struct emu_clock *tells(const struct emu_wave *wave) {
  struct emu_wave_model *m = of_wave(wave);
  if (m->tells) return m->tells;
  bool shares = group_shares_caches(wave->group->run);
  uint32_t group = group_of(wave), count = m->known ? m->known->count : 0;
  const struct emu_released *near = &m->released[EMU_LEVEL_GROUP], *far = &m->released[EMU_LEVEL_AGENT];
  struct emu_clock *own = emu__clock_create(2), *all = emu__clock_create(count);
  if (own && all) {
    own->entry[0] =
        (struct emu_clock_entry){all_of(group), far->barrier, shares ? m->barrier : near->barrier, m->barrier};
    own->entry[1] = (struct emu_clock_entry){all_of(group) + 1 + (wave->index & 31), far->epoch,
                                             shares ? m->epoch + 1 : near->epoch, m->epoch + 1};
    for (uint32_t i = 0; i < count; i++) {
      const struct emu_clock_entry *e = &m->known->entry[i];
      uint64_t now = later(e->far, e->near);
      all->entry[i] =
          (struct emu_clock_entry){e->who, far->known == m->known ? now : time_in(far->known, e->who),
                                   shares || near->known == m->known ? now : time_in(near->known, e->who), e->loose};
    }
    if (emu__clock_join(&all, own, false)) m->tells = emu__clock_keep(all);
  }
  emu__clock_drop(own);
  emu__clock_drop(all);
  return m->tells;
}

void emu__model_store(struct emu_wave *wave, const struct emu_step *step, const struct emu_places *p, unsigned bytes) {
  struct emu_wave_model *m = of_wave(wave);
  m->moved = true;
  if (p->space == EMU_SPACE_SCRATCH) return;
  emu__trail_note(wave, step, p, bytes, true);
  if (p->space != EMU_SPACE_GLOBAL) return;
  if (m->noted != m->epoch && tells(wave)) {
    put_note(emu__record_of(wave), m->tells);
    m->noted = m->epoch;
  }
  if (!wave->group->run->target->counts_stores) m->stores_issued++;
  m->written_back = false;
}

// ---- what a wave learns

static bool is_of_launch(const struct emu_wave *wave, uint64_t record) {
  return record >> EMU_RECORD_TIME >= wave->group->run->check_start;
}

// What the place has had before it: nothing, or what the wave told that stored there last.
static void refill(struct emu_wave *wave, struct place *place, uint64_t record) {
  emu__clock_drop(place->clock);
  place->clock = NULL;
  place->lost = false;
  place->group = NOBODY;
  if (!is_of_launch(wave, record)) return;
  place->group = number_of(record) >> 6;
  place->clock = get_note(record);
  place->lost = !place->clock;
}

static void keep_asked(struct emu_wave *wave, const struct emu_step *step, const struct emu_places *p) {
  struct emu_wave_model *m = of_wave(wave);
  m->asks_pc = step->offset;
  for (uint64_t rest = p->mask & ~p->outside; rest && m->asked < 64; rest &= rest - 1) {
    uint64_t at = p->at[__builtin_ctzll(rest)] & ~UINT64_C(3);
    if (at - (uint64_t)(uintptr_t)wave->group->lds < wave->group->lds_bytes) continue;
    if (!m->asked || m->asks[m->asked - 1] != at) m->asks[m->asked++] = at;
  }
}

void emu__model_load(struct emu_wave *wave, const struct emu_step *step, const struct emu_places *p, unsigned bytes,
                     bool past) {
  if (p->space == EMU_SPACE_SCRATCH) return;
  if (past && p->space == EMU_SPACE_GLOBAL) {
    keep_asked(wave, step, p);
    return;
  }
  of_wave(wave)->moved = true;
  if (__atomic_load_n(&wave->group->run->model, __ATOMIC_ACQUIRE)) emu__trail_note(wave, step, p, bytes, false);
}

static void forget_suspects(struct emu_wave_model *m, uint64_t at) {
  for (unsigned i = 0; i < m->suspects; i++) {
    if (m->suspect[i].address / 4 == at / 4) m->suspect[i] = m->suspect[--m->suspects];
  }
}

void emu__model_atomic(struct emu_wave *wave, const struct emu_step *step, const struct emu_places *p, unsigned bytes,
                       bool returns, bool compares) {
  struct emu_wave_model *m = of_wave(wave);
  if (p->space == EMU_SPACE_SHARED && returns) emu__model_meet(wave);
  if (p->space != EMU_SPACE_GLOBAL) return;
  struct emu_model *model = model_of(wave->group->run);
  struct emu_clock *told = tells(wave);
  uint32_t group = group_of(wave);
  m->moved = true;
  emu__trail_note(wave, step, p, bytes, true);
  if (!returns && !wave->group->run->target->counts_stores) m->stores_issued++;
  keep_asked(wave, step, p);
  if (!model || !told) {
    m->asked = 0;
    lose(wave);
    return;
  }
  pthread_mutex_lock(&model->lock);
  for (unsigned i = 0; i < m->asked; i++) {
    uint64_t *writer = emu__check_writer(wave, m->asks[i]), record = writer ? emu__record_load(writer) : 0;
    struct place *place = writer ? make_place(model, m->asks[i]) : NULL;
    if (!place) continue;  // whoever asks there finds nothing, and counts as ordered
    place->changed = place->changed || !compares;
    forget_suspects(m, m->asks[i]);
    if (!(record & EMU_RECORD_ATOMIC) || !is_of_launch(wave, record)) refill(wave, place, record);
    if (place->clock && place->group != group) place->group = NOBODY;
    if (!place->clock) place->group = group;
    if (!emu__clock_join(&place->clock, told, false)) place->lost = true;
  }
  pthread_mutex_unlock(&model->lock);
  if (!returns) m->asked = 0;
}

static void remember(struct emu_wave_model *m, uint64_t address, uint64_t record) {
  enum { HEARD = sizeof(m->heard) / sizeof(m->heard[0]) };
  unsigned i = 0;
  while (i < HEARD - 1 && (m->heard[i].address != address || m->heard[i].pc != m->asks_pc)) i++;
  memmove(m->heard + 1, m->heard, i * sizeof(m->heard[0]));
  m->heard[0] = (struct emu_heard){address, record, m->asks_pc};
}

// What the place tells now, to be dropped. false: that is not known.
static bool told_by(struct emu_wave *wave, struct emu_model *model, uint64_t at, struct emu_clock **out,
                    bool *far_away) {
  uint64_t *writer = emu__check_writer(wave, at), record;
  *out = NULL;
  if (!writer) return false;
  record = emu__record_load(writer);
  if (!is_of_launch(wave, record)) return true;
  bool known = true;
  if (record & EMU_RECORD_ATOMIC) {
    pthread_mutex_lock(&model->lock);
    const struct place *place = find_place(model, at);
    known = place && !place->lost;
    if (known) *out = emu__clock_keep(place->clock);
    *far_away = !place || place->group != group_of(wave);
    pthread_mutex_unlock(&model->lock);
  } else if (emu__record_who(record) == emu__record_who(emu__record_of(wave))) {
    return true;
  } else {
    *far_away = number_of(record) >> 6 != group_of(wave);
    *out = get_note(record);
    known = *out;
    pthread_mutex_lock(&model->lock);
    (void)make_place(model, at);  // it is a flag
    pthread_mutex_unlock(&model->lock);
  }
  remember(of_wave(wave), at, record);
  return known;
}

void emu__model_ask(struct emu_wave *wave) {
  struct emu_wave_model *m = of_wave(wave);
  struct emu_model *model = model_of(wave->group->run);
  if (!model || !emu__run_is_alone(wave->group->run)) lose(wave);
  for (unsigned i = 0; model && i < m->asked; i++) {
    struct emu_clock *told;
    bool far_away = false;
    if (!told_by(wave, model, m->asks[i], &told, &far_away)) lose(wave);
    if (told && !emu__clock_has(m->known, told, far_away) && !emu__clock_join(&m->coming, told, far_away)) lose(wave);
    emu__clock_drop(told);
  }
  m->asked = 0;
  if (!m->coming) return;
  m->coming_loads = wave->checker->vm_issued;
  m->coming_stores = m->stores_done;
}

// ---- what is ordered

static bool is_before(const struct emu_clock *clock, uint64_t record,
                      uint64_t (*pick)(const struct emu_clock_entry *)) {
  uint64_t time = record >> EMU_RECORD_TIME;
  uint32_t who = number_of(record);
  const struct emu_clock_entry *one = emu__clock_find(clock, who), *all = emu__clock_find(clock, who & ~63u);
  return (one && pick(one) > time) || (all && pick(all) > time);
}
static uint64_t pick_near(const struct emu_clock_entry *e) { return e->near; }
static uint64_t pick_known(const struct emu_clock_entry *e) { return later(e->far, e->near); }
static uint64_t pick_loose(const struct emu_clock_entry *e) { return e->loose; }

bool emu__model_orders(const struct emu_wave *wave, uint64_t record, bool reads, bool shared, enum emu_lack *lack) {
  const struct emu_wave_model *m = of_wave(wave);
  *lack = EMU_LACK_ALL;
  if (!m->known && !m->coming) return false;
  // LDS answers a wave's accesses in order, and has no cache before it
  if (shared && is_before(m->known, record, pick_loose)) return true;
  if (!reads && is_before(m->known, record, pick_known)) return true;
  if (is_before(m->fresh[EMU_LEVEL_AGENT], record, pick_known)) return true;
  if (is_before(m->fresh[EMU_LEVEL_GROUP], record, pick_near)) return true;
  if (is_before(m->known, record, pick_known) || is_before(m->coming, record, pick_known)) {
    *lack = m->invalidated && !m->met ? EMU_LACK_SCOPE : EMU_LACK_ACQUIRE;
  } else if (is_before(m->known, record, pick_loose) || is_before(m->coming, record, pick_loose)) {
    *lack = EMU_LACK_RELEASE;
  }
  return false;
}

// ---- plain loads of what others change by atomic operations

void emu__model_suspect(struct emu_wave *wave, const struct emu_step *step, int lane, uint64_t address,
                        const struct emu_other *other) {
  struct emu_wave_model *m = of_wave(wave);
  enum { MOST = sizeof(m->suspect) / sizeof(m->suspect[0]) };
  if (other->lack == EMU_LACK_ALL || m->suspects == MOST) return;
  for (unsigned i = 0; i < m->suspects; i++) {
    if (m->suspect[i].step == step) return;
  }
  m->suspect[m->suspects++] = (struct emu_suspect){step, address, other->record, lane, (uint8_t)other->lack};
}

void emu__model_ended(struct emu_wave *wave) {
  struct emu_wave_model *m = of_wave(wave);
  for (unsigned i = 0; i < m->suspects; i++) {
    const struct emu_suspect *s = &m->suspect[i];
    struct emu_other other = emu__race_with(emu__record_of(wave), s->record, true);
    other.lack = (enum emu_lack)s->lack;
    emu__check_say_race(wave, s->step, s->lane, s->address, false, false, &other);
  }
  m->suspects = 0;
}
