/* Templates: processes of the interpreter, with its side of a box and some modules loaded, of which boxes are copies.
 *
 * A template runs in user, mount, network and ipc namespaces of its own, in a root like that of a box and without
 * privileges on the host: modules are loaded there, not on the host. It runs no code of a user. The broker hands it the
 * descriptors of a box; it clones itself into the namespaces of that box, as a child of the broker, and writes the id
 * maps; from there on the copy goes the way of every pid 1 (enter.c).
 *
 * At one time there is one that makes boxes, and one that is being started in its place where packages have changed. One
 * that has died is started again, later each time. */
#ifndef LOCAL_TEMPLATE_H
#define LOCAL_TEMPLATE_H

#include "box.h"

/* The descriptors of a template. */
#define TEMPLATE_FD_SOCKET 3
#define TEMPLATE_FD_LIBRARY 4

/* What it says while it starts, one packet each: a letter and a text. Where it could not even run the interpreter comes a
 * struct wire_status. */
#define TEMPLATE_SAYS_FOLDERS 'F' /* lines "mtime_ns inode path" of what is looked at for changes */
#define TEMPLATE_SAYS_READY 'R'   /* what is worth telling the operator, or nothing */
#define TEMPLATE_SAYS_CANNOT 'C'  /* why; it ends */
#define TEMPLATE_PACKET_MAX 8192

/* One box, with the descriptors of box_fds_list() that are there. */
struct template_ask {
    uint32_t magic;
    uint32_t fds;      /* which are: bits */
    struct id_map map; /* of uids and gids alike, as the template's own namespace numbers them */
    int64_t life_ms;
    struct box_limits limits;
};

/* With the pidfd of pid 1 where there is one; it ends if its start byte does not come. */
struct template_answer {
    uint32_t magic;
    int32_t error;        /* errno of the step, or 0 */
    uint32_t is_in_group; /* of v2: it was born there */
    char step[WIRE_STEP_BYTES];
};

/* A pid 1 that has been made; -1 where it has not. */
struct box_birth {
    pid_t pid;
    int pidfd;
    bool is_in_group; /* of v2 */
};

/* ---- template.c: one of them, in the broker ---- */

enum template_state { TEMPLATE_NONE, TEMPLATE_STARTING, TEMPLATE_READY };

struct box_template {
    enum template_state state;
    pid_t pid;
    int socket;    /* -1 without one */
    int64_t since; /* when it was started */
    size_t folders_len;
    char folders[TEMPLATE_PACKET_MAX]; /* ended by a NUL */
};

/* Starts it; it gets ready in its own time. False with errno and the step. */
bool template_start(struct box_template *, const struct box_maker *, const char **ret_step);
/* Takes what it has said. A text of why it cannot go on, which ends it, or NULL. ret_note: what it says when it gets
 * ready. */
const char *template_hear(struct box_template *, char *note, size_t size);
/* Whether packages or the interpreter are others than when it was started. */
bool template_is_outdated(const struct box_template *);
/* Lets it go: it ends, boxes stay. The process is reaped by the main loop. */
void template_leave(struct box_template *);
/* A box as a copy of it, whose id maps are written. NULL, or the step that failed, with errno; then ret->pid may be one to
 * be reaped. */
const char *template_clone(struct box_template *, const struct box_maker *, uint32_t host_id,
                           const struct box_fds *, int64_t life_ms, struct box_birth *ret);

/* ---- template_enter.c: the process that becomes one ---- */

struct template_fds {
    int start, socket, library;
};
void template_enter(const struct box_limits *, const struct template_fds *)
    __attribute__((noreturn));
/* The ids of its user namespace: as root all that boxes can have, and one more that is its own. */
struct id_map template_map(const struct box_limits *, bool is_group);
uint32_t template_own_id(const struct box_limits *);

#endif
