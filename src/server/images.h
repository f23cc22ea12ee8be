/* Pictures: a model that draws, one request after another, on a thread of its own. */
#ifndef RDNA_SERVER_IMAGES_H
#define RDNA_SERVER_IMAGES_H

#include "model/image/preview.h"
#include "picture/encode.h"
#include "picture/enlarge.h"
#include "picture/png.h"
#include "picture/region.h"
#include "rdna/image_model.h"
#include "server/exchange.h"

enum { MOST_DRAWN = 16, MOST_PROMPT_BYTES = 32768, MOST_SIDE = 2048, MOST_GUIDES = 8 };

typedef enum painting_state { PAINTING_NEW, PAINTING_WAITS, PAINTING_RUNS, PAINTING_DONE } painting_state;

/* What an interface calls the fields that a refusal may be about. */
enum { MOST_LOOKED = 7 }; /* a model says how many it looks at */

typedef struct painting_fields {
  const char *width, *height, *init, *strength, *sampler, *spacing, *guides, *loras, *guidance;
} painting_fields;

/* The second pass over what was drawn, in larger sides ("hires fix"). */
typedef struct painting_pass {
  bool wanted;
  int width, height, steps;
  double strength;
  char sampler[32], spacing[24];
  char *prompt, *negative; /* NULL: the first one's */
  rdna__enlargement how;   /* upscaler NULL: by Lanczos' filter, which |name| says then */
} painting_pass;

/* What a request asks to be drawn, and what became of it. */
typedef struct painting {
  rdna_image_request ask; /* its texts and its initial picture are those below */
  const painting_fields *fields;
  char *prompt, *negative;
  char pag_layers[128];
  char sampler[32], spacing[24];
  float *init, *mask;
  rdna_image_picture looked[MOST_LOOKED]; /* that are looked at beside |init| */
  bool sized;                             /* the request says width and height, or a picture that it has does */
  bool has_strength;                      /* the request says it */
  double *lora_scales;                    /* of all that the server has */
  bool *lora_used;                        /* which of them the request names */
  rdna_image_guide guides[MOST_GUIDES];
  rdna_image_reference seen[MOST_GUIDES];   /* of IP-Adapters, which show */
  rdna__picture seen_pictures[MOST_GUIDES]; /* these */
  painting_pass second;
  /* Under a mask: what is drawn is put into |whole| at |region|, by the share of each of its pixels, of 255; and what
   * is to be drawn anew begins as what is around it. No pixels: it is all there is. */
  rdna__picture whole;
  uint8_t *share_drawn;
  rdna__region region;
  bool fills;
  rdna__enlargement enlargement; /* upscaler NULL: it is drawn; else nothing of |ask| counts, and this is made of */
  rdna__picture small;           /* this */
  rdna__picture_kind kind;       /* of the files, */
  int quality;                   /* and of a JPEG, 1 to 100 */

  /* Under the server's lock. */
  int references;
  painting_state state;
  struct painting *next; /* in the queue */
  exchange *reader;      /* that is to wake when something is new; NULL: there is none */
  bool streams;          /* whatever is new, not only the end */
  bool cancelled;
  const char *stage;        /* of rdna_image_progress; "" before */
  int picture, step, steps; /* of it */
  double share;             /* of all of it, 0 to 1 */
  int width, height;        /* of what is being drawn: the latents' */
  uint64_t changes;         /* how often that was something else */
  double asked, begun, finished;
  float *latents; /* (channels, height, width), by the model's factor, of the last step; NULL: none yet */
  float *shown;   /* (3, height, width) by the model of previews; NULL: none yet, or there is no such model */
  uint8_t *files[MOST_DRAWN];
  size_t sizes[MOST_DRAWN];
  char *texts[MOST_DRAWN]; /* what the files say of themselves */
  int status;              /* of HTTP; 0: nothing is wrong */
  char error[400];
} painting;

/* Whether the server draws; false with a problem. */
bool images_are_there(const exchange *x, problem *p);
const rdna_image_model_info *images_info(const server *s);
const char *images_name(const server *s);
bool images_flow(const server *s); /* in straight lines, for which there is one sampler and one spacing */

/* Whether |model| is what the server draws with, or NULL; false with a problem. */
bool images_check_model(const server *s, const char *model, problem *p);

/* One with what is usual for the model, and no texts; NULL with a problem. |fields| stays the caller's. */
painting *painting_create(const server *s, const painting_fields *fields, problem *p);
void painting_release(server *s, painting *g); /* NULL is fine */
void painting_drop(painting *g);               /* the same under the lock */
/* A copy of |text|, of up to MOST_PROMPT_BYTES, as the prompt or the negative one; false with a problem in |field|. */
bool painting_set_text(painting *g, bool negative, const char *field, const char *text, problem *p);
/* A sampler and, where |spacing| is not NULL, a spacing by our names. */
void painting_set_sampler(const server *s, painting *g, const char *sampler, const char *spacing);
/* The picture to begin with, as decode_picture reads it, of up to MOST_SIDE a side. */
bool painting_set_init(painting *g, const char *field, const json_t *url, problem *p);
/* The mask of that, which must be there, and of its size: bright where it is to be drawn anew. */
bool painting_set_mask(painting *g, const char *field, const json_t *url, problem *p);
/* The same of pictures that were read, which stay the caller's. The second's mask is where |picture|, of the size that
 * the initial one has, is transparent; it must be so somewhere. */
bool painting_take_looked(painting *g, const char *field, const rdna__picture *picture, problem *p);
bool painting_take_init(painting *g, const char *field, const rdna__picture *picture, problem *p);
bool painting_take_transparency(painting *g, const char *field, const rdna__picture *picture, problem *p);
bool painting_take_mask(painting *g, const char *field, const rdna__picture *picture, problem *p);
/* The share of the steps that are taken, where |json| has it in the field that |fields| names. */
bool painting_read_strength(painting *g, const json_t *json, problem *p);
/* A LoRA of the server's by its name; |scale| NaN: as the server was started with. */
bool painting_use_lora(const server *s, painting *g, const char *field, const char *name, double scale, problem *p);
/* A ControlNet of the server's by its name, which is shown the picture |url|; that says the size where nothing has. */
bool painting_use_control(const server *s, painting *g, const char *field, const char *name, const json_t *url,
                          double scale, double start, double end, problem *p);
/* An IP-Adapter of the server's by its name, which is shown the picture |url|. */
bool painting_use_adapter(const server *s, painting *g, const char *field, const char *name, const json_t *url,
                          double scale, problem *p);
/* All as requests have them that are JSON of our own, in "loras", "controls" and "ip_adapters". */
bool painting_read_extras(const server *s, const json_t *json, painting *g, problem *p);
/* Gives it to the thread, if the model would draw it. False with a problem; it is the caller's all the same. */
bool painting_submit(server *s, painting *g, problem *p);
/* The upscaler of the server's that is called |name|; -1: there is none. */
int images_find_upscaler(const server *s, const char *name);
rdna_image_upscaler *images_upscaler(const server *s, int which);
/* The two halves of that: what the model would refuse; and, under the lock, the queue. */
bool painting_check(const server *s, const painting *g, problem *p);
bool painting_enqueue(server *s, painting *g, problem *p);
/* The PNG of what the latents show, in base64; false: nothing can be seen yet. */
bool painting_preview(server *s, const painting *g, bytes *out);

/* The exchange has |g|, whose reference it takes, and sleeps until that is done; then its handler is called again, with
 * x->painting. */
enum MHD_Result images_await(exchange *x, painting *g);

/* The name of a sampler that AUTOMATIC1111's page knows by |given|, or our own; NULL: there is none. |*out_spacing|:
 * what the name says of it, or NULL. */
const char *images_sampler(const char *given, const char **out_spacing);
typedef struct sampler_name {
  const char *shown, *name;
} sampler_name;
extern const sampler_name images_samplers[]; /* up to one without a name */
/* Spacings of noise levels by that page's names, up to one that is not shown; the first is the model's own. */
extern const sampler_name images_spacings[];
enum { SDAPI_JPEG_QUALITY = 80 };

/* Of AUTOMATIC1111's img2img the picture to begin with and its mask, whose sides are those of the request where
 * |sized|.
 */
bool sdapi_read_init(const json_t *json, painting *g, problem *p);
/* x's problem as AUTOMATIC1111's interface says it. */
enum MHD_Result sdapi_respond_refusal(exchange *x);

/* ---- for the server ---- */

/* Opens the model of the options and starts the thread, where there is one. */
rdna_status images_start(server *s);
/* Takes no more; and returns when all is drawn, or after |seconds|. */
void images_drain(server *s, double seconds);
/* What is being drawn and what waits ends. */
void images_stop(server *s);
void images_free(server *s); /* when there are no connections */
/* Under the lock: the reader of x->painting has gone, or its time is over. */
void images_look_at(exchange *x, bool gone, double now);
void images_leave(exchange *x);
void painting_cancel(server *s, painting *g);
/* The thread's work. */
rdna_status painting_draw(server *s, painting *g);
rdna_image_model *images_model(const server *s);
void images_learn(server *s, const rdna__preview *preview); /* under the lock */
void painting_wake(painting *g);                            /* the same */
/* What picture |i| says of itself, to be given to free(); NULL without memory. */
char *painting_parameters(const server *s, const painting *g, int i);
/* The second pass over picture |i|, of which |init| was made. */
rdna_image_request painting_second(const painting *g, int i, const float *init);
/* What is being drawn; NULL: nothing is. */
painting *images_current(server *s);
int images_waiting(const server *s);

#endif
