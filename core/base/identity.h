/* An identity as text: the name of the key that authenticated; where that key speaks for users, its name, a mark that no name
 * can hold, and the user. So no user of one key is another key, nor a user of another. What belongs to somebody belongs to
 * the whole of it; what keeps tenants from each other's share goes by the key. */
#ifndef SANDGATE_BASE_IDENTITY_H
#define SANDGATE_BASE_IDENTITY_H

#include "base/log.h"
#include "base/str.h"

#define IDENTITY_MARK '\x1f'

/* The key's name. */
static inline struct str identity_key(struct str identity)
{
    const char *mark = identity.len > 0 ? memchr(identity.data, IDENTITY_MARK, identity.len) : NULL;
    return mark == NULL ? identity : (struct str){identity.data, (size_t)(mark - identity.data)};
}

/* The user; empty: the key speaks for itself. */
static inline struct str identity_user(struct str identity)
{
    struct str key = identity_key(identity);
    return key.len == identity.len
               ? (struct str){0}
               : (struct str){key.data + key.len + 1, identity.len - key.len - 1};
}

/* Puts it into a log line: `identity`, and `user` where there is one. */
static inline void identity_log(struct log_line *line, struct str identity)
{
    struct str user = identity_user(identity);
    log_str(line, "identity", identity_key(identity));
    if (user.len > 0) {
        log_str(line, "user", user);
    }
}

#endif
