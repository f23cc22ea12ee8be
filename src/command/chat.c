/* rdna chat: messages and a language model's answers, in turn. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "command/generation.h"
#include "model/template/conversation.h"

static const char commands[] =
    "/clear          forget what was said\n"
    "/system TEXT    begin anew with this system message; without TEXT, with none\n"
    "/exit           leave, as does the end of the input\n";

typedef struct talk {
  generation g;
  rdna__conversation c;
  char *system; /* NULL: none */
} talk;

/* A conversation in which nothing was said but the system message. */
static rdna_status begin(talk *t) {
  rdna__conversation_close(&t->c);
  RDNA_TRY(rdna__conversation_open(&t->c, t->g.file, t->g.tokenizer));
  return t->system ? rdna__conversation_add(&t->c, "system", t->system, strlen(t->system)) : RDNA_OK;
}

static rdna_status set_system(talk *t, const char *text) {
  char *copy = *text ? strdup(text) : NULL;
  if (*text && !copy) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the system message");
  free(t->system);
  t->system = copy;
  return begin(t);
}

/* The model's answer to |line|. What the template or the context refuses is said, and the message forgotten. */
static rdna_status answer(talk *t, const char *line) {
  generation *g = &t->g;
  RDNA_TRY(rdna__conversation_add(&t->c, "user", line, strlen(line)));
  rdna_status status = rdna__conversation_encode(&t->c, &g->prompt);
  generation_interrupted = 0;
  signal(SIGINT, generation_interrupt);
  if (status == RDNA_OK) status = generation_write(g);
  signal(SIGINT, SIG_DFL);
  if (status == RDNA_INVALID_ARGUMENT) {
    rdna__conversation_remove_last(&t->c);
    fail_with_status();
    return RDNA_OK;
  }
  if (status != RDNA_OK) return status;
  printf("\n");
  fflush(stdout);
  if (strcmp(g->stop_reason, "end") != 0) fprintf(stderr, "(stopped: %s)\n", g->stop_reason);
  return rdna__conversation_add(&t->c, "assistant", g->text, g->text_size);
}

/* What |line| asks for; |out_leave|: the end. */
static rdna_status obey(talk *t, const char *line, bool *out_leave) {
  if (line[0] != '/') return *line ? answer(t, line) : RDNA_OK;
  if (strcmp(line, "/exit") == 0 || strcmp(line, "/quit") == 0) {
    *out_leave = true;
    return RDNA_OK;
  }
  if (strcmp(line, "/clear") == 0) return begin(t);
  if (strcmp(line, "/system") == 0) return set_system(t, "");
  if (strncmp(line, "/system ", 8) == 0) return set_system(t, line + 8);
  if (strcmp(line, "/help") != 0) fprintf(stderr, "there is no command %s; there are\n", line);
  fputs(commands, stderr);
  return RDNA_OK;
}

static rdna_status converse(talk *t) {
  char *line = NULL;
  size_t room = 0;
  bool leave = false;
  rdna_status status = RDNA_OK;
  while (status == RDNA_OK && !leave) {
    if (isatty(STDIN_FILENO)) fputs("> ", stderr);
    ssize_t size = getline(&line, &room, stdin);
    if (size < 0) break;
    if (size > 0 && line[size - 1] == '\n') line[size - 1] = 0;
    status = obey(t, line, &leave);
  }
  free(line);
  return status;
}

int command_chat(int argc, char **argv) {
  generation_options o = GENERATION_OPTIONS_DEFAULT;
  o.max_tokens = 4096;
  const char *system = "";
  const option_row options[] = {
      {"--system", OPTION_TEXT, &system, "TEXT", "the system message", 0, 0},
      GENERATION_OPTIONS(o),
  };
  const command_line line = {"rdna chat",
                             "A language model answers the lines of the input. /help lists its commands.",
                             "MODEL.gguf|FOLDER",
                             1,
                             1,
                             options,
                             sizeof options / sizeof *options};
  const char *positionals[POSITIONAL_MAX];
  int count;
  int exit_status;
  if (!parse_command_line(&line, argc, argv, positionals, &count, &exit_status)) return exit_status;
  talk t = {.g.options = &o};
  rdna_status status = generation_open_file(&t.g, positionals[0]);
  if (status == RDNA_OK && o.place.plan) {
    status = generation_plan(&t.g, false);
  } else {
    if (status == RDNA_OK) status = set_system(&t, system);
    if (status == RDNA_OK) status = generation_open_model(&t.g);
    if (status == RDNA_OK) status = converse(&t);
  }
  exit_status = status == RDNA_OK ? EXIT_OK : fail_with_status();
  rdna__conversation_close(&t.c);
  generation_close(&t.g);
  free(t.system);
  return exit_status;
}
