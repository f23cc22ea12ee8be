/* The models that a server has by name. Those that nobody asks for are not in memory: a thread loads one when a request
 * names it, while that request sleeps, and takes one out when nobody has used it for long or another needs its room.
 *
 *     OUT -> WANTED -> LOADING -> IN -> LEAVING -> OUT       in memory: from LOADING to LEAVING
 *
 * Whoever uses a model holds it, and what is held stays. */
#ifndef RDNA_SERVER_CATALOG_H
#define RDNA_SERVER_CATALOG_H

#include "server/exchange.h"
#include "server/preset.h"

typedef enum model_state { MODEL_OUT, MODEL_WANTED, MODEL_LOADING, MODEL_IN, MODEL_LEAVING } model_state;

typedef struct catalog_model {
  preset preset;
  served_model served; /* empty while it is out; its name is there always */

  /* Under the server's lock. */
  struct catalog_model *next;
  model_state state;
  scheduler *scheduler; /* while it is in */
  bool stale;           /* its file was written over: it takes no requests, and goes when nobody holds it */
  bool retired;         /* its preset is there no more: no request finds it, and it goes when nobody holds it */
  int holders;
  uint64_t order;      /* smaller: it was wanted earlier */
  double used;         /* seconds: when somebody held it last */
  double idle;         /* seconds that it stays without a holder; below 0: for ever */
  double share;        /* of it that is loaded, while it is loading */
  int layers;          /* that it has; 0: not known yet */
  uint64_t loads;      /* times that it was loaded */
  rdna_status failure; /* of the last time that it was to be loaded, */
  char error[512];     /* and why */
} catalog_model;

/* The server's list becomes |presets|, which stay the caller's: models whose presets are as they were stay as they are.
 * RDNA_OUT_OF_MEMORY: nothing changed. */
rdna_status catalog_set(server *s, const preset *presets, size_t count);

/* The thread that loads. It begins with the presets that want to be loaded at the start. */
rdna_status catalog_start(server *s);
/* Waits for those. The status of the first that failed. */
rdna_status catalog_wait(server *s);
/* Refuses whoever waits for a model, and loads no more. */
void catalog_quiet(server *s);
/* Ends the thread, and what the models are writing. */
void catalog_end(server *s);
void catalog_deinit(server *s); /* after the end, and when nobody holds a model */

/* Lets |x| hold the model |name|, or the first one where it is NULL. False with a problem, or without one: the model is
 * being loaded, and respond_problem() puts the exchange to sleep until its handler is called again. */
bool catalog_hold(exchange *x, const char *name, problem *p);

/* Under the lock: */
/* The model |name|, or the one that has the adapter |name|. */
catalog_model *catalog_find(const server *s, const char *name);
/* The adapter of |m| whose name is |name|, or MODEL:NAME; NULL: none has it. */
const preset_adapter *catalog_adapter(const catalog_model *m, const char *name);
/* There is none of that name; returns false. */
bool catalog_refuse(const server *s, const char *name, problem *p);
void catalog_take(exchange *x, catalog_model *m);
void catalog_drop(server *s, catalog_model *m);
void catalog_free(catalog_model *m);
/* What a scheduler that goes has done counts on. */
void catalog_add_past(server *s, const scheduler *gone);
/* The sum over all models, also of those that are out by now. */
scheduler_counts catalog_counts(server *s);

#endif
