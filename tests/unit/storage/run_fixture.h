/* Steps of the run "bucket/run", made of small shards and noise. */
#ifndef TESTS_UNIT_STORAGE_RUN_FIXTURE_H
#define TESTS_UNIT_STORAGE_RUN_FIXTURE_H

#include "tests/unit/storage/store_fixture.h"

extern const struct run_ref run_fixture_ref; /* a reference to it */

/* A store with the bucket and the run; store_fixture_close ends it. */
void run_fixture_open(struct store_fixture *fixture);
/* A safetensors file with four U8 values in each of the named tensors (one letter each). */
struct span run_fixture_shard(struct store_fixture *fixture, const char *names, uint8_t value);
/* The checkpoint digest that the step is published with. */
struct digest128 run_fixture_checkpoint(unsigned step);
void run_fixture_put(struct store_fixture *fixture, const char *key, struct span bytes);
void run_fixture_add_form(struct store_fixture *fixture, struct step_message *step,
	enum step_form_kind kind, const char *name, const char *key, struct span bytes);
/* A step without forms. */
struct step_message run_fixture_step(struct store_fixture *fixture, unsigned number);
/* A step with an anchor, a delta of this size, or both. Puts their objects. */
struct step_message run_fixture_prepare(
	struct store_fixture *fixture, unsigned number, bool with_anchor, size_t delta_bytes);
struct run_fixture_outcome {
	bool already;    /* the same step was there already */
	bool anchor_due; /* for the run, after this step */
};
/* `out` may be NULL. */
int run_fixture_publish(struct store_fixture *fixture, const struct step_message *step,
	struct run_fixture_outcome *out, struct error *err);
void run_fixture_publish_ok(struct store_fixture *fixture, const struct step_message *step);
void run_fixture_publish_refused(
	struct store_fixture *fixture, const struct step_message *step, enum error_kind kind);
struct run_message run_fixture_run(struct store_fixture *fixture);
/* run_find_step without tensors. */
int run_fixture_find(struct store_fixture *fixture, uint64_t step, struct step_message *out,
	uint64_t *out_anchor, struct error *err);
/* With the run and `may_take_long` filled in. */
struct path_message run_fixture_path(
	struct store_fixture *fixture, const struct run_path_params *params);

#endif
