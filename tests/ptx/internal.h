/*
 * internal.h - shared by the files of the machine.
 *
 *   forms.c    the instructions: a table of all forms, and the arithmetic of 32 lanes
 *   read.c     text to instructions
 *   memory.c   allocations; loads, stores and asynchronous copies with their checks; counting of bytes
 *   run.c      warps, branches, collectives, barriers, blocks
 *
 * Every register and every constant has a slot in the file of its warp: 32 lanes side by side, 2, 4 or 8 bytes each, a predicate
 * as one mask. So each operand is an offset, and an instruction is a loop over 32 lanes whose results are blended by the active
 * mask.
 */
#ifndef LIN_TESTS_PTX_INTERNAL_H
#define LIN_TESTS_PTX_INTERNAL_H

#include <stdarg.h>
#include <stdbool.h>

#include "tests/ptx/ptx.h"

enum { LANES = 32, ALL = -1 };
#define EACH_LANE(l) for (int l = 0; l < LANES; l++)

/* Windows of the generic address space; below are addresses of the host. */
#define PTX_SHARED_WINDOW ((uint64_t)1 << 60)
#define PTX_LOCAL_WINDOW ((uint64_t)1 << 61)

enum ptx_space { SPACE_GENERIC, SPACE_GLOBAL, SPACE_SHARED, SPACE_LOCAL, SPACE_PARAM };

/* What the loop of run.c does with an instruction. */
enum ptx_kind {
    KIND_PLAIN,      /* run */
    KIND_COLLECTIVE, /* run, when all lanes of its mask have come */
    KIND_BRANCH,
    KIND_RETURN,
    KIND_BARRIER,
    KIND_BARRIER_OR,
    KIND_NOTHING
};

typedef struct ptx_operand {
    uint32_t slot, at; /* the number, and the offset in the warp's file */
    unsigned char width; /* 2, 4, 8; 1: a predicate; 0: none, written to by _ */
    bool negated;
} ptx_operand;

typedef struct ptx_instruction ptx_instruction;
typedef struct ptx_warp ptx_warp;
typedef void ptx_step(ptx_warp *w, const ptx_instruction *i, uint32_t mask);

typedef struct ptx_form {
    const char *name; /* one or more full opcodes, separated by spaces */
    const char *operands; /* a letter for each: p predicate, 2, 4, 8 its width; the first is written */
    ptx_step *run;
    enum ptx_class class;
    enum ptx_kind kind;
} ptx_form;

/* The form of an opcode; NULL: unknown. */
const ptx_form *ptx_form_of(const char *opcode, size_t length);

struct ptx_instruction {
    ptx_step *run;
    const ptx_operand *o; /* loads and stores: address, then data */
    int32_t target;       /* of a branch */
    int64_t displacement; /* of an address */
    ptx_operand guard;    /* width 0: none */
    unsigned char class, kind, n, space, vector, bytes /* of an element */, is_signed, write;
    unsigned char mode;   /* of shuffles, votes */
    bool removed;         /* by ptx_remove_sync */
    unsigned char reads_from, reads_to; /* the operands that are read */
    uint16_t used;        /* bytes of a vector that count */
    int file, line;
    const char *text;
    int length;
};

typedef struct ptx_parameter {
    size_t at, bytes;
    const char *name;
    int length;
} ptx_parameter;

typedef struct ptx_constant {
    uint64_t value;
    uint32_t slot;
} ptx_constant;

typedef struct ptx_slot {
    uint32_t at;
    unsigned char width;
} ptx_slot;

/* Slots that every kernel has, filled by the machine. */
enum ptx_special {
    TID_X, TID_Y, TID_Z, NTID_X, NTID_Y, NTID_Z, CTAID_X, CTAID_Y, CTAID_Z, NCTAID_X, NCTAID_Y, NCTAID_Z, LANEID, SPECIALS
};
extern const char *const ptx_special_names[SPECIALS];

struct ptx_kernel {
    const char *name;
    int name_length;
    ptx_instruction *code;
    int n_code;
    ptx_parameter *parameters;
    int n_parameters;
    size_t parameter_bytes, local_bytes;
    ptx_slot *slots;
    uint32_t n_slots, file_bytes;
    ptx_constant *constants;
    int n_constants;
    unsigned most_threads; /* .maxntid; 0: not given */
    const char *const *files;
    int n_files;
    int decoded; /* 0: not yet, 1, -1: has an error */
    size_t text_at;
};

typedef struct ptx_copy {
    uint32_t to; /* in shared memory */
    unsigned char bytes, lane;
    unsigned group;
    const unsigned char *from;
} ptx_copy;

/* The last accesses to a word of shared memory: epochs of the block's barriers and of the warp's syncwarps; 32 warp + lane. */
typedef struct ptx_cell {
    uint32_t write_block, write_warp, read_block, read_warp;
    int16_t writer, reader; /* reader: -1, several warps */
    int16_t read_by_lane;   /* -1: several of one warp */
} ptx_cell;

typedef struct ptx_block ptx_block;

struct ptx_warp {
    unsigned char *file;
    uint32_t *written; /* [n_slots] lanes in which a register has been written */
    ptx_block *block;
    int number;
    uint32_t live, waiting; /* lanes; waiting: at a barrier */
    int32_t pc[LANES];      /* where the lanes are, unless all are together */
    bool together;
    int32_t at;             /* where all lanes that go are, if together */
    uint32_t epoch;         /* of syncwarps */
    uint32_t predicates;    /* of bar.red */
    const ptx_instruction *barrier;
    unsigned char *local, *local_written; /* [LANES, local_bytes] */
    ptx_copy *copies;
    int n_copies, room_copies;
    unsigned groups[LANES]; /* committed */
};

struct ptx_block {
    const ptx_launch *launch;
    const ptx_kernel *kernel;
    unsigned at[3];
    int n_warps, n_live; /* warps, and those with live lanes */
    ptx_warp *warps;
    unsigned char *shared, *shared_written;
    size_t shared_bytes;
    ptx_cell *cells; /* [shared_bytes / 4] */
    uint32_t epoch; /* of barriers */
    unsigned char *parameters;
};

/* The machine; one launch at a time. */
extern struct ptx_machine {
    ptx_counts *counts; /* or NULL */
    char *why;          /* the first error, empty before */
    bool failed;
    uint32_t stamp; /* the last epoch */
    const ptx_instruction *now;
} ptx_machine;

/* Records the first error of a launch: kernel, source line, instruction, block, warp and lane (-1: all) before the message. */
void ptx_fail(const ptx_warp *w, int lane, const char *format, ...) __attribute__((format(printf, 3, 4)));

static inline void *ptx_at(const ptx_warp *w, const ptx_operand *o) { return w->file + o->at; }

/* Writes the lanes of mask. */
void ptx_put(ptx_warp *w, const ptx_operand *o, const void *values, uint32_t mask);
void ptx_put_predicate(ptx_warp *w, const ptx_operand *o, uint32_t values, uint32_t mask);
uint32_t ptx_predicate(const ptx_warp *w, const ptx_operand *o);

/* forms.c: mov of a register or constant */
ptx_step ptx_move, ptx_move_predicate;

/* memory.c */
ptx_step ptx_load, ptx_store, ptx_copy_async, ptx_copy_commit, ptx_copy_wait, ptx_add_global;
void ptx_memory_launch(void); /* before a launch: counts its bytes from zero */
void ptx_check_copies(ptx_warp *w, uint32_t ending);

/* run.c, collectives */
ptx_step ptx_shuffle, ptx_vote, ptx_ballot, ptx_reduce_max, ptx_product, ptx_sync_warp;

int ptx_decode(const ptx_module *m, ptx_kernel *k, char *why);

#endif
