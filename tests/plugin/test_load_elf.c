/* The loader and damaged files: copies of a good plugin that are cut short or in which one field was changed, each with its
 * message. Each is loaded in a child process, since dlopen() can die of what no check finds. */
#include "base/arena.h"
#include "cunit_main.h"
#include "plugin/load.h"
#include "plugin_folder.h"

#include <link.h>
#include <sys/resource.h>
#include <sys/wait.h>

static struct buf good;

static ElfW(Ehdr) * header_of(struct buf *data)
{
    return (void *)data->data;
}

static ElfW(Phdr) * segment_of(struct buf *data, unsigned type, size_t nth)
{
    ElfW(Ehdr) *header = header_of(data);
    ElfW(Phdr) *segments = (void *)(data->data + header->e_phoff);
    for (size_t i = 0; i < header->e_phnum; i++) {
        if (segments[i].p_type == type && nth-- == 0) {
            return &segments[i];
        }
    }
    CHECK(!"there is such a segment");
    return NULL;
}

static ElfW(Dyn) * entry_of(struct buf *data, ElfW(Sxword) tag)
{
    ElfW(Dyn) *entry = (void *)(data->data + segment_of(data, PT_DYNAMIC, 0)->p_offset);
    while (entry->d_tag != tag) {
        CHECK(entry->d_tag != DT_NULL);
        entry++;
    }
    return entry;
}

/* In the child: 0 where it loads, 1 with the message in `fd`. */
static int load_here(const struct folder *folder, int fd)
{
    const char *path = folder->path;
    const struct plugin_file *file = NULL;
    struct sg_error err = {0};
    struct loader *loader = loader_new(&path, 1);
    if (loader_load(loader, "x", &file, &err) == 0) {
        return 0;
    }
    (void)!write(fd, err.message, strlen(err.message));
    return 1;
}

/* Whether it ended by itself, and what it said. */
static bool load_in_child(const struct buf *data, char *message, size_t size)
{
    struct folder folder = folder_new();
    int fds[2], status = 0;
    file_write(&folder, "x.so", buf_str(data));
    CHECK(pipe2(fds, O_CLOEXEC) == 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit none = {0, 0};
        (void)setrlimit(RLIMIT_CORE, &none);
        _exit(load_here(&folder, fds[1]));
    }
    close(fds[1]);
    ssize_t len = read(fds[0], message, size - 1);
    message[len > 0 ? len : 0] = '\0';
    close(fds[0]);
    CHECK(waitpid(child, &status, 0) == child);
    folder_remove(&folder);
    return WIFEXITED(status) && (WEXITSTATUS(status) == 0) == (message[0] == '\0');
}

static void expect(struct buf *data, const char *part)
{
    char message[ERROR_MESSAGE_BYTES];
    bool has_ended = load_in_child(data, message, sizeof message);
    bool is_said = part[0] == '\0' ? message[0] == '\0' : strstr(message, part) != NULL;
    CU_ASSERT_TRUE(has_ended);
    CU_ASSERT_TRUE(is_said);
    if (!has_ended || !is_said) {
        fprintf(stderr, "expected <<%s>>, got <<%s>>\n", part, message);
    }
}

/* ---- one field each ---- */

static void file_grows_in_memory_only(struct buf *data)
{
    segment_of(data, PT_LOAD, 0)->p_memsz = 1;
}
static void odd_alignment(struct buf *data)
{
    segment_of(data, PT_LOAD, 1)->p_align = 4095;
}
static void other_alignment(struct buf *data)
{
    segment_of(data, PT_LOAD, 1)->p_vaddr += 8;
}
static void far_away(struct buf *data)
{
    segment_of(data, PT_LOAD, 1)->p_vaddr |= (ElfW(Addr))1 << 62;
}
static void endless(struct buf *data)
{
    segment_of(data, PT_LOAD, 1)->p_memsz = (ElfW(Xword)) - 1;
}
static void overlapping(struct buf *data)
{
    segment_of(data, PT_LOAD, 1)->p_vaddr = segment_of(data, PT_LOAD, 1)->p_offset = 0;
}
static void behind_the_end(struct buf *data)
{
    segment_of(data, PT_LOAD, 1)->p_offset += (ElfW(Off))1 << 40;
}
static void nothing_loaded(struct buf *data)
{
    header_of(data)->e_phnum = 0;
}
static void no_dynamic(struct buf *data)
{
    segment_of(data, PT_DYNAMIC, 0)->p_type = PT_NULL;
}
static void two_dynamics(struct buf *data)
{
    segment_of(data, PT_GNU_STACK, 0)->p_type = PT_DYNAMIC;
}
static void dynamic_elsewhere(struct buf *data)
{
    segment_of(data, PT_DYNAMIC, 0)->p_vaddr += (ElfW(Addr))1 << 30;
}
static void dynamic_shifted(struct buf *data)
{
    segment_of(data, PT_DYNAMIC, 0)->p_vaddr -= 16;
}
static void dynamic_without_end(struct buf *data)
{
    segment_of(data, PT_DYNAMIC, 0)->p_filesz = sizeof(ElfW(Dyn));
}
static void strings_elsewhere(struct buf *data)
{
    entry_of(data, DT_STRTAB)->d_un.d_ptr ^= (ElfW(Addr))1 << 40;
}
static void strings_too_long(struct buf *data)
{
    entry_of(data, DT_STRSZ)->d_un.d_val = 1 << 30;
}
static void strings_without_end(struct buf *data)
{
    entry_of(data, DT_STRSZ)->d_un.d_val -= 1;
}
static void no_strings(struct buf *data)
{
    entry_of(data, DT_STRTAB)->d_tag = DT_DEBUG;
}
static void symbols_elsewhere(struct buf *data)
{
    entry_of(data, DT_SYMTAB)->d_un.d_ptr = (ElfW(Addr)) - 8;
}
static void relocations_elsewhere(struct buf *data)
{
    entry_of(data, DT_RELASZ)->d_un.d_val = 1 << 28;
}
static void start_elsewhere(struct buf *data)
{
    entry_of(data, DT_INIT)->d_un.d_ptr |= (ElfW(Addr))1 << 33;
}
static void starts_elsewhere(struct buf *data)
{
    entry_of(data, DT_INIT_ARRAY)->d_un.d_ptr ^= (ElfW(Addr))1 << 35;
}

static void a_damaged_file_is_told_from_a_good_one(void)
{
    static const char nowhere[] =
        "is damaged: its dynamic table speaks of what is in no segment; copy or build it again";
    static const struct {
        void (*change)(struct buf *);
        const char *message;
    } cases[] = {
        {file_grows_in_memory_only, "is damaged: a segment is larger in the file than in memory"},
        {odd_alignment, "is damaged: a segment is not aligned as it says"},
        {other_alignment, "is damaged: a segment is not aligned as it says"},
        {far_away, "is damaged: a segment is out of all bounds"},
        {endless, "is damaged: a segment is out of all bounds"},
        {overlapping, "is damaged: its segments overlap"},
        {behind_the_end, "is cut short"},
        {nothing_loaded, "is damaged: it has nothing to be loaded"},
        {no_dynamic, "is damaged: it has no dynamic table"},
        {two_dynamics, "is damaged: it has two dynamic tables"},
        {dynamic_elsewhere, "is damaged: its dynamic table is in no segment"},
        {dynamic_shifted, "is damaged: its dynamic table is in no segment"},
        {dynamic_without_end, "is damaged: its dynamic table has no end"},
        {no_strings, "is damaged: it has no symbols"},
        {strings_without_end, "is damaged: its last name has no end"},
        {strings_elsewhere, nowhere},
        {strings_too_long, nowhere},
        {symbols_elsewhere, nowhere},
        {relocations_elsewhere, nowhere},
        {start_elsewhere, nowhere},
        {starts_elsewhere, nowhere},
    };
    expect(&good, "");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        BUF_CLEANUP struct buf data = {0};
        buf_append_str(&data, buf_str(&good));
        cases[i].change(&data);
        expect(&data, cases[i].message);
    }
}

static void a_file_that_was_cut_anywhere_is_refused(void)
{
    for (size_t i = 0; i < 40; i++) {
        struct buf data = {.data = good.data, .len = good.len * i / 40};
        expect(&data, data.len < sizeof(ElfW(Ehdr)) ? "is no shared object" : "is cut short");
    }
}

static const struct test tests[] = {
    TEST(a_damaged_file_is_told_from_a_good_one),
    TEST(a_file_that_was_cut_anywhere_is_refused),
};

int main(int argc, char **argv)
{
    plugin_read("good", &good);
    int code = run_tests("load_elf", tests, COUNT_OF(tests), argc, argv);
    buf_clear(&good);
    return code;
}
