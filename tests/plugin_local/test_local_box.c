#include "host.h"
#include "cunit_main.h"
#include "base/check.h"
#include <stdio.h>
static void fiber(void *arg)
{
    (void)arg;
    struct sg_error err = {0};
    char handle[128];
    int code = host_open(NULL, &err);
    printf("open %d %s\n", code, err.message);
    if (code) return;
    code = host_create(60000, handle, &err);
    printf("create %d %s %s\n", code, err.message, handle);
    struct outcome o = {0};
    for (int i = 0; i < 3; i++) {
    host_exec(handle, NULL, "print(1)\nimport sys\nsys.stderr.write('e\\n')\nx=5\nx", 49, 5000, &o);
    printf("run %d %s: %s first %ld us, %ld us\n", o.code, o.error.message, o.all.data, (long)o.first_us, (long)o.took_us);
    }
    outcome_clear(&o);
    code = host_destroy(handle, &err);
    printf("destroy %d\n", code);
    host_close();
}
int main(void) { host_run(fiber, NULL); return 0; }
