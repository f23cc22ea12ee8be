/* What the parts of a grammar share: the tree that its text becomes, and the net of nodes made of it.
 *
 * Each rule is a net over bytes, with calls of other rules, and ends in a node END. "a" [b-c]* digits:
 *
 *   start -> BYTES a -> SPLIT -----------> CALL digits -> END
 *                        |  ^
 *                        v  |
 *                       BYTES b-c
 */
#ifndef RDNA_MODEL_GRAMMAR_NET_H
#define RDNA_MODEL_GRAMMAR_NET_H

#include "model/grammar/grammar.h"

/* Limits of a grammar. Beyond them it is refused. */
enum {
  GRAMMAR_MOST_TEXT = 1 << 22,    /* bytes */
  GRAMMAR_MOST_RULES = 1 << 14,   /* with a name */
  GRAMMAR_MOST_NODES = 1 << 20,   /* of all nets */
  GRAMMAR_MOST_NESTING = 128,     /* groups in groups */
  GRAMMAR_MOST_MARKS = 8,         /* such as * and {2}, behind one item */
  GRAMMAR_MOST_DEPTH = 4096,      /* expressions in each other, through rules that call each other */
  GRAMMAR_MOST_REPEATS = 1 << 24, /* in {m,n} */
  GRAMMAR_SHORT = 16              /* bytes; a rule that is never longer stands where it is called */
};
#define GRAMMAR_NO_LIMIT UINT32_MAX

/* ---- the tree ---- */

typedef enum expression_kind {
  EXPRESSION_TEXT,     /* text */
  EXPRESSION_CLASS,    /* ranges */
  EXPRESSION_SEQUENCE, /* children */
  EXPRESSION_CHOICE,   /* children */
  EXPRESSION_REPEAT,   /* a child, least, most */
  EXPRESSION_RULE,     /* rule */
  EXPRESSION_TOKEN     /* token */
} expression_kind;

typedef struct code_range {
  uint32_t low, high; /* characters */
} code_range;

typedef struct expression {
  expression_kind kind;
  struct expression *children, *next; /* the first of them; the next of the same parent */
  struct expression *made_before;     /* of all that the net owns */
  char *text;                         /* bytes */
  code_range *ranges;                 /* in order, apart from each other */
  size_t count;                       /* of bytes or ranges */
  uint32_t least, most;
  uint32_t rule;
  int32_t token;
} expression;

typedef struct grammar_rule {
  char *name; /* NULL: the body of a repetition */
  const expression *body;
  size_t line;      /* where it was first named */
  bool empty_too;   /* may be no bytes at all */
  bool ends;        /* has a text of finite length */
  uint32_t longest; /* bytes; GRAMMAR_NO_LIMIT */
  uint32_t size;    /* about how many nodes it takes */
  uint32_t start;   /* node */
} grammar_rule;

/* ---- the net ---- */

typedef enum net_node_kind {
  NODE_END,
  NODE_BYTES, /* one byte of |set|, then |next| */
  NODE_TOKEN, /* the token |set|, then |next| */
  NODE_SPLIT, /* |next| or |set| */
  NODE_CALL,  /* rule |set|, then |next| */
  NODE_REPEAT /* rule |set| from |least| to |most| times, then |next| */
} net_node_kind;

typedef struct net_node {
  net_node_kind kind;
  uint32_t next, set;
  uint32_t least, most;
  bool tight; /* of a REPEAT: the rule is a few bytes long, such as one character */
} net_node;

typedef struct byte_set {
  uint64_t bits[4];
} byte_set;

typedef struct grammar_net {
  grammar_rule *rules; /* (rule_count) the first is root */
  size_t rule_count, rule_room;
  expression *made; /* the last expression */
  net_node *nodes;  /* node 0 is END */
  size_t node_count, node_room;
  byte_set *sets;
  size_t set_count, set_room;
} grammar_net;

static inline bool byte_set_has(const byte_set *set, uint8_t byte) { return set->bits[byte / 64] >> (byte % 64) & 1; }

rdna_status rdna__grammar_parse(const rdna__vocabulary *vocabulary, const char *text, size_t size, grammar_net *net);
/* Fills what rules say of themselves, and refuses those that never end. */
rdna_status rdna__grammar_measure(grammar_net *net);
/* Makes the nodes; refuses rules that begin with themselves. */
rdna_status rdna__grammar_build(grammar_net *net);
/* Adds a node that reads one character of |ranges| and goes on to |next|. */
rdna_status rdna__grammar_build_class(grammar_net *net, const code_range *ranges, size_t count, uint32_t next,
                                      uint32_t *out_node);
rdna_status rdna__grammar_add_node(grammar_net *net, net_node node, uint32_t *out_node);
rdna_status rdna__grammar_add_set(grammar_net *net, const byte_set *set, uint32_t *out_set);
rdna_status rdna__grammar_add_rule(grammar_net *net, grammar_rule rule, uint32_t *out_rule);
bool rdna__expression_empty_too(const grammar_net *net, const expression *e);
void rdna__grammar_measure_expression(const grammar_net *net, const expression *e, uint32_t *out_longest,
                                      uint32_t *out_size);
void rdna__grammar_net_deinit(grammar_net *net);

/* ---- the vocabulary ----
 *
 * Nodes of the trie stand in the order of their paths, so that what lies under node i are the nodes up to skip[i]. */
struct rdna__vocabulary {
  size_t count;
  size_t node_count;
  uint8_t *bytes;    /* (node_count) */
  uint16_t *depths;  /* (node_count) from 1 on: how many bytes lead there */
  uint32_t *skips;   /* (node_count) */
  uint32_t *firsts;  /* (node_count + 1) in |order|: the tokens that end at a node */
  int32_t *order;    /* tokens in the order of their bytes */
  rdna_text *pieces; /* (count) in |text| */
  char *text;
  bool *control;
  int32_t *ends;
  size_t end_count;
};

#endif
