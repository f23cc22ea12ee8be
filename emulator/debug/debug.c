// The observer of every launch: hands what happens to the session and to the trace, one instruction at a time.
#include "debug/debug.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "debug/prompt.h"
#include "debug/remote.h"
#include "debug/session.h"
#include "debug/trace.h"

static struct {
  pthread_mutex_t lock;  // held by the wave that executes an instruction, if anybody watches it
  struct emu_session *session;
  struct emu_trace *trace;
  struct emu_remote *remote;
  struct emu_socket *socket;
  uint32_t tags;
  void (*say)(const char *format, ...);
} debug = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void launched(void *context, const struct emu_dispatch *dispatch) {
  (void)context;
  pthread_mutex_lock(&debug.lock);
  if (debug.session) emu_session_launched(debug.session, dispatch);
  if (debug.trace) emu_trace_launched(debug.trace);
  pthread_mutex_unlock(&debug.lock);
}

static void finished(void *context, const struct emu_dispatch *dispatch) {
  (void)context;
  pthread_mutex_lock(&debug.lock);
  if (debug.session) emu_session_finished(debug.session, dispatch);
  pthread_mutex_unlock(&debug.lock);
}

static uint32_t begun(void *context, struct emu_wave *wave) {
  (void)context;
  pthread_mutex_lock(&debug.lock);
  uint32_t tag = debug.tags + 1;
  bool traced = debug.trace && emu_trace_begun(debug.trace, wave);
  bool watched = traced || (debug.session && emu_session_watches(debug.session));
  if (debug.session && watched) emu_session_begun(debug.session, wave, tag);
  if (watched) debug.tags = tag;
  pthread_mutex_unlock(&debug.lock);
  return watched ? tag : 0;
}

static void ended(void *context, struct emu_wave *wave) {
  (void)context;
  pthread_mutex_lock(&debug.lock);
  if (debug.trace) emu_trace_ended(debug.trace, wave);
  if (debug.session) emu_session_ended(debug.session, wave);
  pthread_mutex_unlock(&debug.lock);
}

static enum emu_turn before(void *context, struct emu_wave *wave) {
  (void)context;
  pthread_mutex_lock(&debug.lock);
  enum emu_turn turn = debug.session ? emu_session_before(debug.session, wave) : EMU_TURN_GO;
  if (turn != EMU_TURN_GO) {
    pthread_mutex_unlock(&debug.lock);
    return turn;
  }
  if (debug.trace) emu_trace_before(debug.trace, wave);
  return turn;  // the lock is kept until the instruction is done
}

static void after(void *context, struct emu_wave *wave) {
  (void)context;
  if (debug.trace) emu_trace_after(debug.trace, wave);
  if (debug.session) emu_session_after(debug.session, wave);
  pthread_mutex_unlock(&debug.lock);
}

static void touched(void *context, struct emu_wave *wave, const struct emu_touched *touch) {
  (void)context;
  if (debug.session) emu_session_touched(debug.session, wave, touch);
}

static const struct emu_observer observer = {.launched = launched,
                                             .finished = finished,
                                             .begun = begun,
                                             .ended = ended,
                                             .before = before,
                                             .after = after,
                                             .touched = touched};

// A fork's child has copies of the client's connection and of the file's buffer, which are its parent's alone.
static void leave_to_parent(void) {
  debug.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
  if (debug.trace) emu_trace_leave(debug.trace);
  emu_socket_release(debug.socket);
  debug.session = NULL;
  debug.trace = NULL;
  debug.remote = NULL;
  debug.socket = NULL;
}

static bool start_session(const struct emu_debug_wishes *wishes) {
  struct emu_front front;
  emu_prompt_front(&front);
  if (wishes->gdb) {
    int listener = emu_remote_listen(wishes->gdb, wishes->say);
    struct emu_wire wire;
    if (listener < 0) return false;
    debug.socket = emu_socket_create(listener, &wire);
    debug.remote = debug.socket ? emu_remote_create(&wire) : NULL;
    if (!debug.remote) return false;
    emu_remote_front(debug.remote, &front);
  }
  debug.session = emu_session_create(&front);
  if (!debug.session || !wishes->breaks) return debug.session;
  char *names = strdup(wishes->breaks), *rest = names, *name = NULL;
  while (names && (name = strsep(&rest, ",")) != NULL && emu_session_break(debug.session, name)) continue;
  if (name) wishes->say("'%s' is no place to stop: KERNEL, KERNEL:LINE or FUNCTION, at most 32 of them", name);
  bool all = names && !name;
  free(names);
  return all;
}

bool emu_debug_start(const struct emu_debug_wishes *wishes, const struct emu_observer **out) {
  *out = NULL;
  if (wishes->trace) debug.trace = emu_trace_create(wishes->trace, wishes->trace_wave, wishes->say);
  if (wishes->trace && !debug.trace) return false;
  if ((wishes->gdb || wishes->breaks) && !start_session(wishes)) return false;
  debug.say = wishes->say;
  if (!debug.session && !debug.trace) return true;
  if (pthread_atfork(NULL, NULL, leave_to_parent) != 0) return false;
  *out = &observer;
  return true;
}

bool emu_debug_stops(void) { return debug.session != NULL; }

void emu_debug_end(int exit_code) {
  if (!debug.session && !debug.trace) return;
  // whoever still executes waits for ever from here on; not so a wave that is stopped, whose client keeps the lock
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec++;
  if (pthread_mutex_timedlock(&debug.lock, &until)) return;
  if (debug.remote) emu_remote_exited(debug.remote, exit_code);
  if (debug.session && debug.say) emu_session_say_unmet(debug.session, debug.say);
  if (debug.trace) emu_trace_finish(debug.trace, debug.say);
  debug.trace = NULL;
  emu_socket_release(debug.socket);
  debug.socket = NULL;
}
