/* Where to serve: `server.listen`, or the sockets that whoever started the process hands over. */
#ifndef SANDGATE_GATEWAY_LISTEN_H
#define SANDGATE_GATEWAY_LISTEN_H

#include "base/error.h"
#include "http/server.h"

struct config;

#define LISTEN_HOST_BYTES 256

struct listen {
    struct http_listener_options at[HTTP_LISTENERS_MAX];
    /* Of each: its host as the file has it, as clients may write it in Host; "" for a Unix socket. */
    char hosts[HTTP_LISTENERS_MAX][LISTEN_HOST_BYTES];
    size_t count;
    bool is_handed_over;
    const char *option;  /* that is being read, for messages */
    bool admin_is_local; /* only this machine reaches `server.admin` */
};

/* The addresses of the configuration, and whether authentication lets them be: SG_E_CONFIG, and then *ret_entry is the
 * entry of `server.listen`. May look names up. */
int listen_read(const struct config *, struct listen *ret, size_t *ret_entry, struct sg_error *err);
/* Adds that of `server.admin`, if there is one: SG_E_CONFIG likewise. It is never handed over. */
int listen_read_admin(const struct config *, struct listen *ret, struct sg_error *err);
/* The sockets that a service manager has handed over, else the addresses of the configuration; and that of the admin. */
int listen_choose(const struct config *, struct listen *ret, struct sg_error *err);

#endif
