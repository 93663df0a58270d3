/* The broker's own state, and what its parts do with it: slots and asking (main.c), the pool (pool.c), templates
 * (templates.c). One thread. */
#ifndef LOCAL_BROKER_H
#define LOCAL_BROKER_H

#include "template.h"

#define BOXES_MAX 4096
#define POOL_MAX 64

/* A box that is ready, or about to be. */
struct ready_box {
    struct box_ends ends;
    uint64_t template; /* the number of the template that it is a copy of; 0: of none */
    bool is_proven;    /* it has said that its interpreter is there */
};

struct pool {
    /* One more than is kept: what a new template has made to show that it can. */
    struct ready_box boxes[POOL_MAX + 1];
    size_t count;
    int64_t quiet_at; /* nothing is made before, since somebody may be waiting */
};

struct templates {
    struct box_template current, next;
    uint64_t current_number, next_number, numbers; /* of their starts; 0: none */
    int64_t try_at;                                /* no start before */
    int64_t look_at;                               /* no look at the packages before */
    unsigned failures;                             /* since one has worked */
};

struct broker {
    struct box_maker maker;
    struct groups groups;
    int lifeline[2]; /* the reading end goes to every box; hangs up when this process ends */
    int signals;
    struct templates templates;
    struct pool pool;
    char note[WIRE_NOTE_BYTES]; /* for the operator, with the next reply */
    char last_note[WIRE_NOTE_BYTES];
    uint32_t next_slot; /* round and round, so that a uid is not used again at once */
    uint32_t slots_used;
    pid_t slots[BOXES_MAX];
};

/* ---- main.c ---- */

/* A box in a free slot. NULL, or the step that failed, with errno; EUSERS without a free slot. */
const char *broker_start_box(struct broker *, struct box_template *, int64_t life_ms,
                             struct box_ends *ret);
void broker_reap(struct broker *); /* all that has ended; their slots are free */
/* Told once, until there is something else to tell. */
void broker_note(struct broker *, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- templates.c ---- */

/* The one that boxes are made of now, or NULL; *ret_number is 0 then. */
struct box_template *templates_pick(struct broker *, uint64_t *ret_number);
/* Starts what is to be started. When to be called again; INT64_MAX: after something has happened. */
int64_t templates_upkeep(struct broker *);
/* Something has come from one of them. */
void templates_hear(struct broker *);
/* A box shows that the template can make some, or that it cannot. */
void templates_proven(struct broker *, uint64_t number);
void templates_failed(struct broker *, uint64_t number, const char *why);
void templates_reaped(struct broker *, pid_t);
/* Whether it is known by now if there will be one. */
bool templates_are_settled(const struct broker *);
void templates_end(struct broker *);

/* ---- pool.c ---- */

/* A box that lives, with its life begun; false if there is none. `any`: also one whose template has yet to prove itself. */
bool pool_take(struct broker *, int64_t life_ms, bool any, struct box_ends *ret);
/* Makes or drops one box. When to be called again; INT64_MAX: after something has happened. */
int64_t pool_upkeep(struct broker *);
/* Boxes that have ended, or have told how they have started. */
void pool_look(struct broker *);
void pool_disturb(struct broker *); /* somebody asks: making boxes has to wait */
/* Boxes that have yet to tell; how many of `ret_fds` are used. */
size_t pool_watched(const struct broker *, int ret_fds[POOL_MAX + 1]);

#endif
