// The wire of a GDB on this machine: one connection on the loopback.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "debug/remote.h"

struct emu_socket {
  int listener, connection;
};

int emu_remote_listen(const char *port, void (*say)(const char *format, ...)) {
  char *end;
  unsigned long number = strtoul(port, &end, 10);
  if (port[0] < '0' || port[0] > '9' || *end || number > 65535) {
    say("'%s' is no port for a debugger: a number from 0 to 65535", port);
    return -1;
  }
  struct sockaddr_in at = {
      .sin_family = AF_INET, .sin_port = htons((uint16_t)number), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t length = sizeof at;
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
  if (listener >= 0) (void)setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (listener < 0 || bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 1) ||
      getsockname(listener, (struct sockaddr *)&at, &length)) {
    say("a debugger cannot be waited for at 127.0.0.1:%s: %s", port, strerror(errno));
    if (listener >= 0) close(listener);
    return -1;
  }
  fprintf(stderr, "rdna emulator: the first kernel waits for a debugger: target remote 127.0.0.1:%u\n",
          ntohs(at.sin_port));
  return listener;
}

static bool connect_first(struct emu_socket *s) {
  int yes = 1;
  if (s->connection >= 0) return true;
  if (s->listener < 0) return false;
  do {
    s->connection = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
  } while (s->connection < 0 && errno == EINTR);
  close(s->listener);  // no second client
  s->listener = -1;
  if (s->connection >= 0) (void)setsockopt(s->connection, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return s->connection >= 0;
}

static long read_some(void *context, char *bytes, size_t room) {
  struct emu_socket *s = context;
  if (!connect_first(s)) return -1;
  for (;;) {
    ssize_t got = recv(s->connection, bytes, room, 0);
    if (got >= 0 || errno != EINTR) return got;
  }
}

static bool write_all(void *context, const char *bytes, size_t count) {
  struct emu_socket *s = context;
  if (!connect_first(s)) return false;
  while (count) {
    ssize_t some = send(s->connection, bytes, count, MSG_NOSIGNAL);
    if (some < 0 && errno == EINTR) continue;
    if (some <= 0) return false;
    bytes += some;
    count -= (size_t)some;
  }
  return true;
}

static bool is_ready(void *context) {
  struct emu_socket *s = context;
  struct pollfd one = {.fd = s->connection, .events = POLLIN};
  return s->connection >= 0 && poll(&one, 1, 0) > 0;
}

struct emu_socket *emu_socket_create(int listener, struct emu_wire *out) {
  struct emu_socket *s = malloc(sizeof *s);
  if (!s) return NULL;
  *s = (struct emu_socket){listener, -1};
  *out = (struct emu_wire){.context = s, .read = read_some, .write = write_all, .ready = is_ready};
  return s;
}

void emu_socket_release(struct emu_socket *s) {
  if (!s) return;
  if (s->listener >= 0) close(s->listener);
  if (s->connection >= 0) close(s->connection);
  free(s);
}
