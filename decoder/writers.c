// writers.c - the table of formats; see writers.h.

#include <string.h>
#include <strings.h>

#include "decoder/writers_internal.h"

lin_status lin_writer_begin(const lin_writer *writer, const lin_writer_options *o, lin_buffer *out, lin_error *err)
{
    const size_t before = out->n;
    if (!o->document) return LIN_OK;
    *o->document = (lin_writer_document){0};
    if (writer->header) lin_buffer_text(out, writer->header);
    lin_status status = lin_buffer_status(out, err);
    if (status != LIN_OK) lin_take_back(out, before);
    return status;
}

/* ---- the table ------------------------------------------------------------------------------------------------------------- */

static const lin_writer writers[] = {
    {"text", "txt", NULL, "phones or words separated by blanks, one utterance per line", LIN_WRITER_MANY, NULL, lin_write_text},
    {"json", "jsonl", "json", "JSON, one object per line, with all fields", LIN_WRITER_MANY, NULL, lin_write_json},
    {"ctm", "ctm", NULL, "NIST CTM: one phone or word per line with its time and confidence", LIN_WRITER_MANY, NULL,
     lin_write_ctm},
    {"trn", "trn", NULL, "NIST TRN, which sclite scores", LIN_WRITER_MANY, NULL, lin_write_trn},
    {"srt", "srt", NULL, "SubRip subtitles", LIN_WRITER_TIMELINE, NULL, lin_write_srt},
    {"vtt", "vtt", NULL, "WebVTT subtitles", LIN_WRITER_TIMELINE, lin_vtt_header, lin_write_vtt},
    {"textgrid", "TextGrid", NULL, "Praat TextGrid: tiers of words and phones", LIN_WRITER_ONE, NULL, lin_write_textgrid},
    {"csv", "csv", NULL, "comma-separated values (RFC 4180): a line per phone or word", LIN_WRITER_MANY, lin_csv_header,
     lin_write_csv},
    {"audacity", "labels.txt", "labels", "Audacity labels: start, end and phone or word", LIN_WRITER_TIMELINE, NULL,
     lin_write_audacity},
    {"nemo", "manifest.jsonl", "nemo", "the manifest that names the sound, with pred_text", LIN_WRITER_MANY, NULL,
     lin_write_nemo},
};
enum { N_WRITERS = sizeof writers / sizeof *writers };

int lin_writer_holds_speakers(const lin_writer *w) { return w->holds == LIN_WRITER_MANY || w->write == lin_write_textgrid; }

lin_status lin_write_speakers(const lin_writer *w, const lin_result *const *list, int n, const lin_writer_options *o,
                              lin_buffer *out, lin_error *err)
{
    lin_status status = LIN_OK;
    if (w->write == lin_write_textgrid) return lin_write_textgrid_speakers(list, n, o, out, err);
    for (int i = 0; i < n && status == LIN_OK; i++) status = w->write(list[i], o, out, err);
    return status;
}

const lin_writer *lin_writer_find(const char *name)
{
    for (int i = 0; i < N_WRITERS; i++) {
        if (!strcmp(writers[i].name, name)) return &writers[i];
    }
    for (int i = 0; i < N_WRITERS; i++) {
        if (writers[i].extension && !strcasecmp(writers[i].extension, name)) return &writers[i];
    }
    return NULL;
}

// Bytes of the extension if the path ends in a dot and it.
static size_t match_end(const char *path, const char *extension)
{
    const size_t n = extension ? strlen(extension) : 0, all = strlen(path);
    return n && all > n && path[all - n - 1] == '.' && !strcasecmp(path + all - n, extension) ? n : 0;
}

const lin_writer *lin_writer_for_file(const char *path)
{
    const lin_writer *best = NULL;
    size_t longest = 0;
    for (int i = 0; i < N_WRITERS; i++) {
        const size_t n = match_end(path, writers[i].extension), also = match_end(path, writers[i].also);
        if (n > longest || also > longest) {
            best = &writers[i];
            longest = n > also ? n : also;
        }
    }
    return best;
}

const lin_writer *lin_writer_at(int index) { return index >= 0 && index < N_WRITERS ? &writers[index] : NULL; }
