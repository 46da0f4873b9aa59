/* A base, checkpoints of later training steps, and deltas between them, for the tests of
 * formats. */
#ifndef TESTS_UNIT_WEIGHTS_PAIR_FIXTURE_H
#define TESTS_UNIT_WEIGHTS_PAIR_FIXTURE_H

#include "weights/delta/delta.h"
#include "weights/model/checkpoint_source.h"

enum { PAIR_LARGE_BLOCKS = 3 };

/* `count` checkpoints "0", "1", ... in a scratch folder. Each has small changes against the one
 * before. They have a BF16 tensor "large" of PAIR_LARGE_BLOCKS blocks, a BF16 tensor "small", an
 * F32 tensor "float" that changes unless `bf16_alone`, and "same", which does not change. */
struct pair_fixture {
	char *scratch;
	bool bf16_alone;
};
void pair_fixture_setup(struct pair_fixture *fixture, unsigned count, bool bf16_alone);
void pair_fixture_teardown(struct pair_fixture *fixture);

/* The caller frees each path. */
char *pair_fixture_path(const struct pair_fixture *fixture, const char *name);
char *pair_fixture_step(const struct pair_fixture *fixture, unsigned number);
struct checkpoint *pair_fixture_open(const struct pair_fixture *fixture, unsigned number);
/* Makes the delta from step `from` to `to`, with `to` as its step, at `name`. */
struct delta_stats pair_fixture_diff(const struct pair_fixture *fixture, unsigned from, unsigned to,
	enum delta_format format, const char *name);
int pair_fixture_apply(const struct pair_fixture *fixture, unsigned base, const char *delta,
	const char *out, struct error *err);
/* Applies to `base` and compares with step `to`. */
void pair_fixture_expect(
	const struct pair_fixture *fixture, unsigned base, const char *delta, unsigned to);
/* Checks that an apply fails with this kind and text and leaves nothing. */
void pair_fixture_refuse(const struct pair_fixture *fixture, unsigned base, const char *delta,
	enum error_kind kind, const char *message);

#endif
