// Answers a GDB over bytes, wherever they come from.
#ifndef EMULATOR_DEBUG_REMOTE_H
#define EMULATOR_DEBUG_REMOTE_H

#include "debug/session.h"

struct emu_wire {
  void *context;
  long (*read)(void *context, char *bytes, size_t room);  // waits for at least one; 0 or less: there will be none
  bool (*write)(void *context, const char *bytes, size_t count);
  bool (*ready)(void *context);  // whether read would not wait
};

struct emu_remote;
struct emu_remote *emu_remote_create(const struct emu_wire *wire);
void emu_remote_release(struct emu_remote *remote);
// The front of a session whose context is the remote.
void emu_remote_front(struct emu_remote *remote, struct emu_front *out);
void emu_remote_exited(struct emu_remote *remote, int status);  // tells a client that waits

// Listens on a port of the loopback, 0: any, and prints which; -1: it cannot be had, which was said. Its first client
// has the wire, for whom the first `read` waits.
int emu_remote_listen(const char *port, void (*say)(const char *format, ...));
struct emu_socket;
struct emu_socket *emu_socket_create(int listener, struct emu_wire *out);
void emu_socket_release(struct emu_socket *socket);

#endif
