#include "base/map.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mapped.h"

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
        if (map->size) lin_mapped_add(bytes, size, path);
    }
    close(fd);
    return status;
}

void lin_file_map_close(lin_file_map *map)
{
    if (map->size) lin_mapped_remove(map->bytes);
    if (map->size) munmap((void *)(size_t)map->bytes, map->size);
    *map = (lin_file_map){0};
}
