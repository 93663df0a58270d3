/* JSON as bytes: scanned strictly once, never printed again as a whole. All functions are pure.
 *
 * json_scan() checks a whole text (RFC 8259 grammar, UTF-8, depth) in one linear pass and notes the members of the
 * top-level object. The iterators then walk ranges that have been checked, without checking again. */
#ifndef SANDGATE_BASE_JSON_H
#define SANDGATE_BASE_JSON_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"

enum json_type {
    JSON_NULL,
    JSON_FALSE,
    JSON_TRUE,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT
};

/* A value within a checked text: its bytes from the first to the last, without white space around. */
struct json_value {
    enum json_type type;
    struct str raw;
};

struct json_member {
    struct str key;     /* decoded; in the arena if it had escapes; lone surrogates as U+FFFD */
    struct str key_raw; /* with its quotes */
    struct json_value value;
};

struct json_text {
    struct str raw; /* the whole text */
    struct json_value root;
    struct json_member *members; /* of the root, if an object */
    size_t count;
};

/* Fails with SG_E_INVALID and "… at byte N: what is wrong". A second member of the same decoded name at the top level
 * fails too ("duplicate key 'x'"). Deeper duplicates are the reader's to refuse (json_members). */
int json_scan(struct str text, struct arena *, struct json_text *ret, struct sg_error *err);

/* The members of a checked object (NULL only if it is empty), duplicates refused; `where` names it in the message
 * ("metadata", "tools[0]"). */
int json_members(struct json_value object, const char *where, struct arena *,
                 struct json_member **ret_members, size_t *ret_count, struct sg_error *err);

/* Walks the elements or members of a checked array or object, from first to last, without taking memory. */
struct json_walk {
    const char *at, *end;
};
struct json_walk json_walk_of(struct json_value array_or_object);
bool json_walk_element(struct json_walk *, struct json_value *ret); /* false at the end */
bool json_walk_member(struct json_walk *, struct str *ret_key_raw, struct json_value *ret);
/* Into the next element of an array, if that is an object, and behind it once its members have been walked to the end:
 * what lies in it is passed over once, not twice. */
bool json_walk_enter(struct json_walk *, struct json_walk *ret_inner);
void json_walk_leave(struct json_walk *, const struct json_walk *inner);

/* Is this key (with its quotes, of a checked text) that name? Escapes are decoded; for names under 43 bytes. */
bool json_key_is(struct str key_raw, const char *name);

/* Decodes the keys of members whose key_raw is set, and refuses duplicates as json_members() does. `where` may be "". */
int json_keys_decode(struct json_member *members, size_t count, const char *where, struct arena *,
                     struct sg_error *err);

/* The elements of a checked array. NULL only for an empty one. Takes 24 to 72 bytes an element: bound what comes from
 * outside, or walk. */
struct json_value *json_elements(struct json_value array, struct arena *, size_t *ret_count);

/* By decoded name, case-sensitively; NULL if absent. */
const struct json_member *json_find(const struct json_member *members, size_t count,
                                    const char *name);
/* Likewise, if its value is of the type; else NULL. */
const struct json_member *json_find_type(const struct json_member *members, size_t count,
                                         const char *name, enum json_type type);
/* The decoded text of a member that is a string, as json_text_of() has it; else empty. */
struct str json_find_text(const struct json_member *members, size_t count, const char *name,
                          struct arena *);

/* The decoded text of a checked string, in the arena if it had escapes, else within the text. A lone surrogate becomes
 * U+FFFD. May hold NUL (from \u0000). */
struct str json_text_of(struct json_value string, struct arena *);

/* The character that `c` stands for behind a backslash; itself where JSON gives it no other meaning. Not for `u`, which has
 * digits behind it. */
char json_escaped(char c);

/* The exact integer of a checked number without fraction and exponent, within int64_t; false otherwise. */
bool json_int_of(struct json_value number, int64_t *ret);

/* The type of the value that starts with this byte of a checked text. */
enum json_type json_type_of(char first);

/* ---- edits by splicing ---- */

struct splice_edit {
    size_t at, cut; /* bytes from `at` on that go */
    struct str put; /* what comes instead; borrowed until splice_apply */
};

struct splice {
    struct splice_edit *edits;
    size_t count, cap;
    struct arena *arena;
};

/* Edits may be added in any order; they must not overlap (asserted). */
void splice_add(struct splice *, size_t at, size_t cut, struct str put);

/* Cuts members of an object with exactly one comma each, however many of them go. `gone[i]` marks member i. */
void splice_cut_members(struct splice *, struct str text, const struct json_member *members,
                        size_t count, const bool *gone);

/* Likewise elements of an array. */
void splice_cut_elements(struct splice *, struct str text, struct json_value array,
                         const struct json_value *elements, size_t count, const bool *gone);

/* Appends text with all edits to `out`. */
bool splice_apply(const struct splice *, struct str text, struct buf *out);

#endif
