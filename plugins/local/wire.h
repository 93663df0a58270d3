/* What local.so, the broker and pid 1 of a box say to each other. All three are built together and run on one machine,
 * so these are plain structs in the machine's own order, one a packet (SOCK_SEQPACKET), each with a magic first. What
 * the interpreter inside a box says is another matter: see frames.h.
 *
 *   local.so → broker    struct wire_ask, with the sending end of a reply socket of its own: answers need no sorting
 *   broker → local.so    struct wire_reply on that socket, with WIRE_FDS descriptors if the box has been started
 *   pid 1 → local.so     struct wire_status on the box's status socket
 *   local.so → pid 1     struct wire_order on the same
 */
#ifndef LOCAL_WIRE_H
#define LOCAL_WIRE_H

#include <stdint.h>

#define WIRE_BROKER_FD 3 /* the broker's socket in the broker */
#define WIRE_MAGIC 0x53424f58u

struct wire_ask {
    uint32_t magic;
    uint32_t await_template; /* not before it is known whether there is one */
    int64_t life_ms;         /* the box ends by itself after so long without WIRE_TOUCH */
};

/* Order of the descriptors that come with a reply. */
enum wire_fd { WIRE_FD_CONTROL, WIRE_FD_STATUS, WIRE_FD_STDOUT, WIRE_FD_STDERR, WIRE_FD_INIT };
#define WIRE_FDS 5

#define WIRE_STEP_BYTES 120
#define WIRE_NOTE_BYTES 256

struct wire_reply {
    uint32_t magic;
    int32_t error; /* errno of the step that failed; 0: the box has been started */
    char step[WIRE_STEP_BYTES];
    char note[WIRE_NOTE_BYTES]; /* for the operator's log; mostly empty */
};

enum wire_status_kind {
    WIRE_READY = 1, /* the interpreter has been started; with its pidfd */
    WIRE_FAILED =
        2, /* the box could not be set up: `value` is errno, `step` says what was tried; it ends */
    WIRE_ENDED = 3,  /* the interpreter has ended: `value` as of waitpid(); the box ends */
    WIRE_MEMORY = 4, /* the box went over its memory: `bytes` were in use, processes were killed */
    WIRE_LIFE_OVER = 5, /* nobody touched it for its life; it ends */
};

struct wire_status {
    uint32_t magic;
    uint32_t kind;
    int32_t value;
    uint32_t driver_killed; /* WIRE_MEMORY: the interpreter was among the killed */
    uint64_t bytes;
    char step[WIRE_STEP_BYTES];
};

enum wire_order_kind {
    WIRE_TOUCH = 1, /* `life_ms` from now on */
    WIRE_BUSY = 2,  /* code is about to run: watch closely */
    WIRE_IDLE = 3,  /* it has ended */
};

struct wire_order {
    uint32_t magic;
    uint32_t kind;
    int64_t life_ms;
};

#endif
