/* Options that name a file of certificates. */
#ifndef PLUGINS_SUPPORT_CA_FILE_H
#define PLUGINS_SUPPORT_CA_FILE_H

#include <sandgate/plugin.h>

/* 0 if 'ca_file' may be that path: absolute, a regular file that can be read, with a certificate (PEM) in its first MiB; else
 * SG_E_CONFIG with what is wrong. For open(): it reads the file. */
int ca_file_check(const char *path, struct sg_error *err);

#endif
