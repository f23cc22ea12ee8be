#include "server/request.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/status.h"
#include "server/catalog.h"
#include "server/pictures.h"
#include "server/routes.h"

void request_deinit(request *r) {
  json_decref(r->json);
  settings_deinit(&r->settings);
  for (size_t i = 0; i < r->prompt_count; i++) rdna_tokens_deinit(&r->prompts[i]);
  free(r->prompts);
  for (size_t i = 0; i < r->picture_count; i++) rdna__shown_deinit(&r->pictures[i]);
  free(r->pictures);
  picture_files_deinit(r->files, r->picture_count);
  *r = (request){0};
}

bool request_add_prompts(request *r, size_t count, problem *p) {
  r->prompts = calloc(count, sizeof *r->prompts);
  if (!r->prompts) return refuse(p, 500, NULL, NULL, "no host memory for the prompts");
  r->prompt_count = count;
  return true;
}

bool read_model(exchange *x, const json_t *json, problem *p) {
  const char *name = NULL;
  if (!read_text(json, "model", &name, p) || !catalog_hold(x, name, p)) return false;
  x->adapter = name ? catalog_adapter(x->hosted, name) : NULL;
  if (x->adapter && (x->route->work == WORK_EMBEDS || x->route->work == WORK_RANKS))
    return refuse(p, 400, NULL, "model", "'%s' is an adapter, which is for texts that are written; the model is '%s'",
                  x->adapter->name, x->model->name);
  return served_model_can(x->model, x->route->work, p);
}

/* The field that the prompts are from. */
static const char *prompt_field(const request *r) {
  static const char *const names[] = {"messages", "input"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (json_object_get(r->json, names[i])) return names[i];
  return "prompt";
}

bool request_check_prompts(const exchange *x, const request *r, problem *p) {
  int context = scheduler_context(x->scheduler);
  for (size_t i = 0; i < r->prompt_count; i++) {
    /* It begins with Anthropic's own words, by which its clients know that a conversation has to become shorter. */
    if (r->prompts[i].count > (size_t)context)
      return refuse(p, 400, "context_length_exceeded", prompt_field(r),
                    "prompt is too long: %zu tokens > %d maximum, the context of this model here; shorten it",
                    r->prompts[i].count, context);
    if (r->prompts[i].count == 0) return refuse(p, 400, NULL, prompt_field(r), "the prompt has no tokens");
    if (r->prompts[i].ids[r->prompts[i].count - 1] < 0)
      return refuse(p, 400, NULL, prompt_field(r), "the prompt ends with a picture; some text must follow");
  }
  return true;
}

bool request_check(const exchange *x, request *r, problem *p) {
  if (!request_check_prompts(x, r, p) || !request_take_adapters(x, r, p)) return false;
  if (r->prompt_count * (size_t)r->n > MOST_CHOICES)
    return refuse(p, 400, NULL, "n", "%zu prompts, each %lld times, are more than the %d texts of one request",
                  r->prompt_count, (long long)r->n, MOST_CHOICES);
  if (!load_pictures(x->model->vision, r, p)) return false;
  if (json_is_integer(json_object_get(r->json, "seed"))) return true;
  uint64_t seed = 0;
  if (getrandom(&seed, sizeof seed, 0) < 0) return refuse(p, 500, NULL, NULL, "the system gives no random numbers");
  r->settings.sampling.seed = seed;
  return true;
}

bool read_urgency(const json_t *json, settings *s, problem *p) {
  int64_t priority = 0;
  if (!read_integer(json, "priority", -MOST_PRIORITY, MOST_PRIORITY, &priority, p) ||
      !read_number(json, "timeout", 0, MOST_TIMEOUT, &s->most_seconds, p))
    return false;
  s->priority = (int)priority;
  return true;
}

job *request_make_job(request *r, problem *p) {
  job *j = job_create(&r->settings, r->prompts, r->prompt_count, (int)r->n);
  if (j) {
    r->prompts = NULL; /* the job's */
    r->prompt_count = 0;
    j->pictures = r->pictures;
    j->picture_count = r->picture_count;
    r->pictures = NULL;
    picture_files_deinit(r->files, r->picture_count);
    r->files = NULL;
    r->picture_count = 0;
  }
  request_deinit(r);
  if (!j) refuse(p, 500, NULL, NULL, "no host memory for the request");
  return j;
}

enum MHD_Result request_embed(exchange *x, request *r, int32_t *seconds) {
  job *j = job_create_embedding(&r->settings, r->prompts, r->prompt_count, seconds);
  if (j) {
    r->prompts = NULL; /* the job's */
    r->prompt_count = 0;
  } else {
    free(seconds);
    refuse(&x->problem, 500, NULL, NULL, "no host memory for the request");
  }
  request_deinit(r);
  return j ? respond_job(x, j) : respond_problem(x);
}

enum MHD_Result request_run(exchange *x, request *r) {
  job *j = request_make_job(r, &x->problem);
  return j ? respond_job(x, j) : respond_problem(x);
}

static bool add_stop(settings *s, const json_t *stop, const char *field, problem *p) {
  if (!json_is_string(stop) || json_string_length(stop) == 0 ||
      strlen(json_string_value(stop)) != json_string_length(stop))
    return refuse(p, 400, NULL, field, "'%s' must be a text or a list of texts, none of them empty or with zeros",
                  field);
  if (s->stop_count == MOST_STOPS) return refuse(p, 400, NULL, field, "'%s' has more than %d texts", field, MOST_STOPS);
  s->stops[s->stop_count] = strdup(json_string_value(stop));
  if (!s->stops[s->stop_count]) return refuse(p, 500, NULL, NULL, "no host memory for the request");
  s->stop_count++;
  return true;
}

bool read_stops(const json_t *json, const char *field, settings *s, problem *p) {
  const json_t *stop = json_object_get(json, field);
  if (!stop || json_is_null(stop)) return true;
  if (!json_is_array(stop)) return add_stop(s, stop, field, p);
  for (size_t i = 0; i < json_array_size(stop); i++)
    if (!add_stop(s, json_array_get(stop, i), field, p)) return false;
  return true;
}

bool read_logit_bias(const json_t *json, size_t vocabulary, settings *s, problem *p) {
  static const char field[] = "logit_bias";
  const json_t *bias = json_object_get(json, field);
  const char *key;
  json_t *value;
  if (!bias || json_is_null(bias)) return true;
  if (!json_is_object(bias))
    return refuse(p, 400, NULL, field, "'logit_bias' must be an object of token ids and numbers");
  s->bias_ids = calloc(json_object_size(bias) + 1, sizeof *s->bias_ids);
  s->biases = calloc(json_object_size(bias) + 1, sizeof *s->biases);
  if (!s->bias_ids || !s->biases) return refuse(p, 500, NULL, NULL, "no host memory for the request");
  json_object_foreach((json_t *)bias, key, value) {
    char *end;
    long long id = strtoll(key, &end, 10);
    double number = json_number_value(value);
    if (*key < '0' || *key > '9' || *end || (unsigned long long)id >= vocabulary)
      return refuse(p, 400, NULL, field, "'logit_bias': '%.40s' is no token id; there are 0 to %zu", key,
                    vocabulary - 1);
    if (!json_is_number(value) || !(number >= -100 && number <= 100))
      return refuse(p, 400, NULL, field, "'logit_bias': the number of token %lld must be from -100 to 100", id);
    s->bias_ids[s->bias_count] = (int32_t)id;
    s->biases[s->bias_count++] = (float)number;
  }
  return true;
}

bool read_sampling(const json_t *json, const char *repetition_field, settings *s, problem *p) {
  rdna_sampling *sampling = &s->sampling;
  double temperature = sampling->temperature, top_p = sampling->top_p, min_p = sampling->min_p,
         repetition = sampling->repetition_penalty;
  int64_t top_k = sampling->top_k, seed = 0;
  if (!read_number(json, "temperature", 0, 2, &temperature, p) || !read_number(json, "top_p", 0, 1, &top_p, p) ||
      !read_number(json, "min_p", 0, 1, &min_p, p) || !read_integer(json, "top_k", -1, INT32_MAX, &top_k, p) ||
      !read_number(json, repetition_field, 0.01, 100, &repetition, p) ||
      !read_number(json, "frequency_penalty", -2, 2, &s->frequency_penalty, p) ||
      !read_number(json, "presence_penalty", -2, 2, &s->presence_penalty, p) ||
      !read_integer(json, "seed", INT64_MIN, INT64_MAX, &seed, p))
    return false;
  sampling->temperature = (float)temperature;
  sampling->top_p = (float)top_p;
  sampling->min_p = (float)min_p;
  sampling->repetition_penalty = (float)repetition;
  sampling->top_k = top_k < 0 ? 0 : (int32_t)top_k;
  sampling->seed = (uint64_t)seed;
  return true;
}

/* ---- messages ---- */

static bool is_text(const char *type) {
  return strcmp(type, "text") == 0 || strcmp(type, "input_text") == 0 || strcmp(type, "output_text") == 0 ||
         strcmp(type, "refusal") == 0;
}

/* What a part of a message shows: {"image_url": {"url": …}}, or as /v1/responses has it {"image_url": …}. NULL:
 * nothing. */
static json_t *url_of(const json_t *part, const char *type) {
  json_t *url = json_object_get(part, "image_url");
  if (strcmp(type, "image_url") != 0 && strcmp(type, "input_image") != 0) return NULL;
  return json_is_object(url) ? json_object_get(url, "url") : url;
}

/* The parts of a message as one text, or with pictures between texts. NULL with a problem. */
static json_t *join_parts(const json_t *parts, size_t message, problem *p) {
  said joined = {0};
  bool fine = true;
  for (size_t i = 0; fine && i < json_array_size(parts); i++) {
    const json_t *part = json_array_get(parts, i), *words = json_object_get(part, "text");
    const char *type = json_string_value(json_object_get(part, "type"));
    json_t *url = type ? url_of(part, type) : NULL;
    if (type && is_text(type) && json_is_string(words))
      bytes_append(&joined.text, json_string_value(words), json_string_length(words));
    else if (url)
      fine = said_add_picture(&joined, url) || refuse(p, 500, NULL, NULL, "no host memory for the messages");
    else
      fine = refuse(p, 400, NULL, "messages",
                    "message %zu, part %zu: parts that are read here are {\"type\": \"text\", \"text\": …} and "
                    "{\"type\": \"image_url\", \"image_url\": {\"url\": …}}, and this one is of type '%.40s'",
                    message, i, type ? type : "?");
  }
  json_t *made = said_finish(&joined);
  if (fine && !made) refuse(p, 500, NULL, NULL, "no host memory for the messages");
  if (fine) return made;
  json_decref(made);
  return NULL;
}

/* Ollama has pictures beside a message's text. */
static bool read_images(json_t *message, size_t index, problem *p) {
  json_t *images = json_object_get(message, "images"), *words = json_object_get(message, "content");
  if (!images || json_is_null(images)) return true;
  if (!json_is_array(images) || !json_is_string(words))
    return refuse(p, 400, NULL, "messages", "message %zu: 'images' is a list of base64 beside a text", index);
  said all = {0};
  bool fine = true;
  for (size_t i = 0; fine && i < json_array_size(images); i++) fine = said_add_picture(&all, json_array_get(images, i));
  bytes_append(&all.text, json_string_value(words), json_string_length(words));
  json_t *made = said_finish(&all);
  json_object_del(message, "images");
  if (!fine || !made || json_object_set_new(message, "content", made) != 0)
    return refuse(p, 500, NULL, NULL, "no host memory for the messages");
  return true;
}

/* Arguments of calls are a text in requests, and an object for most templates. */
static void unfold_calls(json_t *message) {
  const json_t *calls = json_object_get(message, "tool_calls");
  for (size_t i = 0; i < json_array_size(calls); i++) {
    json_t *function = json_object_get(json_array_get(calls, i), "function");
    const json_t *arguments = json_object_get(function, "arguments");
    json_t *object = json_is_string(arguments) ? json_loads(json_string_value(arguments), 0, NULL) : NULL;
    if (json_is_object(object)) json_object_set(function, "arguments", object);
    json_decref(object);
  }
}

static bool read_message(const served_model *m, json_t *message, size_t index, problem *p) {
  static const char *const roles[] = {"system", "developer", "user", "assistant", "tool"};
  const char *role = json_string_value(json_object_get(message, "role"));
  const json_t *content = json_object_get(message, "content");
  size_t known = 0, count = sizeof roles / sizeof *roles;
  while (known < count && !(role && strcmp(role, roles[known]) == 0)) known++;
  if (known == count)
    return refuse(p, 400, NULL, "messages",
                  "message %zu: its role must be system, developer, user, assistant or tool, and is '%.40s'", index,
                  role ? role : "missing");
  bool may_lack = strcmp(role, "assistant") == 0 && json_array_size(json_object_get(message, "tool_calls")) > 0;
  if (strcmp(role, "developer") == 0 && !m->knows_developer)
    json_object_set_new(message, "role", json_string("system")); /* |role| is gone with it */
  if (json_is_array(content)) {
    json_t *joined = join_parts(content, index, p);
    if (joined) unfold_calls(message);
    return joined && json_object_set_new(message, "content", joined) == 0;
  }
  if (!json_is_string(content) && !(may_lack && (!content || json_is_null(content))))
    return refuse(p, 400, NULL, "messages", "message %zu: its content must be a text or a list of parts", index);
  if (may_lack && !content) json_object_set_new(message, "content", json_null());
  unfold_calls(message);
  return read_images(message, index, p);
}

json_t *read_messages(const served_model *m, const json_t *list, problem *p) {
  if (!json_is_array(list) || json_array_size(list) == 0) {
    refuse(p, 400, NULL, "messages", "'messages' must be a list of at least one message");
    return NULL;
  }
  json_t *messages = json_deep_copy(list);
  if (!messages) refuse(p, 500, NULL, NULL, "no host memory for the messages");
  for (size_t i = 0; messages && i < json_array_size(messages); i++) {
    json_t *message = json_array_get(messages, i);
    if (json_is_object(message) ? read_message(m, message, i, p)
                                : refuse(p, 400, NULL, "messages", "message %zu is no object", i))
      continue;
    json_decref(messages);
    return NULL;
  }
  return messages;
}
