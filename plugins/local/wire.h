/* What local.so, the broker and pid 1 of a box say to each other. All three are built together and run on one machine,
 * so these are plain structs in the machine's own order, one a packet (SOCK_SEQPACKET), each with a magic first. What
 * the interpreter inside a box says is another matter: see frames.h.
 *
 *   broker → local.so    struct wire_hello, once, before all else
 *   local.so → broker    struct wire_ask, with the sending end of a reply socket of its own: answers need no sorting
 *   broker → local.so    struct wire_reply on that socket, with WIRE_FDS descriptors if the box has been started
 *   pid 1 → local.so     struct wire_status on the box's status socket
 *   local.so → pid 1     struct wire_order on the same; WIRE_FILE brings the worker's end of a socket
 *   local.so → worker    on that socket struct wire_file, and for WIRE_PUT the content in packets of any size
 *   worker → local.so    struct wire_piece and its bytes, one packet each, up to a WIRE_END
 */
#ifndef LOCAL_WIRE_H
#define LOCAL_WIRE_H

#include <stdint.h>

#define WIRE_BROKER_FD 3 /* the broker's socket in the broker */
#define WIRE_MAGIC 0x53424f58u

#define WIRE_MISSING_BYTES 160

/* What the host lets the broker do. */
struct wire_hello {
    uint32_t magic;
    uint32_t is_root;
    uint32_t controls;                /* enum group_control of box/cgroup.h */
    uint32_t groups_version;          /* 1, 2; 0: no limits by control groups */
    char missing[WIRE_MISSING_BYTES]; /* why not all limits are by groups, and what to do */
};

struct wire_ask {
    uint32_t magic;
    uint32_t await_template; /* not before it is known whether there is one */
    int64_t life_ms;         /* the box ends by itself after so long without WIRE_TOUCH */
};

/* Order of the descriptors that come with a reply. */
enum wire_fd {
    WIRE_FD_CONTROL,
    WIRE_FD_STATUS,
    WIRE_FD_STDOUT,
    WIRE_FD_STDERR,
    WIRE_FD_INIT,
    WIRE_FD_EVENTS, /* of the memory of the box's control group; not there if that has none */
};
#define WIRE_FDS 6

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
    WIRE_ENDED =
        3, /* the interpreter has ended: `value` as of waitpid(), `bytes` the processes that were killed for
                        the memory of the box's control group so far; the box ends */
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
    WIRE_IDLE = 3,  /* it has ended; what it left may be frozen */
    WIRE_FILE =
        4, /* with a socket, on which the request is already: it is to be served; the one before has had its time */
};

struct wire_order {
    uint32_t magic;
    uint32_t kind;
    int64_t life_ms;
};

/* ---- files: what a worker, a process of pid 1 with the rights of the box, is asked to do ---- */

#define WIRE_PATH_BYTES 4097
#define WIRE_PIECE_BYTES 32768 /* bytes behind a struct wire_piece */
#define WIRE_FILE_BYTES_MAX ((uint64_t)10 << 20)
#define WIRE_ENTRIES_MAX 10000
#define WIRE_CHANGES_MAX 100 /* files told of one WIRE_CHANGED; the rest is counted */

enum wire_file_kind {
    WIRE_GET = 1,
    WIRE_PUT = 2,
    WIRE_LIST = 3,
    WIRE_CHANGED = 4, /* files below the home that are new or changed since the last time */
};

struct wire_file {
    uint32_t magic;
    uint32_t kind;
    uint64_t size;              /* WIRE_PUT: of the content that follows */
    char path[WIRE_PATH_BYTES]; /* ended by NUL */
};

enum wire_piece_kind {
    WIRE_DATA = 1, /* bytes of the file */
    WIRE_ENTRY =
        2, /* `number` is an enum wire_entry, the bytes are its name (WIRE_CHANGED: its path below the home) */
    WIRE_END =
        3, /* `number` is an enum wire_refusal; of WIRE_CHANGED `size` more files are not told */
};

enum wire_entry { WIRE_ENTRY_FILE, WIRE_ENTRY_FOLDER, WIRE_ENTRY_OTHER, WIRE_ENTRY_TYPES };

enum wire_refusal {
    WIRE_DONE,
    WIRE_NOT_FOUND,
    WIRE_IS_FOLDER,
    WIRE_NO_FOLDER, /* a file, where a folder must be */
    WIRE_NO_FILE,   /* neither file nor folder */
    WIRE_TOO_LARGE,
    WIRE_DENIED,
    WIRE_DISK_FULL,
    WIRE_OTHER,
    WIRE_REFUSALS
};

struct wire_piece {
    uint32_t kind;
    uint32_t number;
    uint64_t size; /* of an entry that is a file */
};

#endif
