#include "server/routes.h"

#include <string.h>

static const route routes[] = {
    {"GET", "/", handle_page, &openai, true, WORK_ANY},
    {"GET", "/page/*", handle_page, &openai, true, WORK_ANY},
    {"GET", "/health", handle_health, &openai, true, WORK_ANY},
    {"GET", "/metrics", handle_metrics, &openai, false, WORK_ANY},
    {"GET", "/ready", handle_ready, &openai, true, WORK_ANY},
    {"GET", "/v1/ready", handle_worker_ready, &worker, true, WORK_ANY},
    {"GET", "/v1/loading/progress", handle_loading_progress, &worker, true, WORK_ANY},
    {"POST", "/v1/jobs", handle_jobs, &worker, false, WORK_WRITES},
    {"POST", "/v1/inference", handle_jobs, &worker, false, WORK_WRITES},
    {"GET", "/v1/jobs/*", handle_job_stream, &worker, false, WORK_ANY},
    {"GET", "/v1/inference/*", handle_job_stream, &worker, false, WORK_ANY},
    {"GET", "/v1/models", handle_models, &openai, false, WORK_ANY},
    {"GET", "/v1/models/*", handle_models, &openai, false, WORK_ANY},
    {"POST", "/v1/chat/completions", handle_chat_completions, &openai, false, WORK_WRITES},
    {"POST", "/v1/completions", handle_completions, &openai, false, WORK_WRITES},
    {"POST", "/v1/responses", handle_responses, &responses, false, WORK_WRITES},
    {"POST", "/v1/embeddings", handle_embeddings, &embeddings, false, WORK_EMBEDS},
    {"POST", "/v1/rerank", handle_rerank, &rerank, false, WORK_RANKS},
    {"POST", "/rerank", handle_rerank, &rerank, false, WORK_RANKS},
    {"POST", "/v1/messages", handle_messages, &anthropic, false, WORK_WRITES},
    {"POST", "/v1/messages/count_tokens", handle_count_tokens, &anthropic, false, WORK_WRITES},
    {"POST", "/api/chat", handle_ollama_chat, &ollama, false, WORK_WRITES},
    {"POST", "/api/generate", handle_ollama_generate, &ollama, false, WORK_WRITES},
    {"POST", "/api/embed", handle_ollama_embed, &ollama_embed, false, WORK_EMBEDS},
    {"POST", "/api/embeddings", handle_ollama_embeddings, &ollama_embeddings, false, WORK_EMBEDS},
    {"GET", "/api/tags", handle_ollama_tags, &ollama, false, WORK_ANY},
    {"POST", "/api/show", handle_ollama_show, &ollama, false, WORK_ANY},
    {"GET", "/api/ps", handle_ollama_ps, &ollama, false, WORK_ANY},
    {"GET", "/api/version", handle_ollama_version, &ollama, false, WORK_ANY},
    {"POST", "/v1/images/generations", handle_image_generations, &openai, false, WORK_ANY},
    {"POST", "/v1/images/edits", handle_image_edits, &openai, false, WORK_ANY},
    {"POST", "/v1/images/variations", handle_image_variations, &openai, false, WORK_ANY},
    {"POST", "/sdapi/v1/txt2img", handle_txt2img, &sdapi, false, WORK_ANY},
    {"POST", "/sdapi/v1/img2img", handle_img2img, &sdapi, false, WORK_ANY},
    {"GET", "/sdapi/v1/options", handle_sdapi_options, &sdapi, false, WORK_ANY},
    {"POST", "/sdapi/v1/options", handle_sdapi_options, &sdapi, false, WORK_ANY},
    {"GET", "/sdapi/v1/samplers", handle_sdapi_samplers, &sdapi, false, WORK_ANY},
    {"GET", "/sdapi/v1/schedulers", handle_sdapi_schedulers, &sdapi, false, WORK_ANY},
    {"GET", "/sdapi/v1/sd-models", handle_sdapi_models, &sdapi, false, WORK_ANY},
    {"GET", "/sdapi/v1/upscalers", handle_sdapi_upscalers, &sdapi, false, WORK_ANY},
    {"POST", "/sdapi/v1/extra-single-image", handle_extra_image, &sdapi, false, WORK_ANY},
    {"GET", "/sdapi/v1/loras", handle_sdapi_loras, &sdapi, false, WORK_ANY},
    {"GET", "/controlnet/model_list", handle_controlnet, &sdapi, false, WORK_ANY},
    {"GET", "/controlnet/module_list", handle_controlnet, &sdapi, false, WORK_ANY},
    {"GET", "/controlnet/version", handle_controlnet, &sdapi, false, WORK_ANY},
    {"GET", "/sdapi/v1/progress", handle_sdapi_progress, &sdapi, false, WORK_ANY},
    {"POST", "/sdapi/v1/interrupt", handle_sdapi_interrupt, &sdapi, false, WORK_ANY},
    {"POST", "/sdapi/v1/skip", handle_sdapi_interrupt, &sdapi, false, WORK_ANY},
    {"POST", "/sdapi/v1/png-info", handle_sdapi_info, &sdapi, false, WORK_ANY},
    {"GET", "/sdapi/v1/cmd-flags", handle_sdapi_nothing, &sdapi, false, WORK_ANY},
    {"GET", "/sdapi/v1/embeddings", handle_sdapi_nothing, &sdapi, false, WORK_ANY},
    {"GET", "/sdapi/v1/face-restorers", handle_sdapi_nothing, &sdapi, false, WORK_ANY},
    {"GET", "/sdapi/v1/hypernetworks", handle_sdapi_nothing, &sdapi, false, WORK_ANY},
    {"GET", "/sdapi/v1/latent-upscale-modes", handle_sdapi_nothing, &sdapi, false, WORK_ANY},
    {"GET", "/sdapi/v1/prompt-styles", handle_sdapi_nothing, &sdapi, false, WORK_ANY},
    {"GET", "/sdapi/v1/realesrgan-models", handle_sdapi_nothing, &sdapi, false, WORK_ANY},
    {"POST", "/sdapi/v1/refresh-checkpoints", handle_sdapi_nothing, &sdapi, false, WORK_ANY},
    {"POST", "/sdapi/v1/refresh-loras", handle_sdapi_nothing, &sdapi, false, WORK_ANY},
    {"GET", "/sdapi/v1/script-info", handle_sdapi_nothing, &sdapi, false, WORK_ANY},
    {"GET", "/sdapi/v1/scripts", handle_sdapi_nothing, &sdapi, false, WORK_ANY},
    {"GET", "/sdapi/v1/sd-modules", handle_sdapi_nothing, &sdapi, false, WORK_ANY},
    {"GET", "/sdapi/v1/sd-vae", handle_sdapi_nothing, &sdapi, false, WORK_ANY},
    {"POST", "/tokenize", handle_tokenize, &openai, false, WORK_ANY},
    {"POST", "/detokenize", handle_detokenize, &openai, false, WORK_ANY},
    {"POST", "/apply-template", handle_apply_template, &openai, false, WORK_ANY},
};
enum { ROUTES = sizeof routes / sizeof *routes };

static bool matches(const char *pattern, const char *path) {
  const char *star = strchr(pattern, '*');
  return star ? strncmp(pattern, path, (size_t)(star - pattern)) == 0 : strcmp(pattern, path) == 0;
}

const route *find_route(const char *method, const char *path, const char **out_allowed) {
  *out_allowed = NULL;
  for (int i = 0; i < ROUTES; i++) {
    if (!matches(routes[i].path, path)) continue;
    if (strcmp(routes[i].method, method) == 0) return &routes[i];
    *out_allowed = routes[i].method;
  }
  return NULL;
}

const dialect *dialect_of_path(const char *path) {
  if (strncmp(path, "/sdapi/", 7) == 0 || strncmp(path, "/controlnet/", 12) == 0) return &sdapi;
  if (strncmp(path, "/api/", 5) == 0) return &ollama;
  if (strncmp(path, "/v1/jobs", 8) == 0 || strncmp(path, "/v1/inference", 13) == 0) return &worker;
  return strncmp(path, "/v1/messages", 12) == 0 ? &anthropic : &openai;
}
