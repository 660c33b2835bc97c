/*
 * snapshots.h - an index of a long recording: its stream saved at regular times, so that any part of it can be decoded again with
 * its whole past.
 *
 *   offset  0   header, 64 bytes: magic "LINSNAPS", version, number of states, where the table is, checksum of header and table
 *          64   the states one after the other, as linnet/state.h describes them; their front ends need the sound (past = 0)
 *           .   the table: for each state its offset, size, samples and rows before it, 32 bytes
 *
 * Little-endian. Written to a temporary name that is renamed at the end.
 *
 *   lin_snapshots_create("x.snapshots", 10, &writer, &err);
 *   lin_snapshots_add(writer, &state, &err);                     // once per snapshot
 *   lin_snapshots_commit(writer, &err);                          // or lin_snapshots_abort
 *
 *   lin_snapshots_open("x.snapshots", &snapshots, &err);
 *   i = lin_snapshots_before(&snapshots, 83.5);                  // the last one from which that time can be decoded
 *   if (i >= 0) lin_snapshots_get(&snapshots, i, &state, &err);  // else: from the beginning
 *   lin_snapshots_close(&snapshots);
 *
 * Threads: one at a time per object.
 */
#ifndef LIN_LINNET_SNAPSHOTS_H
#define LIN_LINNET_SNAPSHOTS_H

#include "base/file.h"
#include "base/map.h"
#include "linnet/state.h"

enum { LIN_SNAPSHOTS_VERSION = 1 };

typedef struct lin_snapshots_writer lin_snapshots_writer;

/* every_s is only stored. Errors of lin_file_create; on failure *writer is NULL. */
lin_status lin_snapshots_create(const char *path, double every_s, lin_snapshots_writer **writer, lin_error *err);
lin_status lin_snapshots_add(lin_snapshots_writer *writer, lin_state *state, lin_error *err);
/* Frees the writer in any case. */
lin_status lin_snapshots_commit(lin_snapshots_writer *writer, lin_error *err);
/* Removes what was written. NULL is allowed. */
void lin_snapshots_abort(lin_snapshots_writer *writer);

typedef struct lin_snapshot {
    int64_t offset, bytes;
    int64_t samples, rows; /* before it: of sound, of every channel; decoded */
} lin_snapshot;

typedef struct lin_snapshots {
    const char *path; /* owned by the caller */
    lin_file_map map;
    const lin_snapshot *table; /* [n], in the file */
    int n;
    double every_s, row_seconds;
    uint64_t model;
} lin_snapshots;

/* path must live as long. LIN_FORMAT: no index, of another version, or damaged (states are checked when they are got). */
lin_status lin_snapshots_open(const char *path, lin_snapshots *snapshots, lin_error *err);
void lin_snapshots_close(lin_snapshots *snapshots);

/* The last one after which every phone that begins at `seconds` or later is decoded; -1: none is early enough. */
int lin_snapshots_before(const lin_snapshots *snapshots, double seconds);

lin_status lin_snapshots_get(const lin_snapshots *snapshots, int i, lin_state *state, lin_error *err);

/* 1 if the bytes begin as an index does. */
int lin_snapshots_are(const void *bytes, size_t n);

#endif
