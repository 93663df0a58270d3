/* What a service manager and a service say to each other, in systemd's way: a datagram when the state changes, and a
 * listening socket handed over at the start. Nothing is linked for it: both are a few lines of text and descriptors. */
#ifndef SANDGATE_GATEWAY_SYSTEMD_H
#define SANDGATE_GATEWAY_SYSTEMD_H

#include "base/error.h"
#include "gateway/listen.h"

/* Tells whoever listens at $NOTIFY_SOCKET, if it is set: "READY=1", "STOPPING=1", with further lines. A failure is
 * logged and changes nothing else. */
void service_notify(const char *state);

/* Takes the listening sockets, of TCP or Unix, that $LISTEN_FDS and $LISTEN_PID announce to this process over: ret->at and
 * ret->count, which is 0 without any. Too many, or another kind, are SG_E_CONFIG. The environment is rid of the three
 * variables, so that no child takes them for its own. */
int activation_take(struct listen *ret, struct sg_error *err);
/* Are there sockets that activation_take() would take? False behind it. */
bool activation_is_announced(void);
/* The same with the number of the first descriptor, which is 3, for tests. */
int activation_take_from(int first_fd, struct listen *ret, struct sg_error *err);

#endif
