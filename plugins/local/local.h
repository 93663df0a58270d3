/* The sandbox provider `local` inside the gateway: one instance, its table of boxes, its broker.
 *
 * A box's descriptors are read by one call at a time, the one that creates it and then the one that runs code in it;
 * destroy() and interrupt() only signal by pidfd and wake it. Everything marked [lock] is under local->lock, which is
 * held for a few instructions and never across a waiting function of the core. */
#ifndef LOCAL_LOCAL_H
#define LOCAL_LOCAL_H

#include "box/cgroup.h"
#include "frames.h"
#include "text.h"
#include "wire.h"

#include <pthread.h>
#include <sandgate/plugin.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct local_config {
    const char *python, *cpu, *isolation;
    uint64_t memory, disk, output, results;
    int64_t inodes, processes, files, uid_base, boxes, pool;
    const char *const *preload;
};

#define MODULES_MAX 32 /* of 'preload'; driver/template.py has the same bound */
#define MODULE_NAME_MAX 100

#define BOX_BUCKETS 256
#define BOX_HANDLE_BYTES 80
#define BOX_FDS 9 /* what one box holds in the gateway: fds_per_container */

/* How a box came to its end, as far as is known. */
enum box_end {
    END_NONE,
    END_DRIVER,   /* the interpreter ended: wait_status */
    END_MEMORY,   /* it was killed for the box's memory: memory_bytes */
    END_LIFE,     /* its life was over */
    END_SETUP,    /* it could not be set up: setup_error, setup_step */
    END_INTRUDED, /* its code used the interpreter's connection for what it is not */
    END_UNKNOWN,  /* closed without a word: killed from outside, or the broker is gone */
};

#define BOX_MAGIC 0x626f7831u

struct box {
    uint32_t magic;
    unsigned refs;         /* [lock] the table's, and each call's */
    struct box *next;      /* [lock] */
    bool in_table;         /* [lock] */
    bool running;          /* [lock] a call reads its descriptors */
    bool closing;          /* [lock] destroy() has been called */
    bool filing;           /* [lock] a call has a worker of the box serve it */
    bool interrupt_wanted; /* [lock] interrupt() has been called during this run */
    uint64_t number;
    char handle[BOX_HANDLE_BYTES];

    int control, status, out, err; /* -1 once at their end */
    int init, driver;              /* pidfds */
    int events;                    /* of the memory of its control group; -1: it has none */
    int epoll;                     /* of the four, and of wake */
    int wake;                      /* eventfd: something under the lock has changed */
    pid_t driver_pid;              /* on the host; packets of other processes are dropped */

    /* The reading call's. */
    bool said_hello;
    enum box_end end;
    int wait_status, setup_error;
    uint64_t memory_bytes; /* in use when processes were last killed for it */
    bool memory_killed;    /* during this run, and the interpreter lives */
    uint64_t group_kills;  /* for the memory of its control group, before this run */
    char setup_step[WIRE_STEP_BYTES];
    bool unfinished; /* a cell was left running */
    uint64_t nonce;  /* of the last cell */
};

/* What boxes rest on here. */
struct isolation {
    int tier; /* 0: root and control groups for all limits, 1: an ordinary user and these, 2: without some of them */
    unsigned controls; /* enum group_control */
    int groups_version;
    char missing[WIRE_MISSING_BYTES]; /* why not all limits are by groups; "" */
};

enum broker_state { BROKER_DEAD, BROKER_STARTING, BROKER_LIVE };

#define LOCAL_MAGIC 0x6c6f6331u

struct local {
    uint32_t magic;
    const struct local_config *config;
    enum sg_code
        unavailable; /* what a box that cannot be made is: in open() a matter of configuration */
    pthread_mutex_t lock;
    enum broker_state broker_state; /* [lock] */
    uint64_t broker_generation;     /* [lock] counts the starts */
    int broker_fd; /* the number stays the same for good: a new broker's end is moved onto it */
    struct sg_child broker;
    uint64_t cpu_millis;              /* config->cpu; 0: no limit */
    struct isolation isolation;       /* [lock] of the broker that lives */
    uint64_t boxes_made;              /* [lock] */
    uint64_t answers;                 /* [lock] of all brokers, to whomever */
    struct box *buckets[BOX_BUCKETS]; /* [lock] by number */
};

/* ---- boxes.c: the table ---- */

struct box *box_new(void); /* one reference; all descriptors -1. NULL: no memory */
bool box_prepare(
    struct box *); /* epoll and wake, once the other descriptors are there; false with errno */
int box_add(struct local *, struct box *, struct sg_error *err); /* number and handle */
struct box *box_find(struct local *, const char *handle);        /* with a reference, or NULL */
void box_remove(struct local *, struct box *);                   /* from the table; idempotent */
void box_unref(struct local *, struct box *);
void box_wake(struct box *);
/* One packet that brings a descriptor, without waiting; as send(). */
ssize_t socket_send_with_fd(int socket_fd, const void *packet, size_t len, int fd);
void box_kill(const struct box *); /* SIGKILL to its pid 1: everything in it ends */
bool box_interrupt(const struct box *);
bool box_order(const struct box *, enum wire_order_kind, int64_t life_ms); /* false: it is gone */
/* WIRE_FILE with the worker's end of a socket. 0, EAGAIN, or the errno of a box that is gone. */
int box_order_file(const struct box *, int socket_fd);

/* ---- broker.c ---- */

/* Starts it unless it lives. The generation names the one that lives now. */
int broker_start(struct local *, struct sg_call *, uint64_t *ret_generation, struct sg_error *err);
void broker_stop(struct local *, struct sg_call *);
/* A started box's descriptors into `box`. A broker that has died is replaced. While the provider opens, the answer comes
 * when it is known whether boxes are copies of a template. */
int broker_ask(struct local *, struct sg_call *, int64_t life_ms, struct box *box,
               struct sg_error *err);

/* ---- events.c: what comes from a box ---- */

enum box_ready {
    READY_CONTROL = 1 << 0,
    READY_STATUS = 1 << 1,
    READY_STDOUT = 1 << 2,
    READY_STDERR = 1 << 3,
    READY_WAKE = 1 << 4,
};

/* Waits up to `ms`; *ret_ready is 0 if that passed. Fails only as sg->wait_fd() does. */
int box_wait(struct sg_call *, const struct box *, int64_t ms, unsigned *ret_ready,
             struct sg_error *err);
void box_read_status(struct box *);
/* One packet of the interpreter's own process. Length, 0: none now, -1: it is closed. *ret_bytes counts also what was
 * dropped. */
ssize_t box_read_packet(struct box *, void *packet, size_t size, size_t *ret_bytes);
/* Bytes of one of the pipes, likewise. */
ssize_t box_read_pipe(struct box *, int *fd, void *data, size_t size);
/* Why it ended, for a message. */
const char *box_end_text(const struct local *, const struct box *, char *text, size_t size);

/* ---- provider.c: the operations but run ---- */

int64_t local_now_ms(void);
/* What a box is that the machine was too busy to make in time: the core tells the model to try again. In open() a matter of
 * configuration as any other failure. */
enum sg_code local_busy(const struct local *);
int local_create(
    struct local *, struct sg_call *, int64_t life_ms, struct box **ret_box,
    struct sg_error
        *err); /* with a reference; emits nothing. Set even on failure, if one was made */
int local_await_start(struct local *, struct sg_call *, struct box *, struct sg_error *err);
int local_destroy(struct local *, struct sg_call *, struct box *, struct sg_error *err);
extern const struct sg_sandbox_ops local_ops;

/* ---- run.c ---- */

enum run_language { RUN_PYTHON, RUN_COMMAND, RUN_SCRIPT };

struct run_request {
    enum run_language language;
    const char *code;
    size_t code_len;
    int64_t timeout_ms;
    const struct sg_sink *sink;
};
int local_run(struct local *, struct sg_call *, struct box *, const struct run_request *,
              struct sg_error *err);

/* ---- files.c ---- */

/* A worker in the box does the work, with its own rights and within its own view: no path is ever opened here. As struct
 * sg_sandbox_ops has them. */
int local_get(struct local *, struct sg_call *, struct box *, const char *path, struct sg_error *);
int local_put(struct local *, struct sg_call *, struct box *, const char *path, const void *data,
              size_t len, struct sg_error *);
int local_list(struct local *, struct sg_call *, struct box *, const char *path, struct sg_error *);
/* Tells the sink of files below the home that are new or changed since the last time. Fails only as the sink and the
 * call do: what a box does not tell is left out. */
int local_tell_changes(struct local *, struct sg_call *, struct box *, const struct sg_sink *,
                       struct sg_error *);

/* ---- isolation.c ---- */

struct isolation isolation_of(const struct wire_hello *);
/* SG_E_CONFIG (or what else local->unavailable says) where the host gives less than the option asks for. */
int isolation_check(const struct local *, const struct isolation *, struct sg_error *err);
/* As JSON, for the core to publish. */
void isolation_write(const struct local_config *, const struct isolation *, char *json,
                     size_t size);

/* ---- selftest.c: a box through the same path as any other; SG_E_CONFIG with what failed and what to do ---- */

int local_selftest(struct local *, struct sg_call *, struct sg_error *err);

/* ---- remedy.c ---- */

/* What the system says about user namespaces; -1 where it has no such setting. */
struct remedy_facts {
    int64_t userns_clone, userns_max, apparmor_restricts;
    bool is_root;
};
struct remedy_facts remedy_facts_read(void);

/* What an operator can do about a step that failed with this errno; never NULL. */
const char *remedy_pick(const char *step, int error, const struct remedy_facts *);
const char *remedy_for(const char *step, int error);

#endif
