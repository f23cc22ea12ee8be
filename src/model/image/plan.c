/* What a picture will take of a device, found by a rehearsal: the request is gone through on a device that only counts,
 * one step of it, so that the plan is the sum of what the same calls will ask of the pool, and cannot differ from it.
 * Nothing is read of weights but what the files say of their sizes. */
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "device/budget.h"
#include "device/driver.h"
#include "model/image/pipeline.h"
#include "rdna/memory.h"

/* Of latents, from the largest on: what is tried where a whole picture does not fit. */
static const int tiles[] = {0, 128, 96, 64, 48, 32};
enum { TILES = sizeof tiles / sizeof *tiles };

void rdna__pipeline_note(rdna_image_model *m, const char *part, uint64_t weights) {
  if (!m->notes) return;
  rdna_memory_stats stats;
  rdna_memory_get_stats(m->device, &stats);
  if (stats.peak_allocated > m->notes->peak) m->notes->peak = stats.peak_allocated;
  if (stats.peak_reserved > m->notes->reserved) m->notes->reserved = stats.peak_reserved;
  if (m->notes->count == RDNA_IMAGE_PLAN_PARTS) return;
  m->notes->parts[m->notes->count++] = (rdna_image_plan_part){
      .name = part, .weights = weights, .activations = stats.peak_allocated - weights, .peak = stats.peak_allocated};
}

void rdna__pipeline_left(const rdna_image_model *m) {
  (void)!rdna_memory_empty_cache(m->device); /* what it had is of other sizes than what comes next */
  if (m->notes) rdna_memory_reset_peaks(m->device);
}

/* |plan| of the request with that tile, on a new device, as a pool keeps what earlier rehearsals took. */
static rdna_status rehearse(const rdna_image_model *m, const rdna_image_request *request, int tile,
                            rdna_image_plan *plan) {
  rdna_image_model counted = *m, refiner;
  rdna__image_notes notes = {0};
  rdna_image_request r = *request;
  r.tile = tile;
  rdna__pipeline_forget_parts(&counted);
  counted.notes = &notes;
  RDNA_TRY(rdna__device_rehearse(m->device, &counted.device));
  if (m->refiner) {
    refiner = *m->refiner;
    rdna__pipeline_forget_parts(&refiner);
    refiner.notes = &notes;
    refiner.device = counted.device;
    counted.refiner = &refiner;
  }
  rdna_status status = rdna__pipeline_rehearse(&counted, &r);
  rdna__loras_use(m->loras, m->lora_scales, counted.lora_scales); /* which both share */
  for (rdna_image_model *each = &counted; each; each = each->refiner) {
    rdna__pipeline_drop_encoders(each);
    rdna__pipeline_drop_unet(each);
  }
  rdna__pipeline_drop_autoencoder(&counted);
  rdna_device_release(counted.device);
  plan->count = notes.count;
  for (int i = 0; i < notes.count; i++) plan->parts[i] = notes.parts[i];
  plan->peak = notes.peak;
  plan->reserved = notes.reserved;
  plan->tile = tile;
  plan->fits = plan->reserved <= plan->budget;
  return status;
}

static const rdna_image_plan_part *largest_of(const rdna_image_plan *plan) {
  const rdna_image_plan_part *largest = &plan->parts[0];
  for (int i = 1; i < plan->count; i++)
    if (plan->parts[i].peak > largest->peak) largest = &plan->parts[i];
  return largest;
}

static bool is_autoencoder(const rdna_image_plan_part *part) { return strcmp(part->name, "autoencoder") == 0; }

static void say(rdna_device *device, int asked, rdna_image_plan *plan) {
  const double gib = 0x1p30;
  const char *name = rdna_device_get_info(device)->name;
  const rdna_image_plan_part *largest = largest_of(plan);
  char *text = plan->sentence;
  size_t room = sizeof plan->sentence;
  if (!plan->fits && largest->weights > largest->activations)
    snprintf(text, room,
             "%s has %.2f GiB for it, and the %s takes %.2f, %.2f of them weights; blocks of fewer bits (--weights "
             "q8_0, q4_K, or a file of GGUF) take less",
             name, (double)plan->budget / gib, largest->name, (double)largest->peak / gib,
             (double)largest->weights / gib);
  else if (!plan->fits)
    snprintf(text, room,
             "%s has %.2f GiB for it, and the %s takes %.2f, %.2f of them activations; a smaller picture (--size) "
             "takes less",
             name, (double)plan->budget / gib, largest->name, (double)largest->peak / gib,
             (double)largest->activations / gib);
  else if (plan->tile != asked)
    snprintf(text, room, "the picture is made of tiles of %d x %d latents, which is what fits in the %.2f GiB of %s",
             plan->tile, plan->tile, (double)plan->budget / gib, name);
}

rdna_status rdna_image_model_make_plan(rdna_image_model *m, const rdna_image_request *request, uint64_t budget,
                                       rdna_image_plan *out_plan) {
  if (!m || !request || !out_plan)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_image_model_make_plan needs a model, a request and a place");
  rdna_image_request r;
  RDNA_TRY(RDNA__OPTIONS("rdna_image_model_make_plan", "request", request, &r));
  rdna__budget there;
  RDNA_TRY(rdna__device_budget(m->device, &there));
  rdna_image_plan plan = {.free = there.free, .budget = budget ? budget : there.most};
  RDNA_TRY(rehearse(m, &r, r.tile, &plan));
  for (int i = 1; i < TILES && !plan.fits && r.tile == 0 && is_autoencoder(largest_of(&plan)); i++)
    RDNA_TRY(rehearse(m, &r, tiles[i], &plan));
  say(m->device, r.tile, &plan);
  *out_plan = plan;
  return RDNA_OK;
}
