/* What a test asks a stand-in for NVRTC. */
#ifndef RDNA_KERNEL_FAKE_NVRTC_H
#define RDNA_KERNEL_FAKE_NVRTC_H

typedef struct fake_nvrtc_record {
  int programs;       /* live */
  int compilations;   /* that were asked for */
  char options[1024]; /* of the last, one a line */
} fake_nvrtc_record;

#endif
