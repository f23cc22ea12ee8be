/* A subcommand's options in one table, which yields the parser and --help. */
#ifndef RDNA_COMMAND_OPTIONS_H
#define RDNA_COMMAND_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

typedef enum option_kind {
  OPTION_FLAG,
  OPTION_INTEGER,
  OPTION_NUMBER,
  OPTION_TEXT,
  OPTION_TEXTS,
  OPTION_CHOICE
} option_kind;

/* Of an option that may be given several times. */
enum { OPTION_TEXTS_MOST = 32 };
typedef struct option_texts {
  const char *values[OPTION_TEXTS_MOST];
  int count;
} option_texts;

typedef struct option_row {
  const char *name; /* "--max-tokens" */
  option_kind kind;
  void *target;         /* bool *, int64_t *, double *, const char **, option_texts * */
  const char *argument; /* what --help calls the value; the choices "a|b|c" of a CHOICE; NULL for a FLAG */
  const char *help;     /* with the default, if it is worth saying */
  double low, high;     /* of INTEGER and NUMBER; both 0 is no bound */
} option_row;

typedef struct command_line {
  const char *name;            /* "rdna run" */
  const char *summary;         /* one line */
  const char *positional_help; /* "MODEL [PROMPT]" */
  int positional_min, positional_max;
  const option_row *options;
  int option_count;
} command_line;

enum { POSITIONAL_MAX = 64 };

/* Reads argv[1..] into the table's targets and |positionals|. Options may stand anywhere; "--" ends them; a lone "-" is
 * positional. Returns false when the command is to end with *out_exit: after --help, or after one sentence on stderr
 * about a misuse. */
bool parse_command_line(const command_line *line, int argc, char **argv, const char *positionals[POSITIONAL_MAX],
                        int *out_count, int *out_exit);

#endif
