/* Pre-tokenizers: regular expressions that cut a text into the words inside which merging happens. The patterns are
 * those that the models' authors published (tokenizer.json, tiktoken), in PCRE2's syntax; the names are the values of
 * tokenizer.ggml.pre. A pre-tokenizer of several patterns applies each inside the words that the ones before it made,
 * and what a pattern does not match stays a word of its own.
 *
 * PCRE2's \s is Unicode's white space and U+180E. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/tokenizer/tokenizer.h"

enum { MAX_PATTERNS = 6 };

typedef struct definition {
  const char *patterns[MAX_PATTERNS];
  const char *names; /* each between two bars */
  rdna__splitter_traits traits;
} definition;

#define SPACES "\\s+(?!\\S)|\\s+"
#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|" SPACES
/* in a text whose white space is spaces */
#define CLIP "'s|'t|'re|'ve|'m|'ll|'d|\\p{L}+|\\p{N}|[^ \\p{L}\\p{N}]+"
#define ENDINGS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define WORD "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define MARKS " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
#define NEWLINES "\\s*[\\r\\n]+"
#define LLAMA3 ENDINGS "|" WORD "|\\p{N}{1,3}|" MARKS "|" NEWLINES "|" SPACES
#define QWEN2 ENDINGS "|" WORD "|\\p{N}|" MARKS "|" NEWLINES "|" SPACES
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED(ending) \
  "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" ending "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*" ending
#define O200K(digits) CASED(ENDINGS "?") "|" digits "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" NEWLINES "|" SPACES
#define NOT_STOPS " ?[^(\\s|.,!?\\x{2026}\\x{3002}\\x{ff0c}\\x{3001}\\x{964}\\x{6d4}\\x{60c})]+"
#define CJK "[\\x{4e00}-\\x{9fa5}\\x{800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+"
#define ASCII_MARKS "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~]"
/* the cased letters of Unicode 11, but for some beyond the first plane */
#define CASED_LETTERS                                                                                                  \
  "A-Za-z\\x{b5}\\x{c0}-\\x{d6}\\x{d8}-\\x{f6}\\x{f8}-\\x{1ba}\\x{1bc}-\\x{1bf}\\x{1c4}-\\x{293}\\x{295}-\\x{2af}"     \
  "\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37b}-\\x{37d}\\x{37f}\\x{386}\\x{388}-\\x{38a}\\x{38c}\\x{38e}-\\x{3a1}"       \
  "\\x{3a3}-\\x{3f5}\\x{3f7}-\\x{481}\\x{48a}-\\x{52f}\\x{531}-\\x{556}\\x{10a0}-\\x{10c5}\\x{13a0}-\\x{13f5}"         \
  "\\x{13f8}-\\x{13fd}\\x{1c90}-\\x{1cba}\\x{1cbd}-\\x{1cbf}\\x{1d00}-\\x{1d2b}\\x{1d6b}-\\x{1d77}\\x{1d79}-\\x{1d9a}" \
  "\\x{1e00}-\\x{1f15}\\x{1f18}-\\x{1f1d}\\x{1f20}-\\x{1f45}\\x{1f48}-\\x{1f4d}\\x{1f50}-\\x{1f57}\\x{1f59}\\x{1f5b}"  \
  "\\x{1f5d}\\x{1f5f}-\\x{1f7d}\\x{1f80}-\\x{1fb4}\\x{1fb6}-\\x{1fbc}\\x{1fbe}\\x{1fc2}-\\x{1fc4}\\x{1fc6}-\\x{1fcc}"  \
  "\\x{1fd0}-\\x{1fd3}\\x{1fd6}-\\x{1fdb}\\x{1fe0}-\\x{1fec}\\x{1ff2}-\\x{1ff4}\\x{1ff6}-\\x{1ffc}\\x{2102}\\x{2107}"  \
  "\\x{210a}-\\x{2113}\\x{2115}\\x{2119}-\\x{211d}\\x{2124}\\x{2126}\\x{2128}\\x{212a}-\\x{212d}\\x{212f}-\\x{2134}"   \
  "\\x{2139}\\x{213c}-\\x{213f}\\x{2145}-\\x{2149}\\x{214e}\\x{2183}\\x{2184}\\x{2c00}-\\x{2c7b}\\x{2c7e}-\\x{2ce4}"   \
  "\\x{2ceb}-\\x{2cee}\\x{2cf2}\\x{2cf3}\\x{a640}-\\x{a66d}\\x{a680}-\\x{a69b}\\x{a722}-\\x{a76f}\\x{a771}-\\x{a787}"  \
  "\\x{a78b}-\\x{a78e}\\x{ab70}-\\x{abbf}\\x{fb00}-\\x{fb06}\\x{fb13}-\\x{fb17}\\x{ff21}-\\x{ff3a}\\x{ff41}-\\x{ff5a}" \
  "\\x{10400}-\\x{1044f}\\x{104b0}-\\x{104d3}\\x{104d8}-\\x{104fb}\\x{10c80}-\\x{10cb2}\\x{10cc0}-\\x{10cf2}"          \
  "\\x{118a0}-\\x{118df}\\x{1e900}-\\x{1e943}"

static const definition definitions[] = {
    {{GPT2}, "|gpt-2|phi-2|gigachat|a.x-4.0|mellum|modern-bert|mpt|olmo|jais|trillion|granite-docling|exaone4|", {0}},
    {{LLAMA3},
     "|llama-bpe|llama3|llama-v3|falcon3|falcon-h1|pixtral|midm-2.0|lfm2|",
     {.ignore_merges = true, .add_bos = true}},
    {{LLAMA3}, "|dbrx|smaug-bpe|glm4|chatglm-bpe|", {0}},
    {{QWEN2}, "|qwen2|deepseek-r1-qwen|kormo|f2llmv2|megrez|stablelm2|hunyuan|solar-open|grok-2|", {0}},
    {{ENDINGS "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" NEWLINES
              "|" SPACES},
     "|qwen35|",
     {0}},
    {{O200K("\\p{N}{1,3}")}, "|gpt-4o|llama4|kanana2|minimax-m2|", {0}},
    {{CASED("") "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" NEWLINES "|" SPACES},
     "|tekken|",
     {.ignore_merges = true, .add_bos = true}},
    {{"\\p{N}", GPT2}, "|starcoder|refact|command-r|smollm|codeshell|exaone|minerva-7b|mellum2|", {0}},
    {{"[\\p{P}$+<=>^~|`]+", GPT2, "[0-9][0-9][0-9]"}, "|falcon|", {0}},
    {{"[\\r\\n]", "\\s?[" CASED_LETTERS "]+",
      "\\s?[!-/:-~\\x{ff01}-\\x{ff0f}\\x{ff1a}-\\x{ff5e}\\x{2018}-\\x{201f}\\x{3000}-\\x{3002}]+",
      /* published as \s+$; written so that a run of spaces before other text is not tried from each of its places */
      "(?<!\\s)\\s++$", CJK, "\\p{N}+"},
     "|deepseek-llm|",
     {0}},
    {{"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", CJK, "\\p{N}"}, "|deepseek-coder|", {0}},
    {{"\\p{N}{1,3}", "[\\x{4e00}-\\x{9fa5}\\x{3040}-\\x{309f}\\x{30a0}-\\x{30ff}]+",
      ASCII_MARKS "[A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|" NEWLINES
                  "|" SPACES},
     "|deepseek-v3|hunyuan-dense|joyai-llm|",
     {0}},
    {{"'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}| "
      "?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|" SPACES},
     "|bailingmoe|bailingmoe2|llada-moe|",
     {0}},
    {{ENDINGS "|" WORD "|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|" NEWLINES "|" SPACES}, "|seed-coder|", {0}},
    {{NOT_STOPS}, "|poro-chat|bloom|gpt3-finnish|", {0}},
    {{NOT_STOPS, "\\p{N}"}, "|viking|", {0}},
    {{"<\\|startoftext\\|>|<\\|endoftext\\|>|" CLIP, CLIP}, "|clip|", {.add_bos = true}},
    /* what files say that name none; llama.cpp's choice, as nobody published one */
    {{"[\\p{P}$+<=>^~|]+", GPT2, "\\p{N}+", "[0-9][0-9][0-9]"}, "|default|", {0}},
};

/* Of those names the ones whose authors normalize text; GGUF has no key for that. */
static const char normalizing[] = "|qwen2|qwen35|olmo|modern-bert|";

struct rdna__splitter {
  pcre2_code *patterns[MAX_PATTERNS];
  int pattern_count;
};

static bool has_name(const char *names, const char *name, size_t length) {
  for (; *names; names += strcspn(names, "|"))
    if (strncmp(++names, name, length) == 0 && names[length] == '|') return length > 0;
  return false;
}

static const definition *find_definition(const char *pre) {
  size_t length = strlen(pre);
  if (strchr(pre, '|')) return NULL;
  for (size_t d = 0; d < sizeof definitions / sizeof *definitions; d++)
    if (has_name(definitions[d].names, pre, length)) return &definitions[d];
  return NULL;
}

const char *rdna__splitter_gpt2_pattern(void) { return GPT2; }

/* Bytes of UTF-8 of the character that "x{…}" behind a backslash names; |out_read|, what was read of it. */
static size_t named_character(const char *text, char out[4], size_t *out_read) {
  char *end;
  unsigned long c = strtoul(text + 2, &end, 16);
  *out_read = (size_t)(end - text) + 1;
  if (c < 0x80) {
    out[0] = (char)c;
    return 1;
  }
  size_t length = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  for (size_t i = length - 1; i > 0; i--, c >>= 6) out[i] = (char)(0x80 | (c & 0x3f));
  out[0] = (char)(0xf00u >> length | c); /* as many ones as bytes, then a zero */
  return length;
}

/* Whether |theirs| is our |pattern|, but for characters that it may write as they are. */
static bool is_pattern(const char *pattern, rdna_text theirs) {
  size_t at = 0;
  while (*pattern) {
    char named[4];
    size_t read = 1, length = 1;
    if (strncmp(pattern, "\\x{", 3) == 0 && (theirs.size - at < 3 || memcmp(theirs.data + at, "\\x{", 3) != 0)) {
      length = named_character(pattern + 1, named, &read);
      read++;
    } else {
      named[0] = *pattern;
    }
    if (theirs.size - at < length || memcmp(theirs.data + at, named, length) != 0) return false;
    pattern += read;
    at += length;
  }
  return at == theirs.size;
}

bool rdna__splitter_name(const rdna_text *patterns, int count, bool ignore_merges, bool nfc, char out_name[64]) {
  for (size_t d = 0; d < sizeof definitions / sizeof *definitions; d++) {
    const definition *def = &definitions[d];
    int same = 0;
    while (same < count && same < MAX_PATTERNS && def->patterns[same] &&
           is_pattern(def->patterns[same], patterns[same]))
      same++;
    bool all = same == count && (same == MAX_PATTERNS || !def->patterns[same]);
    if (!all || def->traits.ignore_merges != ignore_merges) continue;
    for (const char *name = def->names + 1; *name; name += strcspn(name, "|") + 1) {
      size_t length = strcspn(name, "|");
      if (has_name(normalizing, name, length) != nfc) continue;
      snprintf(out_name, 64, "%.*s", (int)length, name);
      return true;
    }
  }
  return false;
}

rdna_status rdna__splitter_create(const char *pre, rdna__splitter **out_splitter, rdna__splitter_traits *out_traits) {
  const definition *found = find_definition(pre);
  if (!found)
    return rdna__fail(RDNA_UNSUPPORTED,
                      "this build does not know the pre-tokenizer \"%s\" (tokenizer.ggml.pre); the model can be used "
                      "with token ids only",
                      pre);
  rdna__splitter *splitter = calloc(1, sizeof *splitter);
  if (!splitter) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a pre-tokenizer");
  for (int i = 0; i < MAX_PATTERNS && found->patterns[i]; i++) {
    int error;
    PCRE2_SIZE offset;
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)found->patterns[i], PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP,
                                     &error, &offset, NULL);
    if (!code) {
      rdna__splitter_release(splitter);
      return rdna__fail(RDNA_INTERNAL, "pattern %d of pre-tokenizer %s: PCRE2 error %d at %zu", i, pre, error,
                        (size_t)offset);
    }
    splitter->patterns[splitter->pattern_count++] = code;
    (void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE); /* without it, matching is slower and the same */
  }
  *out_splitter = splitter;
  *out_traits = found->traits;
  out_traits->nfc = has_name(normalizing, pre, strlen(pre));
  return RDNA_OK;
}

void rdna__splitter_release(rdna__splitter *splitter) {
  if (!splitter) return;
  for (int i = 0; i < splitter->pattern_count; i++) pcre2_code_free(splitter->patterns[i]);
  free(splitter);
}

typedef struct splitting {
  const rdna__splitter *splitter;
  pcre2_match_data *match;
  pcre2_match_context *limits;
  rdna_status (*emit)(void *context, rdna_text word);
  void *context;
} splitting;

static rdna_status match_next(const splitting *s, int stage, rdna_text text, size_t from, size_t *out_start,
                              size_t *out_end, bool *out_found) {
  pcre2_code *code = s->splitter->patterns[stage];
  int count = pcre2_match(code, (PCRE2_SPTR)text.data, text.size, from, PCRE2_NO_UTF_CHECK, s->match, s->limits);
  if (count == PCRE2_ERROR_JIT_STACKLIMIT) /* the interpreter keeps its own on the heap */
    count = pcre2_match(code, (PCRE2_SPTR)text.data, text.size, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, s->match,
                        s->limits);
  *out_found = count >= 0; /* 0: the match's groups, which nobody asks for, found no room */
  if (count == PCRE2_ERROR_NOMATCH) return RDNA_OK;
  if (count < 0)
    return rdna__fail(RDNA_UNSUPPORTED, "a text of %zu bytes cannot be split: PCRE2 error %d", text.size, count);
  const PCRE2_SIZE *offsets = pcre2_get_ovector_pointer(s->match);
  *out_start = offsets[0];
  *out_end = offsets[1];
  return RDNA_OK;
}

/* Cuts |text| by the patterns from |stage| on. */
static rdna_status split(const splitting *s, int stage, rdna_text text) {
  if (text.size == 0) return RDNA_OK;
  if (stage == s->splitter->pattern_count) return s->emit(s->context, text);
  size_t at = 0;
  while (at < text.size) {
    size_t start = 0, end = 0;
    bool found = false;
    RDNA_TRY(match_next(s, stage, text, at, &start, &end, &found));
    if (!found) break;
    if (start > at) RDNA_TRY(split(s, stage + 1, (rdna_text){text.data + at, start - at}));
    if (end <= start) return rdna__fail(RDNA_INTERNAL, "a pre-tokenizer's pattern matched nothing");
    RDNA_TRY(split(s, stage + 1, (rdna_text){text.data + start, end - start}));
    at = end;
  }
  return split(s, stage + 1, (rdna_text){text.data + at, text.size - at});
}

/* The patterns want UTF-8: what is none is a word of its own, and the text on either side is its own text. */
rdna_status rdna__splitter_run(const rdna__splitter *splitter, rdna_text text,
                               rdna_status (*emit)(void *context, rdna_text word), void *context) {
  splitting s = {splitter, pcre2_match_data_create(1, NULL), pcre2_match_context_create(NULL), emit, context};
  rdna_status status = RDNA_OK;
  if (!s.match || !s.limits) {
    status = rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory to match a text");
  } else {
    /* PCRE2 gives up after ten million steps; these patterns are linear, so a long word may take more */
    pcre2_set_match_limit(s.limits, UINT32_MAX);
  }
  for (size_t at = 0; at < text.size && status == RDNA_OK;) {
    size_t end = at;
    int length = 0;
    while (end < text.size && (length = rdna__utf8_length(text.data + end, text.size - end)) > 0) end += (size_t)length;
    status = split(&s, 0, (rdna_text){text.data + at, end - at});
    at = end;
    while (end < text.size && rdna__utf8_length(text.data + end, text.size - end) < 1) end++;
    if (end > at && status == RDNA_OK) status = emit(context, (rdna_text){text.data + at, end - at});
    at = end;
  }
  pcre2_match_context_free(s.limits);
  pcre2_match_data_free(s.match);
  return status;
}
