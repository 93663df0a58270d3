/* Tells how much memory a program has from its allocator, as opposed to what the kernel counts: that also has what the
 * allocator keeps of what was freed, which comes and goes by megabytes. Loaded by LD_PRELOAD; whoever connects to the socket that
 * the variable MEMORY_TOLD names gets one line, the number of bytes that are allocated, and the end. */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void *tell(void *arg)
{
    int listener = *(int *)arg, fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        const struct mallinfo2 info =
            mallinfo2(); /* of all arenas, and what was mapped by itself */
        char line[32];
        int len = snprintf(line, sizeof line, "%zu\n", info.uordblks + info.hblkhd);
        (void)!write(fd, line, (size_t)len); /* who does not wait for it is told nothing */
        close(fd);
    }
    return NULL;
}

__attribute__((constructor)) static void begin(void)
{
    static int listener;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = getenv("MEMORY_TOLD");
    pthread_t thread;
    sigset_t all, before;
    if (path == NULL || strlen(path) >= sizeof address.sun_path) {
        return;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    unsetenv("MEMORY_TOLD"); /* not for what the program starts */
    unsetenv("LD_PRELOAD");
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, (const struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener, 8) != 0) {
        perror("memory_told");
        _exit(1);
    }
    sigfillset(&all); /* they are for the program's own threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, tell, &listener) == 0) {
        pthread_detach(thread);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}
