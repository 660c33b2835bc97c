// file.c - writes files completely or not at all, opens and maps them; see file.h.

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/memory.h"

enum { BUFFER = 1 << 18, NUMBERED = 16, NAMES = 64, LONGEST_BASE = 200, PARTS = 1000 };

struct lin_file_writer {
    int fd, flags;
    char *path;      // as given, for messages
    char *target;    // the target of a symlink; else the path
    char *temporary; // NULL: written in place
    unsigned char *buffer;
    size_t buffered;
    uint64_t size; // including buffered bytes
    off_t begin;   // in place: the offset of the first byte written
    lin_status failed;
    char why[sizeof(((lin_error *)0)->message)];
};

static void release(lin_file_writer *w)
{
    if (w->fd >= 0) close(w->fd);
    lin_free(w->path);
    lin_free(w->target);
    lin_free(w->temporary);
    lin_free(w->buffer);
    lin_free(w);
}

static lin_status refuse(lin_file_writer *w, const char *what, int error, lin_error *err)
{
    snprintf(w->why, sizeof w->why, "cannot %s %.600s: %s%s", what, w->path, strerror(error), lin_write_remedy(error));
    w->failed = LIN_IO;
    return lin_fail(err, LIN_IO, "%s", w->why);
}

/* ---- the target ------------------------------------------------------------------------------------------------------------ */

const char *lin_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// The folder of a path, with links resolved; 0 if it does not exist.
static int folder_of(const char *path, char folder[PATH_MAX])
{
    char part[PATH_MAX];
    const size_t n = (size_t)(lin_base_name(path) - path);
    if (n >= sizeof part) return 0;
    memcpy(part, path, n);
    part[n] = 0;
    return realpath(n ? part : ".", folder) != NULL;
}

/*
 * Another user's link in a sticky folder that everyone may write to (/tmp) is not followed: the rule of Linux's
 * protected_symlinks, which the kernel cannot apply because links are read and followed here.
 */
static int is_planted(const char *folder, const struct stat *link)
{
    struct stat at;
    if (link->st_uid == geteuid() || stat(folder, &at) != 0) return 0;
    return (at.st_mode & S_ISVTX) && (at.st_mode & S_IWOTH) && link->st_uid != at.st_uid;
}

/*
 * Follows symlinks to a name that is not a link, whether it exists or not. Names in /proc (/dev/stdout leads to /proc/self/fd/1)
 * look like links to files, but are open files: then *is_open is 1.
 */
static int follow(const char *path, char *target, size_t capacity, int *is_open)
{
    char folder[PATH_MAX], link[PATH_MAX];
    struct stat st;
    *is_open = 0;
    if (strlen(path) >= capacity) return ENAMETOOLONG;
    memcpy(target, path, strlen(path) + 1);
    for (int i = 0; i < 40; i++) {
        const int has_folder = folder_of(target, folder);
        if (has_folder && strncmp(folder, "/proc/", 6) == 0) {
            *is_open = 1;
            return 0;
        }
        if (lstat(target, &st) != 0 || !S_ISLNK(st.st_mode)) return 0;
        if (has_folder && is_planted(folder, &st)) return EACCES;
        const ssize_t n = readlink(target, link, sizeof link - 1);
        if (n < 0) return errno;
        const size_t before = *link == '/' ? 0 : (size_t)(lin_base_name(target) - target);
        if (before + (size_t)n >= capacity) return ENAMETOOLONG;
        memcpy(target + before, link, (size_t)n);
        target[before + (size_t)n] = 0;
    }
    return ELOOP;
}

// An open file of this process is used at its present offset, so that earlier output, and `>> file`, stay.
static int open_in_place(const char *target)
{
    char folder[PATH_MAX], own[PATH_MAX], *end;
    if (folder_of(target, folder) && realpath("/proc/self/fd", own) && strcmp(folder, own) == 0) {
        const long fd = strtol(lin_base_name(target), &end, 10);
        if (*end || fd < 0 || fd > INT_MAX) {
            errno = ENOENT;
            return -1;
        }
        return fcntl((int)fd, F_DUPFD_CLOEXEC, 3);
    }
    return open(target, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);
}

/* ---- the temporary file ---------------------------------------------------------------------------------------------------- */

// NULL if memory is short. First numbered names, so that stale files are found; then names that cannot be guessed.
static void name_temporary(const lin_file_writer *w, int attempt, char *name, size_t capacity)
{
    const char *base = lin_base_name(w->target);
    size_t n = strlen(base);
    if (n > LONGEST_BASE) {
        for (n = LONGEST_BASE; n && ((unsigned char)base[n] & 0xC0) == 0x80;) n--; // no partial character
    }
    const int before = (int)(base - w->target) + (int)n;
    if (attempt < NUMBERED) {
        snprintf(name, capacity, "%.*s.linnet-%d.tmp", before, w->target, attempt);
        return;
    }
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const uint64_t mixed = lin_random_bits((uint64_t)now.tv_nsec << 32 ^ (uint64_t)getpid(), (uint64_t)attempt);
    snprintf(name, capacity, "%.*s.linnet-%016llx.tmp", before, w->target, (unsigned long long)mixed);
}

static int is_named(int fd, const char *name, struct stat *mine)
{
    struct stat named;
    return fstat(fd, mine) == 0 && lstat(name, &named) == 0 && mine->st_ino == named.st_ino && mine->st_dev == named.st_dev;
}

typedef enum found { FOUND_FOREIGN, FOUND_LOCKED, FOUND_STALE } found;

// Examines the name of a temporary file. A stale one of this user is removed, unless it is to be kept.
static found look_at(const char *name, int keep)
{
    struct stat st;
    found what = FOUND_FOREIGN;
    if (lstat(name, &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_nlink != 1) return what;
    const int fd = open(name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return what;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        what = errno == EWOULDBLOCK ? FOUND_LOCKED : FOUND_FOREIGN;
    } else if (!keep && is_named(fd, name, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_nlink == 1) {
        what = unlink(name) == 0 ? FOUND_STALE : FOUND_FOREIGN;
    }
    close(fd);
    return what;
}

// Makes w->temporary, locked; w->temporary is NULL on failure.
static lin_status open_temporary(lin_file_writer *w, lin_error *err)
{
    const size_t capacity = strlen(w->target) + 48;
    struct stat mine;
    char *name = lin_alloc(capacity, 1);
    lin_status status = name ? LIN_OK : lin_no_memory(err, "writing a file", capacity);
    for (int attempt = 0, again = 0; status == LIN_OK;) {
        name_temporary(w, attempt, name, capacity);
        w->fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (w->fd >= 0) {
            // another process that takes it for a stale one may lock it first
            const int locked = flock(w->fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
            if (locked && is_named(w->fd, name, &mine)) {
                w->temporary = name;
                return LIN_OK;
            }
            close(w->fd);
            w->fd = -1;
        } else if (errno != EEXIST) {
            status = refuse(w, "write", errno, err);
            break;
        } else {
            const found what = look_at(name, w->flags & LIN_FILE_KEEP_STALE);
            if (what == FOUND_LOCKED && !(w->flags & LIN_FILE_OF_MANY)) {
                status = lin_fail(err, LIN_IO, "cannot write %.400s: another process is writing it (%.400s is locked)", w->path,
                                  name);
                break;
            }
            if (what != FOUND_STALE) again = 64;
        }
        if (++again > 64) attempt++, again = 0;
        if (attempt == NAMES)
            status = lin_fail(err, LIN_IO, "cannot write %.400s: all names like %.400s are in use; remove those files", w->path,
                              name);
    }
    lin_free(name);
    return status;
}

/* ---- opening --------------------------------------------------------------------------------------------------------------- */

static lin_status open_target(lin_file_writer *w, lin_error *err)
{
    char target[PATH_MAX];
    struct stat old;
    int is_open;
    const int error = follow(w->path, target, sizeof target, &is_open);
    if (error) return refuse(w, "write", error, err);
    if (!*target) return refuse(w, "write", ENOENT, err);
    w->target = lin_strdup(target);
    w->buffer = lin_alloc(BUFFER, 1);
    if (!w->target || !w->buffer) return lin_no_memory(err, "writing a file", BUFFER);
    const int exists = stat(target, &old) == 0;
    if (exists && S_ISDIR(old.st_mode)) return lin_fail(err, LIN_IO, "cannot write %.800s: it is a directory", w->path);
    if (is_open || (exists && !S_ISREG(old.st_mode))) {
        if (!(w->flags & LIN_FILE_STREAM))
            return lin_fail(err, LIN_IO, "cannot write %.800s: it is not a regular file, which this format requires",
                            w->path);
        w->fd = open_in_place(target);
        if (w->fd < 0) return refuse(w, "write", errno, err);
        w->begin = lseek(w->fd, 0, SEEK_CUR);
        return LIN_OK;
    }
    // a write-protected file is not replaced either
    if (exists && access(target, W_OK) != 0) return refuse(w, "write", errno, err);
    lin_status status = open_temporary(w, err);
    if (status != LIN_OK || !exists) return status;
    if (geteuid() == 0 && fchown(w->fd, old.st_uid, old.st_gid) != 0) errno = 0; // then root owns it
    fchmod(w->fd, old.st_mode & 0777);
    return LIN_OK;
}

lin_status lin_file_open(const char *path, int flags, lin_file_writer **writer, lin_error *err)
{
    *writer = NULL;
    if (strcmp(path, "-") == 0)
        return lin_fail(err, LIN_INVALID, "this cannot be written to standard output (-): name a file; ./- is one of that name");
    lin_file_writer *w = lin_calloc(1, sizeof *w);
    if (!w) return lin_no_memory(err, "writing a file", sizeof *w);
    w->fd = -1;
    w->flags = flags;
    w->path = lin_strdup(path);
    lin_status status = w->path ? open_target(w, err) : lin_no_memory(err, "writing a file", strlen(path));
    if (status != LIN_OK) {
        lin_file_abort(w);
        return status;
    }
    *writer = w;
    return LIN_OK;
}

/* ---- writing --------------------------------------------------------------------------------------------------------------- */

static lin_status put(lin_file_writer *w, const unsigned char *bytes, size_t n, lin_error *err)
{
    while (n) {
        const ssize_t done = write(w->fd, bytes, n);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return refuse(w, "write", done < 0 ? errno : ENOSPC, err);
        bytes += done;
        n -= (size_t)done;
    }
    return LIN_OK;
}

static lin_status flush(lin_file_writer *w, lin_error *err)
{
    const size_t n = w->buffered;
    w->buffered = 0;
    return put(w, w->buffer, n, err);
}

lin_status lin_file_write(lin_file_writer *w, const void *bytes, size_t n, lin_error *err)
{
    if (w->failed != LIN_OK) return lin_fail(err, w->failed, "%s", w->why);
    w->size += n;
    if (n > BUFFER - w->buffered) {
        LIN_TRY(flush(w, err));
        if (n >= BUFFER) return put(w, bytes, n, err);
    }
    if (n) memcpy(w->buffer + w->buffered, bytes, n);
    w->buffered += n;
    return LIN_OK;
}

lin_status lin_file_patch(lin_file_writer *w, uint64_t offset, const void *bytes, size_t n, lin_error *err)
{
    if (w->failed != LIN_OK) return lin_fail(err, w->failed, "%s", w->why);
    if (offset > w->size || n > w->size - offset)
        return lin_fail(err, LIN_INVALID, "cannot patch %s: byte %llu is not written yet", w->path, (unsigned long long)offset);
    LIN_TRY(flush(w, err));
    const unsigned char *from = bytes;
    while (n) {
        const ssize_t done = pwrite(w->fd, from, n, w->begin + (off_t)offset);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return refuse(w, "write", done < 0 ? errno : ENOSPC, err);
        from += done;
        offset += (uint64_t)done;
        n -= (size_t)done;
    }
    return LIN_OK;
}

int lin_file_descriptor(const lin_file_writer *w) { return w->fd; }

int lin_file_in_place(const lin_file_writer *w) { return w->temporary == NULL; }

// A file opened for appending cannot be patched: pwrite appends there too. Devices vary.
int lin_file_can_seek(const lin_file_writer *w)
{
    struct stat st;
    if (w->begin < 0) return 0;
    return !lin_file_in_place(w) || (fstat(w->fd, &st) == 0 && !S_ISREG(st.st_mode)) || !(fcntl(w->fd, F_GETFL) & O_APPEND);
}

/* ---- the end --------------------------------------------------------------------------------------------------------------- */

// Makes the rename itself survive a power failure. Some file systems cannot sync a directory: that is not an error.
static void sync_folder(const char *path)
{
    char folder[PATH_MAX];
    if (!folder_of(path, folder)) return;
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    fsync(fd);
    close(fd);
}

static lin_status complete(lin_file_writer *w, lin_error *err)
{
    lin_status status = w->failed != LIN_OK ? lin_fail(err, w->failed, "%s", w->why) : flush(w, err);
    if (status != LIN_OK || lin_file_in_place(w) || (w->flags & LIN_FILE_OF_MANY)) return status;
    return fsync(w->fd) == 0 ? LIN_OK : refuse(w, "write", errno, err);
}

lin_status lin_file_commit(lin_file_writer *w, lin_error *err)
{
    lin_status status = complete(w, err);
    if (lin_file_in_place(w)) {
        const int fd = w->fd;
        w->fd = -1;
        if (close(fd) != 0 && errno != EINTR && status == LIN_OK) status = refuse(w, "write", errno, err);
        release(w);
        return status;
    }
    // a device or link that appeared there meanwhile is not replaced
    struct stat there;
    if (status == LIN_OK && lstat(w->target, &there) == 0 && !S_ISREG(there.st_mode))
        status = lin_fail(err, LIN_IO, "cannot write %.800s: the path has become something other than a regular file", w->path);
    // renamed while still locked: no process takes it for a stale one
    if (status == LIN_OK && rename(w->temporary, w->target) != 0) status = refuse(w, "rename the finished file to", errno, err);
    if (status != LIN_OK) unlink(w->temporary);
    else if (!(w->flags & LIN_FILE_OF_MANY)) sync_folder(w->target);
    release(w);
    return status;
}

void lin_file_abort(lin_file_writer *w)
{
    if (!w) return;
    if (w->temporary && w->fd >= 0) unlink(w->temporary);
    release(w);
}

lin_status lin_file_keep(lin_file_writer *w, char *name, size_t capacity, lin_error *err)
{
    *name = 0;
    lin_status status = complete(w, err);
    if (status != LIN_OK || lin_file_in_place(w)) {
        lin_file_abort(w);
        return status;
    }
    int fd = -1;
    for (int i = 1; i <= PARTS && fd < 0; i++) {
        char number[16] = "";
        if (i > 1) snprintf(number, sizeof number, "-%d", i);
        const int n = snprintf(name, capacity, "%s.part%s", w->target, number);
        errno = ENAMETOOLONG;
        if (n > 0 && (size_t)n < capacity) fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST) break;
    }
    if (fd < 0 || rename(w->temporary, name) != 0) status = refuse(w, "keep the finished part of", errno, err);
    if (fd >= 0) close(fd);
    if (status != LIN_OK) {
        if (fd >= 0) unlink(name);
        unlink(w->temporary);
        *name = 0;
    }
    release(w);
    return status;
}

lin_status lin_file_write_all(const char *path, const void *bytes, size_t n, lin_error *err)
{
    lin_file_writer *w;
    LIN_TRY(lin_file_open(path, 0, &w, err));
    const lin_status status = lin_file_write(w, bytes, n, err);
    if (status == LIN_OK) return lin_file_commit(w, err);
    lin_file_abort(w);
    return status;
}

/* ---- reading --------------------------------------------------------------------------------------------------------------- */

lin_status lin_file_open_input(const char *path, int *fd, lin_error *err)
{
    struct stat st;
    const int is_given = strcmp(path, "/dev/stdin") == 0 || strncmp(path, "/dev/fd/", 8) == 0 ||
                         strncmp(path, "/proc/self/fd/", 14) == 0 || strcmp(path, "/dev/null") == 0;
    // a FIFO without a writer does not block here
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | (is_given ? 0 : O_NONBLOCK));
    if (*fd < 0) return lin_fail(err, LIN_IO, "cannot open %s: %s", path, strerror(errno));
    const int is_known = fstat(*fd, &st) == 0, is_folder = is_known && S_ISDIR(st.st_mode);
    if (is_known && (S_ISREG(st.st_mode) || (is_given && !is_folder))) return LIN_OK;
    close(*fd);
    *fd = -1;
    return lin_fail(err, LIN_IO, "cannot read %s: it is %s", path, is_folder ? "a directory" : "not a regular file");
}

lin_status lin_file_open_stream(const char *path, FILE **file, lin_error *err)
{
    int fd;
    *file = NULL;
    LIN_TRY(lin_file_open_input(path, &fd, err));
    *file = fdopen(fd, "rb");
    if (*file) return LIN_OK;
    close(fd);
    return lin_no_memory(err, path, BUFFER);
}

/* ---- without a name -------------------------------------------------------------------------------------------------------- */

static int in_memory(const char **folder)
{
#ifdef MFD_CLOEXEC
    const int error = errno, fd = memfd_create("linnet", MFD_CLOEXEC);
    if (fd >= 0) *folder = "memory";
    else errno = error;
    return fd;
#else
    (void)folder;
    return -1;
#endif
}

int lin_file_open_unnamed(const char **folder)
{
    char path[PATH_MAX];
    const char *named = getenv("TMPDIR");
    int fd;
    *folder = named && *named ? named : "/tmp";
#ifdef O_TMPFILE
    fd = open(*folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0) return fd;
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) return in_memory(folder);
#endif
    snprintf(path, sizeof path, "%s/linnet-XXXXXX", *folder);
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0) unlink(path);
    return fd >= 0 ? fd : in_memory(folder);
}

/* ---- the table of mapped files: nothing is allocated, and a signal handler may read it ------------------------------------- */

// begin: 0 free, CLAIMED while it is filled in, else the address of the file.
typedef struct slot {
    _Atomic uintptr_t begin;
    _Atomic size_t n;
    char path[LIN_MAP_PATH];
} slot;

enum { CLAIMED = 1 };

static slot slots[LIN_MAP_FILES];

static void enlist(const void *bytes, size_t n, const char *path)
{
    for (int i = 0; i < LIN_MAP_FILES; i++) {
        uintptr_t none = 0;
        if (!atomic_compare_exchange_strong(&slots[i].begin, &none, CLAIMED)) continue;
        const size_t length = strlen(path), over = length >= LIN_MAP_PATH ? length - (LIN_MAP_PATH - 1) : 0;
        memcpy(slots[i].path, path + over, length - over + 1);
        atomic_store(&slots[i].n, n);
        atomic_store(&slots[i].begin, (uintptr_t)bytes);
        return;
    }
}

static void strike(const void *bytes)
{
    for (int i = 0; i < LIN_MAP_FILES; i++) {
        uintptr_t begin = (uintptr_t)bytes;
        if (atomic_compare_exchange_strong(&slots[i].begin, &begin, 0)) return;
    }
}

const char *lin_file_map_find(const void *address)
{
    for (int i = 0; i < LIN_MAP_FILES; i++) {
        const uintptr_t begin = atomic_load(&slots[i].begin), at = (uintptr_t)address;
        // the address of a fault is within a page of the file, and the last page may reach past its end
        if (begin > CLAIMED && at >= begin && at - begin < (atomic_load(&slots[i].n) + 4095) / 4096 * 4096) return slots[i].path;
    }
    return NULL;
}

/* ---- mapping --------------------------------------------------------------------------------------------------------------- */

lin_status lin_file_map_descriptor(int file, size_t size, const char *path, lin_file_map *map, lin_error *err)
{
    void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (bytes == MAP_FAILED) return lin_fail(err, LIN_IO, "cannot map %s: %s", path, strerror(errno));
    enlist(bytes, size, path);
    *map = (lin_file_map){.bytes = bytes, .size = size};
    return LIN_OK;
}

lin_status lin_file_map_open(const char *path, lin_file_map *map, lin_error *err)
{
    static const unsigned char nothing[1];
    *map = (lin_file_map){.bytes = nothing};
    struct stat st;
    int fd;
    LIN_TRY(lin_file_open_input(path, &fd, err));
    lin_status status = LIN_OK;
    if (fstat(fd, &st) != 0) {
        status = lin_fail(err, LIN_IO, "cannot open %s: %s", path, strerror(errno));
    } else if (!S_ISREG(st.st_mode)) {
        status = lin_fail(err, LIN_IO, "cannot open %s: it is not a regular file", path);
    } else if (st.st_size > 0) {
        status = lin_file_map_descriptor(fd, (size_t)st.st_size, path, map, err);
    }
    close(fd);
    return status;
}

void lin_file_map_close(lin_file_map *map)
{
    if (map->size) {
        strike(map->bytes);
        munmap((void *)(uintptr_t)map->bytes, map->size);
    }
    *map = (lin_file_map){0};
}
