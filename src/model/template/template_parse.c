/* Tokens to the tree of a template: statements, and what both parts of the parser share. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "model/template/template.h"

/* ---- shared with template_parse_expression.c ---- */

const tpl_token *rdna__tpl_look(const tpl_parser *parser, size_t ahead) {
  size_t at = parser->at + ahead;
  return &parser->tokens[at < parser->end ? at : parser->end];
}

bool rdna__tpl_at_sign(const tpl_parser *parser, const char *sign) {
  const tpl_token *token = rdna__tpl_look(parser, 0);
  return token->kind == TPL_TOKEN_SIGN && rdna__tpl_is(token->text, sign);
}

bool rdna__tpl_at_name(const tpl_parser *parser, const char *name) {
  const tpl_token *token = rdna__tpl_look(parser, 0);
  return token->kind == TPL_TOKEN_NAME && rdna__tpl_is(token->text, name);
}

bool rdna__tpl_skip_sign(tpl_parser *parser, const char *sign) {
  bool there = rdna__tpl_at_sign(parser, sign);
  parser->at += there;
  return there;
}

bool rdna__tpl_skip_name(tpl_parser *parser, const char *name) {
  bool there = rdna__tpl_at_name(parser, name);
  parser->at += there;
  return there;
}

void rdna__tpl_parse_fail(tpl_parser *parser, const char *format, ...) {
  if (parser->status != RDNA_OK) return;
  const tpl_token *token = rdna__tpl_look(parser, 0);
  char sentence[300], found[48] = "the template ends";
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(sentence, sizeof sentence, format, arguments);
  va_end(arguments);
  if (token->kind != TPL_TOKEN_END)
    snprintf(found, sizeof found, token->kind == TPL_TOKEN_STRING ? "there is the string '%.*s'" : "there is '%.*s'",
             (int)(token->text.size < 20 ? token->text.size : 20), token->text.data);
  parser->status = rdna__fail(RDNA_BAD_DATA, "template line %d: %s; %s", token->line, sentence, found);
  parser->at = parser->end;
}

void rdna__tpl_expect_sign(tpl_parser *parser, const char *sign) {
  if (!rdna__tpl_skip_sign(parser, sign)) rdna__tpl_parse_fail(parser, "'%s' is missing", sign);
}

rdna_text rdna__tpl_expect_name(tpl_parser *parser) {
  const tpl_token *token = rdna__tpl_look(parser, 0);
  if (token->kind != TPL_TOKEN_NAME) {
    rdna__tpl_parse_fail(parser, "a name is missing");
    return (rdna_text){"", 0};
  }
  parser->at++;
  return token->text;
}

bool rdna__tpl_enter(tpl_parser *parser) {
  if (++parser->depth <= TPL_MAX_PARSE_DEPTH) return true;
  rdna__tpl_parse_fail(parser, "more than %d expressions or statements stand inside each other", TPL_MAX_PARSE_DEPTH);
  return false;
}

void rdna__tpl_leave(tpl_parser *parser) { parser->depth--; }

tpl_node *rdna__tpl_node(tpl_parser *parser, tpl_node_kind kind) {
  tpl_node *node = parser->status == RDNA_OK ? rdna__tpl_arena_alloc(parser->arena, sizeof *node) : NULL;
  if (!node) {
    rdna__tpl_parse_fail(parser, "no host memory for its tree");
    parser->nobody = (tpl_node){.kind = kind};
    return &parser->nobody;
  }
  *node = (tpl_node){.kind = kind, .line = rdna__tpl_look(parser, 0)->line};
  return node;
}

void rdna__tpl_add_item(tpl_parser *parser, tpl_node *node, const tpl_node *item) {
  size_t count = node->item_count;
  if (parser->status != RDNA_OK) return;
  if ((count & (count - 1)) == 0) { /* a power of two: full */
    const tpl_node **grown = rdna__tpl_arena_alloc(parser->arena, (count ? 2 * count : 1) * sizeof *grown);
    if (!grown) {
      rdna__tpl_parse_fail(parser, "no host memory for its tree");
      return;
    }
    if (count) memcpy(grown, node->items, count * sizeof *grown);
    node->items = grown;
  }
  node->items[node->item_count++] = item;
}

/* ---- statements ---- */

static void expect_tag_end(tpl_parser *parser) {
  if (rdna__tpl_look(parser, 0)->kind != TPL_TOKEN_TAG_END)
    rdna__tpl_parse_fail(parser, "%%} is missing");
  else
    parser->at++;
}

static tpl_node *parse_statement(tpl_parser *parser);

/* Whether a tag begins with one of |ends|, names with spaces between. */
static bool at_end_tag(const tpl_parser *parser, const char *ends) {
  rdna_text name = rdna__tpl_look(parser, 0)->text;
  if (rdna__tpl_look(parser, 0)->kind != TPL_TOKEN_NAME) return false;
  for (size_t size; *ends; ends += size + strspn(ends + size, " ")) {
    size = strcspn(ends, " ");
    if (size == name.size && memcmp(ends, name.data, size) == 0) return true;
  }
  return false;
}

/* Text and tags up to a tag of |ends|, at whose name it stops; NULL: up to the end of the template. */
static tpl_node *parse_block(tpl_parser *parser, const char *ends) {
  tpl_node *block = rdna__tpl_node(parser, TPL_NODE_BLOCK);
  int line = block->line;
  while (parser->status == RDNA_OK) {
    const tpl_token *token = rdna__tpl_look(parser, 0);
    if (token->kind == TPL_TOKEN_END) {
      if (ends) rdna__tpl_parse_fail(parser, "%s is missing for what begins in line %d", ends, line);
      break;
    }
    parser->at++;
    if (token->kind == TPL_TOKEN_TEXT) {
      tpl_node *text = rdna__tpl_node(parser, TPL_NODE_TEXT);
      text->name = token->text;
      rdna__tpl_add_item(parser, block, text);
    } else if (token->kind == TPL_TOKEN_PRINT_BEGIN) {
      tpl_node *print = rdna__tpl_node(parser, TPL_NODE_PRINT);
      rdna__tpl_add_item(parser, print, rdna__tpl_parse_tuple(parser, true, NULL));
      if (rdna__tpl_look(parser, 0)->kind != TPL_TOKEN_PRINT_END) rdna__tpl_parse_fail(parser, "}} is missing");
      parser->at += parser->at < parser->end;
      rdna__tpl_add_item(parser, block, print);
    } else {
      if (ends && at_end_tag(parser, ends)) break;
      if (rdna__tpl_enter(parser)) rdna__tpl_add_item(parser, block, parse_statement(parser));
      rdna__tpl_leave(parser);
      expect_tag_end(parser);
    }
  }
  return block;
}

/* The rest of a statement's first tag, and its body up to a tag of |ends|, whose name is returned and skipped. */
static rdna_text parse_body(tpl_parser *parser, const tpl_node **out_body, const char *ends) {
  rdna__tpl_skip_sign(parser, ":");
  expect_tag_end(parser);
  *out_body = parse_block(parser, ends);
  return parser->status == RDNA_OK ? rdna__tpl_expect_name(parser) : (rdna_text){"", 0};
}

/* A name, several with commas, or where |attributes| is true also space.name. */
static tpl_node *parse_target(tpl_parser *parser, bool attributes, const char *end) {
  const tpl_token *next = rdna__tpl_look(parser, 1);
  if (attributes && next->kind == TPL_TOKEN_SIGN && rdna__tpl_is(next->text, ".")) {
    tpl_node *target = rdna__tpl_node(parser, TPL_NODE_NS_TARGET), *space = rdna__tpl_node(parser, TPL_NODE_NAME);
    space->name = rdna__tpl_expect_name(parser);
    rdna__tpl_expect_sign(parser, ".");
    rdna_text name = rdna__tpl_expect_name(parser);
    target->a = space;
    target->constant = tpl_text(name.data, name.size);
    return target;
  }
  tpl_node *tuple = rdna__tpl_node(parser, TPL_NODE_TUPLE), *target = NULL;
  bool several = false;
  do {
    tpl_token_kind kind = rdna__tpl_look(parser, 0)->kind;
    if (target && ((end && rdna__tpl_at_name(parser, end)) || kind == TPL_TOKEN_TAG_END ||
                   rdna__tpl_at_sign(parser, "=") || rdna__tpl_at_sign(parser, ")")))
      break;
    if (!rdna__tpl_enter(parser)) {
      target = tuple;
    } else if (rdna__tpl_skip_sign(parser, "(")) {
      target = parse_target(parser, attributes, NULL);
      rdna__tpl_expect_sign(parser, ")");
    } else {
      target = rdna__tpl_parse_primary(parser);
      if (target->kind != TPL_NODE_NAME) rdna__tpl_parse_fail(parser, "only names can be set");
    }
    rdna__tpl_leave(parser);
    rdna__tpl_add_item(parser, tuple, target);
    several = several || rdna__tpl_at_sign(parser, ",");
  } while (rdna__tpl_skip_sign(parser, ","));
  return several ? tuple : target;
}

static tpl_node *parse_if(tpl_parser *parser) {
  tpl_node *node = rdna__tpl_node(parser, TPL_NODE_IF);
  node->a = rdna__tpl_parse_tuple(parser, false, NULL);
  rdna_text end = parse_body(parser, &node->body, "elif else endif");
  if (rdna__tpl_is(end, "elif")) {
    if (rdna__tpl_enter(parser)) node->otherwise = parse_if(parser);
    rdna__tpl_leave(parser);
  } else if (rdna__tpl_is(end, "else")) {
    parse_body(parser, &node->otherwise, "endif");
  }
  return node;
}

static tpl_node *parse_for(tpl_parser *parser) {
  tpl_node *node = rdna__tpl_node(parser, TPL_NODE_FOR);
  node->a = parse_target(parser, false, "in");
  if (!rdna__tpl_skip_name(parser, "in")) rdna__tpl_parse_fail(parser, "'in' is missing");
  node->b = rdna__tpl_parse_tuple(parser, false, "recursive");
  if (rdna__tpl_skip_name(parser, "if")) node->c = rdna__tpl_parse_expression(parser);
  if (rdna__tpl_at_name(parser, "recursive"))
    rdna__tpl_parse_fail(parser, "recursive loops are not offered; a macro can call itself");
  int macros = parser->macros;
  parser->loops++;
  rdna_text end = parse_body(parser, &node->body, "endfor else");
  parser->loops--;
  node->defines_macros = parser->macros > macros;
  if (rdna__tpl_is(end, "else")) parse_body(parser, &node->otherwise, "endfor");
  return node;
}

static tpl_node *parse_set(tpl_parser *parser) {
  tpl_node *node = rdna__tpl_node(parser, TPL_NODE_SET);
  node->a = parse_target(parser, true, NULL);
  if (rdna__tpl_skip_sign(parser, "=")) {
    node->b = rdna__tpl_parse_tuple(parser, true, NULL);
    return node;
  }
  node->kind = TPL_NODE_SET_BLOCK;
  if (rdna__tpl_at_sign(parser, "|")) node->b = rdna__tpl_parse_filters(parser, NULL, false);
  parse_body(parser, &node->body, "endset");
  return node;
}

/* (name, name=default): items are the names, arguments the defaults */
static void parse_signature(tpl_parser *parser, tpl_node *macro) {
  tpl_argument defaults[64];
  bool optional = false;
  rdna__tpl_expect_sign(parser, "(");
  while (parser->status == RDNA_OK && !rdna__tpl_at_sign(parser, ")")) {
    if (macro->item_count > 0) rdna__tpl_expect_sign(parser, ",");
    tpl_node *name = rdna__tpl_node(parser, TPL_NODE_NAME);
    name->name = rdna__tpl_expect_name(parser);
    if (macro->item_count == sizeof defaults / sizeof *defaults) {
      rdna__tpl_parse_fail(parser, "a macro has more than %zu arguments", macro->item_count);
      break;
    }
    defaults[macro->item_count] = (tpl_argument){0};
    if (rdna__tpl_skip_sign(parser, "=")) {
      defaults[macro->item_count].value = rdna__tpl_parse_expression(parser);
      optional = true;
    } else if (optional) {
      rdna__tpl_parse_fail(parser, "an argument without a default stands behind one with");
    }
    rdna__tpl_add_item(parser, macro, name);
  }
  rdna__tpl_expect_sign(parser, ")");
  macro->argument_count = macro->item_count;
  if (macro->item_count == 0 || parser->status != RDNA_OK) return;
  tpl_argument *kept = rdna__tpl_arena_alloc(parser->arena, macro->item_count * sizeof *kept);
  if (!kept)
    rdna__tpl_parse_fail(parser, "no host memory for its tree");
  else
    memcpy(kept, defaults, macro->item_count * sizeof *kept);
  macro->arguments = kept;
}

/* The body of |macro|, in which loops outside do not count. */
static void parse_macro_body(tpl_parser *parser, tpl_node *macro, const char *end) {
  tpl_node *outer = parser->macro;
  int loops = parser->loops, macros = ++parser->macros;
  parser->macro = macro;
  parser->loops = 0;
  parse_body(parser, &macro->body, end);
  macro->defines_macros = parser->macros > macros;
  parser->macro = outer;
  parser->loops = loops;
}

static tpl_node *parse_macro(tpl_parser *parser) {
  tpl_node *node = rdna__tpl_node(parser, TPL_NODE_MACRO);
  node->name = rdna__tpl_expect_name(parser);
  parse_signature(parser, node);
  parse_macro_body(parser, node, "endmacro");
  return node;
}

static tpl_node *parse_call_block(tpl_parser *parser) {
  tpl_node *node = rdna__tpl_node(parser, TPL_NODE_CALL_BLOCK), *caller = rdna__tpl_node(parser, TPL_NODE_MACRO);
  caller->name = (rdna_text){"caller", 6};
  node->a = caller;
  if (rdna__tpl_at_sign(parser, "(")) parse_signature(parser, caller);
  node->b = rdna__tpl_parse_expression(parser);
  if (node->b->kind != TPL_NODE_CALL) rdna__tpl_parse_fail(parser, "a call block needs a call");
  parse_macro_body(parser, caller, "endcall");
  return node;
}

static tpl_node *parse_filter_block(tpl_parser *parser) {
  tpl_node *node = rdna__tpl_node(parser, TPL_NODE_FILTER_BLOCK);
  node->b = rdna__tpl_parse_filters(parser, NULL, true);
  parse_body(parser, &node->body, "endfilter");
  return node;
}

static tpl_node *parse_with(tpl_parser *parser) {
  tpl_node *node = rdna__tpl_node(parser, TPL_NODE_WITH);
  tpl_argument values[32];
  while (parser->status == RDNA_OK && rdna__tpl_look(parser, 0)->kind != TPL_TOKEN_TAG_END) {
    if (node->item_count > 0) rdna__tpl_expect_sign(parser, ",");
    if (node->item_count == sizeof values / sizeof *values) {
      rdna__tpl_parse_fail(parser, "'with' sets more than %zu names", node->item_count);
      break;
    }
    tpl_node *target = rdna__tpl_node(parser, TPL_NODE_NAME);
    target->name = rdna__tpl_expect_name(parser);
    rdna__tpl_expect_sign(parser, "=");
    values[node->item_count] = (tpl_argument){.value = rdna__tpl_parse_expression(parser)};
    rdna__tpl_add_item(parser, node, target);
  }
  tpl_argument *kept = rdna__tpl_arena_alloc(parser->arena, node->item_count * sizeof *kept);
  if (!kept)
    rdna__tpl_parse_fail(parser, "no host memory for its tree");
  else if (node->item_count)
    memcpy(kept, values, node->item_count * sizeof *kept);
  node->arguments = kept;
  parse_body(parser, &node->body, "endwith");
  return node;
}

/* What marks the model's own words in a template for training: here it is as if it were not there. */
static tpl_node *parse_generation(tpl_parser *parser) {
  tpl_node *node = rdna__tpl_node(parser, TPL_NODE_SCOPE);
  parse_body(parser, &node->body, "endgeneration");
  return node;
}

static tpl_node *parse_print(tpl_parser *parser) {
  tpl_node *node = rdna__tpl_node(parser, TPL_NODE_PRINT);
  do rdna__tpl_add_item(parser, node, rdna__tpl_parse_expression(parser));
  while (rdna__tpl_skip_sign(parser, ","));
  return node;
}

static tpl_node *parse_jump(tpl_parser *parser, tpl_node_kind kind) {
  if (parser->loops == 0) rdna__tpl_parse_fail(parser, "break and continue belong in a loop");
  return rdna__tpl_node(parser, kind);
}

static tpl_node *parse_break(tpl_parser *parser) { return parse_jump(parser, TPL_NODE_BREAK); }
static tpl_node *parse_continue(tpl_parser *parser) { return parse_jump(parser, TPL_NODE_CONTINUE); }

static tpl_node *parse_statement(tpl_parser *parser) {
  static const struct {
    const char *name;
    tpl_node *(*parse)(tpl_parser *parser);
  } statements[] = {{"if", parse_if},
                    {"for", parse_for},
                    {"set", parse_set},
                    {"macro", parse_macro},
                    {"call", parse_call_block},
                    {"filter", parse_filter_block},
                    {"with", parse_with},
                    {"generation", parse_generation},
                    {"print", parse_print},
                    {"break", parse_break},
                    {"continue", parse_continue}};
  static const char others[] = "include import from extends block autoescape trans do debug";
  for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
    if (rdna__tpl_skip_name(parser, statements[i].name)) return statements[i].parse(parser);
  const tpl_token *token = rdna__tpl_look(parser, 0);
  if (at_end_tag(parser, others)) {
    parser->status = rdna__fail(RDNA_UNSUPPORTED, "template line %d: '%.*s' is not offered in chat templates",
                                token->line, (int)token->text.size, token->text.data);
    parser->at = parser->end;
  } else {
    rdna__tpl_parse_fail(parser, "no statement begins here");
  }
  return rdna__tpl_node(parser, TPL_NODE_BLOCK);
}

rdna_status rdna__tpl_parse(tpl_arena *arena, const tpl_tokens *tokens, const tpl_node **out_root) {
  tpl_parser parser = {.arena = arena, .tokens = tokens->items, .end = tokens->count - 1};
  *out_root = parse_block(&parser, NULL);
  return parser.status;
}
