// Events that other processes record and wait for. What they share is a page in an anonymous file, which others open by
// way of the process that made the event:
//
//     hipIpcEventHandle_t, 64 bytes: | mark | process | descriptor | 0 … |
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "hip/ipc_event.h"

enum { MARK = 0x72646e65, DISABLE_TIMING = 2, INTERPROCESS = 4 };

struct event_handle {
  uint32_t mark, process, file;
  uint8_t rest[52];
};
_Static_assert(sizeof(struct event_handle) == 64, "HIP_IPC_HANDLE_SIZE");

// Records are numbered by all processes together. The event is its last one's, so that a record that is passed counts
// for all before it.
struct page {
  _Atomic uint64_t recorded, passed;
  _Atomic uint32_t recorder;  // process of the last record
};

struct emu_ipc_event {
  _Atomic int references;
  int file;  // -1: another process has it
  struct page *page;
};

static struct emu_ipc_event *make(int file, bool own) {
  struct emu_ipc_event *event = calloc(1, sizeof *event);
  void *page = event ? mmap(NULL, sizeof(struct page), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  if (page == MAP_FAILED) {
    free(event);
    return NULL;
  }
  event->references = 1;
  event->file = own ? file : -1;
  event->page = page;
  return event;
}

struct emu_ipc_event *emu_ipc_event_create(void) {
  int file = memfd_create("event", MFD_CLOEXEC);
  struct emu_ipc_event *event = file >= 0 && ftruncate(file, sizeof(struct page)) == 0 ? make(file, true) : NULL;
  if (!event && file >= 0) close(file);
  return event;
}

void emu_ipc_event_release(struct emu_ipc_event *event) {
  if (--event->references > 0) return;
  munmap(event->page, sizeof *event->page);
  if (event->file >= 0) close(event->file);
  free(event);
}

struct task {
  struct emu_ipc_event *event;
  uint64_t number;
};

static void release_task(void *context) {
  struct task *task = context;
  emu_ipc_event_release(task->event);
  free(task);
}

static int submit(struct emu_ipc_event *event, uint64_t number, int (*run)(void *), struct emu_stream *stream) {
  struct task *task = malloc(sizeof *task);
  if (!task) return HIP_OUT_OF_MEMORY;
  *task = (struct task){event, number};
  event->references++;
  return emu_stream_submit(stream, (struct emu_work){run, release_task, task, EMU_NODE_EMPTY}, NULL, NULL);
}

static int pass(void *context) {
  const struct task *task = context;
  uint64_t passed = task->event->page->passed;
  while (passed < task->number && !atomic_compare_exchange_weak(&task->event->page->passed, &passed, task->number))
    continue;
  return HIP_SUCCESS;
}

int emu_ipc_event_record(struct emu_ipc_event *event, struct emu_stream *stream) {
  event->page->recorder = (uint32_t)getpid();
  uint64_t number = ++event->page->recorded;
  int code = submit(event, number, pass, stream);
  if (code != HIP_SUCCESS) (void)pass(&(struct task){event, number});  // or others would wait for it
  return code;
}

bool emu_ipc_event_reached(const struct emu_ipc_event *event) { return event->page->passed >= event->page->recorded; }

// Also one that its parent, which may be who waits here, has not yet taken notice of: signals still reach it.
static bool has_ended(pid_t process) {
  int it = (int)syscall(SYS_pidfd_open, process, 0);
  if (it < 0) return errno == ESRCH || (kill(process, 0) != 0 && errno == ESRCH);
  bool ended = poll(&(struct pollfd){.fd = it, .events = POLLIN}, 1, 0) > 0;
  close(it);
  return ended;
}

// The number may be another process's, which can end before.
static int wait_for(void *context) {
  const struct task *task = context;
  const struct page *page = task->event->page;
  while (page->passed < task->number) {
    if (has_ended((pid_t)page->recorder) && page->passed < task->number) {
      emu_say("process %u has ended without the work behind which it recorded an event", page->recorder);
      return HIP_CONTEXT_IS_DESTROYED;
    }
    nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
  }
  return HIP_SUCCESS;
}

int emu_ipc_event_synchronize(struct emu_ipc_event *event) {
  return wait_for(&(struct task){event, event->page->recorded});
}
int emu_ipc_event_wait(struct emu_ipc_event *event, struct emu_stream *stream) {
  return submit(event, event->page->recorded, wait_for, stream);
}

// ---- the calls

API int hipIpcGetEventHandle(struct event_handle *out, struct emu_event *event) {
  struct emu_ipc_event *shared = event ? emu_event_ipc(event) : NULL;
  if (!out || !event) return emu_done(HIP_INVALID_VALUE);
  if (!shared || shared->file < 0) return emu_done(HIP_INVALID_VALUE);  // made without hipEventInterprocess, or opened
  *out = (struct event_handle){MARK, (uint32_t)getpid(), (uint32_t)shared->file, {0}};
  return emu_done(HIP_SUCCESS);
}

static struct emu_ipc_event *open_event(const struct event_handle *h) {
  char path[64];
  struct stat about;
  snprintf(path, sizeof path, "/proc/%u/fd/%u", h->process, h->file);
  int file = open(path, O_RDWR | O_CLOEXEC);
  bool whole = file >= 0 && fstat(file, &about) == 0 && (uint64_t)about.st_size == sizeof(struct page);
  struct emu_ipc_event *event = whole ? make(file, false) : NULL;
  if (file >= 0) close(file);
  if (!event) emu_say("the event of process %u that a handle names is not there any more", h->process);
  return event;
}

// By value, as HIP passes it.
API int hipIpcOpenEventHandle(struct emu_event **out, struct event_handle handle) {
  if (!out || handle.mark != MARK) return emu_done(HIP_INVALID_VALUE);
  if (handle.process == (uint32_t)getpid()) return emu_done(HIP_INVALID_CONTEXT);
  struct emu_ipc_event *shared = open_event(&handle);
  if (!shared) return emu_done(HIP_INVALID_VALUE);
  return emu_done(emu_event_create(DISABLE_TIMING | INTERPROCESS, shared, out));
}
