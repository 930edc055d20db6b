/* See sockets.h. */
#define FUZZ_SOCKETS_ITSELF
#include "sockets.h"

#include <errno.h>
#include <string.h>

struct fuzz_client fuzz_client;

ssize_t fuzz_read(int fd, void *to, size_t length) {
    if (fd != FUZZ_FD) return read(fd, to, length);
    if (fuzz_client.left == 0) {
        errno = EAGAIN;
        return fuzz_client.has_ended ? 0 : -1;
    }
    if (length > fuzz_client.left) length = fuzz_client.left;
    memcpy(to, fuzz_client.at, length);
    fuzz_client.at += length;
    fuzz_client.left -= length;
    return (ssize_t) length;
}

ssize_t fuzz_send(int fd, const void *at, size_t length, int flags) {
    if (fd != FUZZ_FD) return send(fd, at, length, flags);
    if (fuzz_client.takes == 0) {
        errno = EAGAIN;
        return -1;
    }
    return (ssize_t) (length < fuzz_client.takes ? length : fuzz_client.takes);
}

int fuzz_close(int fd) {
    if (fd != FUZZ_FD) return close(fd);
    fuzz_client.is_closed = 1;
    return 0;
}

int fuzz_epoll_ctl(int epoll_fd, int what, int fd, struct epoll_event *event) {
    if (fd != FUZZ_FD) return epoll_ctl(epoll_fd, what, fd, event);
    fuzz_client.watched = what == EPOLL_CTL_DEL ? 0 : event->events;
    return 0;
}

int fuzz_setsockopt(int fd, int level, int name, const void *value, socklen_t length) {
    return fd == FUZZ_FD ? 0 : setsockopt(fd, level, name, value, length);
}

int fuzz_shutdown(int fd, int how) { return fd == FUZZ_FD ? 0 : shutdown(fd, how); }
