#include "math/fused/chain.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/config.h"
#include "base/log.h"
#include "device/driver.h"
#include "kernel/compile.h"
#include "kernel/tuner.h"
#include "math/fused/chain_source.h"

/* A compiler takes about a second of a processor, once for all processes that share a cache. The interpreter loses up
 * to half of the time that memory takes: a chain that has moved so much is likely to be asked for again and again.
 */
int64_t rdna__chain_worth = 1 << 30;

enum { PLACES = 512, MOST = PLACES / 2 };

typedef enum chain_state { COUNTED, WAITING, COMPILED, FAILED } chain_state;

typedef struct chain {
  struct chain *next; /* in the queue */
  rdna_device *device;
  chain_key key;
  chain_state state;
  int64_t bytes; /* that it has moved so far, while it is COUNTED */
  rdna_module *module;
  int kernel;
} chain;

/* The chains of a device: a hash table with open addressing; entries stay until the device ends. */
typedef struct device_chains {
  int count;
  chain *places[PLACES];
} device_chains;

/* Protects all chains and the queue. A thread works on the queue, and ends when it is empty. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static chain *queue;           /* the next to be compiled */
static const chain *compiling; /* what the thread works on */
static _Atomic pid_t worker;   /* the process that has such a thread; a fork's child has none. 0: there is none */
static bool closing;           /* the program ends */

/* ---- compiling ----------------------------------------------------------------------------------------------- */

static rdna_status compile_source(const chain *c, const char *source, rdna_module **out_module, int *out_kernel) {
  static const char *const flags[] = {"-ffp-contract=off"};
  char target[RDNA__COMPILE_TARGET], name[CHAIN_NAME];
  rdna__compile_target(c->device, target);
  rdna_compile_options options = {RDNA_COMPILE_OPTIONS_INIT, .target = target, .name = "chain.hip", .flags = flags,
                                  .flag_count = 1};
  rdna_code *code;
  RDNA_TRY(rdna_compile(source, &options, &code));
  rdna__chain_name(&c->key, name);
  rdna_status status = rdna_code_find(code, name, out_kernel);
  if (status == RDNA_OK) status = rdna__module_load_within(c->device, code, out_module);
  rdna_code_release(code);
  return status;
}

/* Without the lock, as it takes a second. */
static rdna_status compile_chain(const chain *c, rdna_module **out_module, int *out_kernel) {
  char *source;
  *out_module = NULL;
  RDNA_TRY(rdna__chain_source(&c->key, &source));
  rdna_status status = compile_source(c, source, out_module, out_kernel);
  free(source);
  if (status != RDNA_OK)
    rdna__log(RDNA__LOG_INFO, "a chain stays with the kernel that interprets it: %s", rdna_last_error());
  return status;
}

/* Under the lock, which it gives away meanwhile. */
static void compile_now(chain *c) {
  rdna_module *module;
  int kernel;
  c->state = WAITING;
  pthread_mutex_unlock(&lock);
  rdna_status status = compile_chain(c, &module, &kernel);
  pthread_mutex_lock(&lock);
  c->module = module;
  c->kernel = kernel;
  c->state = status == RDNA_OK ? COMPILED : FAILED;
  pthread_cond_broadcast(&changed);
}

static void *work(void *unused) {
  pthread_mutex_lock(&lock);
  while (queue && !closing) {
    chain *c = queue;
    queue = c->next;
    compiling = c;
    compile_now(c);
    compiling = NULL;
  }
  worker = 0;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  return NULL;
}

/* At the program's end: a compiler in the middle of its work would meet what has been taken apart. */
static void wait_at_exit(void) {
  if (worker != getpid()) return;
  pthread_mutex_lock(&lock);
  closing = true;
  while (worker == getpid()) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
}
static pthread_once_t registered = PTHREAD_ONCE_INIT;
static char first_target[RDNA__COMPILE_TARGET]; /* under the lock until it is registered */
static void register_exit(void) {
  rdna__compiler_settle(first_target);
  (void)!atexit(wait_at_exit);
}

/* Under the lock. False: there is no thread, and none can be had now. */
static bool start_worker(void) {
  pthread_t thread;
  pthread_attr_t attributes;
  sigset_t all, before;
  if (worker == getpid()) return true;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  sigfillset(&all); /* signals are the program's own threads' */
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool is_there = pthread_create(&thread, &attributes, work, NULL) == 0;
  if (is_there) worker = getpid();
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  return is_there;
}

/* Under the lock, which it gives away meanwhile. */
static void enqueue(chain *c) {
  chain **last = &queue;
  c->state = WAITING;
  if (!first_target[0]) rdna__compile_target(c->device, first_target);
  pthread_mutex_unlock(&lock);
  pthread_once(&registered, register_exit);
  pthread_mutex_lock(&lock);
  while (*last) last = &(*last)->next;
  *last = c;
  c->next = NULL;
  if (start_worker()) return;
  *last = NULL; /* nobody takes it: it counts anew, and is tried again */
  c->state = COUNTED;
  c->bytes = 0;
}

void rdna__chain_wait(void) {
  pthread_mutex_lock(&lock);
  while (worker == getpid()) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
}

/* ---- the chains of a device ---------------------------------------------------------------------------------- */

static void destroy(rdna_device *device, void *data) {
  device_chains *chains = data;
  pthread_mutex_lock(&lock);
  for (chain **at = &queue; *at;) {
    if ((*at)->device == device)
      *at = (*at)->next;
    else
      at = &(*at)->next;
  }
  while (compiling && compiling->device == device && worker == getpid()) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
  for (int i = 0; i < PLACES; i++) {
    if (!chains->places[i]) continue;
    rdna_module_release(chains->places[i]->module);
    free(chains->places[i]);
  }
  free(chains);
}

/* NULL: no memory, for which the interpreter needs none. */
static device_chains *chains_of(rdna_device *device) {
  device_chains *found = rdna__device_get_slot(device, RDNA__SLOT_CHAINS);
  if (found) return found;
  device_chains *made = calloc(1, sizeof *made);
  if (!made) return NULL;
  found = rdna__device_set_slot(device, RDNA__SLOT_CHAINS, made, destroy);
  if (found != made) free(made);
  return found;
}

/* The chain, made where it is new; NULL: there are too many, or no memory. Under the lock. */
static chain *find(device_chains *chains, rdna_device *device, const chain_key *key) {
  size_t at = XXH3_64bits(key, sizeof *key) % PLACES;
  for (; chains->places[at]; at = (at + 1) % PLACES)
    if (!memcmp(&chains->places[at]->key, key, sizeof *key)) return chains->places[at];
  chain *made = chains->count < MOST ? calloc(1, sizeof *made) : NULL;
  if (!made) return NULL;
  made->device = device;
  made->key = *key;
  chains->places[at] = made;
  chains->count++;
  return made;
}

/* ---- launching ----------------------------------------------------------------------------------------------- */

/* The chain's kernel, or NULL with the reason. */
static const chain *kernel_for(device_chains *chains, rdna_stream *stream, const chain_key *key, int64_t bytes,
                               bool at_once, const char **out_why) {
  static const char *const reasons[] = {"it has not moved enough to be worth a compiler's time",
                                        "its own kernel is being compiled", "compiled at run time",
                                        "its own kernel could not be compiled; RDNA_LOG=info says why"};
  pthread_mutex_lock(&lock);
  chain *c = find(chains, rdna_stream_device(stream), key);
  *out_why = "the device has as many other chains as are kept";
  if (c) {
    if (c->state == COUNTED && !rdna__stream_records(stream) && !closing) {
      c->bytes += bytes;
      if (at_once)
        compile_now(c);
      else if (c->bytes >= rdna__chain_worth)
        enqueue(c);
    }
    *out_why = reasons[c->state];
  }
  bool is_compiled = c && c->state == COMPILED; /* from then on it never changes */
  pthread_mutex_unlock(&lock);
  return is_compiled ? c : NULL;
}

static rdna_status launch(rdna_stream *stream, const chain *c, const struct chain_args *args) {
  uint32_t values = rdna__chain_group_values(&c->key);
  rdna_launch_argument argument = {.data = args, .size = sizeof *args};
  rdna_launch_shape shape = {{(args->count + values - 1) / values, 1, 1}, {CHAIN_THREADS, 1, 1}, 0};
  return rdna_module_launch(stream, c->module, c->kernel, &shape, &argument, 1);
}

rdna_status rdna__chain_launch(rdna_stream *stream, rdna_dtype dtype, const struct fused_args *args,
                               const strided_plan *plan, bool *out_done) {
  rdna_device *device = rdna_stream_device(stream);
  const rdna__driver *driver = rdna__device_driver(device);
  *out_done = false;
  if (driver->code_format == RDNA__CODE_HOST || !driver->module_load || rdna__device_is_rehearsal(device))
    return RDNA_OK;
  const char *mode = rdna__config_text(RDNA__CONFIG_FUSED_COMPILE);
  device_chains *chains = chains_of(device);
  chain_key key = {.dtype = (uint8_t)dtype, .steps = (uint8_t)args->steps, .inputs = (uint8_t)args->inputs};
  struct chain_args own = {0};
  int64_t bytes;
  const chain *c = NULL;
  const char *why = "RDNA_FUSED_COMPILE is off";
  memcpy(key.step, args->step, args->steps * sizeof *key.step);
  if (chains && strcmp(mode, "off") != 0) {
    why = "its operands are neither contiguous nor simple broadcasts";
    if (rdna__chain_lay_out(plan, &key, &own, &bytes))
      c = kernel_for(chains, stream, &key, bytes, !strcmp(mode, "always"), &why);
  }
  rdna__choice_note("fused", c ? "compiled" : "interpreted", why);
  if (!c) return RDNA_OK;
  memcpy(own.p, args->p, args->steps * sizeof *own.p);
  memcpy(own.q, args->q, args->steps * sizeof *own.q);
  *out_done = true;
  return launch(stream, c, &own);
}
