/* The steps face through the router, over a real store: runs, publishing, reading, waiting,
 * collecting. */
#include "tests/unit/api/face_fixture.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/auth/keyring.h"
#include "base/digest/xxh3.h"
#include "base/thread/step_watch.h"
#include "storage/core/committer.h"
#include "storage/core/store.h"
#include "wire/step_message.h"

#define HEADERS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define HOT_LOAD     "/hot_load/v1/models/hot_load"
#define RUN          "/v1/runs/bkt/r"

enum { ANCHOR_BYTES = 8 + 56 + 4, STEPS_MAX = 16 };

static struct face_fixture fixture;
static struct digest128 digests[STEPS_MAX]; /* of the published checkpoints */

static void setup(void)
{
	face_fixture_open(&fixture);
	face_fixture_expect_text(&fixture, 200, METHOD_POST, RUN, NULL, NULL, "\"epoch\":1");
}

static void teardown(void)
{
	face_fixture_close(&fixture);
}

/* A model of one F32 tensor "w" whose value depends on the step. */
static void make_anchor(uint64_t step, char out[ANCHOR_BYTES], struct digest128 *out_digest)
{
	static const char header[56 + 1] =
		"{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}  ";
	memset(out, 0, 8);
	out[0] = 56;
	memcpy(out + 8, header, 56);
	memset(out + 64, 'A' + (int)step, 4);

	struct buffer text;
	const struct digest128 tensor = xxh3_128(span_of(out + 64, 4));
	buffer_init(&text, 64);
	buffer_add(&text,
		"w\0F32\0"
		"1\0",
		8);
	buffer_add(&text, tensor.bytes, sizeof(tensor.bytes));
	*out_digest = xxh3_128(buffer_span(&text));
	buffer_release(&text);
}

static void add_digest(struct buffer *json, const char *name, const struct digest128 *digest)
{
	char text[DIGEST128_TEXT_BYTES];
	digest128_format(digest, text);
	buffer_format(json, "\"%s\":\"%s\"", name, text);
}

static void put_bytes(const char *key, struct span bytes)
{
	struct fake_exchange *const fake = fake_exchange_new(&fixture.context, METHOD_PUT, key);
	fake_exchange_add(fake, "Authorization", "Bearer root-token-of-the-tests");
	ck_assert_int_eq(fake_exchange_run(fake, bytes), 200);
	fake_exchange_free(fake);
}

static void add_object(struct buffer *json, uint64_t step, const char *name, struct span bytes)
{
	const struct digest128 digest = xxh3_128(bytes);
	buffer_format(json, "{\"name\":\"%s\",\"key\":\"r/steps/%06" PRIu64 "/%s\",\"size\":%zu,",
		name, step, name, bytes.len);
	add_digest(json, "digest", &digest);
	buffer_add_text(json, "}");
}

/* Uploads the objects of a step (an anchor, and a delta above step 0) and writes its manifest. */
static void make_step(uint64_t step, uint64_t epoch, struct buffer *json)
{
	char anchor[ANCHOR_BYTES];
	char delta[64];
	char key[128];
	make_anchor(step, anchor, &digests[step]);
	const int delta_len = snprintf(delta, sizeof(delta), "delta to step %" PRIu64, step);
	const struct span anchor_bytes = span_of(anchor, sizeof(anchor));
	const struct span delta_bytes = span_of(delta, (size_t)delta_len);
	snprintf(key, sizeof(key), "/bkt/r/steps/%06" PRIu64 "/model.safetensors", step);
	put_bytes(key, anchor_bytes);
	snprintf(key, sizeof(key), "/bkt/r/steps/%06" PRIu64 "/delta.safetensors", step);
	put_bytes(key, delta_bytes);

	const struct digest128 file_digest = xxh3_128(anchor_bytes);
	buffer_format(json,
		"{\"step\":%" PRIu64 ",\"epoch\":%" PRIu64 ",\"label\":\"trainer %" PRIu64 "\",",
		step, epoch, step * 10);
	add_digest(json, "digest", &digests[step]);
	if (step > 0) {
		buffer_format(json, ",\"base\":{\"step\":%" PRIu64 ",", step - 1);
		add_digest(json, "digest", &digests[step - 1]);
		buffer_add_text(json, "}");
	}
	buffer_format(
		json, ",\"files\":[{\"path\":\"model.safetensors\",\"size\":%d,", ANCHOR_BYTES);
	add_digest(json, "digest", &file_digest);
	buffer_add_text(
		json, "}],\"forms\":[{\"kind\":\"anchor\",\"format\":\"full\",\"objects\":[");
	add_object(json, step, "model.safetensors", anchor_bytes);
	buffer_add_text(json, "]}");
	if (step > 0) {
		buffer_add_text(json, ",{\"kind\":\"delta\",\"format\":\"trl-gap\",\"objects\":[");
		add_object(json, step, "delta.safetensors", delta_bytes);
		buffer_add_text(json, "]}");
	}
	buffer_add_text(json, "]}");
	ck_assert(!buffer_failed(json));
}

static void publish(int status, uint64_t step, uint64_t epoch, const char *holds)
{
	char target[64];
	struct buffer json;
	buffer_init(&json, 4096);
	make_step(step, epoch, &json);
	snprintf(target, sizeof(target), RUN "/steps/%" PRIu64, step);
	face_fixture_expect_text(
		&fixture, status, METHOD_PUT, target, NULL, buffer_text(&json), holds);
	buffer_release(&json);
}

static void publish_up_to(uint64_t last)
{
	for (uint64_t step = 0; step <= last; step++)
		publish(201, step, 1, "\"run\":\"bkt/r\"");
}

START_TEST(test_open)
{
	struct fake_exchange *const fake =
		face_fixture_ask(&fixture, 200, METHOD_POST, "/v1/runs/bkt/new", NULL, NULL);
	struct run_message run;
	struct error err = {0};
	ck_assert_str_eq(fake->exchange.reply.content_type, "application/json");
	ck_assert_msg(
		run_message_parse(buffer_span(&fake->body), fake->exchange.arena, &run, &err) == 0,
		"%s", err.text);
	ck_assert(span_equal_text(run.run, "new"));
	ck_assert_uint_eq(run.epoch, 1);
	ck_assert(!run.has_head);
	fake_exchange_free(fake);
	/* A later open shuts out the earlier writer. */
	face_fixture_expect_text(&fixture, 200, METHOD_POST, "/v1/runs/bkt/new", NULL,
		"{\"keep_steps\":7}", "\"epoch\":2");
	face_fixture_expect_text(
		&fixture, 200, METHOD_GET, "/v1/runs/bkt/new", NULL, NULL, "\"keep_steps\":7");
	face_fixture_expect_text(&fixture, 412, METHOD_POST, "/v1/runs/bkt/new", NULL,
		"{\"expected_epoch\":1}", "\"code\":\"precondition\"");
	face_fixture_expect_text(&fixture, 200, METHOD_POST, "/v1/runs/bkt/new", NULL,
		"{\"expected_epoch\":2}", "\"epoch\":3");
}
END_TEST

static const char *const bad_open_bodies[] = {"x", "[]", "{\"keep_steps\":-1}",
	"{\"keep_steps\":\"3\"}", "{\"keep_steps\":1.5}", "{\"expected_epoch\":true}",
	"{\"keep_steps\":9223372036854775808}", "{\"keep_steps\":1}{}",
	"{\"keep_steps\":1,\"keep_steps\":2}"};

START_TEST(test_bad_open_body)
{
	face_fixture_expect_text(
		&fixture, 400, METHOD_POST, RUN, NULL, bad_open_bodies[_i], "\"code\":\"invalid\"");
	face_fixture_expect_text(&fixture, 200, METHOD_GET, RUN, NULL, NULL, "\"epoch\":1");
}
END_TEST

START_TEST(test_missing)
{
	face_fixture_expect_text(&fixture, 404, METHOD_POST, "/v1/runs/nope/r", NULL, NULL,
		"\"code\":\"no_bucket\"");
	face_fixture_expect_text(
		&fixture, 404, METHOD_GET, "/v1/runs/nope/r", NULL, NULL, "\"code\":\"no_bucket\"");
	face_fixture_expect_text(
		&fixture, 404, METHOD_GET, "/v1/runs/bkt/nope", NULL, NULL, "\"code\":\"no_run\"");
	face_fixture_expect_text(&fixture, 404, METHOD_GET, "/v1/runs/bkt/nope/steps/0", NULL, NULL,
		"\"code\":\"no_run\"");
	face_fixture_expect_text(&fixture, 404, METHOD_GET,
		"/v1/runs/bkt/nope/steps/latest?wait=60", NULL, NULL, "\"code\":\"no_run\"");
	face_fixture_expect_text(&fixture, 404, METHOD_DELETE, "/v1/runs/bkt/nope", NULL, NULL,
		"\"code\":\"no_run\"");
	face_fixture_expect_text(&fixture, 404, METHOD_PUT, "/v1/runs/bkt/nope/settings", NULL,
		"{\"keep_steps\":1}", "\"code\":\"no_run\"");
	face_fixture_expect_text(
		&fixture, 400, METHOD_POST, "/v1/runs/bkt/.r", NULL, NULL, "\"code\":\"invalid\"");
	face_fixture_expect_text(&fixture, 400, METHOD_POST, "/v1/runs/bkt/a%20b", NULL, NULL,
		"\"code\":\"invalid\"");
	struct fake_exchange *const fake =
		face_fixture_ask(&fixture, 404, METHOD_GET, "/v1/nonsense", NULL, NULL);
	ck_assert_str_eq(fake->exchange.reply.content_type, "application/json");
	face_fixture_assert_holds(fake, "\"request_id\":\"0123456789abcdef0123456789abcdef\"");
	fake_exchange_free(fake);
}
END_TEST

START_TEST(test_list_runs)
{
	face_fixture_expect(&fixture, 200, METHOD_POST, "/v1/runs/bkt/a", NULL, NULL);
	face_fixture_expect(&fixture, 200, METHOD_POST, "/v1/runs/bkt/z", NULL, NULL);
	struct fake_exchange *fake =
		face_fixture_ask(&fixture, 200, METHOD_GET, "/v1/runs/bkt", NULL, NULL);
	face_fixture_assert_holds(fake, "{\"runs\":[{");
	face_fixture_assert_holds(fake, "\"run\":\"a\"");
	face_fixture_assert_holds(fake, "\"run\":\"r\"");
	face_fixture_assert_holds(fake, "\"run\":\"z\"");
	face_fixture_assert_lacks(fake, "\"next\"");
	fake_exchange_free(fake);
	fake = face_fixture_ask(&fixture, 200, METHOD_GET, "/v1/runs/bkt?limit=2", NULL, NULL);
	face_fixture_assert_lacks(fake, "\"run\":\"z\"");
	face_fixture_assert_holds(fake, "\"next\":\"r\"");
	fake_exchange_free(fake);
	fake = face_fixture_ask(
		&fixture, 200, METHOD_GET, "/v1/runs/bkt?limit=2&after=r", NULL, NULL);
	face_fixture_assert_lacks(fake, "\"run\":\"r\"");
	face_fixture_assert_holds(fake, "\"run\":\"z\"");
	face_fixture_assert_lacks(fake, "\"next\"");
	fake_exchange_free(fake);
	face_fixture_expect(&fixture, 400, METHOD_GET, "/v1/runs/bkt?limit=0", NULL, NULL);
	face_fixture_expect(&fixture, 400, METHOD_GET, "/v1/runs/bkt?limit=x", NULL, NULL);
	face_fixture_expect(&fixture, 404, METHOD_GET, "/v1/runs/nope", NULL, NULL);
}
END_TEST

START_TEST(test_publish)
{
	publish(201, 0, 1, "\"label\":\"trainer 0\"");
	publish(201, 1, 1, "\"step\":1");
	/* The same again, as after a lost reply. */
	publish(200, 1, 1, "\"step\":1");
	face_fixture_expect_text(&fixture, 200, METHOD_GET, RUN, NULL, NULL, "\"head\":1,");
	publish(409, 3, 1, "\"code\":\"head_moved\"");
	face_fixture_expect(&fixture, 200, METHOD_POST, RUN, NULL, NULL);
	publish(412, 2, 1, "\"code\":\"stale_epoch\"");
	publish(201, 2, 2, "\"epoch\":2");
}
END_TEST

START_TEST(test_publish_needs_its_objects)
{
	struct buffer json;
	buffer_init(&json, 4096);
	make_step(0, 1, &json);
	face_fixture_expect(
		&fixture, 204, METHOD_DELETE, "/bkt/r/steps/000000/model.safetensors", NULL, NULL);
	face_fixture_expect_text(&fixture, 404, METHOD_PUT, RUN "/steps/0", NULL,
		buffer_text(&json), "\"code\":\"no_key\"");
	put_bytes("/bkt/r/steps/000000/model.safetensors", span_text("other bytes"));
	face_fixture_expect_text(&fixture, 422, METHOD_PUT, RUN "/steps/0", NULL,
		buffer_text(&json), "\"code\":\"digest_mismatch\"");
	face_fixture_expect(&fixture, 204, METHOD_GET, RUN "/steps/latest", NULL, NULL);
	buffer_release(&json);
}
END_TEST

START_TEST(test_bad_publish)
{
	struct buffer json;
	buffer_init(&json, 4096);
	make_step(0, 1, &json);
	face_fixture_expect_text(&fixture, 400, METHOD_PUT, RUN "/steps/1", NULL,
		buffer_text(&json), "\"code\":\"invalid\"");
	face_fixture_expect_text(&fixture, 400, METHOD_PUT, RUN "/steps/x", NULL,
		buffer_text(&json), "\"code\":\"invalid\"");
	face_fixture_expect_text(&fixture, 400, METHOD_PUT, RUN "/steps/-0", NULL,
		buffer_text(&json), "\"code\":\"invalid\"");
	face_fixture_expect_text(
		&fixture, 400, METHOD_PUT, RUN "/steps/0", NULL, NULL, "\"code\":\"invalid\"");
	face_fixture_expect_text(
		&fixture, 400, METHOD_PUT, RUN "/steps/0", NULL, "{}", "\"code\":\"invalid\"");
	face_fixture_expect_text(&fixture, 404, METHOD_PUT, "/v1/runs/bkt/nope/steps/0", NULL,
		buffer_text(&json), "\"code\":\"no_run\"");
	buffer_release(&json);
	struct fake_exchange *const fake =
		fake_exchange_new(&fixture.context, METHOD_PUT, RUN "/steps/0");
	fake_exchange_add(fake, "Authorization", "Bearer root-token-of-the-tests");
	fake->exchange.has_length = true;
	fake->exchange.length = STEP_MESSAGE_MAX_BYTES + 1;
	ck_assert_int_eq(fake_exchange_run(fake, span_text("")), 400);
	face_fixture_assert_holds(fake, "\"code\":\"too_large\"");
	fake_exchange_free(fake);
}
END_TEST

START_TEST(test_get_step)
{
	publish_up_to(1);
	struct fake_exchange *fake =
		face_fixture_ask(&fixture, 200, METHOD_GET, RUN "/steps/1", NULL, NULL);
	struct step_message step;
	struct error err = {0};
	ck_assert_msg(step_message_parse(
			      buffer_span(&fake->body), fake->exchange.arena, &step, &err) == 0,
		"%s", err.text);
	ck_assert_uint_eq(step.step, 1);
	ck_assert(digest128_equal(&step.digest, &digests[1]));
	ck_assert_uint_eq(step.form_count, 2);
	ck_assert_int_ne(step.created_ms, 0);
	const char *const etag =
		arena_text(fixture.arena, span_text(fake_exchange_reply_header(fake, "ETag")));
	fake_exchange_free(fake);

	fake = face_fixture_ask(
		&fixture, 304, METHOD_GET, RUN "/steps/1", HEADERS("If-None-Match", etag), NULL);
	face_fixture_assert_body(fake, "");
	face_fixture_assert_header(fake, "ETag", etag);
	fake_exchange_free(fake);
	face_fixture_expect(
		&fixture, 200, METHOD_GET, RUN "/steps/0", HEADERS("If-None-Match", etag), NULL);
	face_fixture_expect_text(
		&fixture, 404, METHOD_GET, RUN "/steps/2", NULL, NULL, "\"code\":\"no_step\"");
	face_fixture_expect(&fixture, 400, METHOD_GET, RUN "/steps/1x", NULL, NULL);
	face_fixture_expect(
		&fixture, 400, METHOD_GET, RUN "/steps/18446744073709551615", NULL, NULL);
	face_fixture_expect(
		&fixture, 400, METHOD_GET, RUN "/steps/99999999999999999999", NULL, NULL);
	face_fixture_expect(&fixture, 405, METHOD_POST, RUN "/steps/1", NULL, NULL);
}
END_TEST

START_TEST(test_latest)
{
	face_fixture_expect(&fixture, 204, METHOD_GET, RUN "/steps/latest", NULL, NULL);
	publish_up_to(2);
	face_fixture_expect_text(
		&fixture, 200, METHOD_GET, RUN "/steps/latest", NULL, NULL, "\"step\":2");
	face_fixture_expect_text(
		&fixture, 200, METHOD_GET, RUN "/steps/latest?after=0", NULL, NULL, "\"step\":2");
	face_fixture_expect(&fixture, 204, METHOD_GET, RUN "/steps/latest?after=2", NULL, NULL);
	face_fixture_expect(
		&fixture, 204, METHOD_GET, RUN "/steps/latest?after=9&wait=0", NULL, NULL);
	face_fixture_expect(&fixture, 400, METHOD_GET, RUN "/steps/latest?after=-1", NULL, NULL);
	face_fixture_expect(&fixture, 400, METHOD_GET, RUN "/steps/latest?after=", NULL, NULL);
	face_fixture_expect(&fixture, 400, METHOD_GET, RUN "/steps/latest?wait=x", NULL, NULL);
	face_fixture_expect(&fixture, 400, METHOD_GET, RUN "/steps/latest?wait=1.5", NULL, NULL);
}
END_TEST

START_TEST(test_latest_waits_its_time)
{
	struct fake_exchange *const fake =
		face_fixture_ask(&fixture, 204, METHOD_GET, RUN "/steps/latest?wait=1", NULL, NULL);
	ck_assert_int_ge(fake->waits, 1);
	face_fixture_assert_body(fake, "");
	face_fixture_assert_header(fake, "Connection", NULL);
	fake_exchange_free(fake);
}
END_TEST

START_TEST(test_stopping_server_sends_waiters_off)
{
	fixture.stopping = true;
	struct fake_exchange *const fake = face_fixture_ask(
		&fixture, 204, METHOD_GET, RUN "/steps/latest?wait=60", NULL, NULL);
	ck_assert_int_eq(fake->waits, 0);
	face_fixture_assert_header(fake, "Connection", "close");
	fake_exchange_free(fake);
}
END_TEST

static struct fake_exchange *begin_waiting(const char *target)
{
	struct fake_exchange *const fake = fake_exchange_new(&fixture.context, METHOD_GET, target);
	fake_exchange_add(
		fake, "Authorization", arena_format(fixture.arena, "Bearer %s", fixture.token));
	ck_assert_int_eq(router_begin(&fake->exchange), NEXT_WAIT);
	return fake;
}

static enum next resume_woken(struct fake_exchange *fake)
{
	lock_enter(&fake->lock);
	while (fake->woken == 0)
		lock_wait(&fake->lock, &fake->condition);
	ck_assert_int_eq(fake->woken, 1);
	fake->woken = 0;
	lock_leave(&fake->lock);
	return router_resume(&fake->exchange);
}

START_TEST(test_a_thousand_waiters)
{
	enum { WAITERS = 1000 };
	static struct fake_exchange *waiters[WAITERS];
	publish(201, 0, 1, "\"step\":0");
	for (size_t i = 0; i < WAITERS; i++)
		waiters[i] = begin_waiting(RUN "/steps/latest?after=0&wait=60");
	struct fake_exchange *const ahead = begin_waiting(RUN "/steps/latest?after=1&wait=60");
	publish(201, 1, 1, "\"step\":1");
	for (size_t i = 0; i < WAITERS; i++) {
		ck_assert_int_eq(resume_woken(waiters[i]), NEXT_REPLY);
		ck_assert_int_eq(waiters[i]->exchange.reply.status, 200);
	}
	/* A reader of a later step is woken, looks, and waits again. */
	ck_assert_int_eq(resume_woken(ahead), NEXT_WAIT);
	publish(201, 2, 1, "\"step\":2");
	ck_assert_int_eq(resume_woken(ahead), NEXT_REPLY);
	ck_assert_int_eq(ahead->exchange.reply.status, 200);
	fake_exchange_free(ahead);
	for (size_t i = 0; i < WAITERS; i++) {
		ck_assert_int_eq(waiters[i]->woken, 0); /* each was woken once */
		fake_exchange_free(waiters[i]);
	}
}
END_TEST

/* The readers lose their access while they wait. */
START_TEST(test_revoked_waiters_learn_nothing)
{
	const struct grant grant = {span_text("bkt"), {NULL, 0}, PERMISSION_READ};
	struct error err = {0};
	publish(201, 0, 1, "\"step\":0");
	fixture.token = face_fixture_key(&fixture, "main", &grant);
	struct fake_exchange *const fake = begin_waiting(RUN "/steps/latest?after=0&wait=60");
	ck_assert_int_eq(
		keyring_revoke(fixture.keyring, fake->exchange.principal->key_id, &err), 0);
	fixture.token = face_fixture_root_token;
	publish(201, 1, 1, "\"step\":1");
	ck_assert_int_eq(resume_woken(fake), NEXT_REPLY);
	ck_assert_int_eq(fake->exchange.reply.status, 401);
	fake_exchange_free(fake);
}
END_TEST

START_TEST(test_stop_wakes_waiters)
{
	struct fake_exchange *const fake = begin_waiting(RUN "/steps/latest?wait=60");
	fixture.stopping = true;
	step_watch_wake_all(store_step_watch(fixture.store));
	ck_assert_int_eq(resume_woken(fake), NEXT_REPLY);
	ck_assert_int_eq(fake->exchange.reply.status, 204);
	fake_exchange_free(fake);
}
END_TEST

START_TEST(test_list_steps)
{
	publish_up_to(3);
	struct fake_exchange *fake =
		face_fixture_ask(&fixture, 200, METHOD_GET, RUN "/steps", NULL, NULL);
	face_fixture_assert_holds(fake, "{\"steps\":[{");
	face_fixture_assert_holds(fake, "\"step\":0,");
	face_fixture_assert_holds(fake, "\"step\":3,");
	face_fixture_assert_lacks(fake, "\"next\"");
	fake_exchange_free(fake);
	fake = face_fixture_ask(&fixture, 200, METHOD_GET, RUN "/steps?from=1&limit=2", NULL, NULL);
	face_fixture_assert_holds(fake, "\"label\":\"trainer 10\"");
	face_fixture_assert_holds(fake, "\"label\":\"trainer 20\"");
	face_fixture_assert_lacks(fake, "\"label\":\"trainer 0\"");
	face_fixture_assert_lacks(fake, "\"label\":\"trainer 30\"");
	face_fixture_assert_holds(fake, "],\"next\":3}");
	fake_exchange_free(fake);
	fake = face_fixture_ask(&fixture, 200, METHOD_GET, RUN "/steps?from=9", NULL, NULL);
	face_fixture_assert_body(fake, "{\"steps\":[]}");
	fake_exchange_free(fake);
	face_fixture_expect(&fixture, 400, METHOD_GET, RUN "/steps?limit=0", NULL, NULL);
	face_fixture_expect(&fixture, 400, METHOD_GET, RUN "/steps?from=x", NULL, NULL);
}
END_TEST

START_TEST(test_step_object)
{
	publish_up_to(1);
	/* Invariant 6: the objects stay when the keys are changed or deleted. */
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt/r/steps/000001/delta.safetensors",
		NULL, "overwritten");
	face_fixture_expect(
		&fixture, 204, METHOD_DELETE, "/bkt/r/steps/000001/model.safetensors", NULL, NULL);
	struct fake_exchange *fake = face_fixture_ask(&fixture, 200, METHOD_GET,
		RUN "/steps/1/objects/delta/delta.safetensors", NULL, NULL);
	face_fixture_assert_body(fake, "delta to step 1");
	face_fixture_assert_header(fake, "Cache-Control", "private, max-age=31536000, immutable");
	const char *const etag =
		arena_text(fixture.arena, span_text(fake_exchange_reply_header(fake, "ETag")));
	fake_exchange_free(fake);
	fake = face_fixture_ask(&fixture, 206, METHOD_GET,
		RUN "/steps/1/objects/delta/delta.safetensors",
		HEADERS("Range", "bytes=6-7", "If-Match", etag), NULL);
	face_fixture_assert_body(fake, "to");
	fake_exchange_free(fake);
	face_fixture_expect(&fixture, 304, METHOD_GET,
		RUN "/steps/1/objects/delta/delta.safetensors", HEADERS("If-None-Match", etag),
		NULL);
	fake = face_fixture_ask(&fixture, 200, METHOD_HEAD,
		RUN "/steps/1/objects/anchor/model.safetensors", NULL, NULL);
	ck_assert_uint_eq(fake->exchange.reply.length, ANCHOR_BYTES);
	fake_exchange_free(fake);
	fake = face_fixture_ask(&fixture, 416, METHOD_GET,
		RUN "/steps/1/objects/delta/delta.safetensors", HEADERS("Range", "bytes=99-"),
		NULL);
	face_fixture_assert_holds(fake, "\"code\":\"range\"");
	fake_exchange_free(fake);
	face_fixture_expect(
		&fixture, 404, METHOD_GET, RUN "/steps/1/objects/delta/other", NULL, NULL);
	face_fixture_expect(&fixture, 404, METHOD_GET,
		RUN "/steps/0/objects/delta/delta.safetensors", NULL, NULL);
	face_fixture_expect(&fixture, 404, METHOD_GET,
		RUN "/steps/7/objects/anchor/model.safetensors", NULL, NULL);
	face_fixture_expect(&fixture, 400, METHOD_GET,
		RUN "/steps/x/objects/anchor/model.safetensors", NULL, NULL);
}
END_TEST

static void ask_path(const char *query, struct path_message *out, struct fake_exchange **out_fake)
{
	char target[256];
	struct error err = {0};
	snprintf(target, sizeof(target), RUN "/path%s", query);
	*out_fake = face_fixture_ask(&fixture, 200, METHOD_GET, target, NULL, NULL);
	ck_assert_msg(path_message_parse(buffer_span(&(*out_fake)->body),
			      (*out_fake)->exchange.arena, out, &err) == 0,
		"%s", err.text);
}

START_TEST(test_path)
{
	struct path_message path;
	struct fake_exchange *fake;
	char query[128];
	char digest[DIGEST128_TEXT_BYTES];
	publish_up_to(2);
	ask_path("", &path, &fake);
	ck_assert(path.from_nothing);
	ck_assert_uint_eq(path.to_step, 2);
	ck_assert_int_eq(path.links[0].form.kind, STEP_ANCHOR);
	fake_exchange_free(fake);

	digest128_format(&digests[0], digest);
	snprintf(query, sizeof(query), "?have=0&digest=%s&want=latest", digest);
	ask_path(query, &path, &fake);
	ck_assert(!path.from_nothing);
	ck_assert_uint_eq(path.link_count, 2);
	ck_assert_int_eq(path.links[0].form.kind, STEP_DELTA);
	/* The objects of a link can be fetched from its URL, which is relative to the run. */
	char target[256];
	snprintf(target, sizeof(target), RUN "/%.*s", (int)path.links[1].form.objects[0].url.len,
		(const char *)path.links[1].form.objects[0].url.data);
	face_fixture_expect_text(&fixture, 200, METHOD_GET, target, NULL, NULL, "delta to step 2");
	fake_exchange_free(fake);

	digest128_format(&digests[1], digest);
	snprintf(query, sizeof(query), "?have=0&digest=%s", digest);
	ask_path(query, &path, &fake);
	ck_assert(path.from_nothing);
	fake_exchange_free(fake);
	ask_path("?want=1", &path, &fake);
	ck_assert_uint_eq(path.to_step, 1);
	fake_exchange_free(fake);
	face_fixture_expect(&fixture, 404, METHOD_GET, RUN "/path?want=9", NULL, NULL);
}
END_TEST

/* A direct fold would save a third, but it is not made of objects that are not deltas. */
START_TEST(test_path_waits_its_time_for_a_fold)
{
	publish_up_to(4);
	struct fake_exchange *fake =
		face_fixture_ask(&fixture, 200, METHOD_GET, RUN "/path?have=0", NULL, NULL);
	ck_assert_int_eq(fake->waits, 1); /* for the helper */
	fake_exchange_free(fake);
	fake = face_fixture_ask(&fixture, 200, METHOD_GET, RUN "/path?have=0&wait=1", NULL, NULL);
	ck_assert_int_ge(fake->waits, 2);
	fake_exchange_free(fake);
	fake = face_fixture_ask(&fixture, 200, METHOD_GET, RUN "/path?have=1&wait=60", NULL, NULL);
	ck_assert_int_eq(fake->waits, 0); /* three steps behind */
	fake_exchange_free(fake);
}
END_TEST

START_TEST(test_long_paths_are_planned_by_a_helper)
{
	struct path_message path;
	struct fake_exchange *fake;
	publish_up_to(7);
	ask_path("?have=4&want=7", &path, &fake);
	ck_assert(fake->waits == 0 && path.link_count == 3);
	fake_exchange_free(fake);
	ask_path("?have=3&want=7", &path, &fake);
	ck_assert(fake->waits == 1 && path.link_count == 4 && !path.from_nothing);
	fake_exchange_free(fake);
}
END_TEST

START_TEST(test_fold_objects_that_are_not_there)
{
	publish_up_to(4);
	face_fixture_expect_text(&fixture, 404, METHOD_GET,
		RUN "/folds/0-4/objects/delta.safetensors", NULL, NULL, "\"code\":\"no_key\"");
	face_fixture_expect_text(&fixture, 404, METHOD_GET,
		"/v1/runs/bkt/nope/folds/0-4/objects/delta.safetensors", NULL, NULL,
		"\"code\":\"no_run\"");
	static const char *const bad[] = {"0", "4-0", "4-4", "-4", "0-", "a-b", "0-4-8", "0--4"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char target[128];
		snprintf(target, sizeof(target), RUN "/folds/%s/objects/delta.safetensors", bad[i]);
		face_fixture_expect_text(
			&fixture, 400, METHOD_GET, target, NULL, NULL, "\"code\":\"invalid\"");
	}
}
END_TEST

static const char *const bad_paths[] = {"have=x", "wait=x", "wait=-1", "want=newest",
	"want=", "have=0&digest=abc", "digest=xxh3-128:00000000000000000000000000000000"};

START_TEST(test_bad_path)
{
	char target[128];
	snprintf(target, sizeof(target), RUN "/path?%s", bad_paths[_i]);
	face_fixture_expect_text(
		&fixture, 400, METHOD_GET, target, NULL, NULL, "\"code\":\"invalid\"");
}
END_TEST

START_TEST(test_path_of_an_empty_run)
{
	face_fixture_expect_text(
		&fixture, 425, METHOD_GET, RUN "/path", NULL, NULL, "\"code\":\"not_ready\"");
}
END_TEST

START_TEST(test_delete_step)
{
	publish_up_to(2);
	face_fixture_expect_text(&fixture, 409, METHOD_DELETE, RUN "/steps/2", NULL, NULL,
		"\"code\":\"chain_in_use\"");
	face_fixture_expect(&fixture, 204, METHOD_DELETE, RUN "/steps/0", NULL, NULL);
	face_fixture_expect_text(
		&fixture, 410, METHOD_GET, RUN "/steps/0", NULL, NULL, "\"code\":\"collected\"");
	face_fixture_expect_text(
		&fixture, 410, METHOD_GET, RUN "/steps/0", NULL, NULL, "\"anchor\":1");
	face_fixture_expect_text(&fixture, 410, METHOD_GET,
		RUN "/steps/0/objects/anchor/model.safetensors", NULL, NULL, "\"anchor\":1");
	face_fixture_expect_text(
		&fixture, 200, METHOD_GET, RUN "/steps/1", NULL, NULL, "\"step\":1");
	face_fixture_expect(&fixture, 404, METHOD_DELETE, RUN "/steps/9", NULL, NULL);
	face_fixture_expect(&fixture, 400, METHOD_DELETE, RUN "/steps/x", NULL, NULL);
}
END_TEST

START_TEST(test_settings)
{
	face_fixture_expect_text(&fixture, 200, METHOD_PUT, RUN "/settings", NULL,
		"{\"keep_steps\":5}", "\"keep_steps\":5");
	face_fixture_expect_text(&fixture, 200, METHOD_GET, RUN, NULL, NULL, "\"keep_steps\":5");
	face_fixture_expect_text(&fixture, 200, METHOD_PUT, RUN "/settings", NULL, "{}",
		"\"settings\":{\"keep_steps\":5,\"lease_s\":120,\"verify\":true");
	face_fixture_expect_text(&fixture, 200, METHOD_PUT, RUN "/settings", NULL,
		"{\"verify\":false,\"lease_s\":30}",
		"\"settings\":{\"keep_steps\":5,\"lease_s\":30,\"verify\":false");
	face_fixture_expect_text(&fixture, 400, METHOD_PUT, RUN "/settings", NULL,
		"{\"keep_steps\":6,\"keep_stops\":6}", "keep_stops");
	face_fixture_expect_text(&fixture, 200, METHOD_GET, RUN, NULL, NULL,
		"\"settings\":{\"keep_steps\":5,\"lease_s\":30,");
	face_fixture_expect(&fixture, 400, METHOD_PUT, RUN "/settings", NULL, NULL);
	face_fixture_expect(
		&fixture, 400, METHOD_PUT, RUN "/settings", NULL, "{\"keep_steps\":null}");
}
END_TEST

START_TEST(test_delete_run)
{
	publish_up_to(1);
	face_fixture_expect(&fixture, 204, METHOD_DELETE, RUN, NULL, NULL);
	face_fixture_expect_text(&fixture, 404, METHOD_GET, RUN, NULL, NULL, "\"code\":\"no_run\"");
	face_fixture_expect(&fixture, 404, METHOD_GET,
		RUN "/steps/0/objects/anchor/model.safetensors", NULL, NULL);
	/* The keys of the run stay until they are deleted. */
	face_fixture_expect(
		&fixture, 200, METHOD_GET, "/bkt/r/steps/000001/model.safetensors", NULL, NULL);
	/* The name is free again. */
	face_fixture_expect_text(&fixture, 200, METHOD_POST, RUN, NULL, NULL, "\"epoch\":1");
}
END_TEST

START_TEST(test_who_may)
{
	const struct grant reads = {span_text("bkt"), span_text("r/"), PERMISSION_READ};
	const struct grant elsewhere = {
		span_text("bkt"), span_text("r2/"), PERMISSION_READ | PERMISSION_WRITE};
	const char *const worker = face_fixture_key(&fixture, "fleet", &reads);
	const char *const other = face_fixture_key(&fixture, "fleet", &elsewhere);
	publish_up_to(0);
	fixture.token = NULL;
	face_fixture_expect_text(
		&fixture, 401, METHOD_GET, RUN, NULL, NULL, "\"code\":\"no_credentials\"");
	fixture.token = worker;
	face_fixture_expect(&fixture, 200, METHOD_GET, RUN "/steps/latest", NULL, NULL);
	face_fixture_expect(&fixture, 200, METHOD_GET,
		RUN "/steps/0/objects/anchor/model.safetensors", NULL, NULL);
	face_fixture_expect_text(
		&fixture, 403, METHOD_POST, RUN, NULL, NULL, "\"code\":\"denied\"");
	face_fixture_expect(&fixture, 403, METHOD_PUT, RUN "/steps/1", NULL, "{}");
	face_fixture_expect(&fixture, 403, METHOD_DELETE, RUN "/steps/0", NULL, NULL);
	face_fixture_expect(&fixture, 403, METHOD_DELETE, RUN, NULL, NULL);
	face_fixture_expect(&fixture, 403, METHOD_GET, "/v1/runs/bkt", NULL, NULL);
	fixture.token = other;
	face_fixture_expect(&fixture, 403, METHOD_GET, RUN, NULL, NULL);
	face_fixture_expect(&fixture, 200, METHOD_POST, "/v1/runs/bkt/r2", NULL, NULL);
}
END_TEST

static void put_as_root(const char *key, struct span bytes)
{
	const char *const token = fixture.token;
	fixture.token = face_fixture_root_token;
	put_bytes(key, bytes);
	fixture.token = token;
}

/* Publishes step 0 with its object at `key`, with the fixture's token. */
static void publish_at(int status, const char *key, const char *holds)
{
	char anchor[ANCHOR_BYTES];
	struct buffer json;
	buffer_init(&json, 4096);
	make_anchor(0, anchor, &digests[0]);
	put_as_root(arena_format(fixture.arena, "/bkt/%s", key), span_of(anchor, sizeof(anchor)));
	const struct digest128 digest = xxh3_128(span_of(anchor, sizeof(anchor)));
	buffer_add_text(&json, "{\"step\":0,\"epoch\":1,");
	add_digest(&json, "digest", &digests[0]);
	buffer_format(
		&json, ",\"files\":[{\"path\":\"model.safetensors\",\"size\":%d,", ANCHOR_BYTES);
	add_digest(&json, "digest", &digest);
	buffer_format(&json,
		"}],\"forms\":[{\"kind\":\"anchor\",\"format\":\"full\",\"objects\":[{\"name\":\"model.safetensors\","
		"\"key\":\"%s\",\"size\":%d,",
		key, ANCHOR_BYTES);
	add_digest(&json, "digest", &digest);
	buffer_add_text(&json, "}]}]}");
	ck_assert(!buffer_failed(&json));
	face_fixture_expect_text(
		&fixture, status, METHOD_PUT, RUN "/steps/0", NULL, buffer_text(&json), holds);
	buffer_release(&json);
}

static const struct {
	const char *key;
	const char *also_reads;
	int status;
} foreign_keys[] = {{"r/steps/000000/model.safetensors", NULL, 201}, {"r2/x", NULL, 403},
	{"r", NULL, 403}, {"other/x", NULL, 403}, {"other/x", "other/", 201},
	{"other/x", "others/", 403}};

/* The objects of a step are read with the run's grant. So publishing must not turn a grant for one
 * run into access to the whole bucket. */
START_TEST(test_publish_names_what_one_may_read)
{
	const struct grant grants[] = {
		{span_text("bkt"), span_text("r/"), PERMISSION_READ | PERMISSION_WRITE},
		{span_text("bkt"), span_text(foreign_keys[_i].also_reads), PERMISSION_READ}};
	const struct keyring_new_key key = {.namespace = "trainers",
		.grants = grants,
		.grant_count = foreign_keys[_i].also_reads != NULL ? 2 : 1};
	struct keyring_made_key made;
	struct error err = {0};
	ck_assert_int_eq(keyring_add(fixture.keyring, &key, fixture.arena, &made, &err), 0);
	fixture.token = made.token;
	publish_at(foreign_keys[_i].status, foreign_keys[_i].key,
		foreign_keys[_i].status == 403 ? "\"code\":\"denied\"" : "\"step\":0");
	face_fixture_expect(&fixture, foreign_keys[_i].status == 403 ? 404 : 200, METHOD_GET,
		RUN "/steps/0/objects/anchor/model.safetensors", NULL, NULL);
}
END_TEST

START_TEST(test_an_account_publishes_from_anywhere_in_its_bucket)
{
	fixture.token = face_fixture_key(&fixture, "main", NULL);
	publish_at(201, "elsewhere/model", "\"step\":0");
}
END_TEST

static const struct {
	const char *settings;
	const char *also_reads;
	int status;
} foreign_prefixes[] = {{"{\"adopt_prefix\":\"{run}/up/\",\"hot_load_prefix\":\"r/\"}", NULL, 200},
	{"{\"adopt_prefix\":\"other/\"}", NULL, 403}, {"{\"adopt_prefix\":\"\"}", NULL, 403},
	{"{\"adopt_prefix\":\"{run}\"}", NULL, 403},
	{"{\"hot_load_prefix\":\"{run}2/\"}", NULL, 403},
	{"{\"hot_load_prefix\":\"other/\"}", NULL, 403},
	{"{\"hot_load_prefix\":\"other/{run}/\"}", "other/", 200},
	{"{\"adopt_prefix\":\"other\"}", "other/", 403}};

/* Objects that a trainer puts below these prefixes are read with the run's grant. */
START_TEST(test_settings_name_what_one_may_read)
{
	const struct grant grants[] = {
		{span_text("bkt"), span_text("r/"), PERMISSION_READ | PERMISSION_WRITE},
		{span_text("bkt"), span_text(foreign_prefixes[_i].also_reads), PERMISSION_READ}};
	const struct keyring_new_key key = {.namespace = "trainers",
		.grants = grants,
		.grant_count = foreign_prefixes[_i].also_reads != NULL ? 2 : 1};
	struct keyring_made_key made;
	struct error err = {0};
	ck_assert_int_eq(keyring_add(fixture.keyring, &key, fixture.arena, &made, &err), 0);
	fixture.token = made.token;
	face_fixture_expect(&fixture, 200, METHOD_POST, RUN, NULL, NULL);
	face_fixture_expect_text(&fixture, foreign_prefixes[_i].status, METHOD_PUT, RUN "/settings",
		NULL, foreign_prefixes[_i].settings,
		foreign_prefixes[_i].status == 403 ? "\"code\":\"denied\"" : "_prefix\":");
}
END_TEST

/* As if the operator had allowed that host. */
static int set_webhook(struct change *change, struct db *db, struct error *err)
{
	static const char SQL[] =
		"UPDATE runs SET settings = CAST('{\"webhook\":\"https://hooks.example/secret\"}' AS BLOB)";
	(void)change;
	return db_run(db, SQL, err);
}

/* The URL of a webhook often contains a secret. */
START_TEST(test_webhooks_are_shown_to_writers)
{
	const struct grant reads = {span_text("bkt"), span_text("r/"), PERMISSION_READ};
	const struct grant lists = {span_text("bkt"), span_text(""), PERMISSION_LIST};
	static const char url[] = "https://hooks.example/secret";
	const char *const tokens[] = {face_fixture_key(&fixture, "fleet", &reads),
		face_fixture_key(&fixture, "fleet", &lists)};
	static const char *const paths[] = {RUN, "/v1/runs/bkt"};
	struct change change = {.apply = set_webhook};
	struct error err = {0};
	face_fixture_expect(&fixture, 200, METHOD_POST, RUN, NULL, NULL);
	ck_assert_int_eq(committer_run(store_committer(fixture.store), &change, &err), 0);
	for (size_t i = 0; i < 2; i++) {
		face_fixture_expect_text(&fixture, 200, METHOD_GET, paths[i], NULL, NULL, url);
		fixture.token = tokens[i];
		struct fake_exchange *const fake =
			face_fixture_ask(&fixture, 200, METHOD_GET, paths[i], NULL, NULL);
		face_fixture_assert_holds(fake, "\"webhook\":\"\"");
		face_fixture_assert_lacks(fake, "hooks.example");
		fake_exchange_free(fake);
		fixture.token = face_fixture_root_token;
	}
}
END_TEST

/* A public bucket shares its objects, but not the replicas of its runs. */
START_TEST(test_hot_loads_are_not_shared)
{
	static const char *const deployment[] = {"fireworks-deployment", "d", NULL};
	static const char *const shared[] = {"x-amz-acl", "public-read", NULL};
	const char *const stranger = face_fixture_key(&fixture, "strangers", NULL);
	face_fixture_expect(&fixture, 200, METHOD_POST, RUN, NULL, NULL);
	face_fixture_expect(
		&fixture, 200, METHOD_PUT, RUN "/settings", NULL, "{\"hot_load\":\"d\"}");
	face_fixture_expect(
		&fixture, 200, METHOD_GET, "/hot_load/v1/models/hot_load", deployment, NULL);
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt?acl", shared, NULL);
	fixture.token = stranger;
	face_fixture_expect(&fixture, 200, METHOD_GET, "/bkt?list-type=2", NULL, NULL);
	face_fixture_expect(&fixture, 404, METHOD_GET, HOT_LOAD, deployment, NULL);
	face_fixture_expect(
		&fixture, 404, METHOD_POST, HOT_LOAD, deployment, "{\"identity\":\"a\"}");
}
END_TEST

START_TEST(test_rollback)
{
	publish_up_to(2);
	face_fixture_expect_text(
		&fixture, 400, METHOD_PUT, RUN "/rollback", NULL, "{}", "\"code\":\"invalid\"");
	face_fixture_expect_text(&fixture, 404, METHOD_PUT, RUN "/rollback", NULL, "{\"step\":9}",
		"\"code\":\"no_step\"");
	face_fixture_expect_text(&fixture, 404, METHOD_PUT, "/v1/runs/bkt/nope/rollback", NULL,
		"{\"step\":1}", "\"code\":\"no_run\"");
	face_fixture_expect_text(&fixture, 200, METHOD_PUT, RUN "/rollback", NULL, "{\"step\":1}",
		"\"rollback\":{\"step\":1,\"created\":\"");
	face_fixture_expect_text(
		&fixture, 200, METHOD_GET, RUN, NULL, NULL, "\"rollback\":{\"step\":1,");
	face_fixture_expect_text(
		&fixture, 200, METHOD_GET, "/v1/runs/bkt", NULL, NULL, "\"rollback\":{\"step\":1,");
	publish(201, 3, 1, "\"rollback\":{\"step\":1,");
	face_fixture_expect_text(
		&fixture, 200, METHOD_GET, RUN "/steps/latest?after=3", NULL, NULL, "\"step\":1,");
	face_fixture_expect(&fixture, 204, METHOD_GET, RUN "/steps/latest?after=1", NULL, NULL);
	face_fixture_expect_text(&fixture, 200, METHOD_GET, RUN "/steps/latest?after=1&head=true",
		NULL, NULL, "\"step\":3,");
	face_fixture_expect(
		&fixture, 204, METHOD_GET, RUN "/steps/latest?after=3&head=true", NULL, NULL);
	face_fixture_expect_text(&fixture, 425, METHOD_GET, RUN "/steps/latest?min_version=2", NULL,
		NULL, "a rollback holds it at step 1");
	face_fixture_expect(&fixture, 425, METHOD_GET, RUN "/path?min_version=2", NULL, NULL);
	face_fixture_expect_text(
		&fixture, 200, METHOD_GET, RUN "/path?have=3", NULL, NULL, "\"to\":1,");
	struct fake_exchange *fake =
		face_fixture_ask(&fixture, 200, METHOD_DELETE, RUN "/rollback", NULL, NULL);
	face_fixture_assert_lacks(fake, "rollback");
	fake_exchange_free(fake);
	face_fixture_expect(&fixture, 200, METHOD_DELETE, RUN "/rollback", NULL, NULL);
	face_fixture_expect_text(
		&fixture, 200, METHOD_GET, RUN "/steps/latest?after=1", NULL, NULL, "\"step\":3,");
}
END_TEST

/* Clients of hot-loads see where the fleet is to be. */
START_TEST(test_a_rollback_is_the_target_of_hot_loads)
{
	static const char *const deployment[] = {"fireworks-deployment", "d", NULL};
	publish_up_to(2);
	face_fixture_expect(
		&fixture, 200, METHOD_PUT, RUN "/settings", NULL, "{\"hot_load\":\"d\"}");
	face_fixture_expect(&fixture, 200, METHOD_PUT, RUN "/replicas/w", NULL,
		"{\"state\":\"ready\",\"step\":2}");
	face_fixture_expect(&fixture, 200, METHOD_PUT, RUN "/rollback", NULL, "{\"step\":1}");
	face_fixture_expect_text(&fixture, 200, METHOD_GET, HOT_LOAD, deployment, NULL,
		"\"target_snapshot_identity\":\"step_000001\"");
	face_fixture_expect(&fixture, 200, METHOD_DELETE, RUN "/rollback", NULL, NULL);
	face_fixture_expect_text(&fixture, 200, METHOD_GET, HOT_LOAD, deployment, NULL,
		"\"target_snapshot_identity\":\"step_000002\"");
}
END_TEST

/* An account cannot take a deployment's name from others, and does not learn what they have under
 * that name. */
START_TEST(test_deployments_are_an_accounts)
{
	static const char *const deployment[] = {"fireworks-deployment", "d", NULL};
	const char *const stranger = face_fixture_key(&fixture, "strangers", NULL);
	const char *const owner = face_fixture_key(&fixture, "main", NULL);
	fixture.token = stranger;
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/strange", NULL, NULL);
	face_fixture_expect(&fixture, 200, METHOD_POST, "/v1/runs/strange/first", NULL, NULL);
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/v1/runs/strange/first/settings", NULL,
		"{\"hot_load\":\"d\"}");
	fixture.token = owner;
	face_fixture_expect_text(
		&fixture, 404, METHOD_GET, HOT_LOAD, deployment, NULL, "\"code\":\"no_run\"");
	face_fixture_expect(&fixture, 200, METHOD_POST, RUN, NULL, NULL);
	face_fixture_expect(
		&fixture, 200, METHOD_PUT, RUN "/settings", NULL, "{\"hot_load\":\"d\"}");
	face_fixture_expect(
		&fixture, 200, METHOD_POST, HOT_LOAD, deployment, "{\"identity\":\"owners\"}");
	fixture.token = stranger;
	face_fixture_expect(
		&fixture, 200, METHOD_POST, HOT_LOAD, deployment, "{\"identity\":\"strangers\"}");
	face_fixture_expect_text(&fixture, 200, METHOD_GET, HOT_LOAD, deployment, NULL,
		"\"identity\":\"strangers\"");
	fixture.token = owner;
	face_fixture_expect_text(
		&fixture, 200, METHOD_GET, HOT_LOAD, deployment, NULL, "\"identity\":\"owners\"");
	fixture.token = face_fixture_root_token; /* of the default namespace */
	face_fixture_expect_text(
		&fixture, 200, METHOD_GET, HOT_LOAD, deployment, NULL, "\"identity\":\"owners\"");
	face_fixture_expect(&fixture, 200, METHOD_POST, "/v1/runs/bkt/second", NULL, NULL);
	face_fixture_expect_text(&fixture, 409, METHOD_PUT, "/v1/runs/bkt/second/settings", NULL,
		"{\"hot_load\":\"d\"}", "\"code\":\"exists\"");
}
END_TEST

/* A key with grants may belong to any account. */
START_TEST(test_a_key_with_grants_finds_deployments_of_its_buckets)
{
	static const char *const deployment[] = {"fireworks-deployment", "d", NULL};
	const struct grant grants[] = {{span_text("bkt"), span_text("r/"), PERMISSION_READ},
		{span_text("bkt"), span_text("else/"), PERMISSION_WRITE},
		{span_text("none"), span_text(""), PERMISSION_WRITE}};
	const int statuses[][2] = {{200, 403}, {403, 403}, {404, 404}};
	face_fixture_expect(&fixture, 200, METHOD_POST, RUN, NULL, NULL);
	face_fixture_expect(
		&fixture, 200, METHOD_PUT, RUN "/settings", NULL, "{\"hot_load\":\"d\"}");
	fixture.token = face_fixture_key(&fixture, "trainers", &grants[_i]);
	struct fake_exchange *const fake =
		face_fixture_ask(&fixture, statuses[_i][0], METHOD_GET, HOT_LOAD, deployment, NULL);
	face_fixture_assert_lacks(fake, "bkt");
	fake_exchange_free(fake);
	struct fake_exchange *const post = face_fixture_ask(&fixture, statuses[_i][1], METHOD_POST,
		HOT_LOAD, deployment, "{\"identity\":\"a\"}");
	face_fixture_assert_lacks(post, "bkt");
	face_fixture_assert_lacks(post, "r/");
	fake_exchange_free(post);
}
END_TEST

/* The caller named only a deployment, so it does not learn to whose run that belongs, or that there
 * is a run. */
START_TEST(test_hot_loads_name_no_run_to_strangers)
{
	static const char *const bound[] = {"fireworks-deployment", "d", NULL};
	static const char *const unbound[] = {"fireworks-deployment", "e", NULL};
	static const char body[] = "{\"identity\":\"a\"}";
	const struct grant elsewhere = {
		span_text("other"), {NULL, 0}, PERMISSION_READ | PERMISSION_WRITE};
	const char *const tokens[] = {face_fixture_key(&fixture, "strangers", NULL),
		face_fixture_key(&fixture, "main", &elsewhere)};
	face_fixture_expect(&fixture, 200, METHOD_POST, RUN, NULL, NULL);
	face_fixture_expect(
		&fixture, 200, METHOD_PUT, RUN "/settings", NULL, "{\"hot_load\":\"d\"}");
	for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++) {
		fixture.token = tokens[i];
		struct fake_exchange *const fake = face_fixture_ask(
			&fixture, 404, METHOD_POST, "/hot_load/v1/models/hot_load", bound, body);
		face_fixture_assert_holds(fake, "No run of yours has the setting");
		face_fixture_assert_lacks(fake, "bkt");
		fake_exchange_free(fake);
		face_fixture_expect(
			&fixture, 404, METHOD_GET, "/hot_load/v1/models/hot_load", bound, NULL);
		face_fixture_expect(
			&fixture, 404, METHOD_GET, "/hot_load/v1/models/hot_load", unbound, NULL);
	}
}
END_TEST

Suite *test_steps_suite(void);
Suite *test_steps_suite(void)
{
	Suite *const suite = suite_create("steps");
	TCase *const steps = tcase_create("steps");
	tcase_add_checked_fixture(steps, setup, teardown);
	tcase_set_timeout(steps, 120);
	tcase_add_test(steps, test_open);
	tcase_add_loop_test(
		steps, test_bad_open_body, 0, sizeof(bad_open_bodies) / sizeof(bad_open_bodies[0]));
	tcase_add_test(steps, test_missing);
	tcase_add_test(steps, test_list_runs);
	tcase_add_test(steps, test_publish);
	tcase_add_test(steps, test_publish_needs_its_objects);
	tcase_add_test(steps, test_bad_publish);
	tcase_add_test(steps, test_get_step);
	tcase_add_test(steps, test_latest);
	tcase_add_test(steps, test_latest_waits_its_time);
	tcase_add_test(steps, test_stopping_server_sends_waiters_off);
	tcase_add_test(steps, test_a_thousand_waiters);
	tcase_add_test(steps, test_revoked_waiters_learn_nothing);
	tcase_add_test(steps, test_stop_wakes_waiters);
	tcase_add_test(steps, test_list_steps);
	tcase_add_test(steps, test_step_object);
	tcase_add_test(steps, test_path);
	tcase_add_test(steps, test_path_waits_its_time_for_a_fold);
	tcase_add_test(steps, test_long_paths_are_planned_by_a_helper);
	tcase_add_test(steps, test_fold_objects_that_are_not_there);
	tcase_add_loop_test(steps, test_bad_path, 0, sizeof(bad_paths) / sizeof(bad_paths[0]));
	tcase_add_test(steps, test_path_of_an_empty_run);
	tcase_add_test(steps, test_delete_step);
	tcase_add_test(steps, test_settings);
	tcase_add_test(steps, test_delete_run);
	tcase_add_test(steps, test_who_may);
	tcase_add_loop_test(steps, test_publish_names_what_one_may_read, 0,
		sizeof(foreign_keys) / sizeof(foreign_keys[0]));
	tcase_add_test(steps, test_an_account_publishes_from_anywhere_in_its_bucket);
	tcase_add_loop_test(steps, test_settings_name_what_one_may_read, 0,
		sizeof(foreign_prefixes) / sizeof(foreign_prefixes[0]));
	tcase_add_test(steps, test_rollback);
	tcase_add_test(steps, test_a_rollback_is_the_target_of_hot_loads);
	tcase_add_test(steps, test_hot_loads_are_not_shared);
	tcase_add_test(steps, test_hot_loads_name_no_run_to_strangers);
	tcase_add_test(steps, test_deployments_are_an_accounts);
	tcase_add_loop_test(steps, test_a_key_with_grants_finds_deployments_of_its_buckets, 0, 3);
	tcase_add_test(steps, test_webhooks_are_shown_to_writers);
	suite_add_tcase(suite, steps);
	return suite;
}
