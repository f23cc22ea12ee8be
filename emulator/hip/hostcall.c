// What a kernel asks of the host while it runs: printf, the message of an assertion, memory for malloc. The device
// libraries of HIP leave a packet in a buffer, ring a doorbell that raises an interrupt, and wait until the packet's
// ready flag is cleared. Here the interrupt is a call on the wave's own thread, so that the answer is there at once.
//
// The buffer is two stacks of packets, of free ones and of ready ones. A reference to a packet is its index (16 bits)
// with a tag above it that changes with each use; 0 is the end of a stack. A packet has a header, which says which
// lanes ask for what, and a payload of eight words for each lane of a wave:
//
//     kernel        pops a packet of the free stack, fills it, pushes it on the ready stack, rings, polls READY
//     host          takes the whole ready stack, serves each lane of each packet in place, clears READY
//
//     payload       lane 0: | w0 | w1 | … | w7 |  lane 1: | w0 | … | w7 |  …
//     w0 of printf  | message's number, from bit 8 | words that follow, bits 5 to 7 | … | END, bit 1 | BEGIN, bit 0 |
//
// Source of layouts and numbers: LLVM "User Guide for AMDGPU Backend" (hidden arguments), HSA's amd_signal_t, and the
// published device libraries and runtime of ROCm (hostcall.cl, devmem.cl, dm.cl, devhostcall.cpp).
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <immintrin.h>

#include "hip/hip.h"

// READY is a flag of header.control. MXCSR_DEFAULT: round to nearest, denormals kept, no exception trapped.
enum { PACKETS = 1 << 16, LANES = 64, WORDS = 8, HEAP_BYTES = 1 << 18, READY = 1, MXCSR_DEFAULT = 0x1f80 };
enum { SERVICE_PRINTF = 2, SERVICE_MEMORY = 3 };
// bits, places and mask of the fields of a message's descriptor
enum { MESSAGE_BEGIN = 1, MESSAGE_END = 2, MESSAGE_LENGTH_AT = 5, MESSAGE_LENGTH_MASK = 7, MESSAGE_ID_AT = 8 };

struct header {
  uint64_t next, lanes;
  uint32_t service, control;
};
struct payload {
  uint64_t word[LANES][WORDS];
};
// amd_signal_t, as far as it is used
struct doorbell {
  int64_t kind, value;
  uint64_t event_mailbox;
  uint32_t event_id, reserved[9];
};
struct buffer {
  struct header *headers;
  struct payload *payloads;
  struct doorbell *doorbell;
  uint64_t free_stack, ready_stack, index_mask;
};

struct message {
  uint64_t *words;
  size_t count, room;
  bool live;
};

struct emu_mailbox {
  // seen by kernels
  struct buffer buffer;
  struct doorbell doorbell;
  uint64_t event;
  // malloc's own state, all zeros at first
  _Alignas(4096) uint8_t heap[HEAP_BYTES];
  struct header headers[PACKETS];
  _Alignas(4096) struct payload payloads[PACKETS];
};

struct emu_host {
  struct emu_mailbox *mailbox;
  struct emu_device *device;
  pthread_mutex_t lock;
  struct message *messages;  // by number
  size_t message_count;
};

static struct emu_host hosts[EMU_MAX_DEVICES];
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

static struct emu_mailbox *make(void) {
  struct emu_mailbox *m =
      mmap(NULL, sizeof *m, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (m == MAP_FAILED) return NULL;
  m->doorbell = (struct doorbell){.event_mailbox = (uint64_t)&m->event, .event_id = 1};
  // a reference of 0 ends a stack, so the one to the packet of index 0 has a tag from the start
  uint64_t below = 0;
  for (uint64_t i = 0; i < PACKETS; i++) {
    m->headers[i].next = below;
    below = i ? i : PACKETS;
  }
  m->buffer = (struct buffer){m->headers, m->payloads, &m->doorbell, below, 0, PACKETS - 1};
  return m;
}

struct emu_host *emu_host_of(struct emu_device *device) {
  struct emu_host *host = &hosts[device->index];
  pthread_mutex_lock(&making);
  if (!host->mailbox) {
    pthread_mutex_init(&host->lock, NULL);
    host->device = device;
    host->mailbox = make();
  }
  pthread_mutex_unlock(&making);
  return host->mailbox ? host : NULL;
}

uint64_t emu_host_buffer(const struct emu_host *host) { return (uint64_t)&host->mailbox->buffer; }
uint64_t emu_host_heap(const struct emu_host *host) { return (uint64_t)host->mailbox->heap; }
uint64_t emu_host_shared(const struct emu_host *host, uint64_t *out_bytes) {
  *out_bytes = sizeof *host->mailbox;
  return (uint64_t)host->mailbox;
}

// ---- services

static struct message *new_message(struct emu_host *host, uint64_t *out_id) {
  for (size_t i = 0; i < host->message_count; i++)
    if (!host->messages[i].live) return *out_id = i, &host->messages[i];
  struct message *grown = realloc(host->messages, (host->message_count + 1) * sizeof *grown);
  if (!grown) return NULL;
  host->messages = grown;
  *out_id = host->message_count;
  grown[host->message_count] = (struct message){0};
  return &grown[host->message_count++];
}

static bool append(struct message *message, const uint64_t *words, size_t count) {
  if (message->count + count > message->room) {
    size_t room = 2 * message->room + 64;
    uint64_t *grown = realloc(message->words, room * sizeof *grown);
    if (!grown) return false;
    message->words = grown;
    message->room = room;
  }
  memcpy(message->words + message->count, words, count * sizeof *words);
  message->count += count;
  return true;
}

// A lane's message comes in pieces: the first gets a number, the last is printed and answered with what was printed.
static void take_message(struct emu_host *host, uint64_t words[WORDS]) {
  uint64_t descriptor = words[0], id = descriptor >> MESSAGE_ID_AT;
  struct message *message = NULL;
  if (descriptor & MESSAGE_BEGIN) {
    message = new_message(host, &id);
    if (message) message->live = true;
    words[0] = (descriptor & ((1 << MESSAGE_ID_AT) - 1) & ~(uint64_t)MESSAGE_BEGIN) | id << MESSAGE_ID_AT;
  } else if (id < host->message_count && host->messages[id].live) {
    message = &host->messages[id];
  }
  bool good = message && append(message, words + 1, descriptor >> MESSAGE_LENGTH_AT & MESSAGE_LENGTH_MASK);
  if (!good) emu_say("a kernel's printf is lost: it is no message that was begun, or there is no host memory");
  if (good && !(descriptor & MESSAGE_END)) return;
  words[0] = good ? (uint64_t)(int64_t)emu_print_message(message->words, message->count) : UINT64_MAX;
  if (!message) return;
  message->count = 0;
  message->live = false;
}

// Serves the device's malloc and free: word 0 is an address to free, or 0 with the wanted bytes in word 1. Word 0 of
// the answer is the address.
static void serve_memory(struct emu_host *host, uint64_t words[WORDS]) {
  if (words[0]) {
    struct emu_block block;
    bool known = emu_block_find((void *)words[0], &block) == EMU_PLACE_BLOCK && block.base == words[0];
    if (!known || emu_block_release((void *)words[0]) != HIP_SUCCESS)
      emu_say("a kernel frees 0x%llx, which malloc did not return", (unsigned long long)words[0]);
    words[0] = 0;
    return;
  }
  void *memory = NULL;
  (void)emu_block_create(host->device, EMU_BLOCK_DEVICE, words[1], 0, "device malloc", &memory);
  words[0] = (uint64_t)memory;
}

static void serve(struct emu_host *host, uint32_t service, uint64_t words[WORDS]) {
  switch (service) {
    case SERVICE_PRINTF:
      take_message(host, words);
      break;
    case SERVICE_MEMORY:
      serve_memory(host, words);
      break;
    default:
      emu_say("a kernel asks the host for service %u, which the emulator does not have", service);
      words[0] = words[1] = 0;
      break;
  }
}

void emu_host_interrupt(void *context) {
  struct emu_host *host = context;
  struct emu_mailbox *m = host->mailbox;
  unsigned saved = _mm_getcsr();
  _mm_setcsr(MXCSR_DEFAULT);  // a wave's rounding is not that of printf
  pthread_mutex_lock(&host->lock);
  uint64_t ready = __atomic_exchange_n(&m->buffer.ready_stack, 0, __ATOMIC_ACQUIRE), first = 0;
  while (ready) {  // the oldest request first
    struct header *header = &m->headers[ready & (PACKETS - 1)];
    uint64_t next = header->next;
    header->next = first;
    first = ready;
    ready = next;
  }
  while (first) {
    struct header *header = &m->headers[first & (PACKETS - 1)];
    struct payload *payload = &m->payloads[first & (PACKETS - 1)];
    uint64_t next = header->next;
    for (uint64_t rest = header->lanes; rest; rest &= rest - 1)
      serve(host, header->service, payload->word[__builtin_ctzll(rest)]);
    __atomic_and_fetch(&header->control, ~(uint32_t)READY, __ATOMIC_RELEASE);
    first = next;
  }
  pthread_mutex_unlock(&host->lock);
  _mm_setcsr(saved);
}
