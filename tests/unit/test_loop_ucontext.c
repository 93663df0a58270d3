/* The tests of core/loop once more, with the switch that processors without an own one use: the implementation stands
 * in this program and takes the place of the one in the library. */
#define SANDGATE_UCONTEXT 1

#include "../../core/loop/switch_ucontext.c"
#include "test_loop.c"
