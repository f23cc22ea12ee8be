/* Which path is whose. */
#ifndef RDNA_SERVER_ROUTES_H
#define RDNA_SERVER_ROUTES_H

#include "server/exchange.h"

typedef struct route {
  const char *method, *path; /* a path that ends in * begins all that have it before them */
  enum MHD_Result (*handle)(exchange *x);
  const dialect *dialect; /* how it refuses and answers */
  bool open;              /* without a key */
  model_work work;        /* that its model must be able to do */
} route;

/* NULL where there is none; |*out_allowed| is then the method that the path has, or NULL. */
const route *find_route(const char *method, const char *path, const char **out_allowed);
/* How to refuse what has no route. */
const dialect *dialect_of_path(const char *path);

/* The interfaces' functions, in their files. */
extern const dialect openai, responses, anthropic, ollama, worker;
extern const dialect sdapi;
extern const dialect rerank, embeddings, ollama_embed, ollama_embeddings;
enum MHD_Result handle_page(exchange *x);
enum MHD_Result handle_health(exchange *x);
enum MHD_Result handle_metrics(exchange *x);
enum MHD_Result handle_ready(exchange *x);
enum MHD_Result handle_worker_ready(exchange *x);
enum MHD_Result handle_loading_progress(exchange *x);
enum MHD_Result handle_jobs(exchange *x);
enum MHD_Result handle_job_stream(exchange *x);
enum MHD_Result handle_models(exchange *x);
enum MHD_Result handle_chat_completions(exchange *x);
enum MHD_Result handle_completions(exchange *x);
enum MHD_Result handle_embeddings(exchange *x);
enum MHD_Result handle_rerank(exchange *x);
enum MHD_Result handle_ollama_embed(exchange *x);
enum MHD_Result handle_ollama_embeddings(exchange *x);
enum MHD_Result handle_responses(exchange *x);
enum MHD_Result handle_messages(exchange *x);
enum MHD_Result handle_count_tokens(exchange *x);
enum MHD_Result handle_ollama_chat(exchange *x);
enum MHD_Result handle_ollama_generate(exchange *x);
enum MHD_Result handle_ollama_tags(exchange *x);
enum MHD_Result handle_ollama_show(exchange *x);
enum MHD_Result handle_ollama_ps(exchange *x);
enum MHD_Result handle_ollama_version(exchange *x);
enum MHD_Result handle_image_generations(exchange *x);
enum MHD_Result handle_image_edits(exchange *x);
enum MHD_Result handle_image_variations(exchange *x);
enum MHD_Result handle_txt2img(exchange *x);
enum MHD_Result handle_extra_image(exchange *x);
enum MHD_Result handle_sdapi_upscalers(exchange *x);
enum MHD_Result handle_img2img(exchange *x);
enum MHD_Result handle_sdapi_options(exchange *x);
enum MHD_Result handle_sdapi_samplers(exchange *x);
enum MHD_Result handle_sdapi_schedulers(exchange *x);
enum MHD_Result handle_sdapi_models(exchange *x);
enum MHD_Result handle_sdapi_loras(exchange *x);
enum MHD_Result handle_controlnet(exchange *x);
enum MHD_Result handle_sdapi_progress(exchange *x);
enum MHD_Result handle_sdapi_interrupt(exchange *x);
enum MHD_Result handle_sdapi_info(exchange *x);
enum MHD_Result handle_sdapi_nothing(exchange *x);
enum MHD_Result handle_tokenize(exchange *x);
enum MHD_Result handle_detokenize(exchange *x);
enum MHD_Result handle_apply_template(exchange *x);

#endif
