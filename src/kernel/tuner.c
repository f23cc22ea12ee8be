#include "kernel/tuner.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/config.h"
#include "base/log.h"
#include "device/device.h"
#include "device/driver.h"
#include "kernel/loader.h"
#include "kernel/tuner_shipped.h"
#include "kernel/tuner_store.h"
#include "rdna/tune.h"

enum {
  CHOICES = 8,
  FIRST_PLACES = 64,
  BATCHES = 3,
  MAX_RUNS = 64,
  NAMES = 64, /* bytes of an implementation's name */
};
/* A batch of runs lasts about this long, so that the event's resolution does not show. */
static const double batch_seconds = 0.002, unasked_seconds = 1.0;
/* How much faster, as a share of the time, a candidate must be to replace an earlier one (the rule's is the first):
 * clocks drift by as much from one batch to the next. */
static const double margin = 0.02;

typedef struct entry {
  uint64_t hash;
  const char *operator_name;
  char text[RDNA__TUNER_SHAPE];
  rdna__tuner_result result;
  size_t size;
  unsigned char shape[];
} entry;

/* A hash table with open addressing, of entries that never change. One that was outgrown is kept for threads that still
 * read it. */
typedef struct table {
  size_t places, count; /* a power of two, at most half in use */
  struct table *before;
  _Atomic(entry *) entries[];
} table;

/* A result for a class of shapes from the database or the shipped results. */
typedef struct known {
  struct known *next;
  char *text; /* operator, shape, libraries, hash of code, each after the other with a newline between */
  char implementation[NAMES], after[NAMES];
  double ms, next_ms;
  bool shipped;
} known;

typedef struct tuner {
  pthread_mutex_t lock; /* everything but finding */
  _Atomic(table *) table;
  enum { OFF, CACHED, AUTO, FULL } mode;
  bool measures;
  bool loaded;
  known *known;
  rdna__tuner_store *store; /* NULL: there is none, or it is broken */
  char gpu[128], arch[32], driver[48];
  rdna__loader *loader; /* NULL: there are no kernels to compare */
  char *file;           /* NULL: where the settings say */
  uint64_t hits, misses;
} tuner;

static _Atomic(uint64_t) spent_ns;

double rdna__tuner_spent(void) { return (double)atomic_load(&spent_ns) * 1e-9; }

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- what ran ---------------------------------------------------------------------------------------------- */

typedef struct choice {
  const char *operator_name;
  rdna_choice choice;
} choice;
static _Thread_local choice choices[CHOICES];

void rdna__choice_note(const char *operator_name, const char *implementation, const char *why) {
  for (int i = 0; i < CHOICES; i++) {
    if (choices[i].operator_name && choices[i].operator_name != operator_name &&
        strcmp(choices[i].operator_name, operator_name) != 0)
      continue;
    choices[i] = (choice){operator_name, {implementation, why}};
    return;
  }
}

rdna_status rdna_choice_last(const char *operator_name, rdna_choice *out_choice) {
  if (!operator_name || !out_choice)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "asking what ran needs an operator's name and a place for the answer");
  for (int i = 0; i < CHOICES && choices[i].operator_name; i++) {
    if (strcmp(choices[i].operator_name, operator_name) != 0) continue;
    *out_choice = choices[i].choice;
    return RDNA_OK;
  }
  return rdna__fail(RDNA_NOT_FOUND,
                    "this thread has not called an operator '%s' that has several implementations; "
                    "rdna_stream_last_kernel names the kernel of any",
                    operator_name);
}

/* ---- the table --------------------------------------------------------------------------------------------- */

static uint64_t hash_of(const char *operator_name, const void *shape, size_t size) {
  return XXH3_64bits_withSeed(shape, size, XXH3_64bits(operator_name, strlen(operator_name)));
}

static bool matches(const entry *e, uint64_t hash, const char *operator_name, const void *shape, size_t size) {
  return e->hash == hash && e->size == size && memcmp(e->shape, shape, size) == 0 &&
         strcmp(e->operator_name, operator_name) == 0;
}

static bool find(tuner *t, const char *operator_name, const void *shape, size_t size, rdna__tuner_result *out_result) {
  table *now_table = atomic_load_explicit(&t->table, memory_order_acquire);
  uint64_t hash = hash_of(operator_name, shape, size);
  for (size_t at = hash & (now_table->places - 1);; at = (at + 1) & (now_table->places - 1)) {
    entry *e = atomic_load_explicit(&now_table->entries[at], memory_order_acquire);
    if (!e) return false;
    if (!matches(e, hash, operator_name, shape, size)) continue;
    *out_result = e->result;
    return true;
  }
}

static table *make_table(size_t places) {
  table *made = calloc(1, sizeof *made + places * sizeof made->entries[0]);
  if (made) made->places = places;
  return made;
}

static void place(table *to, entry *e) {
  size_t at = e->hash & (to->places - 1);
  while (atomic_load_explicit(&to->entries[at], memory_order_relaxed)) at = (at + 1) & (to->places - 1);
  atomic_store_explicit(&to->entries[at], e, memory_order_release);
  to->count++;
}

/* Under the lock. Without host memory the answer is worked out again the next time. */
static void remember(tuner *t, const rdna__tuner_question *q, const rdna__tuner_result *result) {
  table *old = atomic_load(&t->table);
  entry *e = malloc(sizeof *e + q->shape_size);
  if (!e) return;
  *e = (entry){.hash = hash_of(q->operator_name, q->shape, q->shape_size),
               .operator_name = q->operator_name,
               .result = *result,
               .size = q->shape_size};
  memcpy(e->shape, q->shape, q->shape_size);
  snprintf(e->text, sizeof e->text, "%s", q->shape_text);
  if (2 * (old->count + 1) > old->places) {
    table *grown = make_table(2 * old->places);
    if (!grown) {
      free(e);
      return;
    }
    for (size_t i = 0; i < old->places; i++)
      if (atomic_load(&old->entries[i])) place(grown, atomic_load(&old->entries[i]));
    grown->before = old;
    atomic_store_explicit(&t->table, grown, memory_order_release);
    old = grown;
  }
  place(old, e);
}

/* What files said, and the file: the next question reads them again. */
static void forget_known(tuner *t) {
  while (t->known) {
    known *next = t->known->next;
    free(t->known->text);
    free(t->known);
    t->known = next;
  }
  rdna__tuner_store_close(t->store);
  t->store = NULL;
  t->loaded = false;
}

static void destroy(rdna_device *device, void *data) {
  tuner *t = data;
  table *newest = atomic_load(&t->table);
  for (size_t i = 0; newest && i < newest->places; i++) free(atomic_load(&newest->entries[i]));
  while (newest) {
    table *before = newest->before;
    free(newest);
    newest = before;
  }
  forget_known(t);
  free(t->file);
  rdna__loader_close(t->loader);
  pthread_mutex_destroy(&t->lock);
  free(t);
}

/* ---- the device -------------------------------------------------------------------------------------------- */

/* Commas would end a field of the text form. */
static void copy_field(char *to, size_t size, const char *from) {
  snprintf(to, size, "%s", from);
  for (char *c = to; *c; c++)
    if (*c == ',' || *c == '\n' || *c == '\r') *c = ' ';
}

static void identify(tuner *t, rdna_device *device) {
  const rdna_device_info *info = rdna_device_get_info(device);
  rdna__code_format format = rdna__device_driver(device)->code_format;
  copy_field(t->gpu, sizeof t->gpu, info->name);
  copy_field(t->arch, sizeof t->arch, info->arch);
  const rdna_driver_info *driver = NULL;
  if (rdna__driver_find(info->driver, &driver)) {
    char text[48];
    snprintf(text, sizeof text, "%s %.32s", driver->name, driver->version);
    copy_field(t->driver, sizeof t->driver, text);
  }
  if (format != RDNA__CODE_HOST && rdna__loader_open(info->arch, format, &t->loader) != RDNA_OK) t->loader = NULL;
}

/* Writes a hash of the code of |families|: other code counts as another implementation. */
static void code_text(const tuner *t, const char *families, char text[RDNA__TUNER_CODE]) {
  uint64_t hash = 0;
  snprintf(text, RDNA__TUNER_CODE, "none");
  if (!t->loader) return;
  for (const char *at = families; *at;) {
    char family[64];
    size_t length = strcspn(at, " ");
    snprintf(family, sizeof family, "%.*s", (int)length, at);
    uint64_t both[] = {hash, rdna__loader_hash(t->loader, family)};
    hash = XXH3_64bits(both, sizeof both);
    at += length + strspn(at + length, " ");
  }
  snprintf(text, RDNA__TUNER_CODE, "%016llx", (unsigned long long)hash);
}

static bool take_mode(tuner *t, rdna_device *device, const char *mode) {
  static const char *const words[] = {[OFF] = "off", [CACHED] = "cached", [AUTO] = "auto", [FULL] = "full"};
  for (int i = OFF; i <= FULL; i++) {
    if (strcmp(mode, words[i]) != 0) continue;
    t->mode = i;
    /* an emulator's time says nothing about a card */
    t->measures = t->mode >= AUTO && !rdna_device_get_info(device)->emulated;
    return true;
  }
  return false;
}

static tuner *tuner_of(rdna_device *device) {
  tuner *t = rdna__device_get_slot(device, RDNA__SLOT_TUNER);
  if (t) return t;
  t = calloc(1, sizeof *t);
  table *first = make_table(FIRST_PLACES);
  if (!t || !first) {
    free(t);
    free(first);
    return NULL;
  }
  pthread_mutex_init(&t->lock, NULL);
  atomic_store(&t->table, first);
  (void)take_mode(t, device, rdna__config_text(RDNA__CONFIG_TUNE)); /* which is one of the words */
  identify(t, device);
  tuner *winner = rdna__device_set_slot(device, RDNA__SLOT_TUNER, t, destroy);
  if (winner != t) destroy(device, t);
  return winner;
}

bool rdna__tuner_find(rdna_device *device, const char *operator_name, const void *shape, size_t shape_size,
                      rdna__tuner_result *out_result) {
  tuner *t = rdna__device_get_slot(device, RDNA__SLOT_TUNER);
  return t && find(t, operator_name, shape, shape_size, out_result);
}

void rdna__tuner_visit(rdna_device *device,
                       void (*visit)(void *context, const char *operator_name, const char *shape_text,
                                     const rdna__tuner_result *result),
                       void *context) {
  tuner *t = rdna__device_get_slot(device, RDNA__SLOT_TUNER);
  table *all = t ? atomic_load_explicit(&t->table, memory_order_acquire) : NULL;
  for (size_t i = 0; all && i < all->places; i++) {
    const entry *e = atomic_load_explicit(&all->entries[i], memory_order_acquire);
    if (e) visit(context, e->operator_name, e->text, &e->result);
  }
}

void rdna__tuner_device_text(rdna_device *device, char text[RDNA__TUNER_TEXT]) {
  tuner *t = tuner_of(device);
  text[0] = 0;
  if (!t) return;
  snprintf(text, RDNA__TUNER_TEXT, "%s,%s,%s", t->gpu, t->arch, t->driver);
}

void rdna__tuner_code_text(rdna_device *device, const char *families, char text[RDNA__TUNER_CODE]) {
  const tuner *t = tuner_of(device);
  text[0] = 0;
  if (t) code_text(t, families, text);
}

/* ---- what is stored ---------------------------------------------------------------------------------------- */

typedef struct loading {
  tuner *t;
  bool shipped;
} loading;

static void take(void *context, const rdna__tuner_row *row) {
  const loading *l = context;
  tuner *t = l->t;
  if (strcmp(row->gpu, t->gpu) != 0 || strcmp(row->arch, t->arch) != 0) return;
  if (!l->shipped && strcmp(row->driver, t->driver) != 0) return;
  known *k = calloc(1, sizeof *k);
  if (!k || asprintf(&k->text, "%s\n%s\n%s\n%s", row->operator_name, row->shape, row->libraries, row->pack) < 0) {
    free(k);
    return;
  }
  snprintf(k->implementation, sizeof k->implementation, "%s", row->implementation);
  snprintf(k->after, sizeof k->after, "%s", row->next);
  k->ms = row->ms, k->next_ms = row->next_ms, k->shipped = l->shipped;
  k->next = t->known;
  t->known = k;
}

/* Under the lock. The user's results are put before the shipped ones, so that they are found first. */
static void load(tuner *t) {
  char path[4096];
  t->loaded = true;
  if (rdna__tuner_text_read(rdna__tuner_shipped, rdna__tuner_shipped_size, take, &(loading){t, true}) != RDNA_OK)
    rdna__log(RDNA__LOG_WARNING, "the shipped tuner's results: %s", rdna_last_error());
  if (t->file)
    snprintf(path, sizeof path, "%s", t->file);
  else
    rdna__tuner_store_path(path);
  /* whoever writes nothing makes no file */
  if (!path[0] || (!t->measures && access(path, F_OK) != 0)) return;
  rdna_status status = rdna__tuner_store_open(path, &t->store);
  if (status == RDNA_OK) status = rdna__tuner_store_read(t->store, t->gpu, t->arch, take, &(loading){t, false});
  if (status == RDNA_OK) return;
  rdna__log(RDNA__LOG_WARNING, "%s", rdna_last_error());
  rdna__tuner_store_close(t->store);
  t->store = NULL;
}

static const rdna__tuner_candidate *candidate_named(const rdna__tuner_question *q, const char *name) {
  for (int i = 0; i < q->count; i++)
    if (strcmp(q->candidates[i].name, name) == 0) return &q->candidates[i];
  return NULL;
}

static bool look_up(tuner *t, const rdna__tuner_question *q, const char *code, rdna__tuner_result *out_result) {
  char text[512];
  snprintf(text, sizeof text, "%s\n%s\n%s\n%s", q->operator_name, q->shape_text, q->libraries, code);
  for (known *k = t->known; k; k = k->next) {
    if (strcmp(k->text, text) != 0) continue;
    const rdna__tuner_candidate *c = candidate_named(q, k->implementation);
    if (!c) continue;
    *out_result = (rdna__tuner_result){c->id, c->name, k->shipped ? "shipped" : "stored", k->ms, k->after, k->next_ms};
    return true;
  }
  return false;
}

static void store(tuner *t, const rdna__tuner_question *q, const char *code, const rdna__tuner_result *r) {
  rdna__tuner_row row = {t->gpu,       t->arch,           t->driver, code,  q->operator_name, q->shape_text,
                         q->libraries, r->implementation, r->next,   r->ms, r->next_ms};
  if (!t->store || rdna__tuner_store_write(t->store, &row) == RDNA_OK) return;
  rdna__log(RDNA__LOG_INFO, "%s", rdna_last_error()); /* busy, full: the next process measures again */
}

/* ---- measuring --------------------------------------------------------------------------------------------- */

typedef struct measuring {
  tuner *t;
  rdna_stream *stream;
  const rdna__tuner_question *q;
  rdna_event *start, *end;
  double limit; /* when to stop */
} measuring;

/* Returns the seconds of one run, averaged over |runs| in a row; negative: it failed. */
static double time_runs(measuring *m, int id, int runs) {
  float ms = 0;
  rdna_status status = rdna_event_record(m->start, m->stream);
  for (int i = 0; i < runs && status == RDNA_OK; i++) status = m->q->trial(m->q->context, id);
  if (status == RDNA_OK) status = rdna_event_record(m->end, m->stream);
  if (status == RDNA_OK) status = rdna_event_synchronize(m->end);
  if (status == RDNA_OK) status = rdna_event_elapsed(m->start, m->end, &ms);
  return status == RDNA_OK ? (double)ms * 1e-3 / runs : -1;
}

/* Returns the least time of several batches; negative: it failed, or time is up. |best|: the fastest candidate so far,
 * 0 if none. */
static double measure(measuring *m, int id, double best) {
  double once = time_runs(m, id, 1); /* loads what it needs */
  if (once < 0 || now() >= m->limit) return -1;
  once = time_runs(m, id, 1);
  if (once < 0 || (best > 0 && once > 4 * best)) return once;
  double least = once;
  int runs = once * MAX_RUNS <= batch_seconds ? MAX_RUNS : once >= batch_seconds ? 1 : (int)(batch_seconds / once);
  for (int batch = 0; batch < BATCHES; batch++) {
    if (now() + runs * once * 2 >= m->limit) return batch ? least : -1;
    double seconds = time_runs(m, id, runs);
    if (seconds < 0) return -1;
    if (batch == 0 || seconds < least) least = seconds;
  }
  return least;
}

/* Measures all candidates. Returns false if it did not finish: the rule holds then. */
static bool measure_all(measuring *m, rdna__tuner_result *out_result) {
  const rdna__tuner_question *q = m->q;
  double best = 0, next = 0;
  const rdna__tuner_candidate *first = NULL, *second = NULL;
  for (int i = 0; i < q->count; i++) {
    const rdna__tuner_candidate *c = &q->candidates[i];
    if (c->slow_start && m->t->mode != FULL) continue;
    double guess = best > 0 ? best : q->seconds;
    if (now() + 3 * guess >= m->limit) return false;
    double seconds = measure(m, c->id, best);
    if (seconds < 0) {
      if (now() >= m->limit) return false;
      continue;
    }
    if (!first || seconds < best * (1 - margin)) {
      if (!second || best < next) next = best, second = first; /* the second may be faster than the first, a little */
      best = seconds, first = c;
    } else if (!second || seconds < next) {
      next = seconds, second = c;
    }
  }
  if (!first) return false;
  *out_result = (rdna__tuner_result){
      first->id, first->name, "measured", best * 1e3, second ? second->name : "", second ? next * 1e3 : 0};
  return true;
}

static bool measure_now(tuner *t, rdna_stream *stream, const rdna__tuner_question *q, rdna__tuner_result *out_result) {
  double begun = now(), left = unasked_seconds - rdna__tuner_spent();
  if (t->mode != FULL && left <= 0) return false;
  measuring m = {t, stream, q, NULL, NULL, t->mode == FULL ? begun + 1e9 : begun + left};
  rdna_device *device = rdna_stream_device(stream);
  /* the stream itself is not waited for: that would take an error away from whoever waits for it next */
  bool done = rdna_event_create(device, true, &m.start) == RDNA_OK &&
              rdna_event_create(device, true, &m.end) == RDNA_OK && measure_all(&m, out_result);
  rdna_event_release(m.start);
  rdna_event_release(m.end);
  if (t->mode != FULL) atomic_fetch_add(&spent_ns, (uint64_t)((now() - begun) * 1e9));
  return done;
}

static void decide(rdna_stream *stream, const rdna__tuner_question *q, rdna__tuner_result *out_result) {
  rdna_device *device = rdna_stream_device(stream);
  tuner *t = tuner_of(device);
  *out_result = (rdna__tuner_result){q->candidates[0].id, q->candidates[0].name, "rule", 0, "", 0};
  if (q->count == 1) out_result->why = "only one";
  if (!t || rdna__stream_records(stream)) return; /* a recording cannot be waited for */
  pthread_mutex_lock(&t->lock);
  if (!find(t, q->operator_name, q->shape, q->shape_size, out_result)) {
    if (q->count > 1 && t->mode != OFF) {
      char code[RDNA__TUNER_CODE];
      code_text(t, q->families, code);
      if (!t->loaded) load(t);
      bool is_known = look_up(t, q, code, out_result);
      if (!is_known && t->measures && measure_now(t, stream, q, out_result)) store(t, q, code, out_result);
      t->hits += is_known;
      t->misses += !is_known;
    } else {
      t->misses += q->count > 1;
    }
    remember(t, q, out_result);
  }
  pthread_mutex_unlock(&t->lock);
}

void rdna__tuner_decide(rdna_stream *stream, const rdna__tuner_question *q, rdna__tuner_result *out_result) {
  char last_error[2048]; /* the caller's, which packs, the database and trials are not to change */
  snprintf(last_error, sizeof last_error, "%s", rdna_last_error());
  decide(stream, q, out_result);
  rdna__set_last_error(last_error);
}

/* ---- the public face ---------------------------------------------------------------------------------------- */

rdna_status rdna_tune_set(rdna_device *device, const char *mode, const char *file) {
  if (!device) return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_tune_set needs a device");
  if (file && (!file[0] || strlen(file) >= 4096))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_tune_set: the tuner's file has a path of 1 to 4,095 bytes, not %zu",
                      strlen(file));
  char *kept = file ? strdup(file) : NULL;
  tuner *t = tuner_of(device);
  if (!t || (file && !kept)) {
    free(kept);
    return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the tuner");
  }
  pthread_mutex_lock(&t->lock);
  bool is_mode = !mode || take_mode(t, device, mode);
  if (is_mode && file) {
    forget_known(t);
    free(t->file);
    t->file = kept;
    kept = NULL;
  }
  pthread_mutex_unlock(&t->lock);
  free(kept);
  if (is_mode) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_tune_set: '%.40s' is none of off, cached, auto, full", mode);
}

rdna_status rdna_tune_get_stats(rdna_device *device, rdna_tune_stats *out_stats) {
  if (!device || !out_stats)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_tune_get_stats needs a device and a place for the answer");
  tuner *t = tuner_of(device);
  if (!t) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the tuner");
  pthread_mutex_lock(&t->lock);
  *out_stats = (rdna_tune_stats){atomic_load(&t->table)->count, t->hits, t->misses};
  pthread_mutex_unlock(&t->lock);
  return RDNA_OK;
}
