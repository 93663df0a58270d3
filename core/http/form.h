/* multipart/form-data (RFC 7578), read just far enough to know one field, and strictly: what is sent on must mean the same to
 * whoever reads it next. Pure.
 *
 * Refused: text before the first boundary or behind the last, the boundary in any other place, lines that do not end in CRLF,
 * folded or other broken headers, a part without exactly one Content-Disposition and one name, names and file names with
 * escaped quotes, `name*`, and the field given twice, as a file, or coded. */
#ifndef SANDGATE_HTTP_FORM_H
#define SANDGATE_HTTP_FORM_H

#include "base/error.h"
#include "base/str.h"

#define FORM_BOUNDARY_BYTES_MAX ((size_t)70) /* RFC 2046 5.1.1 */

/* Does this Content-Type say that a form follows? */
bool form_is(struct str content_type);

/* The value of a Content-Type's parameter; a NULL data if there is none. False if it is there twice, or what stands there are
 * no parameters. */
bool media_parameter(struct str content_type, const char *name, struct str *ret);

/* The value of the field of that name, within `body`; a NULL data if there is none. Fails with SG_E_INVALID. */
int form_field(struct str content_type, struct str body, const char *name, struct str *ret,
               struct sg_error *err);

#endif
