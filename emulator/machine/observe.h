// Looks into a launch while it runs: what debuggers and traces need of the machine.
//
// An observer is told of launches and waves, and asked before each instruction of the waves that it gave a tag. Without
// one, or for waves without a tag, instructions cost nothing more. Its functions are called on the threads that
// execute, several at once unless the dispatch has one host thread and no other launch runs.
#ifndef EMULATOR_MACHINE_OBSERVE_H
#define EMULATOR_MACHINE_OBSERVE_H

#include "machine/machine.h"

struct emu_wave;

enum emu_turn {
  EMU_TURN_GO,    // it executes the instruction
  EMU_TURN_PASS,  // not yet: the other waves' turn
  EMU_TURN_KILL,  // the launch ends here with an error
};

// An access of one instruction. Of lane l in `mask` the dword k (of fewer bytes than four: the bytes) lies at the
// host's address at[l] + k * stride; `outside` are lanes that reach nothing.
enum emu_touched_space { EMU_TOUCHED_GLOBAL, EMU_TOUCHED_LDS, EMU_TOUCHED_SCRATCH };
struct emu_touched {
  const uint64_t *at;
  uint64_t mask, outside;
  unsigned bytes, stride;
  enum emu_touched_space space;
  bool reads, writes, scalar;  // scalar: of the wave, as of lane 0
};

struct emu_observer {
  void *context;
  void (*launched)(void *context, const struct emu_dispatch *dispatch);
  void (*finished)(void *context, const struct emu_dispatch *dispatch);
  // Returns the wave's tag, which `emu_wave_look` gives back; 0: its instructions are not observed.
  uint32_t (*begun)(void *context, struct emu_wave *wave);
  void (*ended)(void *context, struct emu_wave *wave);  // of every wave that has begun
  enum emu_turn (*before)(void *context, struct emu_wave *wave);
  void (*after)(void *context, struct emu_wave *wave);  // if it went; a wave that failed stands where it did
  // Between the two, of each access but those to images; NULL: of no interest.
  void (*touched)(void *context, struct emu_wave *wave, const struct emu_touched *touch);
};

enum emu_wave_doing { EMU_WAVE_RUNS, EMU_WAVE_AT_BARRIER, EMU_WAVE_IS_OVER };

// The wave as it is now. What the pointers point to may be read and written between two instructions.
struct emu_wave_view {
  const struct emu_dispatch *dispatch;
  const struct emu_isa *target;
  uint32_t tag, group[3];
  unsigned index, lanes, vgprs;  // its number in the group; lanes; rows of v
  unsigned accumulators;         // the row of the first accumulation register; 0: there are none
  enum emu_wave_doing doing;
  uint64_t base, pc;  // addresses: of the program's first byte, of the next instruction
  uint32_t *s;        // scalar registers, numbered as in isa.h
  uint32_t *v;        // [vgprs][lanes]
  uint8_t *lds;
  uint32_t lds_bytes, mode;
  uint64_t scratch_bytes;  // of a lane
  uint8_t *scratch;        // [dword][lanes], dwords
  bool scc;
};
void emu_wave_look(const struct emu_wave *wave, struct emu_wave_view *out);

void emu_wave_set_scc(struct emu_wave *wave, bool scc);
void emu_wave_set_mode(struct emu_wave *wave, uint32_t mode);
bool emu_wave_set_pc(struct emu_wave *wave, uint64_t address);  // false: no word of the program starts there

// Copies at most `bytes` bytes between `data` and memory at a flat address, as the wave's lane would see it: the window
// of LDS, of the lane's scratch, or an allocation. Returns how many there were.
size_t emu_wave_read(const struct emu_wave *wave, unsigned lane, uint64_t address, void *data, size_t bytes);
size_t emu_wave_write(struct emu_wave *wave, unsigned lane, uint64_t address, const void *data, size_t bytes);
// Where those windows begin.
uint64_t emu_lds_window(void);
uint64_t emu_scratch_window(void);

// The instruction at the address, decoded for the wave; its text if `text` is no NULL. Returns its bytes, 0: no word of
// the program is there. What is no instruction has op NONE and its words as text.
size_t emu_wave_instruction(const struct emu_wave *wave, uint64_t address, struct emu_inst *out,
                            char text[EMU_ISA_TEXT]);
// Why the launch failed; NULL: it has not. And how many findings the checker has so far.
const struct emu_report *emu_wave_failure(const struct emu_wave *wave);
uint32_t emu_wave_findings(const struct emu_wave *wave);

#endif
