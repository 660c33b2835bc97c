// ogg_opus.c - Opus in Ogg as it arrives, over libogg and libopus; see ogg_opus.h. LIN_OPUS: built with them.

#include "serve/ogg_opus.h"

#include <stdint.h>
#include <string.h>

#include "base/memory.h"
#include "frontend/audio.h"

#ifndef LIN_OPUS

int lin_ogg_opus_exists(void) { return 0; }

lin_status lin_ogg_opus_create(int rate_hz, lin_ogg_opus **opus, lin_error *err)
{
    (void)rate_hz;
    *opus = NULL;
    return lin_fail(err, LIN_UNSUPPORTED, "linnet was built without libopus and libogg (Debian: libopus-dev, libogg-dev)");
}

void lin_ogg_opus_destroy(lin_ogg_opus *opus) { (void)opus; }

lin_status lin_ogg_opus_push(lin_ogg_opus *opus, const void *bytes, size_t n, lin_error *err)
{
    (void)opus, (void)bytes, (void)n;
    return lin_fail(err, LIN_UNSUPPORTED, "no Opus");
}

lin_status lin_ogg_opus_take(lin_ogg_opus *opus, float *samples, int *n, lin_error *err)
{
    (void)opus, (void)samples;
    *n = 0;
    return lin_fail(err, LIN_UNSUPPORTED, "no Opus");
}

int lin_ogg_opus_has_begun(const lin_ogg_opus *opus) { return opus != NULL; }

size_t lin_ogg_opus_rest(const lin_ogg_opus *opus)
{
    (void)opus;
    return 0;
}

#else

#include <ogg/ogg.h>
#include <opus.h>

enum { OPUS_HZ = 48000, HEAD_BYTES = 19 };

typedef enum step { HEAD, TAGS, SOUND, OVER } step;

struct lin_ogg_opus {
    int rate_hz;
    ogg_sync_state sync;
    ogg_stream_state stream;
    int has_stream;
    step step;          // which packet is next
    int begun;          // the headers of a stream were complete
    long incomplete;    // bytes of pages since the last packet
    OpusDecoder *decoder;
    int skip;           // samples, at rate_hz, that are still left out
    ogg_int64_t position; // granules, at 48 kHz, before the next packet
};

int lin_ogg_opus_exists(void) { return 1; }

int lin_ogg_opus_has_begun(const lin_ogg_opus *opus) { return opus->begun; }

size_t lin_ogg_opus_rest(const lin_ogg_opus *opus)
{
    const long of_packet = opus->has_stream ? opus->stream.body_fill - opus->stream.body_returned : 0;
    return (size_t)(opus->sync.fill - opus->sync.returned) + (size_t)of_packet;
}

lin_status lin_ogg_opus_create(int rate_hz, lin_ogg_opus **opus, lin_error *err)
{
    *opus = NULL;
    if (rate_hz != 8000 && rate_hz != 12000 && rate_hz != 16000 && rate_hz != 24000 && rate_hz != 48000)
        return lin_fail(err, LIN_INVALID, "Opus is decoded at 8000, 12000, 16000, 24000 or 48000 Hz, not %d", rate_hz);
    lin_ogg_opus *o = lin_calloc(1, sizeof *o);
    if (!o) return lin_no_memory(err, "an Opus decoder", sizeof *o);
    o->rate_hz = rate_hz;
    ogg_sync_init(&o->sync);
    *opus = o;
    return LIN_OK;
}

static void end_stream(lin_ogg_opus *o)
{
    if (o->has_stream) ogg_stream_clear(&o->stream);
    if (o->decoder) opus_decoder_destroy(o->decoder);
    o->has_stream = 0;
    o->decoder = NULL;
}

void lin_ogg_opus_destroy(lin_ogg_opus *o)
{
    if (!o) return;
    end_stream(o);
    ogg_sync_clear(&o->sync);
    lin_free(o);
}

lin_status lin_ogg_opus_push(lin_ogg_opus *o, const void *bytes, size_t n, lin_error *err)
{
    char *room = n < 1 << 30 ? ogg_sync_buffer(&o->sync, (long)n) : NULL;
    if (!room) return lin_no_memory(err, "Ogg", n);
    if (n) memcpy(room, bytes, n);
    ogg_sync_wrote(&o->sync, (long)n);
    return LIN_OK;
}

// RFC 7845, 5.1.
static lin_status read_head(lin_ogg_opus *o, const ogg_packet *packet, lin_error *err)
{
    const unsigned char *b = packet->packet;
    int code;
    if (packet->bytes < HEAD_BYTES || memcmp(b, "OpusHead", 8) != 0 || b[8] > 15)
        return lin_fail(err, LIN_FORMAT, "this Ogg stream is not Opus");
    const int channels = b[9], family = b[18];
    if (channels < 1 || channels > 2 || family > 1)
        return lin_fail(err, LIN_UNSUPPORTED, "Opus of %d channels in mapping family %d; 1 or 2 in family 0 are read", channels,
                        family);
    o->skip = (b[10] | b[11] << 8) * (o->rate_hz / 1000) / (OPUS_HZ / 1000);
    o->decoder = opus_decoder_create(o->rate_hz, 1, &code); // which mixes two channels down
    if (!o->decoder) return lin_no_memory(err, "an Opus decoder", (size_t)opus_decoder_get_size(1));
    opus_decoder_ctl(o->decoder, OPUS_SET_GAIN((opus_int16)(opus_uint16)(b[16] | b[17] << 8)));
    o->position = 0;
    o->step = TAGS;
    return LIN_OK;
}

static lin_status read_sound(lin_ogg_opus *o, const ogg_packet *packet, float *samples, int *n, lin_error *err)
{
    const int per = OPUS_HZ / o->rate_hz; // granules of a sample
    int made = opus_decode_float(o->decoder, packet->packet, (opus_int32)packet->bytes, samples, LIN_OGG_OPUS_MOST, 0);
    // A forged packet, amplified by the header's gain of up to 128 dB, can decode to any numbers.
    const int wrong = made > 0 && lin_audio_find_bad(samples, (size_t)made) < (size_t)made;
    if (packet->bytes == 0 || made < 0 || wrong || packet->granulepos > INT64_MAX / 2)
        return lin_fail(err, LIN_FORMAT, "a packet of Opus is damaged");
    const ogg_int64_t end = o->position + (ogg_int64_t)made * per;
    o->position = packet->granulepos >= 0 && !packet->e_o_s ? packet->granulepos : end;
    if (packet->e_o_s && packet->granulepos >= 0 && packet->granulepos < end) {
        const ogg_int64_t trimmed = (end - packet->granulepos) / per;
        made = trimmed < made ? made - (int)trimmed : 0;
    }
    const int skip = o->skip < made ? o->skip : made;
    if (skip) memmove(samples, samples + skip, (size_t)(made - skip) * sizeof *samples);
    o->skip -= skip;
    *n = made - skip;
    return LIN_OK;
}

// A page for the stream that is open, or the first of the next one.
static lin_status take_page(lin_ogg_opus *o, ogg_page *page, lin_error *err)
{
    if (ogg_page_bos(page)) {
        if (o->has_stream && o->step != OVER) return lin_fail(err, LIN_UNSUPPORTED, "the Ogg data have several streams at once");
        end_stream(o);
        if (ogg_stream_init(&o->stream, ogg_page_serialno(page)) != 0) return lin_no_memory(err, "Ogg", sizeof o->stream);
        o->has_stream = 1;
        o->step = HEAD;
        o->incomplete = 0;
    }
    if (!o->has_stream || ogg_stream_pagein(&o->stream, page) != 0)
        return lin_fail(err, LIN_FORMAT, "a page of Ogg belongs to no stream");
    o->incomplete += page->body_len;
    return LIN_OK;
}

lin_status lin_ogg_opus_take(lin_ogg_opus *o, float *samples, int *n, lin_error *err)
{
    *n = 0;
    while (*n == 0) {
        ogg_packet packet;
        ogg_page page;
        lin_status status = LIN_OK;
        const int got = o->has_stream && o->step != OVER ? ogg_stream_packetout(&o->stream, &packet) : 0;
        if (got < 0) return lin_fail(err, LIN_FORMAT, "a page of Ogg is missing");
        if (got > 0) {
            o->incomplete = 0;
            if (o->step == HEAD) status = read_head(o, &packet, err);
            else if (o->step == SOUND) status = read_sound(o, &packet, samples, n, err);
            else if (packet.bytes >= 8 && memcmp(packet.packet, "OpusTags", 8) == 0) o->begun = 1, o->step = SOUND;
            else status = lin_fail(err, LIN_FORMAT, "the Opus stream lacks its tags");
            if (packet.e_o_s) o->step = OVER;
        } else {
            if (o->incomplete > LIN_OGG_OPUS_PACKET)
                return lin_fail(err, LIN_FORMAT, "a packet has more than %d bytes", (int)LIN_OGG_OPUS_PACKET);
            const int paged = ogg_sync_pageout(&o->sync, &page);
            if (paged == 0) return LIN_OK;
            status = paged < 0 ? lin_fail(err, LIN_FORMAT, "the bytes are damaged or not Ogg") : take_page(o, &page, err);
        }
        if (status != LIN_OK) return status;
    }
    return LIN_OK;
}

#endif
