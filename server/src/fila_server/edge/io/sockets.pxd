"""What the edge uses of Linux: epoll, sockets, the clocks."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef extern from "<sys/epoll.h>" nogil:
    enum:
        EPOLLIN
        EPOLLOUT
        EPOLLERR
        EPOLLHUP
        EPOLL_CTL_ADD
        EPOLL_CTL_MOD
        EPOLL_CTL_DEL
        EPOLL_CLOEXEC
    ctypedef union epoll_data_t:
        void* ptr
        uint64_t u64
    struct epoll_event:
        uint32_t events
        epoll_data_t data
    int epoll_create1(int flags)
    int epoll_ctl(int epoll_fd, int what, int fd, epoll_event* event)
    int epoll_wait(int epoll_fd, epoll_event* events, int most, int timeout_ms)

cdef extern from "<unistd.h>" nogil:
    int close(int fd)
    ssize_t read(int fd, void* to, size_t length)

cdef extern from *:
    """
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE
    #endif
    #include <arpa/inet.h>
    #include <errno.h>
    #include <netinet/in.h>
    #include <netinet/tcp.h>
    #include <stdio.h>
    #include <string.h>
    #include <sys/socket.h>
    #include <time.h>
    static long long fila_monotonic_ns(void) {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return t.tv_sec * 1000000000LL + t.tv_nsec;
    }
    static long long fila_wall_ms(void) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
    }
    /* The next connection, or -1; `peer` is as gRPC writes one: ipv4:127.0.0.1:4711, ipv6:[::1]:4711. */
    static int fila_accept(int listener, char *peer, size_t size) {
        struct sockaddr_storage from;
        struct sockaddr_in6 *six = (struct sockaddr_in6 *) &from;
        struct sockaddr_in *four = (struct sockaddr_in *) &from;
        socklen_t length = sizeof from;
        char host[INET6_ADDRSTRLEN] = "";
        int one = 1;
        int fd = accept4(listener, (struct sockaddr *) &from, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) return -1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        if (from.ss_family != AF_INET6) {
            inet_ntop(AF_INET, &four->sin_addr, host, sizeof host);
            snprintf(peer, size, "ipv4:%s:%d", host, ntohs(four->sin_port));
        } else if (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) {
            inet_ntop(AF_INET, six->sin6_addr.s6_addr + 12, host, sizeof host);
            snprintf(peer, size, "ipv4:%s:%d", host, ntohs(six->sin6_port));
        } else {
            inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof host);
            snprintf(peer, size, "ipv6:[%s]:%d", host, ntohs(six->sin6_port));
        }
        return fd;
    }
    static void fila_keep_alive(int fd) {
        int one = 1;
        setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    }
    static void fila_set_errno(int number) { errno = number; }
    static int fila_shut_output(int fd) { return shutdown(fd, SHUT_WR); }
    static ssize_t fila_send(int fd, const void *at, size_t length) {
        return send(fd, at, length, MSG_NOSIGNAL);
    }
    #define fila_atomic_load(p) __atomic_load_n((p), __ATOMIC_SEQ_CST)
    #define fila_atomic_store(p, v) __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)
    #define fila_atomic_add(p, v) __atomic_add_fetch((p), (v), __ATOMIC_SEQ_CST)
    """
    int EAGAIN
    int EINTR
    int EMFILE
    int ENFILE
    int64_t monotonic_ns "fila_monotonic_ns" ()  nogil
    void set_errno "fila_set_errno" (int number) nogil
    int64_t wall_ms "fila_wall_ms" () nogil
    int accept_from "fila_accept" (int listener, char* peer, size_t size) nogil
    void keep_alive "fila_keep_alive" (int fd) nogil
    int shut_output "fila_shut_output" (int fd) nogil
    ssize_t send_some "fila_send" (int fd, const void* at, size_t length) nogil
    int64_t atomic_load "fila_atomic_load" (int64_t* p) nogil
    void atomic_store "fila_atomic_store" (int64_t* p, int64_t v) nogil
    int64_t atomic_add "fila_atomic_add" (int64_t* p, int64_t v) nogil
