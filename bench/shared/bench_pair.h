/* A synthetic pair of BF16 checkpoints in files, for the benches of deltas. Whatever fails ends the
 * program with a message. */
#ifndef BENCH_SHARED_BENCH_PAIR_H
#define BENCH_SHARED_BENCH_PAIR_H

#include "base/error.h"
#include "weights/model/checkpoint.h"

enum { BENCH_PAIR_TENSORS = 16, BENCH_PATH_BYTES = 1024 };

/* Says the program, `what` and the error. Does not return. */
_Noreturn void bench_fail(const char *what, const struct error *err);
/* Puts `folder`/`name` together. */
void bench_join(char out[BENCH_PATH_BYTES], const char *folder, const char *name);
struct checkpoint *bench_open(const char *path);

/* Writes two files of `mib` mebibytes with BENCH_PAIR_TENSORS tensors. From one to the other an
 * element moves one step up or down, then up to `distance` of them stay, any number alike. */
void bench_pair_make(const char *base, const char *next, size_t mib, uint64_t distance);

#endif
