/* The two programs that the broker carries within itself, as files in memory: what pid 1 of a box becomes (local-init),
 * and what a template loads (local-template). */
#include "box.h"
#include "include_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

INCLUDE_FILE(init_program, INIT_PROGRAM);
INCLUDE_FILE(template_library, TEMPLATE_LIBRARY);

static int memory_file(const char *name, const unsigned char *data, const unsigned char *end,
                       mode_t mode)
{
    const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        return -1;
    }
    while (data < end) {
        ssize_t len = write(fd, data, (size_t)(end - data));
        if (len <= 0) {
            close(fd);
            return -1;
        }
        data += len;
    }
    if (fchmod(fd, mode) != 0 || fcntl(fd, F_ADD_SEALS, seals) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

int program_init(void)
{
    return memory_file("box-init", init_program, init_program_end, 0111);
}

int program_template(void)
{
    return memory_file("box-template", template_library, template_library_end, 0555);
}
