#include "server/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void log_event(const char *event, json_t *line) {
  struct timespec now;
  struct tm parts;
  char date[32], when[48];
  clock_gettime(CLOCK_REALTIME, &now);
  gmtime_r(&now.tv_sec, &parts);
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &parts);
  snprintf(when, sizeof when, "%s.%03ldZ", date, now.tv_nsec / 1000000);
  json_t *whole = json_pack("{s:s, s:s}", "time", when, "event", event);
  if (whole && line) json_object_update(whole, line);
  char *text = whole && line ? json_dumps(whole, JSON_COMPACT) : NULL;
  size_t size = text ? strlen(text) : 0;
  if (text) {
    text[size] = '\n'; /* in the place of the zero */
    ssize_t written = write(STDERR_FILENO, text, size + 1);
    (void)written;
  }
  free(text);
  json_decref(whole);
  json_decref(line);
}
