#include "tests/unit/client/training_fixture.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/local/folder_files.h"
#include "client/transfer/catch_up.h"
#include "tests/unit/unit.h"

static const char INDEX[] = "{\"weight_map\":{\"a\":\"a.safetensors\",\"b\":\"b.safetensors\"}}";

void training_start(struct training *training)
{
	training->scratch = unit_scratch_make();
	run_server_start(&training->server);
}

void training_stop(struct training *training)
{
	run_server_stop(&training->server);
	unit_scratch_remove(training->scratch);
}

void training_put(const struct training *training, const char *name, struct span bytes)
{
	struct error err = {0};
	char *const path = folder_files_join(training->scratch, name);
	ck_assert_int_eq(file_make_parent(file_system(), path, 0755, &err), 0);
	ck_assert_msg(file_place(file_system(), path, bytes, 0644, &err) == 0, "%s", err.text);
	free(path);
}

void training_put_shard(
	const struct training *training, const char *name, const char *tensor, unsigned iteration)
{
	char header[128];
	struct buffer bytes;
	const int length = snprintf(header, sizeof header,
		"{\"%s\":{\"dtype\":\"BF16\",\"shape\":[%d],\"data_offsets\":[0,%d]}}", tensor,
		TRAINING_SHARD_BYTES / 2, TRAINING_SHARD_BYTES);
	const uint8_t prefix[8] = {(uint8_t)length};
	buffer_init(&bytes, 100000);
	buffer_add(&bytes, prefix, sizeof prefix);
	buffer_add_text(&bytes, header);
	for (unsigned i = 0; i < TRAINING_SHARD_BYTES; i++)
		buffer_add_byte(&bytes, (uint8_t)(i * 7 + (i % 100 == 0 ? 2 * iteration : 0)));
	training_put(training, name, buffer_span(&bytes));
	buffer_release(&bytes);
}

static struct digest128 digest_of(const struct training *training, const char *name)
{
	struct error err = {0};
	struct digest128 digest;
	char *const path = folder_files_join(training->scratch, name);
	ck_assert_msg(catch_up_folder_digest(path, 1, NULL, &digest, &err) == 0, "%s", err.text);
	free(path);
	return digest;
}

void training_write(struct training *training, unsigned iteration)
{
	training_put_shard(training, "trained/a.safetensors", "a", iteration);
	training_put_shard(training, "trained/b.safetensors", "b", iteration + 1);
	training_put(training, "trained/model.safetensors.index.json", span_text(INDEX));
	training_put(training, "trained/config.json", span_text("{\"a\": 1}"));
	training->server.whole = digest_of(training, "trained");
}

struct command_result training_publish(
	const struct training *training, const char *words, const char *state)
{
	char all[4096];
	snprintf(all, sizeof all,
		"--json --quiet --retries 0 --threads 1 --run b/r %s"
		" --state %s/%s %s/trained",
		words, training->scratch, state, training->scratch);
	return command_fixture_run(
		command_publish, COMMAND_PUBLISH, web_endpoint(training->server.web), all);
}

void training_expect_ok(struct command_result result, const char *said)
{
	ck_assert_msg(result.status == 0, "%s", result.err.text);
	ck_assert_msg(strstr(buffer_text(&result.output), said) != NULL, "%s",
		buffer_text(&result.output));
	command_result_release(&result);
}

void training_expect_failed(struct command_result result, enum error_kind kind)
{
	ck_assert_int_eq(result.status, -1);
	ck_assert_msg(result.err.kind == kind, "%s: %s", error_kind_name(result.err.kind),
		result.err.text);
	command_result_release(&result);
}

void training_step(
	struct training *training, unsigned iteration, const char *state, const char *said)
{
	training_write(training, iteration);
	training_expect_ok(training_publish(training, "", state), said);
}

void training_expect_worker(struct training *training, unsigned iteration)
{
	char words[4096];
	training_write(training, iteration);
	snprintf(words, sizeof words,
		"--json --quiet --retries 0 --threads 1 --run b/r --once --into %s/worker",
		training->scratch);
	training_expect_ok(command_fixture_run(command_follow, COMMAND_FOLLOW,
				   web_endpoint(training->server.web), words),
		"");
	const struct digest128 held = digest_of(training, "worker/current");
	ck_assert_msg(
		digest128_equal(&held, &training->server.whole), "not iteration %u", iteration);
}
