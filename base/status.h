/*
 * status.h - errors are values.
 *
 * Every function of this project that can fail returns a lin_status and fills the caller's lin_error with what went wrong, where
 * (file, line, byte offset) and what to do about it. Only app/ prints or exits.
 *
 *   lin_error err = {0};
 *   if (lin_model_load("x.safetensors", &model, &err) != LIN_OK) fprintf(stderr, "linnet: %s\n", err.message);
 *
 * A NULL lin_error is allowed everywhere: the status is still returned, the text is discarded.
 */
#ifndef LIN_BASE_STATUS_H
#define LIN_BASE_STATUS_H

#include "linnet/linnet.h"

/* The statuses and the error of linnet.h, which explains them. Inside the library LIN_TOO_SMALL also says that nothing was
 * changed, and LIN_STOPPED that finished work is saved. */
typedef linnet_status lin_status;
typedef linnet_error lin_error;

#define LIN_OK LINNET_OK
#define LIN_INVALID LINNET_INVALID
#define LIN_TOO_SMALL LINNET_TOO_SMALL
#define LIN_NO_MEMORY LINNET_NO_MEMORY
#define LIN_IO LINNET_IO
#define LIN_FORMAT LINNET_FORMAT
#define LIN_MISMATCH LINNET_MISMATCH
#define LIN_UNSUPPORTED LINNET_UNSUPPORTED
#define LIN_NUMERIC LINNET_NUMERIC
#define LIN_STOPPED LINNET_STOPPED

#if defined(__GNUC__)
#define LIN_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define LIN_PRINTF(fmt, args)
#endif

/* Fills err (may be NULL) and returns status: `return lin_fail(err, LIN_IO, "cannot open %s: %s", path, strerror(errno));`
 * status is never LIN_OK. The arguments may include err's old message. */
lin_status lin_fail(lin_error *err, lin_status status, const char *fmt, ...) LIN_PRINTF(3, 4);

/* Returns what fails: for functions that have nothing to release. `LIN_TRY(lin_file_open(path, &file, err));` */
#define LIN_TRY(call)                                                                                                            \
    do {                                                                                                                         \
        const lin_status lin_tried = (call);                                                                                     \
        if (lin_tried != LIN_OK) return lin_tried;                                                                               \
    } while (0)

/* Adds a prefix and ": " to the message in err, for a caller that knows where the error happened:
 * `return lin_fail_at(err, status, "%s:%d", path, line);` The status may differ from the first one. */
lin_status lin_fail_at(lin_error *err, lin_status status, const char *fmt, ...) LIN_PRINTF(3, 4);

/* Copies why to err (may be NULL) and returns its status: for an error that was first collected separately. */
lin_status lin_fail_as(lin_error *err, const lin_error *why);

typedef struct lin_range {
    const char *name;
    double value, least, most;
} lin_range;

/* LIN_INVALID, naming the first of n values that is outside its range, or NaN: "beam search: width is 0; must be 1 to 1024",
 * where `of` is "beam search: ". */
lin_status lin_check_ranges(const lin_range *ranges, size_t n, const char *of, lin_error *err);

/* Replaces control characters other than tabs by '?', so that the name or contents of a file can neither break a message into
 * lines nor control a terminal. The functions above do this to every message. */
void lin_one_line(char *text);

/* How the library reports what is not an error: through a callback, because it never prints. */
typedef struct lin_warnings {
    void (*tell)(void *context, const char *text); /* one sentence without a line end, valid during the call; NULL: discarded */
    void *context;
    int quiet; /* 1: only problems, no advice */
} lin_warnings;

/* Formats and reports, at most 1,023 bytes. warnings may be NULL. Any thread, if the callback allows it. */
void lin_warn(const lin_warnings *warnings, const char *fmt, ...) LIN_PRINTF(2, 3);

/* What to do if a file cannot be written because of `error`, an errno: part of a sentence that begins with "; ", or "". */
const char *lin_write_remedy(int error);

/* Short English name of a status, for logs and JSON: "invalid", "io", ... Never NULL. */
const char *lin_status_name(lin_status status);

#endif
