/* Bodies of requests: what every interface reads of them, but for the tokens. */
#include <stdint.h>
#include <stdlib.h>

#include "server/embeddings.h"
#include "server/keep_alive.h"
#include "server/pictures.h"
#include "server/request.h"
#include "server/rerank.h"

/* Who refuses says why, in a sentence that JSON can have. */
static void check(bool fine, const problem *p) {
  if (fine) return;
  json_t *message = json_string(p->message), *field = json_string(p->field);
  if (!p->status || !message || !field) abort();
  json_decref(message);
  json_decref(field);
}

/* The bytes are the text of a keep_alive. */
static void read_time(const uint8_t *data, size_t size) {
  problem p = {0};
  double seconds = -2;
  json_t *json = json_pack("{s:s%}", "keep_alive", (const char *)data, size);
  bool fine = json && read_keep_alive(json, &seconds, &p);
  if (json) check(fine, &p);
  if (fine && !(seconds == -1 || (seconds >= 0 && seconds <= 1e9))) abort();
  json_decref(json);
}

static void read_embedding(const json_t *json) {
  problem p = {0};
  bool base64;
  int64_t dimensions;
  bool fine = read_embedding_form(json, &base64, &dimensions, &p);
  check(fine, &p);
  if (fine && dimensions < 0) abort();
}

static void read_rerank(const json_t *json) {
  problem p = {0};
  rerank_form form;
  bool fine = read_rerank_form(json, &form, &p);
  check(fine, &p);
  if (!fine) return;
  if (form.top < 1 || form.top > (int64_t)json_array_size(form.documents)) abort();
  for (size_t i = 0; i < json_array_size(form.documents); i++)
    if (!rerank_document(json_array_get(form.documents, i))) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const field_row fields[] = {{"messages", FIELD_READ}, {"stop", FIELD_READ},    {"logit_bias", FIELD_READ},
                                     {"tools", FIELD_REFUSED}, {"user", FIELD_IGNORED}, {"temperature", FIELD_READ},
                                     {"seed", FIELD_READ},     {"top_k", FIELD_READ}};
  static int tower; /* is there, and is not asked */
  const served_model model = {.vision = (rdna_vision *)&tower};
  read_time(data, size);
  problem p = {0};
  request r = REQUEST_DEFAULT;
  r.json = parse_object((const char *)data, size, &p);
  if (r.json) read_embedding(r.json);
  if (r.json) read_rerank(r.json);
  bool fine = r.json && check_fields(r.json, fields, sizeof fields / sizeof *fields, &p) &&
              read_sampling(r.json, "repetition_penalty", &r.settings, &p) &&
              read_stops(r.json, "stop", &r.settings, &p) && read_logit_bias(r.json, 100, &r.settings, &p);
  json_t *messages = r.json ? read_messages(&model, json_object_get(r.json, "messages"), &p) : NULL;
  fine = messages && take_pictures(&model, messages, &r, &p) && fine;
  check(fine, &p);
  json_decref(messages);
  request_deinit(&r);
  return 0;
}
