// A prompt on standard input. Text goes to standard error: standard output is the program's.
#include "debug/prompt.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "debug/inspect.h"

enum { ROOM = 1 << 16 };

static struct {
  unsigned long steps;  // left of the last command
  char text[ROOM];
} prompt;  // under the session's lock

static void say(void) { fprintf(stderr, "%s", prompt.text); }

// Whether the line resumes.
static bool resumes(struct emu_session *session, const struct emu_wave_view *view, const char *line) {
  char word[16] = "", rest[16] = "";
  (void)sscanf(line, "%15s %15s", word, rest);
  if (strcmp(word, "step") == 0 || strcmp(word, "s") == 0) {
    prompt.steps = rest[0] ? strtoul(rest, NULL, 10) : 1;
    if (!prompt.steps) return false;
    emu_session_step(session, view->tag, 0, 0);
  } else if (strcmp(word, "continue") == 0 || strcmp(word, "c") == 0) {
    emu_session_continue(session);
  } else if (strcmp(word, "quit") == 0 || strcmp(word, "q") == 0) {
    emu_session_kill(session);
  } else {
    return false;
  }
  return true;
}

static void stopped(void *context, struct emu_session *session, struct emu_wave *wave, enum emu_stop_reason why,
                    const char *text) {
  (void)context;
  struct emu_wave_view view;
  emu_wave_look(wave, &view);
  if (why == EMU_STOP_STEP && prompt.steps > 1) {
    prompt.steps--;
    emu_session_step(session, view.tag, 0, 0);
    return;
  }
  prompt.steps = 0;
  struct emu_text out = {prompt.text, 0, ROOM};
  emu_text_add(&out, "\n%s: %s%s", emu_stop_text(why), text, text[0] ? "\n" : "");
  emu_inspect_where(session, wave, &out);
  say();
  char line[512];
  for (;;) {
    if (isatty(STDIN_FILENO)) fprintf(stderr, "(rdna) ");
    if (!fgets(line, sizeof line, stdin)) {
      emu_session_detach(session);
      return;
    }
    if (line[strspn(line, " \t\r\n")] == '\0') continue;
    if (resumes(session, &view, line)) return;
    out.used = 0;
    prompt.text[0] = '\0';
    emu_inspect(session, wave, line, &out);
    if (strncmp(line, "help", 4) == 0)
      emu_text_add(&out, "%-34s %s\n%-34s %s\n%-34s %s\n", "step [N]", "this wave executes N instructions", "continue",
                   "all waves go on", "quit", "the kernel ends with an error");
    say();
  }
}

void emu_prompt_front(struct emu_front *out) { *out = (struct emu_front){.stopped = stopped}; }
