/* Tokens of an expression to its tree, by the precedence of operators. */
#include <stdlib.h>
#include <string.h>

#include "model/template/template.h"

static void add_argument(tpl_parser *parser, tpl_node *node, tpl_argument argument) {
  size_t count = node->argument_count;
  if ((count & (count - 1)) == 0) { /* a power of two: full */
    tpl_argument *grown = rdna__tpl_arena_alloc(parser->arena, (count ? 2 * count : 1) * sizeof *grown);
    if (!grown) {
      rdna__tpl_parse_fail(parser, "no host memory for its tree");
      return;
    }
    if (count) memcpy(grown, node->arguments, count * sizeof *grown);
    node->arguments = grown;
  }
  ((tpl_argument *)node->arguments)[node->argument_count++] = argument;
}

/* (a, *b, c=d, **e) */
static void parse_arguments(tpl_parser *parser, tpl_node *node) {
  int seen = 0; /* 1 once there was *, a name or **: what may follow */
  rdna__tpl_expect_sign(parser, "(");
  while (parser->status == RDNA_OK && !rdna__tpl_at_sign(parser, ")")) {
    if (node->argument_count > 0) {
      rdna__tpl_expect_sign(parser, ",");
      if (rdna__tpl_at_sign(parser, ")")) break;
    }
    tpl_argument argument = {0};
    const tpl_token *next = rdna__tpl_look(parser, 1);
    if (rdna__tpl_skip_sign(parser, "**")) {
      argument.stars = 2;
      seen = 1;
    } else if (rdna__tpl_skip_sign(parser, "*")) {
      argument.stars = 1;
      seen = 1;
    } else if (rdna__tpl_look(parser, 0)->kind == TPL_TOKEN_NAME && next->kind == TPL_TOKEN_SIGN &&
               rdna__tpl_is(next->text, "=")) {
      argument.name = rdna__tpl_expect_name(parser);
      rdna__tpl_expect_sign(parser, "=");
      seen = 1;
    } else if (seen) {
      rdna__tpl_parse_fail(parser, "an argument by position stands behind one by name");
    }
    argument.value = rdna__tpl_parse_expression(parser);
    add_argument(parser, node, argument);
  }
  rdna__tpl_expect_sign(parser, ")");
}

static tpl_node *constant(tpl_parser *parser, tpl_value value) {
  tpl_node *node = rdna__tpl_node(parser, TPL_NODE_CONSTANT);
  node->constant = value;
  return node;
}

/* The digits of a number without underscores, as a string; its caller's array is long enough or the number refused. */
static bool plain_number(tpl_parser *parser, rdna_text text, char *out, size_t room) {
  size_t size = 0;
  for (size_t i = 0; i < text.size && size < room; i++)
    if (text.data[i] != '_') out[size++] = text.data[i];
  if (size < room) {
    out[size] = 0;
    return true;
  }
  rdna__tpl_parse_fail(parser, "a number has more than %zu digits", room - 1);
  return false;
}

static tpl_node *parse_number(tpl_parser *parser) {
  const tpl_token *token = rdna__tpl_look(parser, 0);
  char digits[128];
  tpl_value value = tpl_int(0);
  if (plain_number(parser, token->text, digits, sizeof digits)) {
    if (token->kind == TPL_TOKEN_FLOAT) {
      value = tpl_real(rdna__tpl_parse_real(digits, NULL));
    } else {
      int base = digits[0] != '0'          ? 10
                 : (digits[1] | 32) == 'x' ? 16
                 : (digits[1] | 32) == 'o' ? 8
                 : (digits[1] | 32) == 'b' ? 2
                                           : 10;
      unsigned long long integer = strtoull(digits + (base == 10 ? 0 : 2), NULL, base);
      if (integer > INT64_MAX) rdna__tpl_parse_fail(parser, "the number %s has more than 64 bits", digits);
      value = tpl_int((int64_t)(integer & INT64_MAX));
    }
  }
  parser->at += parser->at < parser->end;
  return constant(parser, value);
}

/* Neighbouring strings are one. */
static tpl_node *parse_string(tpl_parser *parser) {
  size_t size = 0, first = parser->at;
  for (size_t i = 0; rdna__tpl_look(parser, i)->kind == TPL_TOKEN_STRING; i++)
    size += rdna__tpl_look(parser, i)->text.size;
  tpl_node *node = constant(parser, tpl_text("", 0));
  char *text = rdna__tpl_arena_alloc(parser->arena, size + 1);
  if (!text) {
    rdna__tpl_parse_fail(parser, "no host memory for its tree");
    return node;
  }
  node->constant = tpl_text(text, size);
  for (; rdna__tpl_look(parser, 0)->kind == TPL_TOKEN_STRING; parser->at++) {
    rdna_text part = parser->tokens[parser->at].text;
    if (part.size) memcpy(text, part.data, part.size);
    text += part.size;
  }
  if (parser->at == first + 1) node->constant.text = parser->tokens[first].text;
  return node;
}

static tpl_node *parse_brackets(tpl_parser *parser, tpl_node_kind kind, const char *open, const char *close) {
  tpl_node *node = rdna__tpl_node(parser, kind);
  rdna__tpl_expect_sign(parser, open);
  while (parser->status == RDNA_OK && !rdna__tpl_at_sign(parser, close)) {
    if (node->item_count > 0) {
      rdna__tpl_expect_sign(parser, ",");
      if (rdna__tpl_at_sign(parser, close)) break;
    }
    rdna__tpl_add_item(parser, node, rdna__tpl_parse_expression(parser));
    if (kind != TPL_NODE_DICT) continue;
    rdna__tpl_expect_sign(parser, ":");
    rdna__tpl_add_item(parser, node, rdna__tpl_parse_expression(parser));
  }
  rdna__tpl_expect_sign(parser, close);
  return node;
}

static tpl_node *parse_name(tpl_parser *parser) {
  tpl_node *node = rdna__tpl_node(parser, TPL_NODE_NAME);
  rdna_text name = node->name = rdna__tpl_expect_name(parser);
  bool yes = rdna__tpl_is(name, "true") || rdna__tpl_is(name, "True");
  if (yes || rdna__tpl_is(name, "false") || rdna__tpl_is(name, "False")) return constant(parser, tpl_bool(yes));
  if (rdna__tpl_is(name, "none") || rdna__tpl_is(name, "None")) return constant(parser, tpl_none());
  if (name.size && name.data[0] >= '0' && name.data[0] <= '9')
    rdna__tpl_parse_fail(parser, "no name begins with a digit: '%.*s'", (int)name.size, name.data);
  if (parser->macro) {
    if (rdna__tpl_is(name, "caller")) parser->macro->uses_caller = true;
    if (rdna__tpl_is(name, "varargs")) parser->macro->uses_varargs = true;
    if (rdna__tpl_is(name, "kwargs")) parser->macro->uses_kwargs = true;
  }
  return node;
}

tpl_node *rdna__tpl_parse_primary(tpl_parser *parser) {
  const tpl_token *token = rdna__tpl_look(parser, 0);
  if (token->kind == TPL_TOKEN_NAME) return parse_name(parser);
  if (token->kind == TPL_TOKEN_STRING) return parse_string(parser);
  if (token->kind == TPL_TOKEN_INT || token->kind == TPL_TOKEN_FLOAT) return parse_number(parser);
  if (rdna__tpl_at_sign(parser, "[")) return parse_brackets(parser, TPL_NODE_LIST, "[", "]");
  if (rdna__tpl_at_sign(parser, "{")) return parse_brackets(parser, TPL_NODE_DICT, "{", "}");
  if (rdna__tpl_skip_sign(parser, "(")) {
    tpl_node *node = rdna__tpl_at_sign(parser, ")") ? rdna__tpl_node(parser, TPL_NODE_TUPLE)
                                                    : rdna__tpl_parse_tuple(parser, true, NULL);
    rdna__tpl_expect_sign(parser, ")");
    return node;
  }
  rdna__tpl_parse_fail(parser, "an expression is missing");
  return rdna__tpl_node(parser, TPL_NODE_CONSTANT);
}

/* One place in brackets: an expression, or a slice of |whole|. */
static tpl_node *parse_place(tpl_parser *parser, const tpl_node *whole, bool *out_slice) {
  tpl_node *slice = rdna__tpl_node(parser, TPL_NODE_SLICE);
  *out_slice = false;
  slice->a = whole;
  for (int i = 0; i < 3; i++) {
    const tpl_node *bound = NULL;
    if (!rdna__tpl_at_sign(parser, ":") && !rdna__tpl_at_sign(parser, "]") && !rdna__tpl_at_sign(parser, ","))
      bound = rdna__tpl_parse_expression(parser);
    if (i == 0 && !rdna__tpl_at_sign(parser, ":")) {
      if (!bound) rdna__tpl_parse_fail(parser, "an expression is missing");
      return (tpl_node *)bound;
    }
    *out_slice = true;
    rdna__tpl_add_item(parser, slice, bound);
    if (i < 2 && !rdna__tpl_skip_sign(parser, ":")) {
      for (; i < 2; i++) rdna__tpl_add_item(parser, slice, NULL);
    }
  }
  return slice;
}

/* Behind a value: .name .0 [place] (arguments) */
static tpl_node *parse_postfix(tpl_parser *parser, tpl_node *value) {
  for (;;) {
    const tpl_token *next = rdna__tpl_look(parser, 1);
    tpl_node *node;
    if (rdna__tpl_at_sign(parser, "(")) {
      node = rdna__tpl_node(parser, TPL_NODE_CALL);
      parse_arguments(parser, node);
    } else if (rdna__tpl_at_sign(parser, ".") && next->kind == TPL_TOKEN_INT) {
      node = rdna__tpl_node(parser, TPL_NODE_ITEM);
      rdna__tpl_expect_sign(parser, ".");
      node->b = parse_number(parser);
    } else if (rdna__tpl_skip_sign(parser, ".")) {
      node = rdna__tpl_node(parser, TPL_NODE_ATTRIBUTE);
      node->name = rdna__tpl_expect_name(parser);
    } else if (rdna__tpl_skip_sign(parser, "[")) {
      bool slice;
      node = rdna__tpl_node(parser, TPL_NODE_ITEM);
      tpl_node *place = parse_place(parser, value, &slice);
      if (rdna__tpl_at_sign(parser, ",")) { /* several places are a tuple, which only a dict has as a key */
        tpl_node *places = rdna__tpl_node(parser, TPL_NODE_TUPLE);
        rdna__tpl_add_item(parser, places, place);
        while (rdna__tpl_skip_sign(parser, ",")) rdna__tpl_add_item(parser, places, rdna__tpl_parse_expression(parser));
        if (slice) rdna__tpl_parse_fail(parser, "a slice stands among other places");
        place = places;
      }
      rdna__tpl_expect_sign(parser, "]");
      if (slice) {
        value = place;
        continue;
      }
      node->b = place;
    } else {
      return value;
    }
    node->a = value;
    value = node;
  }
}

/* A name of a filter or test, which may have dots in it. Those that there are have none. */
static rdna_text parse_dotted(tpl_parser *parser) {
  rdna_text name = rdna__tpl_expect_name(parser);
  while (rdna__tpl_skip_sign(parser, ".")) {
    rdna_text part = rdna__tpl_expect_name(parser);
    if (parser->status == RDNA_OK) name.size = (size_t)(part.data - name.data) + part.size;
  }
  return name;
}

tpl_node *rdna__tpl_parse_filters(tpl_parser *parser, tpl_node *value, bool first_has_no_bar) {
  while (first_has_no_bar || rdna__tpl_skip_sign(parser, "|")) {
    first_has_no_bar = false;
    tpl_node *node = rdna__tpl_node(parser, TPL_NODE_FILTER);
    node->a = value;
    node->name = parse_dotted(parser);
    node->function = rdna__tpl_find_filter(node->name);
    if (rdna__tpl_at_sign(parser, "(")) parse_arguments(parser, node);
    value = node;
  }
  return value;
}

/* is [not] name, with arguments in parentheses or one behind it. */
static tpl_node *parse_test(tpl_parser *parser, tpl_node *value) {
  tpl_node *node = rdna__tpl_node(parser, TPL_NODE_TEST);
  rdna__tpl_expect_name(parser); /* is */
  bool negated = rdna__tpl_skip_name(parser, "not");
  node->a = value;
  node->name = parse_dotted(parser);
  node->function = rdna__tpl_find_test(node->name);
  const tpl_token *next = rdna__tpl_look(parser, 0);
  bool begins_value = next->kind == TPL_TOKEN_NAME || next->kind == TPL_TOKEN_STRING || next->kind == TPL_TOKEN_INT ||
                      next->kind == TPL_TOKEN_FLOAT || rdna__tpl_at_sign(parser, "[") || rdna__tpl_at_sign(parser, "{");
  if (rdna__tpl_at_sign(parser, "(")) {
    parse_arguments(parser, node);
  } else if (begins_value && !rdna__tpl_at_name(parser, "else") && !rdna__tpl_at_name(parser, "or") &&
             !rdna__tpl_at_name(parser, "and")) {
    if (rdna__tpl_at_name(parser, "is")) rdna__tpl_parse_fail(parser, "'is' stands behind 'is'");
    add_argument(parser, node, (tpl_argument){.value = parse_postfix(parser, rdna__tpl_parse_primary(parser))});
  }
  if (!negated) return node;
  tpl_node *not = rdna__tpl_node(parser, TPL_NODE_NOT);
  not->a = node;
  return not;
}

static tpl_node *parse_behind(tpl_parser *parser, tpl_node *value) {
  for (;;) {
    if (rdna__tpl_at_sign(parser, "|")) {
      value = rdna__tpl_parse_filters(parser, value, false);
    } else if (rdna__tpl_at_name(parser, "is")) {
      value = parse_test(parser, value);
    } else if (rdna__tpl_at_sign(parser, "(")) { /* a filter's result is called */
      tpl_node *node = rdna__tpl_node(parser, TPL_NODE_CALL);
      node->a = value;
      parse_arguments(parser, node);
      value = node;
    } else {
      return value;
    }
  }
}

/* A sign binds to what is behind it, and filters to both. */
static tpl_node *parse_unary(tpl_parser *parser, bool filters) {
  tpl_node *node;
  if (!rdna__tpl_enter(parser)) {
    node = rdna__tpl_node(parser, TPL_NODE_CONSTANT);
  } else if (rdna__tpl_at_sign(parser, "-") || rdna__tpl_at_sign(parser, "+")) {
    node = rdna__tpl_node(parser, rdna__tpl_at_sign(parser, "-") ? TPL_NODE_NEGATIVE : TPL_NODE_POSITIVE);
    parser->at++;
    node->a = parse_unary(parser, false);
  } else {
    node = rdna__tpl_parse_primary(parser);
  }
  node = parse_postfix(parser, node);
  if (filters) node = parse_behind(parser, node);
  rdna__tpl_leave(parser);
  return node;
}

/* Operators by how tightly they bind; those of a level go from left to right, even **. */
enum { LEVEL_OR, LEVEL_AND, LEVEL_NOT, LEVEL_COMPARE, LEVEL_SUM, LEVEL_CONCAT, LEVEL_PRODUCT, LEVEL_POWER, LEVELS };
static const struct {
  const char *sign;
  int level;
  tpl_node_kind kind;
} binaries[] = {{"+", LEVEL_SUM, TPL_NODE_ADD},
                {"-", LEVEL_SUM, TPL_NODE_SUBTRACT},
                {"*", LEVEL_PRODUCT, TPL_NODE_MULTIPLY},
                {"/", LEVEL_PRODUCT, TPL_NODE_DIVIDE},
                {"//", LEVEL_PRODUCT, TPL_NODE_FLOOR_DIVIDE},
                {"%", LEVEL_PRODUCT, TPL_NODE_MODULO},
                {"**", LEVEL_POWER, TPL_NODE_POWER}};

static tpl_node *parse_level(tpl_parser *parser, int level);

/* Whether a comparison follows; it is skipped. */
static bool skip_comparison(tpl_parser *parser, tpl_comparison *out_how) {
  static const char *const signs[] = {"==", "!=", "<", "<=", ">", ">="};
  for (int i = 0; i < 6; i++)
    if (rdna__tpl_skip_sign(parser, signs[i])) {
      *out_how = (tpl_comparison)i;
      return true;
    }
  const tpl_token *next = rdna__tpl_look(parser, 1);
  *out_how = rdna__tpl_at_name(parser, "not") ? TPL_NOT_IN : TPL_IN;
  if (*out_how == TPL_IN) return rdna__tpl_skip_name(parser, "in");
  if (next->kind != TPL_TOKEN_NAME || !rdna__tpl_is(next->text, "in")) return false;
  parser->at += 2;
  return true;
}

static tpl_node *parse_comparisons(tpl_parser *parser) {
  enum { MOST = 32 };
  tpl_comparison operators[MOST], how;
  tpl_node *left = parse_level(parser, LEVEL_SUM), *node = NULL;
  while (skip_comparison(parser, &how)) {
    if (!node) {
      node = rdna__tpl_node(parser, TPL_NODE_COMPARE);
      node->a = left;
    }
    if (node->item_count == MOST) {
      rdna__tpl_parse_fail(parser, "more than %d comparisons stand in a row", MOST);
      break;
    }
    operators[node->item_count] = how;
    rdna__tpl_add_item(parser, node, parse_level(parser, LEVEL_SUM));
  }
  if (!node) return left;
  tpl_comparison *kept = rdna__tpl_arena_alloc(parser->arena, sizeof operators);
  if (!kept)
    rdna__tpl_parse_fail(parser, "no host memory for its tree");
  else
    memcpy(kept, operators, sizeof operators);
  node->operators = kept;
  return node;
}

static tpl_node *parse_concat(tpl_parser *parser) {
  tpl_node *first = parse_level(parser, LEVEL_PRODUCT);
  if (!rdna__tpl_at_sign(parser, "~")) return first;
  tpl_node *node = rdna__tpl_node(parser, TPL_NODE_CONCAT);
  rdna__tpl_add_item(parser, node, first);
  while (rdna__tpl_skip_sign(parser, "~")) rdna__tpl_add_item(parser, node, parse_level(parser, LEVEL_PRODUCT));
  return node;
}

static tpl_node *parse_not(tpl_parser *parser) {
  if (!rdna__tpl_at_name(parser, "not")) return parse_comparisons(parser);
  tpl_node *node = rdna__tpl_node(parser, TPL_NODE_NOT);
  rdna__tpl_skip_name(parser, "not");
  if (rdna__tpl_enter(parser)) node->a = parse_not(parser);
  rdna__tpl_leave(parser);
  return node;
}

/* The kind of the operator of |level| that stands here, which is skipped; TPL_NODE_CONSTANT when none does. */
static tpl_node_kind skip_binary(tpl_parser *parser, int level) {
  if (level == LEVEL_OR) return rdna__tpl_skip_name(parser, "or") ? TPL_NODE_OR : TPL_NODE_CONSTANT;
  if (level == LEVEL_AND) return rdna__tpl_skip_name(parser, "and") ? TPL_NODE_AND : TPL_NODE_CONSTANT;
  for (size_t i = 0; i < sizeof binaries / sizeof *binaries; i++)
    if (binaries[i].level == level && rdna__tpl_skip_sign(parser, binaries[i].sign)) return binaries[i].kind;
  return TPL_NODE_CONSTANT;
}

static tpl_node *parse_level(tpl_parser *parser, int level) {
  if (level == LEVEL_NOT) return parse_not(parser);
  if (level == LEVEL_CONCAT) return parse_concat(parser);
  if (level == LEVELS) return parse_unary(parser, true);
  int tighter = level == LEVEL_AND ? LEVEL_NOT : level + 1;
  tpl_node *left = parse_level(parser, tighter);
  for (tpl_node_kind kind; (kind = skip_binary(parser, level)) != TPL_NODE_CONSTANT;) {
    tpl_node *node = rdna__tpl_node(parser, kind);
    node->a = left;
    node->b = parse_level(parser, tighter);
    left = node;
  }
  return left;
}

tpl_node *rdna__tpl_parse_no_choice(tpl_parser *parser) {
  tpl_node *node = rdna__tpl_enter(parser) ? parse_level(parser, LEVEL_OR) : rdna__tpl_node(parser, TPL_NODE_CONSTANT);
  rdna__tpl_leave(parser);
  return node;
}

tpl_node *rdna__tpl_parse_expression(tpl_parser *parser) {
  tpl_node *value = rdna__tpl_parse_no_choice(parser);
  while (rdna__tpl_skip_name(parser, "if")) {
    tpl_node *node = rdna__tpl_node(parser, TPL_NODE_CHOICE);
    node->a = value;
    node->b = rdna__tpl_parse_no_choice(parser);
    if (rdna__tpl_skip_name(parser, "else")) {
      if (rdna__tpl_enter(parser)) node->c = rdna__tpl_parse_expression(parser);
      rdna__tpl_leave(parser);
    }
    value = node;
  }
  return value;
}

tpl_node *rdna__tpl_parse_tuple(tpl_parser *parser, bool choice, const char *end) {
  tpl_node *first = choice ? rdna__tpl_parse_expression(parser) : rdna__tpl_parse_no_choice(parser);
  if (!rdna__tpl_at_sign(parser, ",")) return first;
  tpl_node *tuple = rdna__tpl_node(parser, TPL_NODE_TUPLE);
  rdna__tpl_add_item(parser, tuple, first);
  while (rdna__tpl_skip_sign(parser, ",")) {
    tpl_token_kind kind = rdna__tpl_look(parser, 0)->kind;
    if (kind == TPL_TOKEN_TAG_END || kind == TPL_TOKEN_PRINT_END || rdna__tpl_at_sign(parser, ")")) break;
    if (end && rdna__tpl_at_name(parser, end)) break;
    rdna__tpl_add_item(parser, tuple, choice ? rdna__tpl_parse_expression(parser) : rdna__tpl_parse_no_choice(parser));
  }
  return tuple;
}
