#include "model/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/memory.h"

enum { BUFFER = 1 << 18 };

struct lin_file_writer {
    int fd;
    char *path, *temporary;
    unsigned char *buffer;
    size_t buffered;
    uint64_t size; // buffered bytes included
    lin_status failed;
    char why[sizeof(((lin_error *)0)->message)];
};

static void release(lin_file_writer *w)
{
    if (w->fd >= 0) close(w->fd);
    lin_free(w->path);
    lin_free(w->temporary);
    lin_free(w->buffer);
    lin_free(w);
}

static lin_status refuse(lin_file_writer *w, const char *what, int error, lin_error *err)
{
    const char *hint = error == ENOSPC || error == EDQUOT ? "; make room and try again" : "";
    snprintf(w->why, sizeof w->why, "cannot %s %s: %s%s", what, w->path, strerror(error), hint);
    w->failed = LIN_IO;
    return lin_fail(err, LIN_IO, "%s", w->why);
}

/*
 * Opens the temporary file and locks it. Another writer may have renamed it between our open and our lock: then our descriptor
 * holds the finished file, which must not be touched, and we try again.
 */
static lin_status open_locked(lin_file_writer *w, lin_error *err)
{
    for (int attempt = 0; attempt < 16; attempt++) {
        w->fd = open(w->temporary, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (w->fd < 0) return lin_fail(err, LIN_IO, "cannot write %s: %s", w->path, strerror(errno));
        if (flock(w->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
            return lin_fail(err, LIN_IO, "cannot write %s: another process is writing it (%s is locked)", w->path, w->temporary);
        struct stat mine, named;
        if (fstat(w->fd, &mine) == 0 && lstat(w->temporary, &named) == 0 && mine.st_ino == named.st_ino &&
            mine.st_dev == named.st_dev) {
            if (!S_ISREG(mine.st_mode)) return lin_fail(err, LIN_IO, "cannot write %s: %s is not a file", w->path, w->temporary);
            if (ftruncate(w->fd, 0) != 0) return lin_fail(err, LIN_IO, "cannot empty %s: %s", w->temporary, strerror(errno));
            return LIN_OK;
        }
        close(w->fd);
        w->fd = -1;
    }
    return lin_fail(err, LIN_IO, "cannot write %s: others keep replacing %s", w->path, w->temporary);
}

lin_status lin_file_create(const char *path, lin_file_writer **writer, lin_error *err)
{
    *writer = NULL;
    struct stat old;
    if (stat(path, &old) == 0 && !S_ISREG(old.st_mode))
        return lin_fail(err, LIN_IO, "cannot write %s: it is %s", path,
                        S_ISDIR(old.st_mode) ? "a directory" : "not a regular file");
    lin_file_writer *w = lin_calloc(1, sizeof *w);
    if (!w) return lin_no_memory(err, "writing a file", sizeof *w);
    w->fd = -1;
    const size_t n = strlen(path) + sizeof ".tmp";
    w->path = lin_strdup(path);
    w->temporary = lin_alloc(n, 1);
    w->buffer = lin_alloc(BUFFER, 1);
    lin_status status;
    if (!w->path || !w->temporary || !w->buffer) {
        status = lin_no_memory(err, "writing a file", BUFFER);
    } else {
        snprintf(w->temporary, n, "%s.tmp", path);
        status = open_locked(w, err);
    }
    if (status != LIN_OK) {
        release(w);
        return status;
    }
    *writer = w;
    return LIN_OK;
}

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
        lin_status status = flush(w, err);
        if (status != LIN_OK) return status;
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
    lin_status status = flush(w, err);
    const unsigned char *from = bytes;
    while (status == LIN_OK && n) {
        const ssize_t done = pwrite(w->fd, from, n, (off_t)offset);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return refuse(w, "write", done < 0 ? errno : ENOSPC, err);
        from += done;
        offset += (uint64_t)done;
        n -= (size_t)done;
    }
    return status;
}

// So that the rename itself survives a power cut. Some file systems cannot sync a directory: no reason to fail.
static void sync_folder(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const size_t n = slash ? (size_t)(slash - path) : 0;
    if (n >= sizeof folder) return;
    snprintf(folder, sizeof folder, "%.*s", (int)n, path);
    const int fd = open(n ? folder : slash ? "/" : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    fsync(fd);
    close(fd);
}

lin_status lin_file_commit(lin_file_writer *w, lin_error *err)
{
    lin_status status = w->failed != LIN_OK ? lin_fail(err, w->failed, "%s", w->why) : flush(w, err);
    if (status == LIN_OK && fsync(w->fd) != 0) status = refuse(w, "write", errno, err);
    // renamed while still locked: who opens the temporary name afterwards makes a new file
    if (status == LIN_OK && rename(w->temporary, w->path) != 0) status = refuse(w, "rename the finished file to", errno, err);
    if (status == LIN_OK) sync_folder(w->path);
    else unlink(w->temporary);
    release(w);
    return status;
}

void lin_file_abort(lin_file_writer *w)
{
    if (!w) return;
    unlink(w->temporary);
    release(w);
}

lin_status lin_file_write_all(const char *path, const void *bytes, size_t n, lin_error *err)
{
    lin_file_writer *w;
    lin_status status = lin_file_create(path, &w, err);
    if (status != LIN_OK) return status;
    status = lin_file_write(w, bytes, n, err);
    if (status == LIN_OK) return lin_file_commit(w, err);
    lin_file_abort(w);
    return status;
}

lin_status lin_file_map_open(const char *path, lin_file_map *map, lin_error *err)
{
    static const unsigned char nothing[1];
    *map = (lin_file_map){.bytes = nothing};
    // a FIFO without a writer must not hang us
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return lin_fail(err, LIN_IO, "cannot open %s: %s", path, strerror(errno));
    lin_status status = LIN_OK;
    struct stat st;
    if (fstat(fd, &st) != 0) {
        status = lin_fail(err, LIN_IO, "cannot open %s: %s", path, strerror(errno));
    } else if (!S_ISREG(st.st_mode)) {
        status =
            lin_fail(err, LIN_IO, "cannot open %s: it is %s", path, S_ISDIR(st.st_mode) ? "a directory" : "not a regular file");
    } else if (st.st_size > 0) {
        const size_t size = (size_t)st.st_size;
        void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes == MAP_FAILED) status = lin_fail(err, LIN_IO, "cannot map %s: %s", path, strerror(errno));
        else *map = (lin_file_map){.bytes = bytes, .size = size};
    }
    close(fd);
    return status;
}

void lin_file_map_close(lin_file_map *map)
{
    if (map->size) munmap((void *)(size_t)map->bytes, map->size);
    *map = (lin_file_map){0};
}
