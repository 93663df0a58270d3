/* What requests used, told to whoever settles accounts: one JSON line a request into a file (docs/accounting.md), sums by identity and
 * model for the metrics, and, only where it is asked for, what was asked and run, into a file of its own. */
#ifndef SANDGATE_GATEWAY_ACCOUNTING_H
#define SANDGATE_GATEWAY_ACCOUNTING_H

#include "base/line_file.h"
#include "conf/conf.h"
#include "gateway/usage_table.h"

struct accounting_config {    /* the section `accounting`; paths are as they are opened */
    const char *file, *audit; /* NULL: none; file: "-" is standard error */
};

extern const struct sg_option accounting_options[];
void accounting_read_config(const char *config_file, const struct conf_node *root,
                            struct accounting_config *, struct arena *, struct conf_problems *);

struct accounting {
    struct line_file *file, *audit; /* NULL: nothing is written */
    struct usage_table *usage;
};

/* Opens the files. SG_E_CONFIG. */
int accounting_open(struct accounting *, const struct accounting_config *, struct sg_error *err);
void accounting_reopen(struct accounting *);
void accounting_close(struct accounting *); /* also one that is all zero */

struct request;
/* A request that has ended, after so long. On its loop. */
void accounting_request(const struct request *, int64_t us);

/* Where `audit` is on: the body that goes up, a call of a tool of ours, what it gave. */
enum audit_kind { AUDIT_BODY, AUDIT_CALL, AUDIT_RESULT };
void accounting_audit(const struct request *, enum audit_kind, struct str tool, struct str text);

/* Metrics: how many lines were written and lost, and what was used. */
void accounting_put_metrics(const struct accounting *, struct buf *out);

#endif
