/* A power cut for one process: forgets what was written below one directory and not synced.

   Loaded with LD_PRELOAD. It notes, for every file below FILA_POWERCUT_DIR, how far it was synced,
   and, for every directory, which creations, renames and deletions no fsync of that directory has
   confirmed. On the signal SIGRTMIN+7 a thread of its own stops all file calls, takes the unconfirmed
   back, newest first, cuts each file to its synced length, and kills the process with SIGKILL:

       write ... write ... fdatasync ... write ... write ... <signal>
       '------ stays on disk ------'     '-- forgotten --'

   The strict reading of POSIX: a file's fsync confirms its bytes, a directory's fsync its names.
   Real disks keep more, by chance. With FILA_POWERCUT_SEED other than 0, each file keeps a
   pseudo-random part of its unsynced bytes, so that torn records are met too.

   What it does not do: undo writes over bytes that were synced already, memory-mapped writes, and
   stdio (RocksDB's own LOG). Nothing that matters in a store writes so.
*/
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#define FD_MAX 65536
#define CUT_SIGNAL (SIGRTMIN + 7)

typedef struct File {
    dev_t device;
    ino_t inode;
    int64_t synced;             /* bytes that survive */
    int64_t written;            /* bytes the process believes in */
    char path[PATH_MAX];        /* where it is now; in the shadow directory once it is deleted */
    struct File* next;
} File;

typedef enum { CREATED, RENAMED, DELETED } Kind;

typedef struct Change {         /* of a directory, not yet confirmed by its fsync */
    Kind kind;
    char directory[PATH_MAX];
    char path[PATH_MAX];        /* the name it gave or took away */
    char from[PATH_MAX];        /* RENAMED: the name before */
    char shadow[PATH_MAX];      /* what had the name before, kept aside; "" = nothing */
    struct Change* older;
} Change;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX];     /* "" = not switched on */
static char shadows[PATH_MAX - 32];
static uint64_t seed;
static uint64_t shadow_count;
static File* files;
static File* file_by_fd[FD_MAX];
static char* directory_by_fd[FD_MAX];
static Change* changes;

static int (*real_open)(const char*, int, ...);
static int (*real_openat)(int, const char*, int, ...);
static int (*real_close)(int);
static ssize_t (*real_write)(int, const void*, size_t);
static ssize_t (*real_pwrite)(int, const void*, size_t, off_t);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);
static int (*real_ftruncate)(int, off_t);
static int (*real_rename)(const char*, const char*);
static int (*real_unlink)(const char*);
static int (*real_link)(const char*, const char*);

static void find_real(void) {
    if (real_open) return;
    real_openat = dlsym(RTLD_NEXT, "openat");
    real_close = dlsym(RTLD_NEXT, "close");
    real_write = dlsym(RTLD_NEXT, "write");
    real_pwrite = dlsym(RTLD_NEXT, "pwrite");
    real_fsync = dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
    real_ftruncate = dlsym(RTLD_NEXT, "ftruncate");
    real_rename = dlsym(RTLD_NEXT, "rename");
    real_unlink = dlsym(RTLD_NEXT, "unlink");
    real_link = dlsym(RTLD_NEXT, "link");
    real_open = dlsym(RTLD_NEXT, "open");
}

/* --- names -------------------------------------------------------------------------------- */

/* Absolute, without doubled slashes; true when it lies below the watched directory (or is it). */
static int watched(const char* path, char* absolute) {
    size_t at = 0, length = strlen(root);
    if (!length || !path) return 0;
    if (path[0] != '/') {
        if (!getcwd(absolute, PATH_MAX)) return 0;
        at = strlen(absolute);
        absolute[at++] = '/';
    }
    for (; *path && at < PATH_MAX - 1; path++)
        if (*path != '/' || at == 0 || absolute[at - 1] != '/') absolute[at++] = *path;
    while (at > 1 && absolute[at - 1] == '/') at--;
    absolute[at] = 0;
    return strncmp(absolute, root, length) == 0 && (absolute[length] == '/' || absolute[length] == 0);
}

static void parent_of(const char* path, char* parent) {
    strcpy(parent, path);
    char* slash = strrchr(parent, '/');
    if (slash && slash != parent) *slash = 0;
}

static File* file_at(const struct stat* found) {
    for (File* file = files; file; file = file->next)
        if (file->inode == found->st_ino && file->device == found->st_dev) return file;
    return NULL;
}

static File* note_file(const char* path, const struct stat* found, int is_new) {
    File* file = file_at(found);
    if (!file) {
        file = calloc(1, sizeof *file);
        file->device = found->st_dev;
        file->inode = found->st_ino;
        /* What was there before the process came has survived already. */
        file->synced = file->written = is_new ? 0 : found->st_size;
        file->next = files;
        files = file;
        strcpy(file->path, path);
    } else if (is_new) {        /* the number of a file that is gone for good was given out again */
        file->synced = file->written = 0;
        strcpy(file->path, path);
    }
    return file;
}

static Change* note_change(Kind kind, const char* path) {
    Change* change = calloc(1, sizeof *change);
    change->kind = kind;
    strcpy(change->path, path);
    parent_of(path, change->directory);
    change->older = changes;
    changes = change;
    return change;
}

/* Keeps what is at `path` under a second name; "" in `shadow` when there is nothing. */
static void keep_aside(const char* path, char* shadow) {
    snprintf(shadow, PATH_MAX, "%s/%llu", shadows, (unsigned long long)++shadow_count);
    if (real_link(path, shadow) != 0) shadow[0] = 0;
}

static void confirm(const char* directory) {
    for (Change** at = &changes; *at;) {
        Change* change = *at;
        if (strcmp(change->directory, directory) != 0) {
            at = &change->older;
            continue;
        }
        if (change->shadow[0]) {
            struct stat found;
            if (stat(change->shadow, &found) == 0)
                for (File** file = &files; *file; file = &(*file)->next)
                    if (strcmp((*file)->path, change->shadow) == 0) {
                        (*file)->inode = 0;     /* gone for good; open descriptors may still point here */
                        (*file)->path[0] = 0;
                        break;
                    }
            real_unlink(change->shadow);
        }
        *at = change->older;
        free(change);
    }
}

/* --- the calls ---------------------------------------------------------------------------- */

static int after_open(int fd, const char* absolute, int flags, int existed) {
    struct stat found;
    if (fd < 0 || fd >= FD_MAX || fstat(fd, &found) != 0) return fd;
    if (S_ISDIR(found.st_mode)) {
        free(directory_by_fd[fd]);
        directory_by_fd[fd] = strdup(absolute);
    } else if (S_ISREG(found.st_mode) && (flags & O_ACCMODE) != O_RDONLY) {
        file_by_fd[fd] = note_file(absolute, &found, !existed);
        if (flags & O_TRUNC) file_by_fd[fd]->synced = file_by_fd[fd]->written = 0;
        if (!existed) note_change(CREATED, absolute);
    }
    return fd;
}

static int open_any(int at_fd, const char* path, int flags, mode_t mode) {
    char absolute[PATH_MAX];
    struct stat found;
    find_real();
    if ((path[0] != '/' && at_fd != AT_FDCWD) || (flags & O_TMPFILE) == O_TMPFILE || !watched(path, absolute))
        return real_openat(at_fd, path, flags, mode);
    pthread_mutex_lock(&lock);
    int existed = stat(absolute, &found) == 0;
    int fd = after_open(real_openat(at_fd, path, flags, mode), absolute, flags, existed);
    pthread_mutex_unlock(&lock);
    return fd;
}

#define MODE_FROM_ARGUMENTS                         \
    mode_t mode = 0;                                \
    if (flags & (O_CREAT | __O_TMPFILE)) {          \
        va_list rest;                               \
        va_start(rest, flags);                      \
        mode = va_arg(rest, mode_t);                \
        va_end(rest);                               \
    }

int open(const char* path, int flags, ...) { MODE_FROM_ARGUMENTS return open_any(AT_FDCWD, path, flags, mode); }
int open64(const char* path, int flags, ...) { MODE_FROM_ARGUMENTS return open_any(AT_FDCWD, path, flags, mode); }
int openat(int fd, const char* path, int flags, ...) { MODE_FROM_ARGUMENTS return open_any(fd, path, flags, mode); }
int openat64(int fd, const char* path, int flags, ...) { MODE_FROM_ARGUMENTS return open_any(fd, path, flags, mode); }
int creat(const char* path, mode_t mode) { return open_any(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

int close(int fd) {
    find_real();
    if (fd >= 0 && fd < FD_MAX && (file_by_fd[fd] || directory_by_fd[fd])) {
        pthread_mutex_lock(&lock);
        file_by_fd[fd] = NULL;
        free(directory_by_fd[fd]);
        directory_by_fd[fd] = NULL;
        pthread_mutex_unlock(&lock);
    }
    return real_close(fd);
}

static int is_watched_file(int fd) { return fd >= 0 && fd < FD_MAX && file_by_fd[fd]; }

static void grew(File* file, int64_t end) {
    if (end > file->written) file->written = end;
}

ssize_t write(int fd, const void* bytes, size_t count) {
    find_real();
    if (!is_watched_file(fd)) return real_write(fd, bytes, count);
    pthread_mutex_lock(&lock);
    ssize_t done = real_write(fd, bytes, count);
    int error = errno;
    if (done > 0) grew(file_by_fd[fd], lseek(fd, 0, SEEK_CUR));
    pthread_mutex_unlock(&lock);
    errno = error;
    return done;
}

ssize_t pwrite(int fd, const void* bytes, size_t count, off_t offset) {
    find_real();
    if (!is_watched_file(fd)) return real_pwrite(fd, bytes, count, offset);
    pthread_mutex_lock(&lock);
    ssize_t done = real_pwrite(fd, bytes, count, offset);
    if (done > 0) grew(file_by_fd[fd], offset + done);
    pthread_mutex_unlock(&lock);
    return done;
}
ssize_t pwrite64(int fd, const void* bytes, size_t count, off_t offset) { return pwrite(fd, bytes, count, offset); }

int ftruncate(int fd, off_t length) {
    find_real();
    if (!is_watched_file(fd)) return real_ftruncate(fd, length);
    pthread_mutex_lock(&lock);
    int result = real_ftruncate(fd, length);
    if (result == 0) {
        File* file = file_by_fd[fd];
        file->written = length;
        if (file->synced > length) file->synced = length;
    }
    pthread_mutex_unlock(&lock);
    return result;
}
int ftruncate64(int fd, off_t length) { return ftruncate(fd, length); }

/* Told to refuse: a disk whose syncs fail, for as long as the shadow directory holds a file of that name. */
static int syncs_fail(void) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/syncs-fail", shadows);
    return access(path, F_OK) == 0;
}

static int sync_any(int fd, int (*real)(int)) {
    if (fd < 0 || fd >= FD_MAX || (!file_by_fd[fd] && !directory_by_fd[fd])) return real(fd);
    if (syncs_fail()) {
        errno = EIO;
        return -1;
    }
    pthread_mutex_lock(&lock);
    /* What is written while the disk is at work may miss this sync. */
    int64_t length = file_by_fd[fd] ? file_by_fd[fd]->written : 0;
    pthread_mutex_unlock(&lock);
    int result = real(fd);
    int error = errno;
    pthread_mutex_lock(&lock);
    if (result == 0 && file_by_fd[fd] && file_by_fd[fd]->synced < length) file_by_fd[fd]->synced = length;
    if (result == 0 && directory_by_fd[fd]) confirm(directory_by_fd[fd]);
    pthread_mutex_unlock(&lock);
    errno = error;
    return result;
}

int fsync(int fd) {
    find_real();
    return sync_any(fd, real_fsync);
}
int fdatasync(int fd) {
    find_real();
    return sync_any(fd, real_fdatasync);
}

int rename(const char* from, const char* to) {
    char old_path[PATH_MAX], new_path[PATH_MAX], shadow[PATH_MAX];
    struct stat found;
    find_real();
    if (!watched(from, old_path) || !watched(to, new_path)) return real_rename(from, to);
    pthread_mutex_lock(&lock);
    keep_aside(new_path, shadow);
    int result = real_rename(from, to);
    int error = errno;
    if (result == 0) {
        Change* change = note_change(RENAMED, new_path);
        strcpy(change->from, old_path);
        strcpy(change->shadow, shadow);
        File* replaced = shadow[0] && stat(shadow, &found) == 0 ? file_at(&found) : NULL;
        if (replaced) strcpy(replaced->path, shadow);
        File* moved = stat(new_path, &found) == 0 ? file_at(&found) : NULL;
        if (moved) strcpy(moved->path, new_path);
    } else if (shadow[0]) {
        real_unlink(shadow);
    }
    pthread_mutex_unlock(&lock);
    errno = error;
    return result;
}

int unlink(const char* path) {
    char absolute[PATH_MAX], shadow[PATH_MAX];
    struct stat found;
    find_real();
    if (!watched(path, absolute)) return real_unlink(path);
    pthread_mutex_lock(&lock);
    keep_aside(absolute, shadow);
    int result = real_unlink(path);
    int error = errno;
    if (result == 0) {
        strcpy(note_change(DELETED, absolute)->shadow, shadow);
        File* file = shadow[0] && stat(shadow, &found) == 0 ? file_at(&found) : NULL;
        if (file) strcpy(file->path, shadow);
    } else if (shadow[0]) {
        real_unlink(shadow);
    }
    pthread_mutex_unlock(&lock);
    errno = error;
    return result;
}

int link(const char* from, const char* to) {
    char old_path[PATH_MAX], new_path[PATH_MAX];
    find_real();
    int result = real_link(from, to);
    if (result == 0 && watched(from, old_path) && watched(to, new_path)) {
        pthread_mutex_lock(&lock);
        note_change(CREATED, new_path);
        pthread_mutex_unlock(&lock);
    }
    return result;
}

/* --- the cut ------------------------------------------------------------------------------ */

static int64_t kept_length(const File* file) {
    if (seed == 0 || file->written <= file->synced) return file->synced;
    uint64_t dice = (seed ^ (uint64_t)file->inode) * 0x9e3779b97f4a7c15u;
    dice ^= dice >> 29;
    dice *= 0xbf58476d1ce4e5b9u;
    dice ^= dice >> 32;
    return file->synced + (int64_t)(dice % (uint64_t)(file->written - file->synced + 1));
}

static void forget(void) {
    for (File* file = files; file; file = file->next) {
        struct stat found;
        int64_t kept = kept_length(file);
        if (file->path[0] && stat(file->path, &found) == 0 && found.st_ino == file->inode && found.st_size > kept)
            if (truncate(file->path, kept) != 0) perror(file->path);
    }
    for (Change* change = changes; change; change = change->older) {
        if (change->kind == CREATED) real_unlink(change->path);
        if (change->kind == RENAMED && real_rename(change->path, change->from) != 0) perror(change->path);
        if (change->shadow[0] && real_rename(change->shadow, change->path) != 0) perror(change->shadow);
    }
}

static void* wait_for_the_cut(void* unused) {
    sigset_t cut;
    int received;
    (void)unused;
    sigemptyset(&cut);
    sigaddset(&cut, CUT_SIGNAL);
    while (sigwait(&cut, &received) != 0) {}
    pthread_mutex_lock(&lock);      /* and never unlocked: from here on nobody writes, syncs or renames */
    forget();
    kill(getpid(), SIGKILL);
    return NULL;
}

__attribute__((constructor)) static void start(void) {
    const char* directory = getenv("FILA_POWERCUT_DIR");
    const char* shadow = getenv("FILA_POWERCUT_SHADOW");
    const char* number = getenv("FILA_POWERCUT_SEED");
    pthread_t thread;
    sigset_t cut;
    find_real();
    if (!directory || !shadow) return;
    snprintf(shadows, sizeof shadows, "%s", shadow);
    seed = number ? strtoull(number, NULL, 10) : 0;
    /* Blocked here, before there is any other thread, so that only the waiting thread takes it. */
    sigemptyset(&cut);
    sigaddset(&cut, CUT_SIGNAL);
    pthread_sigmask(SIG_BLOCK, &cut, NULL);
    if (pthread_create(&thread, NULL, wait_for_the_cut, NULL) == 0)
        snprintf(root, sizeof root, "%s", directory);
}
