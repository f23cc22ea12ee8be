// GDB's remote protocol, the bytes of it.
#include "debug/packet.h"

#include <string.h>

enum { INTERRUPT = 3, ESCAPE = '}', ESCAPED = 0x20 };

static int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static enum emu_packet_kind take_data(const char *bytes, size_t count, size_t *used, struct emu_packet *out) {
  const char *end = memchr(bytes, '#', count);
  size_t length = end ? (size_t)(end - bytes) : count;  // with the $
  if (length > EMU_PACKET_MOST + 1) {
    *used = length;
    return EMU_PACKET_BAD;
  }
  *used = 0;
  if (!end || count - length < 3) return EMU_PACKET_NONE;
  *used = length + 3;
  uint8_t sum = 0;
  for (size_t i = 1; i < length; i++) sum = (uint8_t)(sum + (uint8_t)bytes[i]);
  int high = digit(end[1]), low = digit(end[2]);
  if (high < 0 || low < 0 || high * 16 + low != sum) return EMU_PACKET_BAD;
  *out = (struct emu_packet){bytes + 1, length - 1};
  return EMU_PACKET_DATA;
}

enum emu_packet_kind emu_packet_take(const char *bytes, size_t count, size_t *used, struct emu_packet *out) {
  size_t at = 0, more = 0;
  enum emu_packet_kind kind = EMU_PACKET_NONE;
  while (at < count && kind == EMU_PACKET_NONE) {
    char c = bytes[at];
    if (c == '$') {
      kind = take_data(bytes + at, count - at, &more, out);
      *used = at + more;
      return kind;
    }
    if (c == '+') kind = EMU_PACKET_ACK;
    if (c == '-') kind = EMU_PACKET_NAK;
    if (c == INTERRUPT) kind = EMU_PACKET_INTERRUPT;
    at++;
  }
  *used = at;
  return kind;
}

size_t emu_packet_frame(const char *payload, size_t count, char *out) {
  static const char digits[] = "0123456789abcdef";
  size_t at = 0;
  uint8_t sum = 0;
  out[at++] = '$';
  for (size_t i = 0; i < count; i++) {
    char c = payload[i];
    bool escape = c == '$' || c == '#' || c == ESCAPE || c == '*';
    if (escape) out[at++] = ESCAPE;
    out[at++] = escape ? (char)(c ^ ESCAPED) : c;
  }
  for (size_t i = 1; i < at; i++) sum = (uint8_t)(sum + (uint8_t)out[i]);
  out[at++] = '#';
  out[at++] = digits[sum >> 4];
  out[at++] = digits[sum & 15];
  return at;
}

// ---- fields

bool emu_field_number(struct emu_field_reader *field, uint64_t *out) {
  uint64_t value = 0;
  int count = 0;
  for (; field->at < field->end && digit(*field->at) >= 0; field->at++, count++) {
    if (count == 16) return false;
    value = value << 4 | (uint64_t)digit(*field->at);
  }
  *out = value;
  return count > 0;
}

bool emu_field_char(struct emu_field_reader *field, char c) {
  if (field->at == field->end || *field->at != c) return false;
  field->at++;
  return true;
}

bool emu_field_word(struct emu_field_reader *field, const char *word) {
  size_t length = strlen(word);
  if ((size_t)(field->end - field->at) < length || memcmp(field->at, word, length) != 0) return false;
  field->at += length;
  return true;
}

bool emu_field_hex(struct emu_field_reader *field, uint8_t *out, size_t room, size_t *out_bytes) {
  size_t count = (size_t)(field->end - field->at);
  if (count % 2 || count / 2 > room) return false;
  for (size_t i = 0; i < count / 2; i++) {
    int high = digit(field->at[2 * i]), low = digit(field->at[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    out[i] = (uint8_t)(high * 16 + low);
  }
  field->at = field->end;
  *out_bytes = count / 2;
  return true;
}

bool emu_field_binary(struct emu_field_reader *field, uint8_t *out, size_t room, size_t *out_bytes) {
  size_t count = 0;
  for (; field->at < field->end; field->at++) {
    char c = *field->at;
    if (c == ESCAPE) {
      if (++field->at == field->end) return false;
      c = (char)(*field->at ^ ESCAPED);
    }
    if (count == room) return false;
    out[count++] = (uint8_t)c;
  }
  *out_bytes = count;
  return true;
}

void emu_text_hex(struct emu_text *text, const void *data, size_t bytes) {
  const uint8_t *from = data;
  for (size_t i = 0; i < bytes; i++) emu_text_add(text, "%02x", from[i]);
}
