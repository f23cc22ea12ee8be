/* What the parts of the template engine share: memory, values, the tree of a template, and one rendering of it. The
 * interface is rdna/template.h.
 *
 *   text --lex--> tokens --parse--> tree --execute--> text
 *                                     ^
 *                 JSON --> values ----+   filters, tests, methods, functions
 *
 * A rendering stops at its first failure: rdna__tpl_fail keeps the sentence in the rendering, and every function that
 * returns a value then returns undefined, so that callers look at |status| only where they loop. */
#ifndef RDNA_MODEL_TEMPLATE_TEMPLATE_H
#define RDNA_MODEL_TEMPLATE_TEMPLATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "rdna/model.h"
#include "rdna/template.h"

/* ---- memory that is released all at once ---- */

typedef struct tpl_block tpl_block;
typedef struct tpl_arena {
  tpl_block *blocks;
  size_t used, limit; /* bytes */
} tpl_arena;

void *rdna__tpl_arena_alloc(tpl_arena *arena,
                            size_t bytes); /* aligned to 16; NULL when there is none, or no more allowed */
void rdna__tpl_arena_deinit(tpl_arena *arena);

/* ---- values ---- */

typedef enum tpl_kind {
  TPL_UNDEFINED, /* |text|: the name that had no value */
  TPL_ABSENT,    /* an argument that was not given; nothing else is ever this */
  TPL_NONE,
  TPL_BOOL,
  TPL_INT,
  TPL_FLOAT,
  TPL_STRING, /* UTF-8 */
  TPL_LIST,
  TPL_TUPLE,
  TPL_RANGE,
  TPL_VIEW,     /* what dict.items() and its kin return: has a length and no places */
  TPL_ITERATOR, /* what map, select and others return: can be gone through once */
  TPL_DICT,
  TPL_NAMESPACE,
  TPL_MACRO,
  TPL_FUNCTION, /* of ours, with the value that it is a method of */
  TPL_LOOP
} tpl_kind;

typedef struct tpl_value tpl_value;
typedef struct tpl_list tpl_list;
typedef struct tpl_dict tpl_dict;
typedef struct tpl_macro tpl_macro;
typedef struct tpl_bound tpl_bound;
typedef struct tpl_loop tpl_loop;
typedef struct tpl_run tpl_run;
typedef struct tpl_node tpl_node;

struct tpl_value {
  tpl_kind kind;
  bool safe; /* a STRING that |safe or |escape made: + escapes for HTML what it is joined to */
  union {
    bool boolean;
    int64_t integer;
    double real;
    rdna_text text;
    tpl_list *list; /* LIST to ITERATOR */
    tpl_dict *dict; /* DICT, NAMESPACE */
    const tpl_macro *macro;
    const tpl_bound *bound;
    tpl_loop *loop;
  };
};

/* Lists and dicts of templates never change once made; only namespaces do. */
struct tpl_list {
  tpl_value *items;
  size_t count, capacity;
  size_t position;       /* of an ITERATOR: the next item */
  int64_t start, stop;   /* of a RANGE, */
  int64_t step;          /* as it was asked for */
  const char *view_name; /* of a VIEW: "dict_items" */
  bool is_group;         /* a TUPLE that groupby made: its two items are called grouper and list */
};

struct tpl_dict {
  tpl_value *keys, *values; /* in order of insertion */
  size_t count, capacity;
};

/* A string that grows. */
typedef struct tpl_buffer {
  char *data;
  size_t size, capacity;
} tpl_buffer;

/* The arguments of a call, as written and once they are bound to parameters. */
typedef struct tpl_call {
  const tpl_value *at; /* by parameter; those not given are ABSENT */
  tpl_list *rest;      /* positions beyond the parameters */
  tpl_dict *named;     /* names beyond them */
} tpl_call;

/* A filter, test, method or global function. */
typedef struct tpl_function {
  const char *name;
  const char *parameters; /* "a b? *": names in order, ? may be missing, * takes more, ** takes any names */
  tpl_value (*code)(tpl_run *run, tpl_value self, const tpl_call *call);
} tpl_function;

struct tpl_bound {
  const tpl_function *function;
  tpl_value self;
};

/* ---- the tree ---- */

typedef enum tpl_node_kind {
  /* expressions */
  TPL_NODE_CONSTANT,  /* constant */
  TPL_NODE_NAME,      /* name */
  TPL_NODE_LIST,      /* items */
  TPL_NODE_TUPLE,     /* items */
  TPL_NODE_DICT,      /* items: key, value, key, value … */
  TPL_NODE_ATTRIBUTE, /* a.name */
  TPL_NODE_ITEM,      /* a[b] */
  TPL_NODE_SLICE,     /* a[items[0]:items[1]:items[2]], each may be NULL */
  TPL_NODE_CALL,      /* a(arguments) */
  TPL_NODE_FILTER,    /* a | name(arguments); a is NULL where a block is filtered */
  TPL_NODE_TEST,      /* a is name(arguments) */
  TPL_NODE_CHOICE,    /* a if b else c; c may be NULL */
  TPL_NODE_OR,
  TPL_NODE_AND,
  TPL_NODE_NOT,
  TPL_NODE_NEGATIVE,
  TPL_NODE_POSITIVE,
  TPL_NODE_COMPARE, /* a, then items[i] by operators[i] */
  TPL_NODE_CONCAT,  /* items */
  TPL_NODE_ADD,
  TPL_NODE_SUBTRACT,
  TPL_NODE_MULTIPLY,
  TPL_NODE_DIVIDE,
  TPL_NODE_FLOOR_DIVIDE,
  TPL_NODE_MODULO,
  TPL_NODE_POWER,
  /* statements; |body| is a BLOCK */
  TPL_NODE_BLOCK,        /* items, one after the other */
  TPL_NODE_TEXT,         /* name */
  TPL_NODE_PRINT,        /* items */
  TPL_NODE_IF,           /* if a: body, else: b, which may be NULL */
  TPL_NODE_FOR,          /* for a in b if c: body, else: otherwise; c and otherwise may be NULL */
  TPL_NODE_SET,          /* a = b */
  TPL_NODE_SET_BLOCK,    /* a = body through the filters b, which may be NULL */
  TPL_NODE_NS_TARGET,    /* name.constant, on the left of a set */
  TPL_NODE_MACRO,        /* name(items with arguments as defaults): body */
  TPL_NODE_CALL_BLOCK,   /* b, a CALL, is given the MACRO a as its caller */
  TPL_NODE_FILTER_BLOCK, /* body through the filters b */
  TPL_NODE_WITH,         /* items[i] = arguments[i]: body */
  TPL_NODE_SCOPE,        /* body, whose names end with it */
  TPL_NODE_BREAK,
  TPL_NODE_CONTINUE
} tpl_node_kind;

typedef enum tpl_comparison { TPL_EQ, TPL_NE, TPL_LT, TPL_LE, TPL_GT, TPL_GE, TPL_IN, TPL_NOT_IN } tpl_comparison;

/* An argument of a call: by position, by name, or a whole list or dict of them. */
typedef struct tpl_argument {
  rdna_text name; /* data NULL: by position */
  int stars;      /* 1: *list, 2: **dict */
  const tpl_node *value;
} tpl_argument;

struct tpl_node {
  tpl_node_kind kind;
  int line;
  rdna_text name;
  tpl_value constant;
  const tpl_function *function; /* of a FILTER or TEST; NULL when there is none of that name */
  const tpl_node *a, *b, *c;
  const tpl_node *body, *otherwise;
  const tpl_node **items;
  size_t item_count;
  const tpl_comparison *operators; /* (item_count) */
  const tpl_argument *arguments;
  size_t argument_count;
  bool uses_caller, uses_varargs, uses_kwargs; /* of a MACRO: its body asks for those names */
  bool defines_macros;                         /* of a FOR or MACRO: in its body, whose scopes those macros keep */
};

struct rdna_template {
  tpl_arena arena;
  char *source; /* with plain newlines; nodes point into it */
  const tpl_node *root;
};

/* rdna_template_render that gives up after |steps|. */
rdna_status rdna__tpl_render(const rdna_template *compiled, const char *variables, size_t size, int64_t steps,
                             char **out_text, size_t *out_size);

/* ---- tokens ---- */

typedef enum tpl_token_kind {
  TPL_TOKEN_END, /* of the template */
  TPL_TOKEN_TEXT,
  TPL_TOKEN_PRINT_BEGIN, /* {{ */
  TPL_TOKEN_PRINT_END,
  TPL_TOKEN_TAG_BEGIN, /* {% */
  TPL_TOKEN_TAG_END,
  TPL_TOKEN_NAME,
  TPL_TOKEN_STRING, /* |text|: what it stands for */
  TPL_TOKEN_INT,
  TPL_TOKEN_FLOAT,
  TPL_TOKEN_SIGN /* an operator or bracket; |text|: how it is written */
} tpl_token_kind;

typedef struct tpl_token {
  tpl_token_kind kind;
  int line;
  rdna_text text; /* as written, but for strings */
} tpl_token;

typedef struct tpl_tokens {
  tpl_token *items;
  size_t count, capacity;
} tpl_tokens;

enum {
  TPL_MAX_PARSE_DEPTH = 200, /* expressions and statements inside each other */
  TPL_MAX_RUN_DEPTH = 1200,  /* nodes, macros and values inside each other while rendering */
  TPL_MAX_RANGE = 100000,    /* as Jinja's sandbox has it */
  TPL_MAX_STEPS = 50000000,  /* of one rendering: nodes, and shares of what is copied or compared */
  TPL_MAX_MEMORY = 1 << 29   /* of one rendering, its output included */
};

/* Cuts |source| into tokens, of which the last is END. Text before and behind tags is trimmed already. */
rdna_status rdna__tpl_lex(tpl_arena *arena, rdna_text source, tpl_tokens *tokens);
/* The tree of |tokens|. */
rdna_status rdna__tpl_parse(tpl_arena *arena, const tpl_tokens *tokens, const tpl_node **out_root);

typedef struct tpl_parser {
  tpl_arena *arena;
  const tpl_token *tokens;
  size_t at, end; /* at == end: the END token, where a failure puts it too, so that every loop stops */
  int depth;
  int macros;      /* seen so far, call blocks among them */
  int loops;       /* that surround the statement and belong to the same macro */
  tpl_node *macro; /* the innermost, or NULL */
  rdna_status status;
  tpl_node nobody; /* stands for nodes after a failure */
} tpl_parser;

/* Between template_parse.c and template_parse_expression.c. */
const tpl_token *rdna__tpl_look(const tpl_parser *parser, size_t ahead);
bool rdna__tpl_at_sign(const tpl_parser *parser, const char *sign);
bool rdna__tpl_at_name(const tpl_parser *parser, const char *name);
bool rdna__tpl_skip_sign(tpl_parser *parser, const char *sign); /* whether it was there */
bool rdna__tpl_skip_name(tpl_parser *parser, const char *name);
void rdna__tpl_expect_sign(tpl_parser *parser, const char *sign);
rdna_text rdna__tpl_expect_name(tpl_parser *parser);
__attribute__((format(printf, 2, 3))) void rdna__tpl_parse_fail(tpl_parser *parser, const char *format, ...);
bool rdna__tpl_enter(tpl_parser *parser); /* false when it is too deep; always followed by leave */
void rdna__tpl_leave(tpl_parser *parser);
/* Never NULL: on failure a node that nobody will run. */
tpl_node *rdna__tpl_node(tpl_parser *parser, tpl_node_kind kind);
/* Appends to |items|, of which there are |count|; room is made by doubling. */
void rdna__tpl_add_item(tpl_parser *parser, tpl_node *node, const tpl_node *item);
tpl_node *rdna__tpl_parse_expression(tpl_parser *parser);
tpl_node *rdna__tpl_parse_no_choice(tpl_parser *parser); /* an expression without "if" behind it */
/* One or more with commas between, which make a tuple. |choice|: "if" may follow; |end|: a name that ends it. */
tpl_node *rdna__tpl_parse_tuple(tpl_parser *parser, bool choice, const char *end);
tpl_node *rdna__tpl_parse_primary(tpl_parser *parser);
tpl_node *rdna__tpl_parse_filters(tpl_parser *parser, tpl_node *value, bool first_has_no_bar);

/* ---- one rendering ---- */

/* A name and its value, in the block where it was set. */
typedef struct tpl_binding tpl_binding;
struct tpl_binding {
  rdna_text name;
  tpl_value value;
  tpl_binding *next;
};

typedef struct tpl_scope {
  struct tpl_scope *parent;
  tpl_binding *bindings;
} tpl_scope;

struct tpl_macro {
  const tpl_node *node;
  tpl_scope *scope; /* in which it was defined */
};

typedef enum tpl_flow { TPL_FLOW_ON, TPL_FLOW_BREAK, TPL_FLOW_CONTINUE } tpl_flow;

struct tpl_run {
  tpl_arena arena;
  rdna_status status; /* of the first failure; its sentence is the thread's */
  int line;           /* of what is being done */
  int depth;
  int64_t steps, most_steps;
  const tpl_dict *variables;
  tpl_scope *scope;
  tpl_binding *free_bindings; /* of scopes that are over */
  tpl_buffer *out;
  tpl_flow flow;
  tpl_list no_list; /* stand for lists and dicts without anything and after failures; they stay empty */
  tpl_dict no_dict;
};

/* Makes the rendering fail, unless it has already; returns undefined. */
__attribute__((format(printf, 3, 4))) tpl_value rdna__tpl_fail(tpl_run *run, rdna_status status, const char *format,
                                                               ...);
void *rdna__tpl_alloc(tpl_run *run, size_t bytes); /* NULL, and a failed run, when there is none */
bool rdna__tpl_spend(tpl_run *run, size_t steps);  /* false, and a failed run, when none are left */
bool rdna__tpl_deeper(tpl_run *run);               /* false when it is too deep; followed by shallower if true */
void rdna__tpl_shallower(tpl_run *run);
void rdna__tpl_append(tpl_run *run, tpl_buffer *buffer, const char *data, size_t size);
void rdna__tpl_append_text(tpl_run *run, tpl_buffer *buffer, const char *text); /* up to its zero */
void rdna__tpl_append_value(tpl_run *run, tpl_buffer *buffer, tpl_value value); /* as str() has it */
void rdna__tpl_append_repr(tpl_run *run, tpl_buffer *buffer, tpl_value value);

/* ---- making values (template_value.c) ---- */

#define TPL_INVALID RDNA_INVALID_ARGUMENT
static inline tpl_value tpl_none(void) { return (tpl_value){.kind = TPL_NONE}; }
static inline tpl_value tpl_bool(bool b) { return (tpl_value){.kind = TPL_BOOL, .boolean = b}; }
static inline tpl_value tpl_int(int64_t i) { return (tpl_value){.kind = TPL_INT, .integer = i}; }
static inline tpl_value tpl_real(double d) { return (tpl_value){.kind = TPL_FLOAT, .real = d}; }
static inline tpl_value tpl_text(const char *data, size_t size) {
  return (tpl_value){.kind = TPL_STRING, .text = {data, size}};
}
static inline tpl_value tpl_buffer_text(const tpl_buffer *buffer) {
  return tpl_text(buffer->data ? buffer->data : "", buffer->size);
}
static inline tpl_value tpl_undefined(rdna_text name) { return (tpl_value){.kind = TPL_UNDEFINED, .text = name}; }
tpl_list *rdna__tpl_new_list(tpl_run *run, size_t capacity); /* never NULL, and an empty one on failure */
tpl_value rdna__tpl_list_value(tpl_kind kind, tpl_list *list);
void rdna__tpl_list_add(tpl_run *run, tpl_list *list, tpl_value item);
tpl_value rdna__tpl_pair(tpl_run *run, tpl_value first, tpl_value second); /* a tuple */
tpl_dict *rdna__tpl_new_dict(tpl_run *run);                                /* never NULL */
/* A key may be a text, a number, none, what is undefined, or a tuple of these. */
void rdna__tpl_dict_set(tpl_run *run, tpl_dict *dict, tpl_value key, tpl_value value);
const tpl_value *rdna__tpl_dict_find(tpl_run *run, const tpl_dict *dict, tpl_value key);
const tpl_value *rdna__tpl_dict_find_text(const tpl_dict *dict, rdna_text key);
tpl_list *rdna__tpl_new_range(tpl_run *run, int64_t start, int64_t stop, int64_t step);

/* ---- asking values (template_value.c, template_compare.c) ---- */

const char *rdna__tpl_type_name(tpl_value value); /* Python's: "str", "NoneType" … */
bool rdna__tpl_truth(tpl_value value);
bool rdna__tpl_is_number(tpl_value value); /* bools are numbers, as in Python */
bool rdna__tpl_is_list(tpl_value value);   /* anything with a |list| whose items can be seen */
int64_t rdna__tpl_as_int(tpl_value value); /* of a BOOL or INT */
double rdna__tpl_as_real(tpl_value value); /* of a number */
bool rdna__tpl_get_int(tpl_run *run, tpl_value value, const char *what, int64_t *out); /* or the run fails */
bool rdna__tpl_length(tpl_value value, int64_t *out_length);                           /* false: it has none */
bool rdna__tpl_equal(tpl_run *run, tpl_value x, tpl_value y);
int rdna__tpl_order(tpl_run *run, tpl_value x, tpl_value y); /* below, at or above 0; fails for what has no order */
bool rdna__tpl_compare(tpl_run *run, tpl_comparison how, tpl_value x, tpl_value y);
bool rdna__tpl_contains(tpl_run *run, tpl_value whole, tpl_value part);
/* What a loop goes through: items, characters, keys. An ITERATOR is used up. Undefined has none. */
tpl_list *rdna__tpl_items(tpl_run *run, tpl_value value);
tpl_value rdna__tpl_attribute(tpl_run *run, tpl_value value, rdna_text name); /* value.name */
tpl_value rdna__tpl_item(tpl_run *run, tpl_value value, tpl_value key);       /* value[key] */
tpl_value rdna__tpl_slice(tpl_run *run, tpl_value value, const tpl_value bounds[3]);
tpl_value rdna__tpl_arithmetic(tpl_run *run, tpl_node_kind how, tpl_value x, tpl_value y);
tpl_value rdna__tpl_to_text(tpl_run *run, tpl_value value); /* str(value) */

/* ---- JSON (template_json.c) ---- */

tpl_value rdna__tpl_from_json(tpl_run *run, const json_t *json); /* texts are borrowed from it */
extern const tpl_function rdna__tpl_tojson;

/* ---- text (template_text.c); places and lengths are in characters, not bytes ---- */

bool rdna__tpl_is_utf8(const char *data, size_t size);
uint32_t rdna__tpl_next(rdna_text text, size_t *at);   /* the character at |at|, which moves behind it */
size_t rdna__tpl_put(uint32_t character, char out[4]); /* its bytes */
int64_t rdna__tpl_count(rdna_text text);
bool rdna__tpl_is_space(uint32_t character); /* as Python's isspace */
bool rdna__tpl_is_printable(uint32_t character);
bool rdna__tpl_is_alpha(uint32_t character);
bool rdna__tpl_is_word(uint32_t character); /* letters, digits and the underscore */
uint32_t rdna__tpl_upper(uint32_t character);
uint32_t rdna__tpl_lower(uint32_t character);
/* Where |part| first stands in |text| at or behind |from|, in bytes; -1 when it does not. */
int64_t rdna__tpl_find(rdna_text text, rdna_text part, size_t from);
static inline bool tpl_same(rdna_text x, rdna_text y) {
  return x.size == y.size && (x.size == 0 || __builtin_memcmp(x.data, y.data, x.size) == 0);
}
bool rdna__tpl_is(rdna_text text, const char *word);

/* ---- what methods of texts and filters share (template_string.c) ---- */

enum { TPL_LEFT = 1, TPL_RIGHT = 2 };
rdna_text rdna__tpl_strip(rdna_text text, const rdna_text *characters, int sides); /* NULL: white space */
tpl_value rdna__tpl_replace(tpl_run *run, rdna_text text, rdna_text old, rdna_text with, int64_t most); /* -1: all */
/* Every character in another case: "upper", "lower"; "capitalize": the first one of all; "title", "words": of each
 * word, which begins behind anything but a letter, or behind white space and opening brackets. */
tpl_value rdna__tpl_change_case(tpl_run *run, rdna_text text, const char *how);
tpl_value rdna__tpl_escape(tpl_run *run, tpl_value value); /* for HTML, as text that is safe; what is, stays as it is */
tpl_list *rdna__tpl_lines(tpl_run *run, rdna_text text, bool keep_ends);
tpl_value rdna__tpl_padded(tpl_run *run, rdna_text text, int64_t width, rdna_text fill, int sides); /* where to fill */
bool rdna__tpl_has_case(rdna_text text, bool upper); /* some letter has it, and none the other */
extern const tpl_function rdna__tpl_text_methods[];
extern const size_t rdna__tpl_text_method_count;

/* ---- numbers (template_number.c): the same in every locale ---- */

double rdna__tpl_parse_real(const char *text, char **out_end); /* as strtod in the C locale */
void rdna__tpl_append_real(tpl_run *run, tpl_buffer *buffer,
                           double value); /* the shortest that reads back, as repr() */
/* |value| as printf has it with "%*.*" and |conversion|, one of e f g and their capitals. */
void rdna__tpl_append_printf(tpl_run *run, tpl_buffer *buffer, char conversion, int precision, double value);
double rdna__tpl_round(double value, int digits); /* half to even, of the decimal value */
/* "%s %d" % value, and "{} {}".format(…) */
tpl_value rdna__tpl_percent(tpl_run *run, rdna_text format, tpl_value arguments);
tpl_value rdna__tpl_brace_format(tpl_run *run, rdna_text format, const tpl_call *call);

/* ---- running (template_eval.c, template_execute.c, template_call.c) ---- */

tpl_value rdna__tpl_eval(tpl_run *run, const tpl_node *node);
void rdna__tpl_execute(tpl_run *run, const tpl_node *node);
void rdna__tpl_bind(tpl_run *run, rdna_text name, tpl_value value); /* in the innermost scope */
tpl_scope *rdna__tpl_open_scope(tpl_run *run, tpl_scope *parent);   /* which becomes the innermost; NULL on failure */
void rdna__tpl_clear_scope(tpl_run *run, tpl_scope *scope);         /* forgets its names; NULL is fine */
void rdna__tpl_assign(tpl_run *run, const tpl_node *target, tpl_value value);
tpl_value rdna__tpl_run_macro(tpl_run *run, const tpl_macro *macro, tpl_list *positions, tpl_dict *names);
tpl_value rdna__tpl_loop_attribute(tpl_run *run, tpl_loop *loop, rdna_text name);
tpl_value rdna__tpl_filter_through(tpl_run *run, const tpl_node *filters,
                                   tpl_value value); /* a chain whose end is open */
/* The arguments of |node|, and the call of a function with them. */
void rdna__tpl_arguments(tpl_run *run, const tpl_node *node, tpl_list **out_positions, tpl_dict **out_names);
tpl_value rdna__tpl_invoke(tpl_run *run, const tpl_function *function, tpl_value self, tpl_list *positions,
                           tpl_dict *names);
tpl_value rdna__tpl_call_value(tpl_run *run, tpl_value callee, tpl_list *positions, tpl_dict *names);

/* ---- what templates call; NULL when there is none of that name ---- */

const tpl_function *rdna__tpl_find_filter(rdna_text name);
const tpl_function *rdna__tpl_find_test(rdna_text name);
const tpl_function *rdna__tpl_find_global(rdna_text name);
const tpl_function *rdna__tpl_find_method(tpl_kind kind, rdna_text name);
const tpl_function *rdna__tpl_find_in(const tpl_function *table, size_t count, rdna_text name);
extern const tpl_function rdna__tpl_text_filters[], rdna__tpl_sequence_filters[];
extern const size_t rdna__tpl_text_filter_count, rdna__tpl_sequence_filter_count;
/* An argument, or what stands for it when it is absent. */
static inline tpl_value tpl_or(tpl_value given, tpl_value otherwise) {
  return given.kind == TPL_ABSENT ? otherwise : given;
}

#endif
