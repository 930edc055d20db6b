/* `python` as tests start it: asks the process behind the socket beside it for a fork of itself, and is what that is.
 *
 * Hands over its arguments, environment, folder and the files 0 to 2; passes signals on; ends as the fork ended, by
 * its exit code or its signal. The fork is killed where this process is.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static volatile pid_t forked;

static void pass_on(int number) {
    if (forked) kill(forked, number);
}

static void fail(const char *what) {
    perror(what);
    exit(127);
}

static void add(char **text, size_t *size, const char *part) {
    size_t more = strlen(part) + 1;
    *text = realloc(*text, *size + more);
    if (!*text) fail("realloc");
    memcpy(*text + *size, part, more);
    *size += more;
}

static void send_all(int to, const char *bytes, size_t size) {
    while (size) {
        ssize_t sent = send(to, bytes, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) fail("send");
        bytes += sent;
        size -= (size_t)sent;
    }
}

static int32_t number_from(int source) {
    int32_t number = 0;
    size_t have = 0;
    while (have < sizeof number) {
        ssize_t got = read(source, (char *)&number + have, sizeof number - have);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            fputs("the process that is forked has gone\n", stderr);
            exit(127);
        }
        have += (size_t)got;
    }
    return number;
}

int main(int argc, char **argv) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char *name = address.sun_path;
    ssize_t size_of_name = readlink("/proc/self/exe", name, sizeof address.sun_path);
    if (size_of_name < 0 || size_of_name >= (ssize_t)sizeof address.sun_path) fail("/proc/self/exe");
    name[size_of_name] = 0;
    strcpy(strrchr(name, '/'), "/socket");
    int source = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (source < 0 || connect(source, (struct sockaddr *)&address, sizeof address) < 0) fail(name);

    /* The folder, how many arguments, the arguments, the environment: each ends with a zero. */
    char *text = NULL, *folder = getcwd(NULL, 0), count[16];
    size_t size = 0;
    if (!folder) fail("getcwd");
    snprintf(count, sizeof count, "%d", argc - 1);
    add(&text, &size, folder);
    add(&text, &size, count);
    for (int i = 1; i < argc; i++) add(&text, &size, argv[i]);
    for (char **each = environ; *each; each++) add(&text, &size, *each);

    int files[3] = {0, 1, 2};
    char room[CMSG_SPACE(sizeof files)] = {0};
    uint32_t length = (uint32_t)size;
    struct iovec first = {&length, sizeof length};
    struct msghdr message = {.msg_iov = &first, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr *passed = CMSG_FIRSTHDR(&message);
    passed->cmsg_level = SOL_SOCKET;
    passed->cmsg_type = SCM_RIGHTS;
    passed->cmsg_len = CMSG_LEN(sizeof files);
    memcpy(CMSG_DATA(passed), files, sizeof files);
    if (sendmsg(source, &message, MSG_NOSIGNAL) != sizeof length) fail("sendmsg");
    send_all(source, text, size);

    const int passed_on[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
    sigset_t held, before;
    sigemptyset(&held);
    for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++) sigaddset(&held, passed_on[i]);
    sigprocmask(SIG_BLOCK, &held, &before);
    for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++) signal(passed_on[i], pass_on);
    forked = number_from(source);
    sigprocmask(SIG_SETMASK, &before, NULL);

    int status = number_from(source);
    if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
    return 128 + WTERMSIG(status);
}
