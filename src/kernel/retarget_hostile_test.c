/* A code object made byte by byte, so that no compiler is needed and sanitizers can check. Sizes that its note claims
 * are trusted only as far as the segment reaches. */
#include <elf.h>
#include <stdio.h>

#include "base/testing.h"
#include "kernel/loader.h"

#define TARGET "amdgcn-amd-amdhsa--gfx1100"
enum { NOTE_AT = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr), TARGET_SIZE = sizeof TARGET - 1, IMAGE_MAX = 512 };

typedef struct made {
  uint8_t bytes[IMAGE_MAX];
  size_t size;    /* the note is the last thing in it */
  size_t text_at; /* where the target's string begins, its length before it */
  Elf64_Nhdr *note;
  Elf64_Phdr *segment;
  Elf64_Ehdr *header;
} made;

/* Makes the code object. |wide|: the length of the target's string is a separate byte (MessagePack str 8). */
static void make(made *m, bool wide) {
  static const char key[] =
      "\x81\xad"
      "amdhsa.target";
  memset(m, 0, sizeof *m);
  m->header = (Elf64_Ehdr *)(void *)m->bytes;
  m->segment = (Elf64_Phdr *)(void *)(m->bytes + sizeof(Elf64_Ehdr));
  m->note = (Elf64_Nhdr *)(void *)(m->bytes + NOTE_AT);
  memcpy(m->header->e_ident, ELFMAG, SELFMAG);
  m->header->e_ident[EI_CLASS] = ELFCLASS64;
  m->header->e_ident[EI_DATA] = ELFDATA2LSB;
  m->header->e_ident[EI_OSABI] = 64;
  m->header->e_machine = 224;
  m->header->e_flags = 0x41;
  m->header->e_phoff = sizeof(Elf64_Ehdr);
  m->header->e_phentsize = sizeof(Elf64_Phdr);
  m->header->e_phnum = 1;
  size_t at = NOTE_AT + sizeof(Elf64_Nhdr), begin = at + 8;
  memcpy(m->bytes + at, "AMDGPU", 7);
  at = begin;
  memcpy(m->bytes + at, key, sizeof key - 1);
  at += sizeof key - 1;
  if (wide) m->bytes[at++] = 0xd9;
  m->bytes[at] = (uint8_t)(wide ? TARGET_SIZE : 0xa0 | TARGET_SIZE);
  m->text_at = ++at;
  memcpy(m->bytes + at, TARGET, TARGET_SIZE);
  at += TARGET_SIZE;
  *m->note = (Elf64_Nhdr){.n_namesz = 7, .n_descsz = (uint32_t)(at - begin), .n_type = 32};
  m->size = (at + 3) & ~(size_t)3;
  *m->segment = (Elf64_Phdr){.p_type = PT_NOTE, .p_offset = NOTE_AT, .p_filesz = m->size - NOTE_AT};
}

/* In memory of just |size| bytes, so that a sanitizer sees a read past them. A refusal changes nothing. */
static void check(const made *m, size_t size, rdna_status want, const char *what, size_t number) {
  uint8_t *image = malloc(size);
  assert_non_null(image);
  memcpy(image, m->bytes, size);
  rdna_status got = rdna__retarget(image, size, "gfx1100", "gfx1101");
  if (got != want) fail_msg("%s, %zu: %s", what, number, rdna_status_name(got));
  if (want == RDNA_OK) {
    assert_memory_equal(image + m->text_at, "amdgcn-amd-amdhsa--gfx1101", TARGET_SIZE);
    assert_int_equal(image[48], 0x46);
  } else {
    assert_memory_equal(image, m->bytes, size);
  }
  free(image);
}

static void test_a_whole_one_is_taken(void **state) {
  made m;
  for (int wide = 0; wide < 2; wide++) {
    make(&m, wide);
    check(&m, m.size, RDNA_OK, "whole", (size_t)wide);
    check(&m, m.size + 100, RDNA_OK, "with bytes behind it", (size_t)wide);
  }
}

static void test_notes_end_with_their_segment(void **state) {
  made m;
  for (int wide = 0; wide < 2; wide++) {
    make(&m, wide);
    const size_t whole = m.size - NOTE_AT;
    for (size_t cut = 1; cut <= whole; cut++) {
      m.segment->p_filesz = whole - cut;
      check(&m, m.size, RDNA_BAD_DATA, "the segment ends within the note", cut); /* whose bytes are there */
      check(&m, m.size - cut, RDNA_BAD_DATA, "the file ends within the note", cut);
      m.segment->p_filesz = whole;
      check(&m, m.size - cut, RDNA_BAD_DATA, "the segment ends past the file", cut);
    }
    for (uint32_t more = 4; more <= 64; more += 4) {
      m.note->n_descsz += more;
      check(&m, m.size, RDNA_BAD_DATA, "the note says that it is longer", more);
      check(&m, m.size + more, RDNA_BAD_DATA, "the note says that it is longer, and there are bytes", more);
      m.note->n_descsz -= more;
    }
    static const uint32_t vast[] = {0x7fffffff, 0x80000000, 0xfffffffc, 0xffffffff};
    for (size_t i = 0; i < sizeof vast / sizeof *vast; i++) {
      uint32_t kept = m.note->n_descsz;
      m.note->n_descsz = vast[i];
      check(&m, m.size, RDNA_BAD_DATA, "a vast description", i);
      m.note->n_descsz = kept;
      m.note->n_namesz = vast[i];
      check(&m, m.size, RDNA_BAD_DATA, "a vast name", i);
      m.note->n_namesz = 7;
    }
  }
}

static void test_strings_end_with_their_note(void **state) {
  made m;
  for (int wide = 0; wide < 2; wide++) {
    make(&m, wide);
    for (uint32_t less = 1; less < m.note->n_descsz; less++) {
      m.note->n_descsz -= less;
      check(&m, m.size, RDNA_BAD_DATA, "the description ends within the string", less);
      m.note->n_descsz += less;
    }
    uint8_t *length = &m.bytes[m.text_at - 1], kept = *length;
    for (unsigned value = 0; value < 256; value++) {
      if (value == kept) continue;
      *length = (uint8_t)value;
      check(&m, m.size, RDNA_BAD_DATA, "another length", value);
    }
    *length = kept;
  }
}

static void test_headers_are_checked(void **state) {
  made m;
  make(&m, false);
  for (size_t size = 0; size < NOTE_AT; size++) check(&m, size, RDNA_BAD_DATA, "cut", size);
  static const uint64_t offsets[] = {1, 4096, UINT64_MAX, UINT64_MAX - 55, INT64_MAX};
  for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
    m.header->e_phoff = offsets[i];
    check(&m, m.size, RDNA_BAD_DATA, "segments elsewhere", i);
    m.header->e_phoff = sizeof(Elf64_Ehdr);
    m.segment->p_offset = offsets[i];
    check(&m, m.size, RDNA_BAD_DATA, "the note elsewhere", i);
    m.segment->p_offset = NOTE_AT;
    m.segment->p_filesz = offsets[i] == 1 ? 1 : offsets[i];
    check(&m, m.size, RDNA_BAD_DATA, "a segment of another size", i);
    m.segment->p_filesz = m.size - NOTE_AT;
  }
  m.header->e_phnum = UINT16_MAX;
  check(&m, m.size, RDNA_BAD_DATA, "many segments", 0);
  m.header->e_phnum = 0;
  check(&m, m.size, RDNA_BAD_DATA, "no segment", 0);
  m.header->e_phnum = 1;
  check(&m, m.size, RDNA_OK, "as it was", 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_whole_one_is_taken),
      cmocka_unit_test(test_notes_end_with_their_segment),
      cmocka_unit_test(test_strings_end_with_their_note),
      cmocka_unit_test(test_headers_are_checked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
