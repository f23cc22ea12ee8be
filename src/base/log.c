#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/config.h"

static pthread_mutex_t sink_mutex = PTHREAD_MUTEX_INITIALIZER;
static void (*sink)(void *data, rdna__log_level level, const char *message);
static void *sink_data;

static const char *const level_names[] = {"error", "warning", "info", "debug"};

static bool is_shown(rdna__log_level level) {
  const char *least = rdna__config_text(RDNA__CONFIG_LOG);
  for (int i = (int)level; i < 4; i++)
    if (strcmp(level_names[i], least) == 0) return true;
  return false;
}

void rdna__log(rdna__log_level level, const char *format, ...) {
  if (!is_shown(level)) return;
  char message[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  pthread_mutex_lock(&sink_mutex);
  if (sink)
    sink(sink_data, level, message);
  else
    fprintf(stderr, "rdna: %s: %s\n", level_names[level], message);
  pthread_mutex_unlock(&sink_mutex);
}

void rdna__log_set_sink(void (*new_sink)(void *data, rdna__log_level level, const char *message), void *data) {
  pthread_mutex_lock(&sink_mutex);
  sink = new_sink;
  sink_data = data;
  pthread_mutex_unlock(&sink_mutex);
}
