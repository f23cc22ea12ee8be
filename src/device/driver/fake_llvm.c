/* A library of which two releases meet in a process, as LLVM's do in TensorFlow beside a distribution's HIP: names that
 * all see, and a call of its own by one of them. */
#define SHOWN __attribute__((visibility("default")))

SHOWN void *_ZTVN4llvm19raw_svector_ostreamE[1];
SHOWN int fake_llvm_release(void);
SHOWN int fake_llvm_asked(void);
int fake_llvm_release(void) { return FAKE_LLVM; }
int fake_llvm_asked(void) { return fake_llvm_release(); }
