// pcm.c - names of the sample formats, and their conversion to floats; see pcm.h.

#include "frontend/pcm.h"

#include <string.h>

static const struct {
    const char *name;
    int bytes;
} encodings[] = {
    [LIN_PCM_S16LE] = {"s16le", 2}, [LIN_PCM_S24LE] = {"s24le", 3}, [LIN_PCM_S32LE] = {"s32le", 4},
    [LIN_PCM_F32LE] = {"f32le", 4}, [LIN_PCM_U8] = {"u8", 1},       [LIN_PCM_MULAW] = {"mulaw", 1}, [LIN_PCM_ALAW] = {"alaw", 1},
};

lin_pcm_format lin_pcm_default(void) { return (lin_pcm_format){.rate_hz = 16000, .channels = 1, .encoding = LIN_PCM_S16LE}; }

const char *lin_pcm_name(lin_pcm_encoding encoding) { return encodings[encoding].name; }

int lin_pcm_bytes(lin_pcm_encoding encoding) { return encodings[encoding].bytes; }

// G.711: sign, three bits of exponent, four of mantissa; bits inverted on the line. In 16-bit units.
static int mulaw(unsigned char code)
{
    unsigned u = ~(unsigned)code & 0xff;
    int magnitude = (int)(((u & 15) << 3) + 0x84) << ((u >> 4) & 7);
    return u & 0x80 ? 0x84 - magnitude : magnitude - 0x84;
}

static int alaw(unsigned char code)
{
    unsigned u = (unsigned)code ^ 0x55, exponent = (u >> 4) & 7;
    int magnitude = (int)((u & 15) << 4) + 8;
    if (exponent) magnitude = (magnitude + 0x100) << (exponent - 1);
    return u & 0x80 ? magnitude : -magnitude;
}

static uint32_t u32(const unsigned char *b) { return (uint32_t)b[3] << 24 | (uint32_t)b[2] << 16 | (uint32_t)b[1] << 8 | b[0]; }

// The high bits of a 32-bit sample.
static float linear32(uint32_t bits)
{
    int32_t value;
    memcpy(&value, &bits, sizeof value);
    return (float)value * 0x1p-31f;
}

void lin_pcm_decode(lin_pcm_encoding encoding, const unsigned char *b, size_t n, float *samples)
{
    switch (encoding) {
    case LIN_PCM_S16LE:
        for (size_t i = 0; i < n; i++) samples[i] = linear32((uint32_t)b[2 * i + 1] << 24 | (uint32_t)b[2 * i] << 16);
        break;
    case LIN_PCM_S24LE:
        for (size_t i = 0; i < n; i++)
            samples[i] = linear32((uint32_t)b[3 * i + 2] << 24 | (uint32_t)b[3 * i + 1] << 16 | (uint32_t)b[3 * i] << 8);
        break;
    case LIN_PCM_S32LE:
        for (size_t i = 0; i < n; i++) samples[i] = linear32(u32(b + 4 * i));
        break;
    case LIN_PCM_F32LE:
        for (size_t i = 0; i < n; i++) {
            uint32_t bits = u32(b + 4 * i);
            memcpy(&samples[i], &bits, sizeof bits);
        }
        break;
    case LIN_PCM_U8:
        for (size_t i = 0; i < n; i++) samples[i] = (float)(b[i] - 128) * 0x1p-7f;
        break;
    case LIN_PCM_MULAW:
        for (size_t i = 0; i < n; i++) samples[i] = (float)mulaw(b[i]) * 0x1p-15f;
        break;
    case LIN_PCM_ALAW:
        for (size_t i = 0; i < n; i++) samples[i] = (float)alaw(b[i]) * 0x1p-15f;
        break;
    }
}
