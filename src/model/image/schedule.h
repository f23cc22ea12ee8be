/* Schedules: the noise levels at which a network is asked, and what samplers make of its answers.
 *
 * A noise level is sigma, how much noise there is for one part of picture; a_bar = 1 / (1 + sigma^2) is the share of
 * the picture's variance in a sample of variance 1. Settings and their defaults are diffusers'. */
#ifndef RDNA_MODEL_IMAGE_SCHEDULE_H
#define RDNA_MODEL_IMAGE_SCHEDULE_H

#include "model/image/settings.h"
#include "rdna/image.h"

enum { RDNA__SCHEDULE_PICTURES = 3, RDNA__SCHEDULE_ASIDE = 5, RDNA__SCHEDULE_ORDER = 3 };

typedef enum rdna__prediction { PREDICTION_EPSILON, PREDICTION_V, PREDICTION_SAMPLE } rdna__prediction;

/* What a sampler asks for besides once at each noise level. */
typedef enum rdna__asking {
  ASKING_ONCE,
  ASKING_AGAIN,   /* at the next level, too, before that is reached for good: heun */
  ASKING_BETWEEN, /* at the geometric mean of two levels, too: dpmpp_sde */
  ASKING_SECOND   /* at the second level twice: pndm */
} rdna__asking;

typedef struct rdna__sampler rdna__sampler;

struct rdna_image_schedule {
  const rdna__sampler *sampler;
  rdna__prediction prediction;
  int trained;        /* timesteps, which the network was trained with */
  int levels;         /* the steps that were asked for */
  int steps, next;    /* how often the network is asked, and the step that may be taken now, beside 0 */
  int first;          /* of the present sample */
  double clip;        /* of the predicted picture; 0: it is not */
  double scale;       /* of the first sample */
  bool lower_last;    /* the last of few steps are of a lower order */
  bool euler_last;    /* the last is of order 1 whatever their number */
  int order;          /* of unipc */
  bool first_form;    /* of unipc: bh1 and not bh2 */
  double stretch;     /* of lcm's timesteps */
  double *timestep;   /* (steps) */
  double *sigma, *to; /* (steps) of the sample that a step is given, and of what it makes */
  float *pictures[RDNA__SCHEDULE_PICTURES]; /* (count) those predicted by the steps before, the last one first */
  float *aside[RDNA__SCHEDULE_ASIDE];       /* (count) what a sampler keeps besides */
  int made;                                 /* by unipc: the order of the last step */
  size_t count;
};

/* A step's |raw| is what the network takes the sample for, |picture| that clipped. (count) each. */
typedef struct rdna__taking {
  const float *output, *raw, *picture, *noise;
  float *sample;
  size_t count;
} rdna__taking;

struct rdna__sampler {
  const char *name;
  const char *timesteps; /* the default of timestep_spacing */
  rdna__asking asking;
  int aside;   /* values that it keeps besides pictures, times those of a sample */
  int solver;  /* the order of dpmpp_*m; 0: another solver */
  bool scaled; /* samples are picture + sigma noise, else of variance 1 */
  bool spaced; /* karras and others too */
  bool noisy;
  bool ends;       /* final_sigmas_type says what the last step makes */
  bool one_more;   /* timesteps are those of one step more, without the last */
  bool clips;      /* the predicted picture may be clipped */
  bool clipped;    /* … and is, where nothing is said */
  bool distilled;  /* as few steps as there are, each from the trained network of noise to a picture */
  bool strides;    /* a step makes what lies a stride of timesteps before it, whatever the next step is given */
  bool last_whole; /* where nothing is said a last stride makes a picture without noise */
  bool latent;     /* where nothing is said noise is as Stable Diffusion was trained with */
  void (*step)(rdna_image_schedule *s, int step, const rdna__taking *t);
};

/* NULL: there is none of that name. */
const rdna__sampler *rdna__sampler_find(const char *name);
/* Whether there is such a spacing. */
bool rdna__spacing_is_known(const char *name);

/* Sets all of |s| that |json| and |spacing| say, for |s->levels| steps of |s->sampler|. */
rdna_status rdna__schedule_read(const json_t *json, const char *spacing, rdna_image_schedule *s);

/* |sigma| (count) from |most| to |least|; |shares| (trained) of each trained timestep. "sgm_uniform" is none of these:
 * it spaces timesteps. */
void rdna__spacing_fill(const char *spacing, double most, double least, int count, double *sigma);

/* What the network takes |sample| at |sigma| for, from its |output|. */
double rdna__schedule_predict(const rdna_image_schedule *s, double sigma, double sample, double output);
/* The same of all values before |step|. (count) */
void rdna__schedule_picture(const rdna_image_schedule *s, int step, const float *sample, const float *output,
                            float *picture, size_t count);
/* sample = picture with so much noise as a sample has before |step|, one of the schedule's. (count) */
void rdna__schedule_mix(const rdna_image_schedule *s, int step, const float *picture, const float *noise, float *sample,
                        size_t count);

/* The first level behind |share| of the trained timesteps, which another network's steps end before and whose sample
 * this one goes on with; as many as there are levels: there is none. */
int rdna__schedule_level_behind(const rdna_image_schedule *s, double share);
/* |first|, where a level begins, is taken next, of a sample of |count| values that is as it is. */
void rdna__schedule_take_over(rdna_image_schedule *s, int first, size_t count);

#endif
