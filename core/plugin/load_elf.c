/* Whether a file is a whole shared object: what its headers, its segments and its dynamic table speak of is there. dlopen()
 * checks little of it and dies of the rest. Files that were cut short or damaged in copying are told from good ones here;
 * one that was made to crash the loader is not, which needs no check: who can write it can run code anyway. */
#include "base/check.h"
#include "plugin/load_internal.h"

#include <elf.h>
#include <link.h>
#include <unistd.h>

#define SEGMENTS_MAX 64
#define DYNAMIC_MAX 4096             /* entries */
#define SPAN_MAX ((uint64_t)4 << 30) /* of addresses, from the first segment to the last */
#define ALIGN_MAX ((uint64_t)1024 * 1024 * 1024)

struct image {
    const struct examination *e;
    int fd;
    uint64_t size;
    uint64_t needed; /* where the last byte that the headers speak of ends */
    ElfW(Phdr) loaded[SEGMENTS_MAX];
    size_t loaded_count;
    ElfW(Phdr) dynamic;      /* p_type is PT_DYNAMIC once it was found */
    uint64_t values[DT_NUM]; /* of the dynamic table, by tag */
    bool has[DT_NUM];
};

static bool ends_within(uint64_t offset, uint64_t size, uint64_t limit)
{
    uint64_t end = 0;
    return !__builtin_add_overflow(offset, size, &end) && end <= limit;
}

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

static int damaged(const struct image *image, const char *what)
{
    return examination_fail(image->e, "is damaged: %s; copy or build it again", what);
}

/* ---- the headers ---- */

static bool is_shared_object(const ElfW(Ehdr) * header)
{
    const unsigned char class = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
    const unsigned char order =
        __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
    return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && header->e_ident[EI_CLASS] == class &&
           header->e_ident[EI_DATA] == order && header->e_type == ET_DYN &&
           header->e_phentsize == sizeof(ElfW(Phdr));
}

/* As the loader lays them out: one behind the other, each with its bytes of the file at its start. */
static int take_loaded(struct image *image, const ElfW(Phdr) * segment)
{
    const ElfW(Phdr) *before =
        image->loaded_count > 0 ? &image->loaded[image->loaded_count - 1] : NULL;
    uint64_t align = segment->p_align;
    if (image->loaded_count == SEGMENTS_MAX) {
        return damaged(image, "it has more than 64 segments to be loaded");
    }
    if (segment->p_filesz > segment->p_memsz) {
        return damaged(image, "a segment is larger in the file than in memory");
    }
    if (align > ALIGN_MAX || (align & (align - 1)) != 0 ||
        (align > 1 && (segment->p_vaddr - segment->p_offset) % align != 0)) {
        return damaged(image, "a segment is not aligned as it says");
    }
    if (!ends_within(segment->p_vaddr, segment->p_memsz, SPAN_MAX)) {
        return damaged(image, "a segment is out of all bounds");
    }
    if (before != NULL && segment->p_vaddr < before->p_vaddr + before->p_memsz) {
        return damaged(image, "its segments overlap");
    }
    image->loaded[image->loaded_count++] = *segment;
    return 0;
}

static int take_segment(struct image *image, const ElfW(Phdr) * segment)
{
    need(image, segment->p_offset, segment->p_filesz);
    if (segment->p_type == PT_LOAD) {
        return take_loaded(image, segment);
    }
    if (segment->p_type == PT_DYNAMIC && image->dynamic.p_type == PT_DYNAMIC) {
        return damaged(image, "it has two dynamic tables");
    }
    if (segment->p_type == PT_DYNAMIC) {
        image->dynamic = *segment;
    }
    return 0;
}

static int headers_check(struct image *image)
{
    ElfW(Ehdr) header;
    bool is_read = image_read(image, 0, &header, sizeof header);
    if (!is_read || !is_shared_object(&header)) {
        return examination_fail(image->e,
                                "is no shared object for this machine; build it with -shared "
                                "-fPIC (docs/writing-plugins.md)");
    }
    need(image, header.e_phoff, (uint64_t)header.e_phnum * sizeof(ElfW(Phdr)));
    need(image, header.e_shoff, (uint64_t)header.e_shnum * header.e_shentsize);
    int code = 0;
    for (size_t i = 0; i < header.e_phnum && image->needed <= image->size && code == 0; i++) {
        ElfW(Phdr) segment;
        if (!image_read(image, header.e_phoff + i * sizeof segment, &segment, sizeof segment)) {
            return examination_fail(image->e, "cannot be read");
        }
        code = take_segment(image, &segment);
    }
    if (code == 0 && image->needed > image->size) {
        return examination_fail(image->e,
                                "is cut short: it has %llu bytes, its headers speak of %llu; copy "
                                "or build it again",
                                (unsigned long long)image->size, (unsigned long long)image->needed);
    }
    return code;
}

/* ---- the dynamic table ---- */

/* Bytes of memory that a segment holds; `from_file`: that stand in the file. */
static const ElfW(Phdr) *
    segment_of(const struct image *image, uint64_t address, uint64_t size, bool from_file)
{
    for (size_t i = 0; i < image->loaded_count; i++) {
        const ElfW(Phdr) *segment = &image->loaded[i];
        uint64_t held = from_file ? segment->p_filesz : segment->p_memsz;
        if (address >= segment->p_vaddr && ends_within(address - segment->p_vaddr, size, held)) {
            return segment;
        }
    }
    return NULL;
}

static int dynamic_read(struct image *image)
{
    ElfW(Dyn) entry = {.d_tag = DT_NULL};
    size_t count = image->dynamic.p_filesz / sizeof entry;
    for (size_t i = 0; i < count && i < DYNAMIC_MAX; i++) {
        if (!image_read(image, image->dynamic.p_offset + i * sizeof entry, &entry, sizeof entry)) {
            return examination_fail(image->e, "cannot be read");
        }
        if (entry.d_tag == DT_NULL) {
            return 0;
        }
        if (entry.d_tag > 0 && entry.d_tag < DT_NUM) {
            image->values[entry.d_tag] = entry.d_un.d_val;
            image->has[entry.d_tag] = true;
        }
    }
    return damaged(image, "its dynamic table has no end");
}

/* What is read of the file before any of its code runs, and how long it is by the table's own word. */
static int tables_check(const struct image *image)
{
    static const struct {
        int at, size; /* tags; no size: one byte has to be there */
        bool from_file;
    } tables[] = {{DT_STRTAB, DT_STRSZ, true},
                  {DT_SYMTAB, DT_SYMENT, true},
                  {DT_RELA, DT_RELASZ, true},
                  {DT_REL, DT_RELSZ, true},
                  {DT_JMPREL, DT_PLTRELSZ, true},
                  {DT_HASH, DT_NULL, true},
                  {DT_INIT, DT_NULL, true},
                  {DT_FINI, DT_NULL, true},
                  {DT_INIT_ARRAY, DT_INIT_ARRAYSZ, true},
                  {DT_FINI_ARRAY, DT_FINI_ARRAYSZ, true},
                  {DT_PLTGOT, DT_NULL, false}};
    for (size_t i = 0; i < COUNT_OF(tables); i++) {
        uint64_t size = tables[i].size == DT_NULL ? 1 : image->values[tables[i].size];
        if (image->has[tables[i].at] &&
            segment_of(image, image->values[tables[i].at], size, tables[i].from_file) == NULL) {
            return damaged(image, "its dynamic table speaks of what is in no segment");
        }
    }
    return 0;
}

static int strings_check(const struct image *image)
{
    uint64_t at = image->values[DT_STRTAB], size = image->values[DT_STRSZ];
    if (!image->has[DT_STRTAB] || !image->has[DT_SYMTAB] || size == 0) {
        return damaged(image, "it has no symbols");
    }
    const ElfW(Phdr) *segment = segment_of(image, at, size, true); /* there, by tables_check() */
    char last = 'x';
    if (!image_read(image, segment->p_offset + (at - segment->p_vaddr) + size - 1, &last, 1) ||
        last != '\0') {
        return damaged(image, "its last name has no end");
    }
    return 0;
}

static int dynamic_check(struct image *image)
{
    const ElfW(Phdr) *dynamic = &image->dynamic;
    if (image->loaded_count == 0) {
        return damaged(image, "it has nothing to be loaded");
    }
    if (dynamic->p_type != PT_DYNAMIC) {
        return damaged(image, "it has no dynamic table");
    }
    const ElfW(Phdr) *segment = segment_of(image, dynamic->p_vaddr, dynamic->p_filesz, true);
    if (segment == NULL ||
        dynamic->p_offset - segment->p_offset != dynamic->p_vaddr - segment->p_vaddr) {
        return damaged(image, "its dynamic table is in no segment");
    }
    int code = dynamic_read(image);
    code = code == 0 ? tables_check(image) : code;
    return code == 0 ? strings_check(image) : code;
}

int elf_check(const struct examination *e, int fd, uint64_t size)
{
    struct image image = {.e = e, .fd = fd, .size = size};
    int code = headers_check(&image);
    return code == 0 ? dynamic_check(&image) : code;
}
