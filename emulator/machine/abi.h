// Bit-fields that the compiler, the hardware and the emulator agree on, by AMD's names.
#ifndef RDNA_EMULATOR_MACHINE_ABI_H
#define RDNA_EMULATOR_MACHINE_ABI_H

#include "isa/isa.h"

// A field below is two arguments, its lowest bit and its number of bits, for emu__bits and for emu__in_bits, its
// opposite.
static inline uint32_t emu__in_bits(uint32_t value, unsigned low, unsigned count) {
  return emu__bits(value, 0, count) << low;
}

// LLVM's "User Guide for AMDGPU Backend", section "Kernel Descriptor": compute_pgm_rsrc1 and
// compute_pgm_rsrc2 of GFX6 to GFX12, then the descriptor's kernel code properties.
#define EMU_RSRC1_GRANULATED_WORKITEM_VGPR_COUNT 0, 6
#define EMU_RSRC1_FLOAT_MODE 12, 8  // rounding and denormals, of 32 bits and then of 16 and 64
#define EMU_RSRC1_ENABLE_DX10_CLAMP 21, 1
#define EMU_RSRC1_ENABLE_IEEE_MODE 23, 1
#define EMU_RSRC1_FP16_OVFL 26, 1
#define EMU_RSRC1_WGP_MODE 29, 1  // GFX10 and later: the waves of a group run on both compute units of a pair

#define EMU_RSRC2_ENABLE_PRIVATE_SEGMENT 0, 1
#define EMU_RSRC2_USER_SGPR_COUNT 1, 5
#define EMU_RSRC2_ENABLE_SGPR_WORKGROUP_ID(axis) 7 + (axis), 1
#define EMU_RSRC2_ENABLE_SGPR_WORKGROUP_INFO 10, 1
#define EMU_RSRC2_ENABLE_VGPR_WORKITEM_ID 11, 2  // 0: x; 1: x and y; 2: all three

#define EMU_RSRC3_ACCUM_OFFSET 0, 6  // gfx90a and gfx942: in units of four registers, less one
#define EMU_RSRC3_TG_SPLIT 16, 1     // gfx90a and later: the waves of a group may run on different compute units

#define EMU_PROPERTY_ENABLE_WAVEFRONT_SIZE32 10, 1

// Kernel code properties that ask for user SGPRs: the enumerator is the property's bit, the order is that of the
// registers, and the array below says how many registers each takes. Source: the same guide, section "Initial Kernel
// Execution State", table "SGPR Register Set Up Order".
enum emu_user_sgprs {
  EMU_PRIVATE_SEGMENT_BUFFER,
  EMU_DISPATCH_PTR,
  EMU_QUEUE_PTR,
  EMU_KERNARG_SEGMENT_PTR,
  EMU_DISPATCH_ID,
  EMU_FLAT_SCRATCH_INIT,
  EMU_PRIVATE_SEGMENT_SIZE,
  EMU_USER_SGPRS_COUNT
};
static const uint8_t emu_user_sgprs_size[EMU_USER_SGPRS_COUNT] = {4, 2, 2, 2, 2, 2, 1};

// Work-item ids packed in one VGPR (emu_isa.packed_ids), same section, table "VGPR Register Set Up Order for Packed
// Work-Item ID Method".
#define EMU_PACKED_ID_X 0, 10
#define EMU_PACKED_ID_Y 10, 10
#define EMU_PACKED_ID_Z 20, 10

// What the hardware leaves in trap temporaries where emu_isa.groups_in_ttmp; TTMP9 is the group's number in x. Source:
// the same guide, section "Initial Kernel Execution State", architected SGPRs.
#define EMU_TTMP7_GROUP_Y 0, 16
#define EMU_TTMP7_GROUP_Z 16, 16
#define EMU_TTMP8_WAVE 25, 5  // in its group

// A V#, the descriptor of a buffer in four scalar registers; its fields here bear the word's number (emu_isa.v1_swizzle
// is one more). Word 0 is the low half of the base, word 2 the number of records. Source: "RDNA 2" and "RDNA3
// Instruction Set Architecture", section "Buffer Resource Descriptor".
#define EMU_V1_BASE_HIGH 0, 16
#define EMU_V1_STRIDE 16, 14
#define EMU_V3_INDEX_STRIDE 21, 2  // swizzled: 8 << this many records are interleaved
#define EMU_V3_ADD_TID_ENABLE 23, 1
#define EMU_V3_OOB_SELECT 28, 2
// A T#, the descriptor of an image in eight scalar registers, beside emu_isa.image: the address in units of 256 bytes,
// what the components of a result are, how texels lie (0: in rows, the only way that is executed), which kind of image.
// Source: the same guides, section "Image Resource Definition"; resource_nv.h, resource_gfx11.h and resource_gfx12.h of
// AMD's ROCr.
#define EMU_T1_BASE_HIGH 0, 8
#define EMU_T3_SELECT(component) 3 * (component), 3
enum emu_select { EMU_SELECT_0, EMU_SELECT_1, EMU_SELECT_X = 4 };
#define EMU_T3_SWIZZLE_MODE 20, 5
#define EMU_T3_TYPE 28, 4
enum emu_image_type { EMU_TYPE_1D = 8, EMU_TYPE_2D, EMU_TYPE_3D, EMU_TYPE_CUBE, EMU_TYPE_1D_ARRAY, EMU_TYPE_2D_ARRAY };
enum { EMU_LINEAR_PITCH = 256 };  // rows of images without a pitch of their own (3D, arrays) begin at its multiples

// An S#, the descriptor of a sampler in four scalar registers.
#define EMU_S0_CLAMP(axis) 3 * (axis), 3
enum emu_clamp { EMU_CLAMP_WRAP, EMU_CLAMP_MIRROR, EMU_CLAMP_EDGE, EMU_CLAMP_BORDER = 6 };
#define EMU_S0_UNNORMALIZED 15, 1
#define EMU_S0_TRUNCATES 27, 1
#define EMU_S1_MAX_LOD 12, 12
#define EMU_S2_MAG_FILTER 20, 2
#define EMU_S2_MIN_FILTER 22, 2
#define EMU_S2_Z_FILTER 24, 2
enum emu_filter { EMU_FILTER_POINT, EMU_FILTER_LINEAR };
enum emu_z_filter { EMU_Z_AS_XY, EMU_Z_POINT, EMU_Z_LINEAR };
#define EMU_S3_BORDER 30, 2
enum emu_border { EMU_BORDER_CLEAR, EMU_BORDER_BLACK, EMU_BORDER_WHITE };

enum emu_oob_select { EMU_OOB_STRUCTURED, EMU_OOB_INDEX, EMU_OOB_NO_RECORDS, EMU_OOB_RAW };

#endif
