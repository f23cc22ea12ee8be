// What a GDB might send, from anybody: a kernel of a few instructions runs under a session whose client says these
// bytes. Each line is a packet, framed here so that most get past the checksum, and one that begins with a space goes
// as it is. At the end the client is gone, and the kernel must come to its end.
#include <string.h>

#include "debug/packet.h"
#include "debug/remote.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// s_nop 0; s_mov_b32 s5, 7; v_mov_b32_e32 v1, s5; s_barrier; s_cbranch_scc1 back to the first; s_endpgm
static const uint32_t code[]
    __attribute__((aligned(256))) = {0xbf800000, 0xbe850087, 0x7e020205, 0xbfbd0000, 0xbfa2fffb, 0xbfb00000};

struct client {
  const uint8_t *at, *end;
};

static long client_read(void *context, char *bytes, size_t room) {
  struct client *c = context;
  if (c->at == c->end) return 0;
  const uint8_t *line = memchr(c->at, '\n', (size_t)(c->end - c->at));
  size_t length = (size_t)((line ? line : c->end) - c->at);
  const char *from = (const char *)c->at;
  c->at += length + (line != NULL);
  if (2 * length + 8 > room) return 0;
  if (length && from[0] == ' ') {
    memcpy(bytes, from + 1, length - 1);
    return length > 1 ? (long)length - 1 : client_read(context, bytes, room);
  }
  return (long)emu_packet_frame(from, length, bytes);
}

static bool client_write(void *context, const char *bytes, size_t count) {
  (void)context;
  // all of an answer is there
  volatile char sum = 0;
  for (size_t i = 0; i < count; i++) sum = (char)(sum + bytes[i]);
  return true;
}

static bool client_ready(void *context) {
  const struct client *c = context;
  return c->at < c->end;
}

static void launched(void *s, const struct emu_dispatch *dispatch) { emu_session_launched(s, dispatch); }
static void finished(void *s, const struct emu_dispatch *dispatch) { emu_session_finished(s, dispatch); }
static uint32_t begun(void *s, struct emu_wave *wave) {
  static uint32_t tag;
  emu_session_begun(s, wave, ++tag);
  return tag;
}
static void ended(void *s, struct emu_wave *wave) { emu_session_ended(s, wave); }
static enum emu_turn before(void *s, struct emu_wave *wave) { return emu_session_before(s, wave); }
static void after(void *s, struct emu_wave *wave) { emu_session_after(s, wave); }
static void touched(void *s, struct emu_wave *wave, const struct emu_touched *touch) {
  emu_session_touched(s, wave, touch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct client client = {data, data + size};
  struct emu_wire wire = {.context = &client, .read = client_read, .write = client_write, .ready = client_ready};
  struct emu_remote *remote = emu_remote_create(&wire);
  struct emu_front front;
  emu_remote_front(remote, &front);
  struct emu_session *session = emu_session_create(&front);
  const struct emu_observer observer = {session, launched, finished, begun, ended, before, after, touched};
  struct emu_memory *memory = emu_memory_create();
  static uint8_t buffer[256];
  emu_memory_add(memory, (uint64_t)(uintptr_t)buffer, sizeof buffer, "buffer", true);
  struct emu_program *program =
      emu_program_create(emu_isa_find("gfx1100"), code, sizeof code, (uint64_t)(uintptr_t)code);
  struct emu_dispatch d = {.program = program,
                           .name = "fuzzed",
                           .groups = {2, 1, 1},
                           .threads = {64, 1, 1},
                           .host_threads = 1,
                           .memory = memory,
                           .instruction_limit = 1000,
                           .code_bytes = sizeof code,
                           .observer = &observer};
  d.kernel.properties = 1 << 10;  // waves of 32
  d.kernel.lds_bytes = 512;
  d.kernel.scratch_bytes = 64;
  struct emu_report failure;
  (void)emu_dispatch_run(&d, &failure);
  emu_remote_exited(remote, 0);
  emu_session_release(session);
  emu_remote_release(remote);
  emu_program_release(program);
  emu_memory_release(memory);
  return 0;
}
