// Answers a GDB.
//
// A wave is a thread, whose number is the wave's tag. While waves run the client sends nothing but an interrupt; while
// they are stopped, the thread of the wave that stopped reads requests here and answers them.
#include "debug/remote.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "debug/inspect.h"
#include "debug/packet.h"
#include "debug/registers.h"

enum { IN_ROOM = 2 * EMU_PACKET_MOST, ANSWER_ROOM = 1 << 16, CONSOLE_PIECE = 4096 };

struct emu_remote {
  struct emu_wire wire;
  char in[IN_ROOM];
  size_t have;
  char frame[2 * EMU_PACKET_MOST + 8];
  char *answer_room, *text_room;  // ANSWER_ROOM each
  char *description;              // EMU_DESCRIPTION_ROOM, "" before it was asked for
  unsigned lanes;                 // in the description
  bool gone, owes, silent;        // no client any more; a stop is waited for; no acknowledgements
  // the stop that is served
  struct emu_session *session;
  struct emu_wave *wave;
  enum emu_stop_reason why;
  uint32_t stopped, chosen;  // tags
  unsigned listed;           // of the threads
  bool resumed;
};

struct emu_remote *emu_remote_create(const struct emu_wire *wire) {
  struct emu_remote *r = calloc(1, sizeof *r);
  if (!r) return NULL;
  r->wire = *wire;
  r->answer_room = calloc(1, ANSWER_ROOM);
  r->text_room = calloc(1, ANSWER_ROOM);
  r->description = calloc(1, EMU_DESCRIPTION_ROOM);
  if (r->answer_room && r->text_room && r->description) return r;
  emu_remote_release(r);
  return NULL;
}

void emu_remote_release(struct emu_remote *r) {
  if (!r) return;
  free(r->answer_room);
  free(r->text_room);
  free(r->description);
  free(r);
}

// ---- bytes

static void send(struct emu_remote *r, const char *payload, size_t count) {
  if (count > EMU_PACKET_MOST) count = EMU_PACKET_MOST;
  size_t bytes = emu_packet_frame(payload, count, r->frame);
  if (!r->gone && !r->wire.write(r->wire.context, r->frame, bytes)) r->gone = true;
}

static void drop(struct emu_remote *r, size_t bytes) {
  memmove(r->in, r->in + bytes, r->have - bytes);
  r->have -= bytes;
}

static void receive(struct emu_remote *r) {
  long got = r->have < IN_ROOM ? r->wire.read(r->wire.context, r->in + r->have, IN_ROOM - r->have) : 0;
  if (got <= 0) {
    r->gone = true;
  } else {
    r->have += (size_t)got;
  }
}

// To the client's console.
static void print(struct emu_remote *r, const char *text) {
  for (size_t left = strlen(text); left;) {
    size_t some = left < CONSOLE_PIECE ? left : CONSOLE_PIECE;
    struct emu_text packet = {r->answer_room, 0, ANSWER_ROOM};
    emu_text_add(&packet, "O");
    emu_text_hex(&packet, text, some);
    send(r, packet.data, packet.used);
    text += some;
    left -= some;
  }
}

// ---- answers

static struct emu_wave *chosen_wave(const struct emu_remote *r) {
  const struct emu_seen *seen = emu_session_find(r->session, r->chosen);
  return seen ? seen->wave : r->wave;
}

static void tell_stop(struct emu_remote *r, struct emu_text *out) {
  static const int signals[] = {
      [EMU_STOP_ENTRY] = 5, [EMU_STOP_STEP] = 5,    [EMU_STOP_BREAK] = 5, [EMU_STOP_INTERRUPT] = 2,
      [EMU_STOP_WATCH] = 5, [EMU_STOP_FINDING] = 5, [EMU_STOP_TRAP] = 6,  [EMU_STOP_FAULT] = 11};
  struct emu_wave_view view;
  emu_wave_look(r->wave, &view);
  emu_text_add(out, "T%02xthread:%" PRIx32 ";", (unsigned)signals[r->why], r->stopped);
  if (r->why == EMU_STOP_BREAK && emu_session_has_break_at(r->session, view.pc)) emu_text_add(out, "swbreak:;");
  static const char *const words[] = {"watch", "rwatch", "awatch"};
  const struct emu_watchpoint *met = emu_session_met(r->session);
  if (met && !met->name[0]) emu_text_add(out, "%s:%" PRIx64 ";", words[met->kind], met->address);
}

static void add_register(const struct emu_remote *r, uint64_t number, struct emu_text *out) {
  uint8_t data[EMU_REGISTER_BYTES];
  bool known;
  size_t bytes = emu_register_read(chosen_wave(r), r->lanes, number, data, &known);
  if (known) {
    emu_text_hex(out, data, bytes);
  } else {
    for (size_t i = 0; i < bytes; i++) emu_text_add(out, "xx");
  }
}

static void error(struct emu_text *out) { emu_text_add(out, "E01"); }
static void okay(struct emu_text *out, bool good) { emu_text_add(out, good ? "OK" : "E01"); }

static void read_register(struct emu_remote *r, struct emu_field_reader *field, struct emu_text *out) {
  uint64_t number;
  if (emu_field_number(field, &number)) add_register(r, number, out);
  if (!out->used) error(out);
}

static void write_register(struct emu_remote *r, struct emu_field_reader *field, struct emu_text *out) {
  uint8_t data[EMU_REGISTER_BYTES];
  size_t bytes;
  uint64_t number;
  okay(out, emu_field_number(field, &number) && emu_field_char(field, '=') &&
                emu_field_hex(field, data, sizeof data, &bytes) &&
                emu_register_write(chosen_wave(r), r->lanes, number, data, bytes));
}

static void read_memory(struct emu_remote *r, struct emu_field_reader *field, struct emu_text *out) {
  static uint8_t data[EMU_PACKET_MOST / 2];  // under the lock
  uint64_t address, bytes;
  if (!emu_field_number(field, &address) || !emu_field_char(field, ',') || !emu_field_number(field, &bytes)) {
    error(out);
    return;
  }
  if (bytes > sizeof data) bytes = sizeof data;
  size_t got = emu_wave_read(chosen_wave(r), 0, address, data, bytes);
  emu_text_hex(out, data, got);
  if (!got && bytes) error(out);
}

static void write_memory(struct emu_remote *r, struct emu_field_reader *field, bool binary, struct emu_text *out) {
  static uint8_t data[EMU_PACKET_MOST];
  uint64_t address, bytes;
  size_t given;
  bool good =
      emu_field_number(field, &address) && emu_field_char(field, ',') && emu_field_number(field, &bytes) &&
      emu_field_char(field, ':') &&
      (binary ? emu_field_binary(field, data, sizeof data, &given) : emu_field_hex(field, data, sizeof data, &given)) &&
      given == bytes;
  okay(out, good && emu_wave_write(chosen_wave(r), 0, address, data, given) == given);
}

// Z0 and Z1 alike; Z2, Z3 and Z4 watch writes, reads and both.
static void breakpoint(struct emu_remote *r, struct emu_field_reader *field, bool insert, struct emu_text *out) {
  uint64_t kind, address, size;
  if (!emu_field_number(field, &kind) || kind > 4) return;
  bool good = emu_field_char(field, ',') && emu_field_number(field, &address) && emu_field_char(field, ',') &&
              emu_field_number(field, &size);
  if (!good) {
    error(out);
    return;
  }
  if (kind < 2) {
    if (!insert) (void)emu_session_unbreak_at(r->session, address);  // one that is not there is no error
    okay(out, !insert || emu_session_break_at(r->session, address));
    return;
  }
  struct emu_watchpoints *w = emu_session_watchpoints(r->session);
  struct emu_watchpoint wanted = {.kind = (enum emu_watch_kind)(kind - 2), .address = address, .lane = -1};
  wanted.bytes = size <= EMU_WATCHED_BYTES_MOST ? (unsigned)size : 0;
  unsigned there = emu_watchpoints_find(w, wanted.kind, address, wanted.bytes);
  if (!insert) (void)emu_watchpoints_remove(w, there);
  okay(out, !insert || there || emu_watchpoints_add(w, &wanted));
}

// A thread's number; 0 and -1 mean any.
static bool take_thread(struct emu_field_reader *field, uint32_t *out) {
  uint64_t number = 0;
  bool any = emu_field_word(field, "-1");
  if (!any && (!emu_field_number(field, &number) || number > UINT32_MAX)) return false;
  *out = (uint32_t)number;
  return true;
}

static void choose(struct emu_remote *r, struct emu_field_reader *field, struct emu_text *out) {
  bool all = emu_field_char(field, 'g');
  uint32_t tag;
  if (!all && !emu_field_char(field, 'c')) {
    error(out);
    return;
  }
  bool good = take_thread(field, &tag) && (!tag || emu_session_find(r->session, tag));
  if (good) r->chosen = tag ? tag : r->stopped;
  okay(out, good);
}

static void list_threads(struct emu_remote *r, struct emu_text *out) {
  const struct emu_seen *seen;
  unsigned count = emu_session_waves(r->session, &seen);
  if (r->listed >= count) {
    emu_text_add(out, "l");
    return;
  }
  emu_text_add(out, "m");
  for (bool first = true; r->listed < count && out->used < EMU_PACKET_MOST - 16; r->listed++, first = false)
    emu_text_add(out, "%s%" PRIx32, first ? "" : ",", seen[r->listed].tag);
}

static void name_thread(struct emu_remote *r, struct emu_field_reader *field, struct emu_text *out) {
  char room[600];
  struct emu_text name = {room, 0, sizeof room};
  uint32_t tag;
  const struct emu_seen *seen = take_thread(field, &tag) ? emu_session_find(r->session, tag) : NULL;
  if (!seen) {
    error(out);
    return;
  }
  emu_inspect_name(r->session, seen->wave, &name);
  emu_text_hex(out, name.data, name.used);
}

static void describe(struct emu_remote *r, struct emu_field_reader *field, struct emu_text *out) {
  uint64_t from, bytes;
  if (!emu_field_number(field, &from) || !emu_field_char(field, ',') || !emu_field_number(field, &bytes)) {
    error(out);
    return;
  }
  if (!r->description[0]) {
    struct emu_wave_view view;
    struct emu_text text = {r->description, 0, EMU_DESCRIPTION_ROOM};
    emu_wave_look(r->wave, &view);
    emu_registers_describe(view.target, r->lanes, &text);
  }
  size_t length = strlen(r->description), left = from < length ? length - from : 0;
  if (bytes > EMU_PACKET_MOST / 2) bytes = EMU_PACKET_MOST / 2;
  size_t some = left < bytes ? left : bytes;
  emu_text_add(out, "%c%.*s", some == left ? 'l' : 'm', (int)some, r->description + (length - left));
}

static void monitor(struct emu_remote *r, struct emu_field_reader *field, struct emu_text *out) {
  uint8_t line[512];
  size_t length;
  if (!emu_field_hex(field, line, sizeof line - 1, &length)) {
    error(out);
    return;
  }
  line[length] = '\0';
  struct emu_text text = {r->text_room, 0, ANSWER_ROOM};
  text.data[0] = '\0';
  emu_inspect(r->session, chosen_wave(r), (const char *)line, &text);
  print(r, text.data);
  emu_text_add(out, "OK");
}

// Returns whether the packet began with a word that is answered.
static bool query(struct emu_remote *r, struct emu_field_reader *field, struct emu_text *out) {
  if (emu_field_word(field, "qSupported")) {
    emu_text_add(out, "PacketSize=%x;QStartNoAckMode+;qXfer:features:read+;swbreak+;hwbreak+;vContSupported+",
                 EMU_PACKET_MOST);
  } else if (emu_field_word(field, "QStartNoAckMode")) {
    r->silent = true;
    emu_text_add(out, "OK");
  } else if (emu_field_word(field, "qXfer:features:read:target.xml:")) {
    describe(r, field, out);
  } else if (emu_field_word(field, "qfThreadInfo")) {
    r->listed = 0;
    list_threads(r, out);
  } else if (emu_field_word(field, "qsThreadInfo")) {
    list_threads(r, out);
  } else if (emu_field_word(field, "qThreadExtraInfo,")) {
    name_thread(r, field, out);
  } else if (emu_field_word(field, "qAttached")) {
    emu_text_add(out, "1");
  } else if (emu_field_word(field, "qRcmd,")) {
    monitor(r, field, out);
  } else if (field->end - field->at == 2 && emu_field_word(field, "qC")) {
    emu_text_add(out, "QC%" PRIx32, r->stopped);
  } else {
    return false;
  }
  return true;
}

// ---- going on

static void go(struct emu_remote *r) {
  r->resumed = true;
  r->owes = true;
}

static void step(struct emu_remote *r, uint32_t tag, uint64_t low, uint64_t high) {
  emu_session_step(r->session, tag ? tag : r->stopped, low, high);
  go(r);
}

// vCont;ACTION[:THREAD];…: a step of one wave, or all go on.
static void resume(struct emu_remote *r, struct emu_field_reader *field, struct emu_text *out) {
  bool goes = false;
  while (emu_field_char(field, ';')) {
    uint64_t signal, low = 0, high = 0;
    uint32_t tag = 0;
    bool steps = emu_field_char(field, 's'), ranges = !steps && emu_field_char(field, 'r');
    bool steps_with = !steps && !ranges && emu_field_char(field, 'S');
    bool goes_with = !steps && !ranges && !steps_with && emu_field_char(field, 'C');
    bool good = steps || ranges || steps_with || goes_with || emu_field_char(field, 'c');
    if (steps_with || goes_with) good = emu_field_number(field, &signal);
    if (ranges) good = emu_field_number(field, &low) && emu_field_char(field, ',') && emu_field_number(field, &high);
    if (good && emu_field_char(field, ':')) good = take_thread(field, &tag);
    if (!good) {
      error(out);
      return;
    }
    if (steps || steps_with || ranges) {
      step(r, tag, low, high);
      return;
    }
    goes = true;
  }
  if (!goes) {
    error(out);
    return;
  }
  emu_session_continue(r->session);
  go(r);
}

static void resume_words(struct emu_remote *r, struct emu_field_reader *field, struct emu_text *out) {
  if (emu_field_word(field, "Cont?")) {
    emu_text_add(out, "vCont;c;C;s;S;r");
  } else if (emu_field_word(field, "Cont")) {
    resume(r, field, out);
  } else if (emu_field_word(field, "Kill")) {
    emu_session_kill(r->session);
    emu_text_add(out, "OK");
    r->resumed = true;
  }
}

static void detach(struct emu_remote *r, struct emu_text *out) {
  emu_session_detach(r->session);
  emu_text_add(out, "OK");
  r->resumed = true;
}

// What an empty answer says is: not known.
static void answer(struct emu_remote *r, const struct emu_packet *packet, struct emu_text *out) {
  struct emu_field_reader field = {packet->data, packet->data + packet->bytes};
  if (!packet->bytes || query(r, &field, out)) return;
  switch (*field.at++) {
    case '?':
      tell_stop(r, out);
      return;
    case 'g':
      for (unsigned i = 0; i < EMU_REGISTERS_CORE; i++) add_register(r, i, out);
      return;
    case 'p':
      read_register(r, &field, out);
      return;
    case 'P':
      write_register(r, &field, out);
      return;
    case 'm':
      read_memory(r, &field, out);
      return;
    case 'M':
    case 'X':
      write_memory(r, &field, packet->data[0] == 'X', out);
      return;
    case 'Z':
    case 'z':
      breakpoint(r, &field, packet->data[0] == 'Z', out);
      return;
    case 'H':
      choose(r, &field, out);
      return;
    case 'T': {
      uint32_t tag;
      okay(out, take_thread(&field, &tag) && emu_session_find(r->session, tag));
      return;
    }
    case 'c':
    case 'C':
      emu_session_continue(r->session);
      go(r);
      return;
    case 's':
    case 'S':
      step(r, r->chosen, 0, 0);
      return;
    case 'v':
      resume_words(r, &field, out);
      return;
    case 'D':
      detach(r, out);
      return;
    case 'k':
      emu_session_kill(r->session);
      r->resumed = true;
      return;
    default:
      return;
  }
}

static void serve_packet(struct emu_remote *r, const struct emu_packet *packet) {
  struct emu_text out = {r->answer_room, 0, ANSWER_ROOM};
  bool kills = packet->bytes && packet->data[0] == 'k', acknowledges = !r->silent;
  if (acknowledges && !r->wire.write(r->wire.context, "+", 1)) r->gone = true;
  char *room = out.data;
  room[0] = '\0';
  answer(r, packet, &out);
  // resuming is answered by the next stop
  if (!r->owes && !kills) send(r, out.data, out.used);
}

static void serve(struct emu_remote *r) {
  r->resumed = false;
  while (!r->resumed && !r->gone) {
    struct emu_packet packet;
    size_t used = 0;
    enum emu_packet_kind kind = emu_packet_take(r->in, r->have, &used, &packet);
    if (kind == EMU_PACKET_DATA) serve_packet(r, &packet);
    if (kind == EMU_PACKET_BAD && !r->silent && !r->wire.write(r->wire.context, "-", 1)) r->gone = true;
    drop(r, used);
    if (kind == EMU_PACKET_NONE) receive(r);
  }
  if (r->gone) emu_session_detach(r->session);
}

static void stopped(void *context, struct emu_session *session, struct emu_wave *wave, enum emu_stop_reason why,
                    const char *text) {
  struct emu_remote *r = context;
  struct emu_wave_view view;
  emu_wave_look(wave, &view);
  if (!r->lanes) r->lanes = view.lanes;
  r->session = session;
  r->wave = wave;
  r->why = why;
  r->stopped = r->chosen = view.tag;
  if (r->owes) {
    if (text[0]) {
      print(r, text);
      print(r, "\n");
    }
    struct emu_text out = {r->answer_room, 0, ANSWER_ROOM};
    tell_stop(r, &out);
    send(r, out.data, out.used);
    r->owes = false;
  }
  serve(r);
}

static bool interrupted(void *context) {
  struct emu_remote *r = context;
  struct emu_packet packet;
  while (!r->gone && r->wire.ready(r->wire.context)) receive(r);
  for (;;) {
    size_t used = 0;
    enum emu_packet_kind kind = emu_packet_take(r->in, r->have, &used, &packet);
    if (kind == EMU_PACKET_DATA) return false;  // for later
    drop(r, used);
    if (kind == EMU_PACKET_INTERRUPT || kind == EMU_PACKET_NONE) return kind == EMU_PACKET_INTERRUPT || r->gone;
  }
}

void emu_remote_front(struct emu_remote *remote, struct emu_front *out) {
  *out = (struct emu_front){.context = remote, .at_entry = true, .stopped = stopped, .interrupted = interrupted};
}

void emu_remote_exited(struct emu_remote *r, int status) {
  char text[8];
  if (r->gone || !r->owes) return;
  snprintf(text, sizeof text, "W%02x", (unsigned)status & 0xff);
  send(r, text, strlen(text));
  r->owes = false;
}
