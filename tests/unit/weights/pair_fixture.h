/* A base and a checkpoint one training step later, with deltas between them, for the tests of
 * formats. */
#ifndef TESTS_UNIT_WEIGHTS_PAIR_FIXTURE_H
#define TESTS_UNIT_WEIGHTS_PAIR_FIXTURE_H

#include "weights/delta/delta.h"
#include "weights/model/checkpoint_source.h"

enum { PAIR_LARGE_BLOCKS = 3 };

/* Checkpoints "0", "1", ... in a scratch folder: `count` of them, each a step of small changes
 * after the one before. One BF16 tensor "large" of PAIR_LARGE_BLOCKS blocks, a BF16 tensor "small",
 * an F32 tensor "float" that changes unless `bf16_alone`, and "same", which does not change. */
struct pair_fixture {
	char *scratch;
	bool bf16_alone;
};
void pair_fixture_setup(struct pair_fixture *fixture, unsigned count, bool bf16_alone);
void pair_fixture_teardown(struct pair_fixture *fixture);

/* free() each. */
char *pair_fixture_path(const struct pair_fixture *fixture, const char *name);
char *pair_fixture_step(const struct pair_fixture *fixture, unsigned number);
struct checkpoint *pair_fixture_open(const struct pair_fixture *fixture, unsigned number);
/* The delta from step `from` to `to`, with `to` as its step, at `name`. */
struct delta_stats pair_fixture_diff(const struct pair_fixture *fixture, unsigned from, unsigned to,
	enum delta_format format, const char *name);
int pair_fixture_apply(const struct pair_fixture *fixture, unsigned base, const char *delta,
	const char *out, struct error *err);
/* Applies to `base` and compares with step `to`. */
void pair_fixture_expect(
	const struct pair_fixture *fixture, unsigned base, const char *delta, unsigned to);
/* Fails with this kind and text, and leaves nothing. */
void pair_fixture_refuse(const struct pair_fixture *fixture, unsigned base, const char *delta,
	enum error_kind kind, const char *message);

#endif
