// SPHERE headers and shorten. Input: a byte, then if it is odd a stream of shorten, else a SPHERE file in memory. The samples of
// a stream must not depend on how its bytes are fed.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/hash.h"
#include "frontend/audio.h"
#include "frontend/shorten.h"
#include "frontend/sniff.h"
#include "frontend/sphere.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_FRAMES = 1 << 17, BLOCK = 4096 };

typedef struct feed {
    const uint8_t *bytes;
    size_t n, at;
    int most;
} feed;

static lin_status give(void *context, unsigned char *bytes, int capacity, int *n, lin_error *err)
{
    feed *f = context;
    (void)err;
    *n = f->n - f->at < (size_t)f->most ? (int)(f->n - f->at) : f->most;
    if (*n > capacity) *n = capacity;
    if (*n) memcpy(bytes, f->bytes + f->at, (size_t)*n);
    f->at += (size_t)*n;
    return LIN_OK;
}

// A hash of the samples, their number and the last error.
static uint64_t decode(const uint8_t *data, size_t size, int most, int capacity)
{
    static int16_t frames[BLOCK * LIN_SHORTEN_CHANNELS];
    feed f = {data, size, 0, most};
    lin_error err = {0};
    lin_shorten *s;
    if (lin_shorten_open(give, &f, &s, &err) != LIN_OK) return lin_hash(err.message, strlen(err.message), 1);
    uint64_t hash = 2;
    int total = 0, n = 0;
    while (total < MOST_FRAMES) {
        const int wanted = MOST_FRAMES - total < capacity ? MOST_FRAMES - total : capacity;
        if (lin_shorten_read(s, frames, wanted, &n, &err) != LIN_OK || n == 0) break;
        const int count = n * lin_shorten_channels(s);
        for (int i = 0; i < count; i++) {
            hash = lin_mix64(hash ^ (uint16_t)frames[i]);
            if (lin_shorten_is_mulaw(s) && (frames[i] < 0 || frames[i] > 255)) abort();
        }
        total += n;
    }
    lin_shorten_close(s);
    return lin_hash(err.message, strlen(err.message), hash + (uint64_t)total);
}

// Other formats: see fuzz_audio.
static void read_file(const uint8_t *data, size_t size)
{
    static float frames[BLOCK * LIN_AUDIO_MAX_CHANNELS];
    static int fd = -1;
    static char path[64];
    if (!lin_sniff_is_sphere(data, size)) return;
    if (fd < 0) {
        setenv("LINNET_FFMPEG", "", 1); // never start ffmpeg
        fd = memfd_create("fuzz", 0);
        if (fd < 0) abort();
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    if (ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t)size) abort();
    lin_error err;
    lin_sphere sphere;
    lin_audio *audio;
    int more, n;
    if (lin_sphere_parse(data, size, &sphere, &more, &err) == LIN_OK && !more && (size_t)sphere.header_bytes > size) abort();
    if (lin_audio_open(path, NULL, &audio, &err) != LIN_OK) return;
    for (int reads = 0; reads < 32; reads++) {
        if (lin_audio_read(audio, frames, BLOCK, &n, &err) != LIN_OK || n == 0) break;
        for (int i = 0; i < n * lin_audio_info(audio)->channels; i++)
            if (sphere.sample_bytes == 2 && !(frames[i] >= -1 && frames[i] <= 1)) abort();
    }
    lin_audio_close(audio);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > 1 << 16) return 0;
    if (data[0] % 2 == 0) read_file(data + 1, size - 1);
    else if (decode(data + 1, size - 1, 1 << 20, BLOCK) != decode(data + 1, size - 1, 1 + data[0] / 2, 1 + data[0])) abort();
    return 0;
}
