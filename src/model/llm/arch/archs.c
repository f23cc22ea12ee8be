/* The architectures that there are. */
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "model/llm/arch/arch.h"

#define ARCHITECTURES(X) \
  X(llama)               \
  X(qwen2)               \
  X(qwen3)               \
  X(phi3)                \
  X(gemma2)              \
  X(gemma3)              \
  X(olmo2)               \
  X(smollm3)             \
  X(granite)             \
  X(mistral3)            \
  X(qwen2moe)            \
  X(qwen3moe)            \
  X(granitemoe)          \
  X(gpt_oss)             \
  X(deepseek2)           \
  X(qwen3next)           \
  X(qwen35)              \
  X(qwen35moe)           \
  X(gemma4)              \
  X(qwen2vl)             \
  X(qwen3vl)             \
  X(qwen3vlmoe)          \
  X(glm4)                \
  X(glm4moe)             \
  X(dots1)               \
  X(minimax_m2)          \
  X(ernie4_5)            \
  X(exaone4)             \
  X(seed_oss)            \
  X(command_r)           \
  X(cohere2)             \
  X(stablelm)            \
  X(starcoder2)          \
  X(nemotron)            \
  X(lfm2)                \
  X(lfm2moe)             \
  X(bert)                \
  X(nomic_bert)          \
  X(gemma_embedding)

#define DECLARE(name) extern const rdna__llm_arch rdna__arch_##name;
ARCHITECTURES(DECLARE)
#define ROW(name) &rdna__arch_##name,
static const rdna__llm_arch *const architectures[] = {ARCHITECTURES(ROW)};

rdna_status rdna__llm_arch_find(rdna_text name, const rdna__llm_arch **out_arch) {
  char known[512] = "";
  for (size_t i = 0; i < sizeof architectures / sizeof architectures[0]; i++) {
    if (rdna__text_is(name, architectures[i]->name)) {
      *out_arch = architectures[i];
      return RDNA_OK;
    }
    size_t used = strlen(known);
    snprintf(known + used, sizeof known - used, i ? ", %s" : "%s", architectures[i]->name);
  }
  return rdna__fail(RDNA_UNSUPPORTED, "the model's architecture is '%.*s'; this library runs %s",
                    (int)(name.size < 64 ? name.size : 64), name.data, known);
}
