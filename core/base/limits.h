/* The limits that hold from the first day, in one place: name, value, unit. Messages name them as they stand here. */
#ifndef SANDGATE_BASE_LIMITS_H
#define SANDGATE_BASE_LIMITS_H

#define KIB ((size_t)1024)
#define MIB ((size_t)1024 * 1024)

#define LIMIT_BODY_BYTES (32 * MIB) /* a client's request body; a JSON answer of an upstream */
#define LIMIT_RELAYED_BODY_BYTES (1024 * MIB) /* one that goes up as it comes (relay_paths) */
#define LIMIT_HEADER_BYTES (32 * KIB)         /* request line and headers together */
#define LIMIT_HEADER_COUNT 128                /* fields */
#define LIMIT_JSON_DEPTH 128                  /* nested arrays and objects */
#define LIMIT_JSON_MEMBERS 4096               /* members of an object whose members we note */
#define LIMIT_STREAM_BYTES (256 * KIB)        /* held for one stream in either direction */
#define LIMIT_SSE_EVENT_BYTES (8 * MIB)       /* one event of an upstream's stream */
#define LIMIT_TURN_BYTES (256 * MIB) /* such a stream of one turn, with all that says nothing */
#define LIMIT_TOOL_OUTPUT_BYTES (10 * MIB) /* read from one run */
#define LIMIT_TOOL_SHOWN_BYTES (16 * KIB)  /* of it shown to the model */
#define LIMIT_SESSION_ID_BYTES 256         /* a session id */
#define LIMIT_USER_BYTES 256               /* a user whom a key speaks for */
#define LIMIT_HANDLE_BYTES (4 * KIB)       /* a provider's handle */
#define LIMIT_CALL_ARENA_BYTES (16 * MIB)  /* sg->alloc() in one plugin call */
#define LIMIT_CALL_QUEUE_BYTES (256 * KIB) /* output of a plugin call not yet taken */
#define LIMIT_TOOLS 1024                   /* tool entries of a request that we read */
#define LIMIT_CALLS_PER_TURN 8             /* tool calls of ours run in one turn */
#define LIMIT_SAME_RESULTS 3 /* of one call: that many times the same is over a limit */
#define LIMIT_RESULT_CUT_BYTES \
    (2 * KIB) /* of a result, where the upstream finds the context too long */
#define LIMIT_RECORD_BYTES (1 * MIB)            /* what is remembered of one answer */
#define LIMIT_RECORDS_IDENTITY_BYTES (16 * MIB) /* … of an identity's answers */
#define LIMIT_RECORDS_BYTES (256 * MIB)         /* … of all */

#define LIMIT_HEADER_MS 15000       /* from the first byte of a request to the end of its headers */
#define LIMIT_HANDSHAKE_MS 10000    /* of TLS, from the connection's begin */
#define LIMIT_HANDSHAKES 256        /* of TLS, under way on one loop */
#define LIMIT_BODY_SILENCE_MS 30000 /* longest pause while a body is read */
#define LIMIT_IDLE_MS 75000         /* between two requests of a connection */
#define LIMIT_WRITE_MS 60000        /* longest time in which a client takes nothing */
#define LIMIT_CONNECT_MS 10000      /* to an upstream */
#define LIMIT_FIRST_BYTE_MS 300000  /* of an upstream's answer */
#define LIMIT_SILENCE_MS 120000     /* longest pause in an upstream's answer */
#define LIMIT_REQUEST_MS 540000     /* a whole request */
#define LIMIT_RUN_MS 60000          /* one run of code */
#define LIMIT_RETRY_AFTER_MS \
    20000 /* an upstream that wants to be left alone for longer is not tried again */
#define LIMIT_PAST_BYTES 4096                /* whether code may have run in a session */
#define LIMIT_PASTS_IDENTITY_BYTES (4 * MIB) /* … in all of a key, some ten thousand */
#define LIMIT_PASTS_BYTES (64 * MIB)         /* … in all */
#define LIMIT_PAST_MS (24 * 3600 * 1000LL)   /* … from the session's last request on */
#define LIMIT_RECORD_MS \
    3600000                   /* an answer is remembered, from the last use of what is remembered */
#define LIMIT_PARK_MS 300000  /* a container waits for the request that continues an answer */
#define LIMIT_KEEP_MS 3600000 /* the longest that `keep` of a sandbox may say */
#define LIMIT_RESPONSE_LIFE_MS 86400000 /* a stored response, from its last use */
#define LIMIT_RESPONSE_BYTES (8 * MIB)  /* … with its input */
#define LIMIT_CHAIN_BYTES (8 * MIB)     /* stored responses before the one that is asked for */
#define LIMIT_RESPONSES_IDENTITY_BYTES (64 * MIB)
#define LIMIT_RESPONSES_TOTAL_BYTES (512 * MIB)
#define LIMIT_SEARCH_BYTES (2 * MIB)          /* all hits of a search; fewer by their own bounds */
#define LIMIT_SEARCH_CACHE_MS 3600000         /* the longest that `cache` may say */
#define LIMIT_SEARCH_CACHED_BYTES (128 * KIB) /* one search that is kept */
#define LIMIT_SEARCH_CACHE_IDENTITY_BYTES (1 * MIB)
#define LIMIT_SEARCH_CACHE_BYTES (16 * MIB)
#define LIMIT_ACCEPTED_MS 600000  /* a client's key is believed after an upstream accepted it */
#define LIMIT_ACCEPTED_KEYS 16384 /* so many of them */
#define LIMIT_LOOP_HELD_MS 200    /* the watchdog names what holds a loop for longer */

#endif
