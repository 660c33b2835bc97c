/*
 * emulation.h - the controls of the emulated GPU for tests: faults, limits, another order, counters.
 *
 *   emulation_reset();
 *   emulation_set(EMULATION_FAIL_ALLOCATION, 3);         // the third from now
 *   ... run the test ...
 *   emulation_count(EMULATION_LAUNCHES);
 *
 * Each setting is also read from the environment, once, at the first call: LINNET_EMULATION_ and the name below, so that
 * the program itself can be tested: LINNET_EMULATION_MEMORY=1000000 linnet ... --device cuda.
 * LINNET_EMULATION_TRAFFIC=FILE counts the bytes and operations of each launch: traffic.cpp, bench/gpu_bytes.sh.
 */
#ifndef LIN_EMULATION_EMULATION_H
#define LIN_EMULATION_EMULATION_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum emulation_setting {
    EMULATION_ORDER,           /* ORDER: 0 rotates from launch to launch (default), 1 ascending, 2 descending, 3 shuffled */
    EMULATION_EAGER,           /* EAGER: 1: streams work at once, not only when they are waited for */
    EMULATION_DEVICES,         /* DEVICES: number of devices (default 1) */
    EMULATION_CAPABILITY,      /* CAPABILITY: 90 for 9.0 (default) */
    EMULATION_MULTIPROCESSORS, /* MULTIPROCESSORS: default 8 */
    EMULATION_DRIVER,          /* DRIVER: version, default 13000; if older than the runtime's 13000, every call fails */
    EMULATION_MEMORY,          /* MEMORY: bytes of the device, default 8 GiB */
    EMULATION_FAIL_ALLOCATION, /* FAIL_ALLOCATION: only the k-th allocation from now fails; 0: none */
    EMULATION_LOSE_AFTER,      /* LOSE_AFTER: the device is lost after k more launches; 0: never */
    EMULATION_REFUSE_PRODUCTS, /* REFUSE_PRODUCTS: 1: cublasLt supports no product */
    EMULATION_SHARED,          /* SHARED: KiB of shared memory that a block may request, default 227 (9.0) */
    EMULATION_SETTINGS
} emulation_setting;

typedef enum emulation_counter {
    EMULATION_LAUNCHES,    /* of kernels and matrix products */
    EMULATION_ALLOCATIONS, /* total number, of device and pinned memory */
    EMULATION_LIVE,        /* blocks not yet freed */
    EMULATION_ATTRIBUTES,  /* calls of cudaFuncSetAttribute */
    EMULATION_OBJECTS      /* streams, events, graphs, descriptions of products not yet destroyed */
} emulation_counter;

/* Restores the defaults (the environment's), sets the counters of launches and allocations to 0, and restores a lost device. */
void emulation_reset(void);
void emulation_set(emulation_setting which, long value);
unsigned long emulation_count(emulation_counter which);

#ifdef __cplusplus
}
#endif

#endif
