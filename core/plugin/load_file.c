/* A plugin's file before it is opened: whose it is, who may write it, and whether it is a whole shared object. dlopen()
 * alone would run the code of anybody who can write there, and dies with SIGBUS on a file that was cut short. */
#include "plugin/load_internal.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

/* Owner and mode of a file or folder: what others may write, others may make the gateway run. */
static int owner_check(const struct examination *e, const char *path, const struct stat *status)
{
    if (status->st_uid != 0 && status->st_uid != geteuid()) {
        return error_set(e->err, SG_E_CONFIG,
                         "%s belongs to user %u, who could change what the gateway runs; it must "
                         "belong to root or to the running user: chown %u '%s'",
                         path, status->st_uid, geteuid(), path);
    }
    if ((status->st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return error_set(e->err, SG_E_CONFIG,
                         "%s may be written by others (mode %04o), who could change what the "
                         "gateway runs: chmod go-w '%s'",
                         path, status->st_mode & 07777u, path);
    }
    return 0;
}

static int folder_check(const struct examination *e, const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0) {
        return error_set(e->err, SG_E_CONFIG, "%s cannot be looked at: %s", path,
                         strerrordesc_np(errno));
    }
    return owner_check(e, path, &status);
}

/* ---- a whole ELF shared object ---- */

struct image {
    int fd;
    uint64_t size;
    uint64_t needed; /* where the last byte that the headers speak of ends */
};

static void need(struct image *image, uint64_t offset, uint64_t size)
{
    uint64_t end = 0;
    if (__builtin_add_overflow(offset, size, &end)) {
        end = UINT64_MAX;
    }
    image->needed = end > image->needed ? end : image->needed;
}

static bool image_read(const struct image *image, uint64_t offset, void *out, size_t size)
{
    return offset <= INT64_MAX && pread(image->fd, out, size, (off_t)offset) == (ssize_t)size;
}

static bool is_shared_object(const ElfW(Ehdr) * header)
{
    const unsigned char class = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
    const unsigned char order =
        __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
    return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && header->e_ident[EI_CLASS] == class &&
           header->e_ident[EI_DATA] == order && header->e_type == ET_DYN &&
           header->e_phentsize == sizeof(ElfW(Phdr));
}

static int elf_check(const struct examination *e, struct image *image)
{
    ElfW(Ehdr) header;
    bool is_read = image_read(image, 0, &header, sizeof header);
    if (!is_read || !is_shared_object(&header)) {
        return examination_fail(e, "is no shared object for this machine; build it with -shared "
                                   "-fPIC (docs/writing-plugins.md)");
    }
    need(image, header.e_phoff, (uint64_t)header.e_phnum * sizeof(ElfW(Phdr)));
    need(image, header.e_shoff, (uint64_t)header.e_shnum * header.e_shentsize);
    for (size_t i = 0; i < header.e_phnum && image->needed <= image->size; i++) {
        ElfW(Phdr) segment;
        if (!image_read(image, header.e_phoff + i * sizeof segment, &segment, sizeof segment)) {
            return examination_fail(e, "cannot be read");
        }
        need(image, segment.p_offset, segment.p_filesz);
    }
    if (image->needed > image->size) {
        return examination_fail(e,
                                "is cut short: it has %llu bytes, its headers speak of %llu; copy "
                                "or build it again",
                                (unsigned long long)image->size, (unsigned long long)image->needed);
    }
    return 0;
}

static int descriptor_check(const struct examination *e, int fd)
{
    struct stat status;
    if (fstat(fd, &status) != 0) {
        return examination_fail(e, "cannot be looked at: %s", strerrordesc_np(errno));
    }
    if (!S_ISREG(status.st_mode)) {
        return examination_fail(e, "is no regular file");
    }
    int code = owner_check(e, e->path, &status);
    struct image image = {.fd = fd, .size = (uint64_t)status.st_size};
    return code != 0 ? code : elf_check(e, &image);
}

int file_check(const struct examination *e, const char *folder)
{
    const char *real_folder =
        arena_printf(e->arena, "%.*s", (int)(strrchr(e->path, '/') - e->path), e->path);
    int code = folder_check(e, folder);
    if (code == 0) {
        code = folder_check(e, real_folder[0] == '\0' ? "/" : real_folder);
    }
    if (code != 0) {
        return code;
    }
    int fd = open(e->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not stop the start */
    if (fd < 0) {
        return examination_fail(e, "cannot be opened: %s", strerrordesc_np(errno));
    }
    code = descriptor_check(e, fd);
    (void)close(fd); /* read only */
    return code;
}
