// GDB's remote protocol, the bytes of it: $payload#checksum, acknowledgements, and the interrupt.
//
// Source: "Debugging with GDB", appendix "GDB Remote Serial Protocol".
#ifndef EMULATOR_DEBUG_PACKET_H
#define EMULATOR_DEBUG_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "debug/text.h"

enum { EMU_PACKET_MOST = 0x4000 };  // bytes of a payload, either way

enum emu_packet_kind {
  EMU_PACKET_NONE,  // not all of it is there yet
  EMU_PACKET_DATA,
  EMU_PACKET_ACK,
  EMU_PACKET_NAK,
  EMU_PACKET_INTERRUPT,
  EMU_PACKET_BAD,  // a wrong checksum, or too long
};

struct emu_packet {
  const char *data;  // in the bytes that were given; not terminated
  size_t bytes;
};

// Looks at the bytes' beginning. *used: how many of them are done with. Bytes between packets are passed over.
enum emu_packet_kind emu_packet_take(const char *bytes, size_t count, size_t *used, struct emu_packet *out);
// Writes $payload#checksum to out, at most count * 2 + 4 bytes, with what must be escaped; returns how many.
size_t emu_packet_frame(const char *payload, size_t count, char *out);

// ---- what stands in payloads: a cursor that only goes on when something was there

struct emu_field_reader {
  const char *at, *end;
};
bool emu_field_number(struct emu_field_reader *field, uint64_t *out);  // 1 to 16 hexadecimal digits
bool emu_field_char(struct emu_field_reader *field, char c);
bool emu_field_word(struct emu_field_reader *field, const char *word);
// Pairs of hexadecimal digits to the end, at most `room` bytes. false: something else stands there, or more.
bool emu_field_hex(struct emu_field_reader *field, uint8_t *out, size_t room, size_t *out_bytes);
// Escaped bytes to the end, at most `room`. false: more, or an escape without its byte.
bool emu_field_binary(struct emu_field_reader *field, uint8_t *out, size_t room, size_t *out_bytes);

void emu_text_hex(struct emu_text *text, const void *data, size_t bytes);

#endif
