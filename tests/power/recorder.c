/* LD_PRELOAD: writes down what a process does to files below a directory.

Below $POWER_ROOT each change of a file or a name, and each sync, becomes a record in
$POWER_TRACE, in the order of their happening: one lock is held over the change and its
record. Syncs are written down and not done: nothing is cut from a real disk. What has
no interposed function here (mmap, sendfile, stdio of the C library) is not recorded;
`disk.py` compares its end with the real directory, so a test would notice.

Record: op (1), site, path, other path and data lengths (4 each), inode (8), number (8),
then these bytes; the number is an offset or a size. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *root;
static size_t root_length;
static int trace = -1;
static __thread char site[256];

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("POWER_TRACE");
    root = getenv("POWER_ROOT");
    if (!path || !root)
        return;
    root_length = strlen(root);
    trace = syscall(SYS_openat, AT_FDCWD, path,
                    O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (trace < 0)
        abort();
}

static int below(const char *path) {
    return trace >= 0 && !strncmp(path, root, root_length) &&
           (path[root_length] == '/' || !path[root_length]);
}

static void note(char op, uint64_t inode, int64_t number, const char *path,
                 const char *other, const struct iovec *data, int count, size_t size) {
    struct __attribute__((packed)) {
        char op;
        uint32_t site, path, other, data;
        uint64_t inode;
        int64_t number;
    } head = {op, strlen(site), strlen(path), strlen(other), size, inode, number};
    struct iovec all[4 + IOV_MAX] = {{&head, sizeof head},
                                     {site, head.site},
                                     {(void *)path, head.path},
                                     {(void *)other, head.other}};
    int used = 4;
    for (int i = 0; i < count && size; i++) {
        size_t part = data[i].iov_len < size ? data[i].iov_len : size;
        all[used++] = (struct iovec){data[i].iov_base, part};
        size -= part;
    }
    for (int at = 0; at < used; at += IOV_MAX)
        if (syscall(SYS_writev, trace, all + at, used - at < IOV_MAX ? used - at : IOV_MAX) < 0)
            abort();
}

/* Whether an open file is below the root; its path and what it is. */
static int watched(int fd, char path[PATH_MAX], struct stat *about) {
    if (trace < 0)
        return 0;
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length <= 0)
        return 0;
    path[length] = 0;
    return below(path) && !fstat(fd, about);
}

static void absolute(int at, const char *path, char whole[PATH_MAX]) {
    char base[PATH_MAX] = "", link[64];
    if (path[0] != '/') {
        snprintf(link, sizeof link, at == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", at);
        ssize_t length = readlink(link, base, sizeof base - 2);
        if (length > 0)
            strcpy(base + length, "/");
    }
    if (snprintf(whole, PATH_MAX, "%s%s", base, path) >= PATH_MAX)
        abort();
}

static int opened(int at, const char *path, int flags, mode_t mode) {
    pthread_mutex_lock(&lock);
    int existed = !syscall(SYS_faccessat, at, path, F_OK);
    int fd = syscall(SYS_openat, at, path, flags, mode), error = errno;
    char real[PATH_MAX];
    struct stat about;
    if (fd >= 0 && (flags & (O_CREAT | O_TRUNC)) && watched(fd, real, &about)) {
        if (!existed)
            note('c', about.st_ino, 0, real, "", NULL, 0, 0);
        else if (flags & O_TRUNC)
            note('t', about.st_ino, 0, "", "", NULL, 0, 0);
    }
    pthread_mutex_unlock(&lock);
    errno = error;
    return fd;
}

#define OPEN(name, before, at)                                                        \
    int name(before const char *path, int flags, ...) {                               \
        va_list rest;                                                                 \
        va_start(rest, flags);                                                        \
        mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0;     \
        va_end(rest);                                                                 \
        return opened(at, path, flags, mode);                                         \
    }
#define AT int at,
OPEN(open, , AT_FDCWD)
OPEN(open64, , AT_FDCWD)
OPEN(openat, AT, at)
OPEN(openat64, AT, at)

static ssize_t wrote(int fd, const struct iovec *data, int count, int64_t offset) {
    char path[PATH_MAX];
    struct stat about;
    pthread_mutex_lock(&lock);
    ssize_t size = offset < 0 ? syscall(SYS_writev, fd, data, count)
                              : syscall(SYS_pwritev, fd, data, count, offset, 0);
    int error = errno;
    if (size > 0 && fd != trace && watched(fd, path, &about) && S_ISREG(about.st_mode))
        note('w', about.st_ino, offset < 0 ? lseek(fd, 0, SEEK_CUR) - size : offset, "",
             "", data, count, size);
    pthread_mutex_unlock(&lock);
    errno = error;
    return size;
}

ssize_t write(int fd, const void *data, size_t size) {
    return wrote(fd, &(struct iovec){(void *)data, size}, 1, -1);
}
ssize_t writev(int fd, const struct iovec *data, int count) {
    return wrote(fd, data, count, -1);
}
#define PWRITE(name, offset_t)                                                        \
    ssize_t name(int fd, const void *data, size_t size, offset_t offset) {            \
        return wrote(fd, &(struct iovec){(void *)data, size}, 1, offset);             \
    }
#define PWRITEV(name, offset_t)                                                       \
    ssize_t name(int fd, const struct iovec *data, int count, offset_t offset) {      \
        return wrote(fd, data, count, offset);                                        \
    }
#define PWRITEV2(name, offset_t)                                                      \
    ssize_t name(int fd, const struct iovec *data, int count, offset_t offset,        \
                 int flags) {                                                         \
        if (flags)                                                                    \
            abort(); /* not modelled */                                               \
        return wrote(fd, data, count, offset);                                        \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)
PWRITEV(pwritev, off_t)
PWRITEV(pwritev64, off64_t)
PWRITEV2(pwritev2, off_t)
PWRITEV2(pwritev64v2, off64_t)

/* Run `call`, and record it for an open file where it did what it should. */
#define RECORDED(call, op, number, fd)                                                \
    char path[PATH_MAX];                                                              \
    struct stat about;                                                                \
    pthread_mutex_lock(&lock);                                                        \
    int result = call, error = errno;                                                 \
    if (!result && watched(fd, path, &about))                                         \
        note(op, about.st_ino, number, "", "", NULL, 0, 0);                           \
    pthread_mutex_unlock(&lock);                                                      \
    errno = error;                                                                    \
    return result;

int ftruncate(int fd, off_t size) { RECORDED(syscall(SYS_ftruncate, fd, size), 't', size, fd) }
int ftruncate64(int fd, off64_t size) { RECORDED(syscall(SYS_ftruncate, fd, size), 't', size, fd) }
int posix_fallocate(int fd, off_t at, off_t size) {
    RECORDED(REAL(posix_fallocate)(fd, at, size), 'a', at + size, fd)
}
int posix_fallocate64(int fd, off64_t at, off64_t size) {
    RECORDED(REAL(posix_fallocate64)(fd, at, size), 'a', at + size, fd)
}
#define KEEP_SIZE 1
int fallocate(int fd, int mode, off_t at, off_t size) {
    if (mode & ~KEEP_SIZE)
        return errno = EOPNOTSUPP, -1; /* holes are not modelled */
    RECORDED(REAL(fallocate)(fd, mode, at, size), 'a', mode ? 0 : at + size, fd)
}
int fallocate64(int fd, int mode, off64_t at, off64_t size) {
    return fallocate(fd, mode, at, size);
}

static int synced(int fd) {
    char path[PATH_MAX];
    struct stat about;
    if (watched(fd, path, &about)) {
        pthread_mutex_lock(&lock);
        note('s', about.st_ino, 0, path, "", NULL, 0, 0);
        pthread_mutex_unlock(&lock);
    }
    site[0] = 0;
    return 0;
}
int fsync(int fd) { return synced(fd); }
int fdatasync(int fd) { return synced(fd); }

/* The same for names. */
#define NAMED(call, op, at, name, other_at, other_name)                               \
    char path[PATH_MAX], other[PATH_MAX];                                             \
    absolute(at, name, path);                                                         \
    absolute(other_at, other_name, other);                                            \
    pthread_mutex_lock(&lock);                                                        \
    int result = call, error = errno;                                                 \
    if (!result && below(path))                                                       \
        note(op, 0, 0, path, other, NULL, 0, 0);                                      \
    pthread_mutex_unlock(&lock);                                                      \
    errno = error;                                                                    \
    return result;
#define HERE AT_FDCWD

int renameat(int at, const char *old, int new_at, const char *new) {
    NAMED(syscall(SYS_renameat, at, old, new_at, new), 'r', at, old, new_at, new)
}
int rename(const char *old, const char *new) { return renameat(HERE, old, HERE, new); }
int linkat(int at, const char *old, int new_at, const char *new, int flags) {
    NAMED(syscall(SYS_linkat, at, old, new_at, new, flags), 'l', at, old, new_at, new)
}
int link(const char *old, const char *new) { return linkat(HERE, old, HERE, new, 0); }
int unlinkat(int at, const char *name, int flags) {
    NAMED(syscall(SYS_unlinkat, at, name, flags), 'u', at, name, HERE, "")
}
int unlink(const char *name) { return unlinkat(HERE, name, 0); }
int rmdir(const char *name) { return unlinkat(HERE, name, AT_REMOVEDIR); }
int mkdirat(int at, const char *name, mode_t mode) {
    NAMED(syscall(SYS_mkdirat, at, name, mode), 'm', at, name, HERE, "")
}
int mkdir(const char *name, mode_t mode) { return mkdirat(HERE, name, mode); }

/* For the workload: who calls sync next on this thread; and what was promised. */
void power_site(const char *name) { snprintf(site, sizeof site, "%s", name); }
void power_mark(const char *text) {
    if (trace < 0)
        return;
    struct iovec data = {(void *)text, strlen(text)};
    pthread_mutex_lock(&lock);
    note('!', 0, 0, "", "", &data, 1, data.iov_len);
    pthread_mutex_unlock(&lock);
}

/* Ends the process between two operations of other threads, not within one. */
void power_kill(int code) {
    pthread_mutex_lock(&lock);
    _exit(code);
}
