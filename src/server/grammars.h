/* Compiled grammars by their texts: clients send the same schema and the same tools with every request, and what the
 * matchers of one text found out serves the next. Any thread. */
#ifndef RDNA_SERVER_GRAMMARS_H
#define RDNA_SERVER_GRAMMARS_H

#include "model/grammar/grammar.h"

typedef struct grammars grammars;

rdna_status grammars_create(const rdna_tokenizer *tokenizer, grammars **out);
void grammars_release(grammars *g); /* after all were put back; NULL is fine */
/* How many tokens a mask has bits for. */
size_t grammars_tokens(const grammars *g);

/* The grammar of |text|, for grammars_put when it is no longer used. */
rdna_status grammars_get(grammars *g, const char *text, rdna__grammar **out);
void grammars_put(grammars *g, rdna__grammar *grammar);

#endif
