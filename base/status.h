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

typedef enum lin_status {
    LIN_OK = 0,
    LIN_INVALID,     /* an argument or option out of range */
    LIN_TOO_SMALL,   /* the caller's buffer is too small; nothing was changed */
    LIN_NO_MEMORY,   /* an allocation failed */
    LIN_IO,          /* the system refused: open, read, write, rename */
    LIN_FORMAT,      /* the bytes do not follow the format */
    LIN_MISMATCH,    /* two valid things do not match: state of another model, wrong shape */
    LIN_UNSUPPORTED, /* valid, but not in this build or on this machine */
    LIN_NUMERIC,     /* NaN or infinity where a number is required */
    LIN_STOPPED      /* stopped on request; finished work is saved */
} lin_status;

typedef struct lin_error {
    lin_status status;
    char message[1024]; /* one line, no full stop, no newline */
} lin_error;

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

/* Control characters in text, but for tabs, become '?': what the name or the contents of a file bring into a message does not
 * divide it into lines, and no terminal obeys it. Every message of the functions above is such a line. */
void lin_one_line(char *text);

/* What to do if a file cannot be written because of `error`, an errno: part of a sentence that begins with "; ", or "". */
const char *lin_write_remedy(int error);

/* Short English name of a status, for logs and JSON: "invalid", "io", ... Never NULL. */
const char *lin_status_name(lin_status status);

#endif
