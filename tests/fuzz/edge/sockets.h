/* The socket calls of the edge, for the one descriptor that is no socket but a buffer. Included before each of its
 * modules when they are built for fuzzing; what they do to other descriptors goes to the system. */
#ifndef FILA_FUZZ_SOCKETS_H
#define FILA_FUZZ_SOCKETS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

enum { FUZZ_FD = 1 << 20 };

/* What the next reads find, and what the client does with our bytes. */
struct fuzz_client {
    const uint8_t *at;
    size_t left;        /* then EAGAIN, or the end where has_ended is set */
    int has_ended;
    size_t takes;       /* bytes that a send may have; 0: the client reads nothing */
    int is_closed;      /* by us */
    uint32_t watched;   /* what epoll is asked to tell of it */
};
extern struct fuzz_client fuzz_client;

ssize_t fuzz_read(int fd, void *to, size_t length);
ssize_t fuzz_send(int fd, const void *at, size_t length, int flags);
int fuzz_close(int fd);
int fuzz_epoll_ctl(int epoll_fd, int what, int fd, struct epoll_event *event);
int fuzz_setsockopt(int fd, int level, int name, const void *value, socklen_t length);
int fuzz_shutdown(int fd, int how);

#ifndef FUZZ_SOCKETS_ITSELF
#define read(fd, to, length) fuzz_read(fd, to, length)
#define send(fd, at, length, flags) fuzz_send(fd, at, length, flags)
#define close(fd) fuzz_close(fd)
#define epoll_ctl(epoll_fd, what, fd, event) fuzz_epoll_ctl(epoll_fd, what, fd, event)
#define setsockopt(fd, level, name, value, length) fuzz_setsockopt(fd, level, name, value, length)
#define shutdown(fd, how) fuzz_shutdown(fd, how)
#endif

#endif
