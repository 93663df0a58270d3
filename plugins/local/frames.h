/* What the interpreter's side (driver/driver.py) and local.so say over the control socket, one packet each. Everything
 * that comes from a box is hostile input: packet_read() takes any bytes.
 *
 *   KIND (1) FLAGS (1) NONCE (8) BODY
 *
 *   to the box     R  a cell's code; FLAG_MORE: it goes on in the next packet
 *                  B, J  a shell command, JavaScript, likewise
 *                  S  the pipes have been read as far as asked
 *                  I  the cell is interrupted; for one that has not begun, which a signal would not find. A signal follows
 *   from the box   H  hello: the version of Python; before any cell, the nonce counts not
 *                  O, E  standard output, standard error: any bytes
 *                  M  part of a shown value: NAME LENGTH (1) MIME NAME, then bytes of that form; FLAG_MORE: goes on
 *                  V  the value is whole: 0 the last expression's, 1 displayed
 *                  X  part of the exception: FIELD (1: 0 name, 1 value, 2 traceback), then bytes
 *                  S  asks that what is in the pipes now be read before what follows; waits for the answer, an S
 *                  C  the exit status of a shell command (1)
 *                  T  the shell, or node, is a new one (1): 0 the one before had ended, 1 it was killed
 *                  L  node did not react to the interrupt and was killed
 *                  Q  it cannot be done: REFUSAL (1)
 *                  F  the cell or command has ended: 0 well, 1 by an exception
 *
 * The nonce is fresh for each cell, so that what an earlier cell left running cannot speak for a later one. */
#ifndef LOCAL_FRAMES_H
#define LOCAL_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAME_HEAD_BYTES 10
#define FRAME_BODY_BYTES 32768 /* of packets to the box */
#define FRAME_BYTES_MAX 65536  /* a packet from the box that is larger is dropped */
#define FRAME_MIME_MAX 64

enum frame_flag { FLAG_MORE = 1 };

enum frame_kind {
    FRAME_RUN = 'R',
    FRAME_COMMAND = 'B',
    FRAME_SCRIPT = 'J',
    FRAME_INTERRUPT = 'I',
    FRAME_HELLO = 'H',
    FRAME_STDOUT = 'O',
    FRAME_STDERR = 'E',
    FRAME_FORM = 'M',
    FRAME_VALUE = 'V',
    FRAME_EXCEPTION = 'X',
    FRAME_SYNC = 'S',
    FRAME_EXITED = 'C',
    FRAME_RESTARTED = 'T',
    FRAME_LOST = 'L',
    FRAME_REFUSED = 'Q',
    FRAME_FINISHED = 'F',
};

enum exception_field { EXCEPTION_NAME, EXCEPTION_VALUE, EXCEPTION_TRACEBACK, EXCEPTION_FIELDS };

enum frame_refusal { REFUSAL_NO_SHELL, REFUSAL_NO_NODE, REFUSALS }; /* there is nothing to run it */

struct frame {
    enum frame_kind kind;
    bool more;
    uint64_t nonce;
    const char *body; /* within the packet; for forms and exceptions what follows their prefix */
    size_t body_len;
    const char *mime; /* FRAME_FORM; not ended by NUL */
    size_t mime_len;
    unsigned number; /* the first byte of those that have one */
};

/* False if it is none of the packets that a box may send. */
bool frame_read(const void *packet, size_t len, struct frame *ret);

/* Head of a packet to the box. */
void frame_head(uint8_t head[FRAME_HEAD_BYTES], enum frame_kind, bool more, uint64_t nonce);

#endif
