#include "server/page.h"

#include <string.h>

#include "server/http.h"
#include "server/routes.h"

/* Nothing from outside, nothing in the page's text that is a program, and no way from a text to HTML: what a model
 * writes is hostile. */
static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri "
    "'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

static const page_file *find_file(const char *path) {
  for (size_t i = 0; i < page_file_count; i++)
    if (strcmp(page_files[i].path, path) == 0) return &page_files[i];
  return NULL;
}

/* Whether |list|, of the header that says what a client takes, has |word| and not with a weight of 0. */
static bool takes(const char *list, const char *word) {
  size_t size = strlen(word);
  for (const char *at = list; at && *at; at += strcspn(at, ",")) {
    at += strspn(at, ", \t");
    if (strncasecmp(at, word, size) != 0) continue;
    const char *rest = at + size + strspn(at + size, " \t");
    if (*rest == 0 || *rest == ',') return true;
    if (*rest != ';') continue;
    rest += 1 + strspn(rest + 1, " \t");
    size_t zeros = strncasecmp(rest, "q=", 2) == 0 ? 2 + strspn(rest + 2, "0.") : 0;
    return zeros <= 2 || (rest[zeros] != 0 && strchr(" \t,", rest[zeros]) == NULL);
  }
  return false;
}

/* A server that draws has a page of its own. */
static enum MHD_Result go_to_drawing(exchange *x) {
  struct MHD_Response *response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
  if (!response) return MHD_NO;
  MHD_add_response_header(response, "Location", "page/draw.html"); /* from here on, also behind a proxy's folder */
  return respond_with(x, MHD_HTTP_FOUND, "text/plain", response);
}

enum MHD_Result handle_page(exchange *x) {
  const page_file *file = x->server->options->no_page ? NULL : find_file(x->path);
  if (!file) {
    refuse(&x->problem, 404, NULL, NULL, "there is no GET %s here", x->path);
    return respond_problem(x);
  }
  if (x->server->images && strcmp(x->path, "/") == 0) return go_to_drawing(x);
  const char *known = MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, "If-None-Match");
  bool same = known && strstr(known, file->etag);
  bool packed = takes(MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, "Accept-Encoding"), "gzip");
  struct MHD_Response *response =
      MHD_create_response_from_buffer(same     ? 0
                                      : packed ? file->gzip_size
                                               : file->size,
                                      (void *)(packed ? file->gzip : file->bytes), MHD_RESPMEM_PERSISTENT);
  if (!response) return MHD_NO;
  if (packed && !same) MHD_add_response_header(response, "Content-Encoding", "gzip");
  MHD_add_response_header(response, "Vary", "Accept-Encoding");
  MHD_add_response_header(response, "ETag", file->etag);
  MHD_add_response_header(response, "Cache-Control", "no-cache"); /* ask each time whether it is still the same */
  MHD_add_response_header(response, "Content-Security-Policy", policy);
  MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
  MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
  MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
  return respond_with(x, same ? 304 : 200, file->type, response);
}
