#include "client/doctor/place_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/quantity.h"
#include "client/remote/remote_hub.h"
#include "client/remote/remote_json.h"
#include "client/remote/remote_object.h"
#include "client/remote/remote_run.h"

enum {
	ARENA_BYTES = 64 * 1024 * 1024,
	ADVICE_BYTES = 512,
	TARGET_MAX_BYTES = 8 * 1024,
	SAMPLE_BYTES = 8 * 1024 * 1024
};

static const char MAY[] = "may";

struct sample {
	struct body_sink sink;
	uint64_t bytes;
};

static void refuse(
	struct checkup *checkup, const char *place, const char *grants, const struct error *err);
static bool is_answered(struct remote *remote, char *target);
static void try_first(struct checkup *checkup, struct remote *remote, struct span bucket,
	const struct listing *found);
static bool may_read(struct remote *remote, struct span bucket, const struct listing *found);
static const struct listing_entry *first_object(const struct listing *found);
static uint64_t look_at_head(struct checkup *checkup, struct remote *remote,
	const struct run_name *run, const struct run_message *facts);
static void try_form(struct checkup *checkup, struct remote *remote, const struct run_name *run,
	const struct step_form *form);
static void try_content(
	struct checkup *checkup, struct remote *remote, const char *target, uint64_t size);
static enum sink_result place_check_write(
	struct body_sink *sink, struct span bytes, struct error *err);
static const char *yes_or_no(bool may);

void place_check_bucket(struct checkup *checkup, struct remote *remote, struct span bucket)
{
	struct listing found = {0};
	struct error err = {0};
	char name[256];
	struct arena *const arena = arena_new(ARENA_BYTES);
	const struct remote_object_page page = {.bucket = bucket};
	const bool may_list = remote_object_list(remote, &page, arena, &found, &err) == 0;
	const bool may_write =
		is_answered(remote, remote_hub_target(bucket, "xet-write-token", (struct span){0}));
	snprintf(name, sizeof(name), "%.*s", (int)bucket.len, (const char *)bucket.data);
	if (!may_list && (!may_write || err.kind != ERROR_DENIED)) {
		refuse(checkup, name, "read,list", &err);
	} else {
		checkup_ok(checkup, MAY, "%s: list %s, read %s, write %s", name,
			yes_or_no(may_list),
			first_object(&found) == NULL ? "not known (no object to try)"
						     : yes_or_no(may_read(remote, bucket, &found)),
			yes_or_no(may_write));
		try_first(checkup, remote, bucket, &found);
	}
	arena_free(arena);
}

static void refuse(
	struct checkup *checkup, const char *place, const char *grants, const struct error *err)
{
	char advice[ADVICE_BYTES];
	if (err->kind == ERROR_DENIED)
		snprintf(advice, sizeof(advice),
			"a key for it: `deltabucketd keys add --grant %s/=%s` on the server", place,
			grants);
	else
		snprintf(advice, sizeof(advice), "`deltabucket %s` lists what is there",
			err->kind == ERROR_NO_RUN ? "runs" : "ls");
	checkup_fail(checkup, MAY, advice, err);
}

/* Whether a GET of the target succeeds. Frees the target. */
static bool is_answered(struct remote *remote, char *target)
{
	const struct http_request request = {.method = "GET", .target = target};
	struct http_response response = {0};
	struct error ignored = {0};
	const bool result = remote_try(remote, &request, &response, &ignored) == 0;
	http_response_release(&response);
	free(target);
	return result;
}

static bool may_read(struct remote *remote, struct span bucket, const struct listing *found)
{
	const struct listing_entry *const first = first_object(found);
	struct remote_object_facts facts;
	struct error ignored = {0};
	ASSERT(first != NULL);
	char *const target = remote_object_target(bucket, first->name);
	const bool may = remote_object_head(remote, target, &facts, &ignored) == 0;
	free(target);
	return may;
}

static const struct listing_entry *first_object(const struct listing *found)
{
	for (size_t i = 0; i < found->count; i++)
		if (!found->entries[i].is_prefix && found->entries[i].size > 0)
			return &found->entries[i];
	return NULL;
}

static void try_first(struct checkup *checkup, struct remote *remote, struct span bucket,
	const struct listing *found)
{
	const struct listing_entry *const first = first_object(found);
	if (first == NULL || !may_read(remote, bucket, found))
		return;
	char *const target = remote_object_target(bucket, first->name);
	try_content(checkup, remote, target, first->size);
	free(target);
}

uint64_t place_check_run(struct checkup *checkup, struct remote *remote, const struct run_name *run)
{
	struct run_message facts;
	struct error err = {0};
	struct error denied = {0};
	uint64_t bytes = 0;
	struct arena *const arena = arena_new(REMOTE_RUN_ARENA_BYTES);
	if (remote_run_find(remote, run, arena, &facts, &err) != 0) {
		refuse(checkup, run->text, "read,list", &err);
	} else {
		const bool may_write = remote_run_may_write(remote, run, &denied) == 0;
		checkup_ok(checkup, MAY, "%s: read yes, see its workers %s, publish %s", run->text,
			yes_or_no(is_answered(
				remote, remote_json_target(run, "replicas?limit=1", NULL))),
			yes_or_no(may_write));
		bytes = look_at_head(checkup, remote, run, &facts);
	}
	arena_free(arena);
	return bytes;
}

static uint64_t look_at_head(struct checkup *checkup, struct remote *remote,
	const struct run_name *run, const struct run_message *facts)
{
	struct step_message head;
	struct error err = {0};
	uint64_t bytes = 0;
	struct arena *const arena = arena_new(REMOTE_RUN_ARENA_BYTES);
	if (!facts->has_head) {
		checkup_warn(checkup, "run", "`deltabucket publish --run` makes the first one",
			"%s has no step yet", run->text);
	} else if (remote_run_step(remote, run, facts->head, arena, &head, &err) != 0) {
		checkup_fail(checkup, "run", NULL, &err);
	} else {
		for (size_t i = 0; i < head.file_count; i++)
			bytes += head.files[i].size;
		if (head.verified == STEP_PROOF_FAILED)
			checkup_warn(checkup, "run",
				"the next `deltabucket publish` goes on with a full copy",
				"the proof of its newest step, %" PRIu64 ", failed", head.step);
		else
			checkup_ok(checkup, "run", "its newest step is %" PRIu64, head.step);
		if (head.form_count > 0)
			try_form(checkup, remote, run, &head.forms[0]);
	}
	arena_free(arena);
	return bytes;
}

static void try_form(struct checkup *checkup, struct remote *remote, const struct run_name *run,
	const struct step_form *form)
{
	struct buffer target;
	if (form->object_count == 0 || form->objects[0].size == 0)
		return;
	buffer_init(&target, TARGET_MAX_BYTES);
	buffer_format(&target, "%s/", run->target);
	buffer_add_span(&target, form->objects[0].url);
	if (!buffer_failed(&target))
		try_content(checkup, remote, buffer_text(&target), form->objects[0].size);
	buffer_release(&target);
}

static void try_content(
	struct checkup *checkup, struct remote *remote, const char *target, uint64_t size)
{
	char got[QUANTITY_TEXT_BYTES];
	char rate[QUANTITY_TEXT_BYTES];
	struct error err = {0};
	struct sample sample = {.sink = {.write = place_check_write}};
	const struct remote_object_range range = {.target = target,
		.size = size < SAMPLE_BYTES ? size : SAMPLE_BYTES,
		.whole = size <= SAMPLE_BYTES};
	const int64_t begun = clock_monotonic_ms();
	if (remote_object_get(remote, &range, &sample.sink, &err) != 0) {
		checkup_fail(checkup, "download", NULL, &err);
		return;
	}
	const int64_t took_ms = clock_monotonic_ms() - begun;
	quantity_format(sample.bytes, got);
	quantity_format(sample.bytes * 1000 / (uint64_t)(took_ms > 0 ? took_ms : 1), rate);
	checkup_ok(checkup, "download", "%s in %" PRId64 " ms (%s/s)", got, took_ms, rate);
}

static enum sink_result place_check_write(
	struct body_sink *sink, struct span bytes, struct error *err)
{
	struct sample *const sample = (struct sample *)sink;
	(void)err;
	sample->bytes += bytes.len;
	return SINK_TAKEN;
}

static const char *yes_or_no(bool may)
{
	return may ? "yes" : "no";
}
