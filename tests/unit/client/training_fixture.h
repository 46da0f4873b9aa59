/* A trainer with a checkpoint of two shards in "trained", a server of runs, and workers: all below
 * one scratch folder. */
#ifndef TESTS_UNIT_CLIENT_TRAINING_FIXTURE_H
#define TESTS_UNIT_CLIENT_TRAINING_FIXTURE_H

#include "tests/unit/client/command_fixture.h"
#include "tests/unit/client/run_server.h"

enum { TRAINING_SHARD_BYTES = 4000 };

struct training {
	char *scratch;
	struct run_server server;
};
void training_start(struct training *training);
void training_stop(struct training *training);

void training_put(const struct training *training, const char *name, struct span bytes);
/* Some of the weights change from one iteration to the next. */
void training_put_shard(
	const struct training *training, const char *name, const char *tensor, unsigned iteration);
/* What was trained up to this iteration; the server finds its digest where ranks publish it. */
void training_write(struct training *training, unsigned iteration);
/* `state` is a folder's name. */
struct command_result training_publish(
	const struct training *training, const char *words, const char *state);
/* Writes it and publishes it well. */
void training_step(
	struct training *training, unsigned iteration, const char *state, const char *said);
void training_expect_ok(struct command_result result, const char *said);
void training_expect_failed(struct command_result result, enum error_kind kind);
/* A worker that comes now holds these weights in the end. */
void training_expect_worker(struct training *training, unsigned iteration);

#endif
