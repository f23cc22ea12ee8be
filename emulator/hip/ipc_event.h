// An event as several processes have it.
#ifndef EMULATOR_HIP_IPC_EVENT_H
#define EMULATOR_HIP_IPC_EVENT_H

#include "hip/hip.h"

struct emu_ipc_event;
struct emu_ipc_event *emu_ipc_event_create(void);  // NULL: no memory
void emu_ipc_event_release(struct emu_ipc_event *event);
int emu_ipc_event_record(struct emu_ipc_event *event, struct emu_stream *stream);
int emu_ipc_event_wait(struct emu_ipc_event *event, struct emu_stream *stream);
bool emu_ipc_event_reached(const struct emu_ipc_event *event);
int emu_ipc_event_synchronize(struct emu_ipc_event *event);

// |shared| is the event's own, or released: an event of one process has none.
int emu_event_create(unsigned flags, struct emu_ipc_event *shared, struct emu_event **out);
struct emu_ipc_event *emu_event_ipc(const struct emu_event *event);

#endif
