/* What requests of all interfaces ask of a chat: messages, tools, and the form of the reply. */
#ifndef RDNA_SERVER_CHAT_H
#define RDNA_SERVER_CHAT_H

#include "server/request.h"

typedef enum tool_choice { TOOLS_AUTO, TOOLS_NONE, TOOLS_REQUIRED } tool_choice;

/* All zeros is an empty one. The objects are its own. */
typedef struct chat_request {
  json_t *messages;  /* as templates know them */
  json_t *variables; /* more for the template; NULL: none */
  json_t *tools;     /* as OpenAI has them; NULL or empty: none */
  tool_choice choice;
  char tool[128];      /* that is to be called; "": any */
  bool one_call;       /* at most */
  json_t *schema;      /* of the reply where it is no call; NULL: any text */
  const char *grammar; /* GBNF, of the whole reply; borrowed; NULL: none */
} chat_request;
void chat_deinit(chat_request *c);

/* Adds the prompt to |r|, and how its reply is written and read to |r| and |x|. */
bool chat_prepare(exchange *x, request *r, chat_request *c, problem *p);

/* The schema that |format| asks for: {"type": "text" | "json_object" | "json_schema", "json_schema": {"schema": …}}.
 * |*out_schema| is the caller's; NULL for a text. */
bool read_response_format(const json_t *format, json_t **out_schema, problem *p);
/* A schema for any object. */
json_t *any_object(void);
/* Lets what is written keep to |schema|, or to |grammar|, from the beginning; for what is no chat. */
bool use_form(exchange *x, request *r, const json_t *schema, const char *grammar, problem *p);

#endif
