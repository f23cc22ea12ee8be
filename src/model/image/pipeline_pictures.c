/* Of requests what models of few families alone have: pictures that are looked at behind the first, and guidance by
 * blocks of the transformer that are left out. */
#include <math.h>
#include <stdlib.h>

#include "base/status.h"
#include "model/image/pipeline.h"

enum { MOST_SIDE = 1 << 13 };

rdna_status rdna__pipeline_check_pictures(const rdna_image_model *m, const rdna_image_request *r, bool look) {
  const int multiple = m->info.multiple;
  if (r->picture_count == 0) return RDNA_OK;
  if (!r->pictures || !r->init)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%zu pictures are to be looked at behind an initial one, which is missing",
                      r->picture_count);
  if (!m->looks)
    return rdna__fail(RDNA_UNSUPPORTED, "%zu pictures to look at, and %s looks at none", r->picture_count + 1,
                      m->info.family);
  if (r->picture_count + 1 > (size_t)(m->most_pictures ? m->most_pictures : 1))
    return rdna__fail(m->most_pictures ? RDNA_INVALID_ARGUMENT : RDNA_UNSUPPORTED,
                      "%zu pictures to look at, and %s looks at %d at most", r->picture_count + 1, m->info.family,
                      m->most_pictures ? m->most_pictures : 1);
  for (size_t i = 0; i < r->picture_count; i++) {
    const rdna_image_picture *p = &r->pictures[i];
    if (p->width < multiple || p->height < multiple || p->width > MOST_SIDE || p->height > MOST_SIDE ||
        p->width % multiple != 0 || p->height % multiple != 0)
      return rdna__fail(RDNA_INVALID_ARGUMENT, "picture %zu to look at is %d x %d; sides are multiples of %d up to %d",
                        i + 2, p->width, p->height, multiple, MOST_SIDE);
    if (look && !p->values) return rdna__fail(RDNA_INVALID_ARGUMENT, "picture %zu to look at is missing", i + 2);
    for (size_t k = 0; look && k < 3 * (size_t)p->width * (size_t)p->height; k++)
      if (!isfinite(p->values[k]))
        return rdna__fail(RDNA_INVALID_ARGUMENT, "value %zu of picture %zu to look at is not finite", k, i + 2);
  }
  return RDNA_OK;
}

rdna_status rdna__pipeline_read_blocks(const rdna_image_model *m, const char *list, bool **out) {
  bool *skipped = calloc((size_t)m->blocks + 1, sizeof *skipped);
  const char *at = list;
  if (!skipped) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a list of blocks");
  for (bool more = true; more;) {
    char *end;
    long block = strtol(at, &end, 10);
    if (end == at || *at == ' ' || (*end && *end != ',') || block < 0 || block >= m->blocks) {
      free(skipped);
      return rdna__fail(RDNA_INVALID_ARGUMENT,
                        "blocks '%.80s' are to be left out; they are numbers from 0 to %d with commas between them",
                        list, m->blocks - 1);
    }
    skipped[block] = true;
    more = *end == ',';
    at = end + 1;
  }
  *out = skipped;
  return RDNA_OK;
}

rdna_status rdna__pipeline_check_skipping(const rdna_image_model *m, const rdna_image_request *r) {
  bool *skipped;
  if (!(r->skip_guidance >= 0 && r->skip_guidance <= 1000))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "guidance by left out blocks of %g; it is a number from 0 to 1000",
                      r->skip_guidance);
  if (r->skip_guidance == 0 && (r->skip_layers || r->skip_start != 0 || r->skip_end != 0))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "blocks are to be left out for guidance, and there is none by them");
  if (r->skip_guidance == 0) return RDNA_OK;
  if (!m->family || !m->family->skips)
    return rdna__fail(RDNA_UNSUPPORTED, "%s is not guided by left out blocks; Stable Diffusion 3 is", m->info.family);
  if (r->guidance <= 1)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "guidance by left out blocks is beside guidance by the text, which is off");
  if (!(r->skip_start >= 0 && r->skip_start < r->skip_end && r->skip_end <= 1))
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "blocks are left out from %g to %g of the steps; it begins before it ends, from 0 to 1",
                      r->skip_start, r->skip_end);
  RDNA_TRY(rdna__pipeline_read_blocks(m, r->skip_layers, &skipped));
  free(skipped);
  return RDNA_OK;
}
