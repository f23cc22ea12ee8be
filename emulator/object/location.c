// A stack machine of 64-bit values, each with what it counts in as an address.
#include "object/location.h"

#include "object/reader.h"

enum { DEPTH = 64, STEPS_MOST = 1 << 14 };

enum {
  OP_ADDR = 0x03,
  OP_DEREF = 0x06,
  OP_CONST1U = 0x08,
  OP_CONST1S,
  OP_CONST2U,
  OP_CONST2S,
  OP_CONST4U,
  OP_CONST4S,
  OP_CONST8U,
  OP_CONST8S,
  OP_CONSTU,
  OP_CONSTS,
  OP_DUP,
  OP_DROP,
  OP_OVER,
  OP_PICK,
  OP_SWAP,
  OP_ROT,
  OP_XDEREF,
  OP_ABS,
  OP_AND,
  OP_DIV,
  OP_MINUS,
  OP_MOD,
  OP_MUL,
  OP_NEG,
  OP_NOT,
  OP_OR,
  OP_PLUS,
  OP_PLUS_UCONST,
  OP_SHL,
  OP_SHR,
  OP_SHRA,
  OP_XOR,
  OP_BRA,
  OP_EQ,
  OP_GE,
  OP_GT,
  OP_LE,
  OP_LT,
  OP_NE,
  OP_SKIP,
  OP_LIT0 = 0x30,
  OP_REG0 = 0x50,
  OP_BREG0 = 0x70,
  OP_REGX = 0x90,
  OP_FBREG,
  OP_BREGX,
  OP_PIECE,
  OP_DEREF_SIZE,
  OP_XDEREF_SIZE,
  OP_NOP,
  OP_IMPLICIT_VALUE = 0x9e,
  OP_STACK_VALUE = 0x9f,
  OP_ADDRX = 0xa1,
  OP_CONSTX = 0xa2,
  OP_ENTRY_VALUE = 0xa3,
  OP_CONST_TYPE = 0xa4,
  OP_REGVAL_TYPE = 0xa5,
  OP_DEREF_TYPE = 0xa6,
  OP_CONVERT = 0xa8,
  OP_REINTERPRET = 0xa9,
  OP_GNU_ENTRY_VALUE = 0xf3,
};

struct element {
  uint64_t bits;
  enum emu_address_space space;
  uint8_t encoding, bytes;  // of its type; 0: the generic one
};

struct run {
  const struct emu_dwarf *dwarf;
  uint32_t index;
  const struct emu_location_machine *machine;
  struct emu_reader r;
  const uint8_t *start;
  struct element stack[DEPTH];
  unsigned depth;
  const char *why;
  bool in_space;  // the top is an address whose space an XDEREF has named
  // what the last operations described other than memory
  struct emu_piece described;
  bool has_described;
};

static const char unknown_operation[] = "its place is an expression with an operation that is not known here";
static const char damaged[] = "its place is an expression that cannot be";
static const char no_register[] = "its place needs a register that is not known here";
static const char no_memory[] = "its place needs memory that cannot be read";

static void push(struct run *x, uint64_t bits, enum emu_address_space space) {
  if (x->depth == DEPTH) {
    x->why = damaged;
    return;
  }
  x->stack[x->depth++] = (struct element){.bits = bits, .space = space};
}

static struct element pop(struct run *x) {
  if (x->depth) return x->stack[--x->depth];
  x->why = damaged;
  return (struct element){0};
}

// ---- types

// The base type at an offset in the unit; NULL: the generic type.
static const struct emu_entry *base_type(const struct run *x, uint64_t offset) {
  uint64_t at = emu_dwarf_unit_offset(x->dwarf, x->index) + offset;
  if (!offset || at > UINT32_MAX) return NULL;
  const struct emu_entry *type = emu_dwarf_entry(x->dwarf, emu_dwarf_at(x->dwarf, (uint32_t)at));
  return type && type->bytes && type->bytes <= 8 ? type : NULL;
}

static uint64_t cut(uint64_t bits, unsigned bytes) {
  return bytes >= 8 ? bits : bits & ((UINT64_C(1) << 8 * bytes) - 1);
}

static int64_t widened(uint64_t bits, unsigned bytes) {
  unsigned up = bytes && bytes < 8 ? 64 - 8 * bytes : 0;
  return (int64_t)(bits << up) >> up;
}

static bool is_signed(unsigned encoding) {
  return encoding == EMU_ENCODING_SIGNED || encoding == EMU_ENCODING_SIGNED_CHAR;
}

static double real_of(const struct element *e) {
  float narrow;
  double wide;
  uint32_t low = (uint32_t)e->bits;
  memcpy(&narrow, &low, sizeof narrow);
  memcpy(&wide, &e->bits, sizeof wide);
  if (e->encoding == EMU_ENCODING_FLOAT) return e->bytes == 4 ? (double)narrow : wide;
  return is_signed(e->encoding) ? (double)widened(e->bits, e->bytes) : (double)e->bits;
}

static uint64_t whole_of(double value, unsigned encoding) {
  if (!(value > -9.2e18 && value < 1.8e19)) return 0;
  return is_signed(encoding) || value < 0 ? (uint64_t)(int64_t)(value < 9.2e18 ? value : 9.2e18) : (uint64_t)value;
}

static void convert(struct run *x, const struct emu_entry *type) {
  struct element e = pop(x);
  unsigned bytes = type ? (unsigned)type->bytes : 8, encoding = type ? type->encoding : 0;
  bool from = e.encoding == EMU_ENCODING_FLOAT, to = encoding == EMU_ENCODING_FLOAT;
  if ((from && e.bytes < 4) || (to && bytes < 4)) x->why = unknown_operation;
  uint64_t bits = is_signed(e.encoding) ? (uint64_t)widened(e.bits, e.bytes) : e.bits;
  if (to) {
    double wide = real_of(&e);
    float narrow = (float)wide;
    uint32_t low;
    memcpy(&low, &narrow, sizeof low);
    memcpy(&bits, &wide, sizeof bits);
    if (bytes == 4) bits = low;
  } else if (from) {
    bits = whole_of(real_of(&e), encoding);
  }
  push(x, cut(bits, bytes), e.space);
  if (x->depth && type) {
    x->stack[x->depth - 1].encoding = (uint8_t)encoding;
    x->stack[x->depth - 1].bytes = (uint8_t)bytes;
  }
}

// ---- operations

static void push_register(struct run *x, uint64_t number, int64_t offset, bool at_entry) {
  uint64_t bits = 0;
  enum emu_address_space space = EMU_ADDRESS_FLAT;
  if (!x->machine->reg(x->machine->context, number, at_entry, &bits, &space)) x->why = no_register;
  push(x, bits + (uint64_t)offset, space);
}

static void load(struct run *x, enum emu_address_space space, uint64_t address, uint64_t bytes) {
  uint64_t bits = 0;
  if (!bytes || bytes > 8) {
    x->why = damaged;
  } else if (!x->machine->read(x->machine->context, space, address, &bits, (size_t)bytes)) {
    x->why = no_memory;
  }
  push(x, bits, EMU_ADDRESS_FLAT);
}

// An address in a named space. At the expression's end, or where a piece's is, it is the place itself: that is how
// LLVM marks variables in LDS.
static void xderef(struct run *x, uint64_t bytes) {
  struct element address = pop(x), space = pop(x);
  bool last = x->r.at == x->r.end || *x->r.at == OP_PIECE;
  enum emu_address_space named = space.bits == EMU_ADDRESS_PRIVATE || space.bits == EMU_ADDRESS_LOCAL
                                     ? (enum emu_address_space)space.bits
                                     : address.space;
  if (!last) {
    load(x, named, address.bits, bytes);
    return;
  }
  push(x, address.bits, named);
  x->in_space = true;
}

static void binary(struct run *x, unsigned op) {
  struct element b = pop(x), a = pop(x);
  // both have one type; signed comparisons and divisions of a narrow one look at its own sign
  int64_t sa = widened(a.bits, a.bytes), sb = widened(b.bits, b.bytes);
  uint64_t bits = 0;
  bool real = a.encoding == EMU_ENCODING_FLOAT;
  if (real) x->why = unknown_operation;
  switch (op) {
    case OP_AND:
      bits = a.bits & b.bits;
      break;
    case OP_DIV:
      if (!sb || (sa == INT64_MIN && sb == -1)) {
        x->why = damaged;
      } else {
        bits = a.bytes && !is_signed(a.encoding) ? a.bits / b.bits : (uint64_t)(sa / sb);
      }
      break;
    case OP_MINUS:
      bits = a.bits - b.bits;
      break;
    case OP_MOD:
      if (!b.bits) {
        x->why = damaged;
      } else {
        bits = a.bits % b.bits;
      }
      break;
    case OP_MUL:
      bits = a.bits * b.bits;
      break;
    case OP_OR:
      bits = a.bits | b.bits;
      break;
    case OP_PLUS:
      bits = a.bits + b.bits;
      break;
    case OP_SHL:
      bits = b.bits < 64 ? a.bits << b.bits : 0;
      break;
    case OP_SHR:
      bits = b.bits < 64 ? a.bits >> b.bits : 0;
      break;
    case OP_SHRA:
      bits = (uint64_t)(sa >> (b.bits < 64 ? b.bits : 63));
      break;
    case OP_XOR:
      bits = a.bits ^ b.bits;
      break;
    case OP_EQ:
      bits = sa == sb;
      break;
    case OP_GE:
      bits = sa >= sb;
      break;
    case OP_GT:
      bits = sa > sb;
      break;
    case OP_LE:
      bits = sa <= sb;
      break;
    case OP_LT:
      bits = sa < sb;
      break;
    default:
      bits = sa != sb;
      break;
  }
  bool compares = op >= OP_EQ && op <= OP_NE;
  push(x, compares || !a.bytes ? bits : cut(bits, a.bytes), a.space ? a.space : b.space);
  if (compares || !x->depth) return;
  x->stack[x->depth - 1].encoding = a.encoding;
  x->stack[x->depth - 1].bytes = a.bytes;
}

static void pick(struct run *x, uint64_t behind) {
  if (behind >= x->depth) {
    x->why = damaged;
  } else {
    struct element e = x->stack[x->depth - 1 - behind];
    push(x, e.bits, e.space);
    if (!x->why) x->stack[x->depth - 1] = e;
  }
}

static void rotate(struct run *x) {
  struct element a = pop(x), b = pop(x), c = pop(x);
  if (x->why) return;
  x->stack[x->depth++] = a;
  x->stack[x->depth++] = c;
  x->stack[x->depth++] = b;
}

static void swap(struct run *x) {
  struct element a = pop(x), b = pop(x);
  if (x->why) return;
  x->stack[x->depth++] = a;
  x->stack[x->depth++] = b;
}

static void jump(struct run *x, bool taken) {
  int64_t by = (int16_t)emu_take(&x->r, 2);
  if (!taken || x->r.bad) return;
  if (by < x->start - x->r.at || by > x->r.end - x->r.at) {
    x->why = damaged;
  } else {
    x->r.at += by;
  }
}

// Of the forms that compilers emit, a register's value at the call.
static void entry_value(struct run *x) {
  uint64_t bytes = emu_take_uleb(&x->r);
  struct emu_reader inner = x->r;
  emu_skip(&x->r, bytes);
  if (x->r.bad) return;
  inner.end = x->r.at;
  unsigned op = (unsigned)emu_take(&inner, 1);
  bool plain = (op >= OP_REG0 && op < OP_BREG0) || op == OP_REGX;
  uint64_t number = op == OP_REGX ? emu_take_uleb(&inner) : op - OP_REG0;
  if (!plain || inner.at != inner.end) {
    x->why = unknown_operation;
    return;
  }
  push_register(x, number, 0, true);
}

static void describe(struct run *x, const struct emu_piece *piece) {
  x->described = *piece;
  x->has_described = true;
}

// Operations that name a register, or a number by themselves.
static bool step_by_range(struct run *x, unsigned op) {
  static const uint8_t constant_bytes[] = {1, 1, 2, 2, 4, 4, 8, 8};
  struct emu_reader *r = &x->r;
  uint64_t number;
  if (op >= OP_LIT0 && op < OP_REG0) {
    push(x, op - OP_LIT0, EMU_ADDRESS_FLAT);
  } else if ((op >= OP_REG0 && op < OP_BREG0) || op == OP_REGX) {
    number = op == OP_REGX ? emu_take_uleb(r) : op - OP_REG0;
    describe(x, &(struct emu_piece){.kind = EMU_PIECE_REGISTER, .value = number});
  } else if ((op >= OP_BREG0 && op < OP_REGX) || op == OP_BREGX) {
    number = op == OP_BREGX ? emu_take_uleb(r) : op - OP_BREG0;
    push_register(x, number, emu_take_sleb(r), false);
  } else if (op >= OP_CONST1U && op <= OP_CONST8S) {
    unsigned bytes = constant_bytes[op - OP_CONST1U];
    number = emu_take(r, bytes);
    push(x, (op - OP_CONST1U) % 2 ? (uint64_t)widened(number, bytes) : number, EMU_ADDRESS_FLAT);
  } else if ((op >= OP_AND && op <= OP_XOR && op != OP_NEG && op != OP_NOT && op != OP_PLUS_UCONST) ||
             (op >= OP_EQ && op <= OP_NE)) {
    binary(x, op);
  } else {
    return false;
  }
  return true;
}

static bool step_stack(struct run *x, unsigned op) {
  struct emu_reader *r = &x->r;
  struct element e;
  uint64_t number = 0;
  switch (op) {
    case OP_CONSTU:
      push(x, emu_take_uleb(r), EMU_ADDRESS_FLAT);
      return true;
    case OP_CONSTS:
      push(x, (uint64_t)emu_take_sleb(r), EMU_ADDRESS_FLAT);
      return true;
    case OP_DUP:
      pick(x, 0);
      return true;
    case OP_DROP:
      (void)pop(x);
      return true;
    case OP_OVER:
      pick(x, 1);
      return true;
    case OP_PICK:
      pick(x, emu_take(r, 1));
      return true;
    case OP_SWAP:
      swap(x);
      return true;
    case OP_ROT:
      rotate(x);
      return true;
    case OP_ABS:
      e = pop(x);
      number = (uint64_t)widened(e.bits, e.bytes);
      push(x, (int64_t)number < 0 ? 0 - number : number, EMU_ADDRESS_FLAT);
      return true;
    case OP_NEG:
      push(x, 0 - pop(x).bits, EMU_ADDRESS_FLAT);
      return true;
    case OP_NOT:
      push(x, ~pop(x).bits, EMU_ADDRESS_FLAT);
      return true;
    case OP_PLUS_UCONST:
      e = pop(x);
      push(x, e.bits + emu_take_uleb(r), e.space);
      return true;
    case OP_BRA:
      jump(x, pop(x).bits != 0);
      return true;
    case OP_SKIP:
      jump(x, true);
      return true;
    case OP_NOP:
      return true;
    default:
      return false;
  }
}

static bool step_memory(struct run *x, unsigned op) {
  struct emu_reader *r = &x->r;
  struct element e;
  uint64_t number = 0;
  switch (op) {
    case OP_ADDR:
      push(x, emu_take(r, 8), EMU_ADDRESS_LINKED);
      return true;
    case OP_ADDRX:
    case OP_CONSTX:
      if (!emu_dwarf_address(x->dwarf, x->index, emu_take_uleb(r), &number)) x->why = damaged;
      push(x, number, op == OP_ADDRX ? EMU_ADDRESS_LINKED : EMU_ADDRESS_FLAT);
      return true;
    case OP_DEREF:
      e = pop(x);
      load(x, e.space, e.bits, 8);
      return true;
    case OP_DEREF_SIZE:
      e = pop(x);
      load(x, e.space, e.bits, emu_take(r, 1));
      return true;
    case OP_XDEREF:
      xderef(x, 8);
      return true;
    case OP_XDEREF_SIZE:
      xderef(x, emu_take(r, 1));
      return true;
    case OP_FBREG: {
      int64_t offset = emu_take_sleb(r);
      if (!x->machine->frame_base(x->machine->context, &number)) x->why = no_register;
      push(x, number + (uint64_t)offset, EMU_ADDRESS_PRIVATE);
      return true;
    }
    case OP_IMPLICIT_VALUE: {
      uint64_t bytes = emu_take_uleb(r);
      const uint8_t *at = r->at;
      emu_skip(r, bytes);
      describe(x, &(struct emu_piece){.kind = EMU_PIECE_LITERAL, .literal = {at, r->bad ? 0 : bytes}});
      return true;
    }
    case OP_STACK_VALUE:
      describe(x, &(struct emu_piece){.kind = EMU_PIECE_VALUE, .value = pop(x).bits});
      return true;
    case OP_ENTRY_VALUE:
    case OP_GNU_ENTRY_VALUE:
      entry_value(x);
      return true;
    default:
      return false;
  }
}

// The top's bits as those of a base type.
static void retype(struct run *x, const struct emu_entry *type) {
  struct element e = pop(x);
  push(x, e.bits, e.space);
  if (x->why) return;
  x->stack[x->depth - 1].encoding = type ? type->encoding : 0;
  x->stack[x->depth - 1].bytes = type ? (uint8_t)type->bytes : 0;
}

static bool step_type(struct run *x, unsigned op) {
  struct emu_reader *r = &x->r;
  const struct emu_entry *type;
  struct element e;
  uint64_t bytes;
  switch (op) {
    case OP_CONST_TYPE:
      type = base_type(x, emu_take_uleb(r));
      bytes = emu_take(r, 1);
      push(x, bytes <= 8 ? emu_take(r, (unsigned)bytes) : 0, EMU_ADDRESS_FLAT);
      if (bytes > 8 || !type) x->why = unknown_operation;
      retype(x, type);
      return true;
    case OP_REGVAL_TYPE:
      push_register(x, emu_take_uleb(r), 0, false);
      retype(x, base_type(x, emu_take_uleb(r)));
      return true;
    case OP_DEREF_TYPE:
      e = pop(x);
      load(x, e.space, e.bits, emu_take(r, 1));
      retype(x, base_type(x, emu_take_uleb(r)));
      return true;
    case OP_CONVERT:
      convert(x, base_type(x, emu_take_uleb(r)));
      return true;
    case OP_REINTERPRET:
      retype(x, base_type(x, emu_take_uleb(r)));
      return true;
    default:
      return false;
  }
}

static void step(struct run *x, unsigned op) {
  if (step_by_range(x, op) || step_stack(x, op) || step_memory(x, op) || step_type(x, op)) return;
  x->why = unknown_operation;
}

// What has been described since the last piece.
static struct emu_piece take_described(struct run *x) {
  struct emu_piece piece = {.kind = EMU_PIECE_NOWHERE};
  if (x->has_described) {
    piece = x->described;
  } else if (x->depth) {
    struct element e = pop(x);
    piece = (struct emu_piece){.kind = EMU_PIECE_MEMORY, .space = e.space, .value = e.bits};
    // a place of no named space below 4 GiB is scratch: nothing else lies there
    if (e.space == EMU_ADDRESS_FLAT && !x->in_space && e.bits <= UINT32_MAX) piece.space = EMU_ADDRESS_PRIVATE;
  }
  x->has_described = x->in_space = false;
  x->depth = 0;
  return piece;
}

unsigned emu_locate(const struct emu_dwarf *dwarf, uint32_t index, const struct emu_section *expression,
                    const struct emu_location_machine *machine, struct emu_piece out[EMU_PIECES_MOST],
                    const char **why) {
  struct run x = {.dwarf = dwarf, .index = index, .machine = machine, .start = expression->data};
  unsigned count = 0;
  x.r = (struct emu_reader){expression->data, expression->data + expression->bytes, false};
  for (unsigned steps = 0; x.r.at < x.r.end && !x.why; steps++) {
    unsigned op = (unsigned)emu_take(&x.r, 1);
    if (op == OP_PIECE) {
      uint64_t bytes = emu_take_uleb(&x.r);
      if (count == EMU_PIECES_MOST || !bytes || bytes > UINT32_MAX) {
        x.why = damaged;
        break;
      }
      out[count] = take_described(&x);
      out[count++].bytes = bytes;
    } else {
      step(&x, op);
    }
    if (x.r.bad || steps > STEPS_MOST) x.why = damaged;
  }
  *why = x.why;
  if (x.why) return 0;
  if (!count) out[count++] = take_described(&x);
  return count;
}
