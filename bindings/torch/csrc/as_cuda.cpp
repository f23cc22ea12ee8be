// "cuda" as a name of rdna's devices, for programs that cannot be changed: torch_rdna/as_cuda.py.
//
// PyTorch registers one name for a device of ours and refuses "cuda", which has a number of its own in c10. Names
// become numbers and numbers names in three functions of libc10, which libtorch_cpu and libtorch_python call through
// the tables of addresses that every shared library has (its GOT). The entries of those three get ours, which differ
// for the one device and call libc10's for all others:
//
//   torch.zeros(3, device="cuda") -> libtorch_python -> GOT: c10::Device(string) -> device_of -> libc10
//
// So it holds for whatever names a device: factories, .to(), generators, autocast, torch.load, TorchScript, all
// threads. No call is slower for it, and no function of PyTorch is another object than before.
#include "as_cuda.h"

#include <c10/core/Device.h>
#include <c10/core/DeviceType.h>
#include <c10/util/Exception.h>

#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>
#include <new>
#include <string>
#include <vector>

#if defined(__x86_64__)
#define JUMP_SLOT R_X86_64_JUMP_SLOT
#define GLOB_DAT R_X86_64_GLOB_DAT
#elif defined(__aarch64__)
#define JUMP_SLOT R_AARCH64_JUMP_SLOT
#define GLOB_DAT R_AARCH64_GLOB_DAT
#endif

namespace rdna_torch {
namespace {

constexpr auto kRdna = c10::DeviceType::PrivateUse1;

void device_of(c10::Device *self, const std::string &text) {  // a constructor is a function that gets the place
  const bool cuda = text == "cuda" || text.rfind("cuda:", 0) == 0;
  new (self) c10::Device(cuda ? "rdna" + text.substr(4) : text);
}

std::string backend_name(bool lower_case) { return lower_case ? "cuda" : "CUDA"; }

std::string type_name(c10::DeviceType type, bool lower_case) {
  return type == kRdna ? backend_name(lower_case) : c10::DeviceTypeName(type, lower_case);
}

struct Replacement {
  const char *symbol;
  void *ours;
  bool in_c10;  // libc10 must still find the name that was registered, by which it reads "rdna"
  int found;
};

#if _GLIBCXX_USE_CXX11_ABI
#define STRING "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
#define RETURNS_STRING "B5cxx11"
#else
#define STRING "Ss"
#define RETURNS_STRING ""
#endif

struct Slot {
  void **place;
  void *ours;
  bool read_only;
};

struct Search {
  std::vector<Replacement> wanted;
  std::vector<Slot> slots;
};

#ifdef JUMP_SLOT

struct Library {  // what its dynamic section says
  const char *name;
  ElfW(Addr) base;
  const ElfW(Sym) *symbols = nullptr;
  const char *strings = nullptr;
  struct {
    const ElfW(Rela) * first;
    size_t bytes;
  } tables[2] = {};
  ElfW(Addr) relro_begin = 0, relro_end = 0;  // where the loader has taken the right to write

  // The addresses in a dynamic section are those of memory with glibc, and count from the base with others.
  template <class T>
  const T *at(ElfW(Addr) address) const {
    return reinterpret_cast<const T *>(address < base ? base + address : address);
  }

  explicit Library(const dl_phdr_info *info) : name(info->dlpi_name), base(info->dlpi_addr) {
    const ElfW(Dyn) *entry = nullptr;
    for (int i = 0; i < info->dlpi_phnum; i++) {
      const ElfW(Phdr) &header = info->dlpi_phdr[i];
      if (header.p_type == PT_DYNAMIC) entry = reinterpret_cast<const ElfW(Dyn) *>(base + header.p_vaddr);
      if (header.p_type == PT_GNU_RELRO) {
        relro_begin = base + header.p_vaddr;
        relro_end = relro_begin + header.p_memsz;
      }
    }
    for (; entry != nullptr && entry->d_tag != DT_NULL; entry++) {
      if (entry->d_tag == DT_SYMTAB) symbols = at<ElfW(Sym)>(entry->d_un.d_ptr);
      if (entry->d_tag == DT_STRTAB) strings = at<char>(entry->d_un.d_ptr);
      if (entry->d_tag == DT_RELA) tables[0].first = at<ElfW(Rela)>(entry->d_un.d_ptr);
      if (entry->d_tag == DT_RELASZ) tables[0].bytes = entry->d_un.d_val;
      if (entry->d_tag == DT_JMPREL) tables[1].first = at<ElfW(Rela)>(entry->d_un.d_ptr);
      if (entry->d_tag == DT_PLTRELSZ) tables[1].bytes = entry->d_un.d_val;
    }
  }
};

int search(dl_phdr_info *info, size_t, void *data) {
  const std::string path = info->dlpi_name;
  const std::string file = path.substr(path.rfind('/') + 1);
  const bool c10 = file.rfind("libc10", 0) == 0;
  if (!c10 && file.rfind("libtorch", 0) != 0) return 0;
  const Library library(info);
  auto &[wanted, slots] = *static_cast<Search *>(data);
  if (library.symbols == nullptr || library.strings == nullptr) return 0;
  for (const auto &table : library.tables) {
    for (size_t i = 0; table.first != nullptr && i < table.bytes / sizeof *table.first; i++) {
      const ElfW(Rela) &entry = table.first[i];
      const auto type = ELF64_R_TYPE(entry.r_info);
      if (type != JUMP_SLOT && type != GLOB_DAT) continue;
      const std::string_view symbol = library.strings + library.symbols[ELF64_R_SYM(entry.r_info)].st_name;
      for (Replacement &replacement : wanted) {
        if (symbol != replacement.symbol || (c10 && !replacement.in_c10)) continue;
        const ElfW(Addr) place = library.base + entry.r_offset;
        const bool read_only = place >= library.relro_begin && place < library.relro_end;
        slots.push_back({reinterpret_cast<void **>(place), replacement.ours, read_only});
        replacement.found += file.rfind("libtorch_python", 0) == 0;
      }
    }
  }
  return 0;
}

#endif

void write(const Slot &slot) {
  const auto size = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  void *page = reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(slot.place) & ~(size - 1));
  if (slot.read_only) {
    TORCH_CHECK(mprotect(page, size, PROT_READ | PROT_WRITE) == 0,
                "as_cuda: the system does not let this process change its table of PyTorch's functions");
  }
  __atomic_store_n(slot.place, slot.ours, __ATOMIC_RELEASE);  // other threads may be calling
  if (slot.read_only) mprotect(page, size, PROT_READ);
}

}  // namespace

void as_cuda() {
  static bool done = false;  // under Python's lock
  if (done) return;
  Search found;
  found.wanted = {
      {"_ZN3c106DeviceC1ERK" STRING, reinterpret_cast<void *>(&device_of), true, 0},
      {"_ZN3c1014DeviceTypeName" RETURNS_STRING "ENS_10DeviceTypeEb", reinterpret_cast<void *>(&type_name), true, 0},
      {"_ZN3c1023get_privateuse1_backend" RETURNS_STRING "Eb", reinterpret_cast<void *>(&backend_name), false, 0},
  };
#ifdef JUMP_SLOT
  dl_iterate_phdr(search, &found);
#endif
  for (const Replacement &replacement : found.wanted) {
    TORCH_CHECK_NOT_IMPLEMENTED(replacement.found > 0,
                                "as_cuda: this build of PyTorch reads the names of devices in "
                                "another way (no call of ",
                                replacement.symbol,
                                " was found in libtorch_python); write \"rdna\" for \"cuda\" in the program");
  }
  for (const Slot &slot : found.slots) write(slot);
  done = true;
}

}  // namespace rdna_torch
