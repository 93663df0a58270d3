/* What mock.so exports. */
#include "mock.h"

SG_PLUGIN_SET("0.1.0", &mock_sandbox, &mock_search, &mock_upstream);
