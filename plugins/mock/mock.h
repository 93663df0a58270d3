/* The three plugins of mock.so. */
#ifndef MOCK_MOCK_H
#define MOCK_MOCK_H

#include <sandgate/plugin.h>

extern const struct sg_plugin mock_sandbox;
extern const struct sg_plugin mock_search;
extern const struct sg_plugin mock_upstream;

#endif
