/* Runs a fuzz target over the files of its corpus, each whole and cut at a few places: what a fuzzer once found stays
 * found. Any failure ends the process (an assertion, a sanitizer). */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FILE_BYTES_MAX = 4 * 1024 * 1024, CUTS = 16 };

/* Each input stands in memory of its exact size, so that reading past it is seen. */
static void run_copy(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1);
    if (copy == NULL) {
        abort();
    }
    memcpy(copy, data, size);
    (void)LLVMFuzzerTestOneInput(copy, size); /* always 0 */
    free(copy);
}

static int run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(FILE_BYTES_MAX);
    if (file == NULL || data == NULL) {
        perror(path);
        return 1;
    }
    size_t size = fread(data, 1, FILE_BYTES_MAX, file);
    fclose(file);
    run_copy(data, size);
    for (size_t cut = 1; cut < CUTS; cut++) {
        run_copy(data, size * cut / CUTS);
    }
    free(data);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    DIR *folder = opendir(argv[1]);
    if (folder == NULL) {
        perror(argv[1]);
        return 1;
    }
    size_t count = 0;
    int failed = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        char path[4096];
        (void)snprintf(path, sizeof path, "%s/%s", argv[1],
                       entry->d_name); /* fits, or fopen fails */
        failed |= run_file(path);
        count++;
    }
    closedir(folder);
    printf("%zu inputs\n", count);
    return failed || count == 0;
}
