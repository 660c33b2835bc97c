// Sound from any bytes.
#include "tests/fuzz/fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

#include "frontend/audio.h"
#include "frontend/sniff.h"
#include "frontend/source.h"
#include "serve/ogg_opus.h"
#include "tests/ogg.h"

/* ---- audio ----------------------------------------------------------------------------------------------------------------- */

// Audio headers: linnet's own chunk reader, libsndfile's readers, and raw samples. The file is in memory.
// Visible, for the sanitizer to find. libsndfile 1.2.0 leaks a vorbis_info when an Ogg header is damaged.
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:vorbis_info_init\n"; }

void fuzz_audio(const uint8_t *data, size_t size)
{
    static float frames[64 * 4 * 40];
    static int fd = -1;
    static char path[64];
    if (size < 2 || size > 1 << 16) return;
    if (fd < 0) {
        setenv("LINNET_FFMPEG", "", 1); // never start ffmpeg
        fd = memfd_create("fuzz", 0);
        if (fd < 0) abort();
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    if (ftruncate(fd, 0) != 0 || pwrite(fd, data + 1, size - 1, 0) != (ssize_t)size - 1) abort();
    lin_feature_options options = lin_feature_options_default();
    options.channel = data[0] & 8 ? LIN_CHANNEL_EACH : LIN_CHANNEL_MIX;
    lin_pcm_format raw = {8000, 1 + data[0] / 16, (lin_pcm_encoding)(data[0] % 7), 0};
    // Format detection, and a WAV header in a pipe: no reported position may be outside the bytes given.
    const char *what;
    lin_wav wav;
    lin_sniff(data + 1, size - 1, &what);
    lin_sniff_is_noise(data + 1, size - 1);
    if (lin_wav_find(data + 1, size - 1, &wav) == 1 && (wav.at > size - 1 || wav.bytes == 0 || wav.pcm.channels < 0)) abort();
    // Joined files: each ends behind its beginning and within the bytes, and so does what follows it.
    lin_sniff_file file = {.fd = fd, .size = (int64_t)size - 1};
    for (int64_t at = 0, next; at < file.size; at = next) {
        int faults;
        const int64_t end = lin_sniff_end(&file, at, &faults);
        next = lin_sniff_skip_tags(&file, end);
        if (end <= at || end > file.size || next < end || next > file.size) abort();
        lin_sniff_is_chunk(&file, end);
        lin_sniff_find_samples(&file, at);
    }
    lin_error err;
    lin_audio *audio;
    lin_source *source;
    if (lin_audio_open(path, (data[0] & 7) == 7 ? NULL : &raw, &audio, &err) != LIN_OK) return;
    if (lin_source_from_audio(audio, &options, &source, &err) != LIN_OK) return;
    int n = 0, capacity = 4 * 64 / lin_source_lanes(source);
    for (int reads = 0; reads < 200; reads++)
        if (lin_source_read(source, frames, capacity, &n, &err) != LIN_OK || n == 0) break;
    for (int i = 0; i < n * 40; i++)
        if (!(frames[i] > -1e3f && frames[i] < 1e3f)) abort();
    lin_source_close(source);
}

/* ---- ogg_opus -------------------------------------------------------------------------------------------------------------- */

// Opus in Ogg on any bytes, cut at a place that the first byte chooses. Checksums of pages are put right, so that what they hold
// is read too.
static lin_status take_all(lin_ogg_opus *opus)
{
    float samples[LIN_OGG_OPUS_MOST];
    lin_error err = {0};
    int n = 1;
    lin_status status = LIN_OK;
    while (status == LIN_OK && n) {
        status = lin_ogg_opus_take(opus, samples, &n, &err);
        if (n < 0 || n > LIN_OGG_OPUS_MOST || (status != LIN_OK && (n || !err.message[0]))) abort();
        if (lin_audio_find_bad(samples, (size_t)n) < (size_t)n) abort();
    }
    return status;
}

void fuzz_ogg_opus(const uint8_t *data, size_t size)
{
    lin_ogg_opus *opus;
    lin_error err = {0};
    if (size < 2) return;
    const size_t n = size - 1, cut = n * data[0] / 256;
    unsigned char *copy = lin_alloc(n, 1);
    if (copy && lin_ogg_opus_create(16000, &opus, &err) == LIN_OK) {
        memcpy(copy, data + 1, n);
        test_ogg_checksums(copy, n);
        if (lin_ogg_opus_push(opus, copy, cut, &err) == LIN_OK && take_all(opus) == LIN_OK &&
            lin_ogg_opus_push(opus, copy + cut, n - cut, &err) == LIN_OK)
            take_all(opus);
        lin_ogg_opus_destroy(opus);
    }
    lin_free(copy);
}
