/* Shards of Xet clients, and their questions about chunks, through the router. */
#include <errno.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/auth/keyring.h"
#include "api/auth/xet_token.h"
#include "base/file.h"
#include "base/thread/helpers.h"
#include "base/thread/step_watch.h"
#include "chunker/chunk_hash.h"
#include "chunker/shard.h"
#include "storage/buckets/bucket.h"
#include "storage/core/committer.h"
#include "storage/files/xet_file.h"
#include "tests/unit/api/face_fixture.h"

Suite *test_xet_shards_suite(void);

#define HELLO "d8d408e608fb9ca213b9909a65d86d725f2de4d8d540324be8a363e7a6e228cb"
#define OTHER "df93298cdbf67cd507aed28d6290c0cf7f9aa0aa88dfa629cffcf98680659410"

static const uint8_t hello[] = {
	0, 12, 0, 0, 0, 12, 0, 0, 'H', 'e', 'l', 'l', 'o', ' ', 'W', 'o', 'r', 'l', 'd', '!'};

static struct face_fixture fixture;
static int64_t bucket_id;
static struct buffer shard;

static void setup(void)
{
	struct error err = {0};
	struct bucket bucket;
	face_fixture_open(&fixture);
	ck_assert_int_eq(bucket_find(fixture.store, bucket_named(span_text("bkt")), fixture.arena,
				 &bucket, &err),
		0);
	bucket_id = bucket.id;
	const struct chunk_entry chunk = {.id = chunk_hash(span_text("Hello World!")), .size = 12};
	const struct shard_term term = {.xorb = chunk.id, .first = 0, .end = 1, .bytes = 12};
	const struct chunk_id file = chunk_hash_file(&chunk, 1);
	const struct chunk_id range = chunk_hash_range(&chunk, 1);
	buffer_init(&shard, 4096);
	shard_write_header(&shard, 0);
	shard_write_file(&shard, &file, &term, &range, 1);
	shard_write_bookend(&shard);
	shard_write_xorb(&shard, &chunk.id, &chunk, 1);
	shard_write_bookend(&shard);
}

static void teardown(void)
{
	buffer_release(&shard);
	face_fixture_close(&fixture);
}

enum { TOKEN_NONE, TOKEN_READ, TOKEN_WRITE };

/* `bearer`: the key's token; NULL: without one. */
static struct fake_exchange *begin_as(
	const char *bearer, bool is_write, enum method method, const char *target)
{
	struct fake_exchange *const fake = fake_exchange_new(&fixture.context, method, target);
	if (bearer != NULL)
		fake_exchange_add(fake, "authorization",
			arena_format(fixture.arena, "Bearer %s",
				face_fixture_xet_token(&fixture, "bkt", bearer, is_write, 60)));
	fake->piece_bytes = 100;
	return fake;
}

static struct fake_exchange *begin(enum method method, const char *target, int token)
{
	return begin_as(token != TOKEN_NONE ? face_fixture_root_token : NULL, token == TOKEN_WRITE,
		method, target);
}

static void expect(int status, enum method method, const char *target, int token, struct span body,
	const char *text)
{
	struct fake_exchange *const fake = begin(method, target, token);
	const int got = fake_exchange_run(fake, body);
	ck_assert_msg(got == status, "%s: %d %.*s", target, got, (int)fake->body.len,
		(const char *)fake->body.data);
	if (text != NULL)
		face_fixture_assert_holds(fake, text);
	fake_exchange_free(fake);
}

static void put_xorb(void)
{
	expect(200, METHOD_POST, "/xet/v1/xorbs/default/" HELLO, TOKEN_WRITE,
		span_of(hello, sizeof(hello)), NULL);
}

static bool is_registered(void)
{
	struct error err = {0};
	struct xet_file file;
	const struct chunk_entry chunk = {.id = chunk_hash(span_text("Hello World!")), .size = 12};
	const struct chunk_id hash = chunk_hash_file(&chunk, 1);
	const struct xet_grant grant = {
		.file = &hash, .bucket = bucket_id, .account = span_text("main")};
	bool granted = false;
	struct db *const db = store_reader_take(fixture.store, &err);
	const bool found = xet_file_row_find(db, &hash, &file, &err) == 1;
	ck_assert_int_eq(xet_grant_row_valid(db, &grant, 1, &granted, &err), 0);
	store_reader_give(fixture.store, db);
	ck_assert(found == granted);
	return found;
}

START_TEST(a_shard_registers_its_file)
{
	put_xorb();
	expect(200, METHOD_POST, "/xet/v1/shards", TOKEN_WRITE, buffer_span(&shard),
		"{\"result\":1}");
	ck_assert(is_registered());
	expect(200, METHOD_POST, "/xet/v1/shards", TOKEN_WRITE, buffer_span(&shard),
		"{\"result\":0}");
	expect(200, METHOD_POST, "/xet/shards", TOKEN_WRITE, buffer_span(&shard), "{\"result\":0}");
}
END_TEST

START_TEST(version_2_answers_with_one_line)
{
	put_xorb();
	struct fake_exchange *const fake = begin(METHOD_POST, "/xet/v2/shards", TOKEN_WRITE);
	ck_assert_int_eq(fake_exchange_run(fake, buffer_span(&shard)), 200);
	face_fixture_assert_body(fake, "{\"type\":\"result\"}\n");
	ck_assert_str_eq(fake->exchange.reply.content_type, "application/x-ndjson");
	fake_exchange_free(fake);
	ck_assert(is_registered());
}
END_TEST

/* Blocks the committer or a helper until it is released. */
struct blocker {
	struct change change; /* first */
	struct helper_job job;
	struct helper_lane lane;
	sem_t reached;
	sem_t may_go;
	sem_t ended;
};

static void wait_for(sem_t *semaphore)
{
	while (sem_wait(semaphore) != 0)
		ck_assert_int_eq(errno, EINTR);
}

static void stand(struct blocker *blocker)
{
	sem_post(&blocker->reached);
	wait_for(&blocker->may_go);
}

static void stand_at_helper(struct helper_job *job)
{
	struct blocker *const blocker =
		(struct blocker *)((uint8_t *)job - offsetof(struct blocker, job));
	stand(blocker);
	sem_post(&blocker->ended);
}

static int stand_at_committer(struct change *change, struct db *db, struct error *err)
{
	(void)db, (void)err;
	stand((struct blocker *)change);
	return 0;
}

static void committed(struct change *change)
{
	sem_post(&((struct blocker *)change)->ended);
}

static void blocker_init(struct blocker *blocker)
{
	*blocker = (struct blocker){.change = {.apply = stand_at_committer, .done = committed},
		.job.run = stand_at_helper};
	sem_init(&blocker->reached, 0, 0);
	sem_init(&blocker->may_go, 0, 0);
	sem_init(&blocker->ended, 0, 0);
}

static void block_committer(struct blocker *blocker)
{
	blocker_init(blocker);
	committer_submit(store_committer(fixture.store), &blocker->change);
	wait_for(&blocker->reached);
}

static void let_go(struct blocker *blocker)
{
	sem_post(&blocker->may_go);
	wait_for(&blocker->ended);
}

enum { HELPERS = 4 };

static void block_helpers(struct blocker blockers[HELPERS])
{
	for (int i = 0; i < HELPERS; i++) {
		blocker_init(&blockers[i]);
		helpers_submit(store_helpers(fixture.store), &blockers[i].lane, &blockers[i].job);
	}
	for (int i = 0; i < HELPERS; i++)
		wait_for(&blockers[i].reached);
}

static unsigned count_lines(const struct fake_exchange *fake, const char *line)
{
	unsigned count = 0;
	for (const char *at = buffer_text(&fake->body); (at = strstr(at, line)) != NULL;
		at += strlen(line))
		count++;
	return count;
}

/* A shard that takes long enough for lines of progress. */
static struct fake_exchange *send_slow(const char *line)
{
	struct fake_exchange *const fake = begin(METHOD_POST, "/xet/v2/shards", TOKEN_WRITE);
	fixture.context.shard_line_ms = 20;
	fake->leaves_body = true;
	ck_assert_int_eq(fake_exchange_run(fake, buffer_span(&shard)), 200);
	ck_assert_str_eq(fake->exchange.reply.content_type, "application/x-ndjson");
	ck_assert(fake->exchange.reply.is_endless);
	while (count_lines(fake, line) < 3)
		ck_assert(fake_exchange_read(fake));
	return fake;
}

#define SYNCING "{\"type\":\"committing\",\"stage\":\"syncing\"}\n"

START_TEST(version_2_tells_of_a_shard_that_takes_long)
{
	struct blocker blocker;
	put_xorb();
	block_committer(&blocker);
	struct fake_exchange *const fake = send_slow("}\n");
	while (count_lines(fake, SYNCING) == 0)
		ck_assert(fake_exchange_read(fake));
	let_go(&blocker);
	while (fake_exchange_read(fake))
		;
	const char *const end =
		buffer_text(&fake->body) + fake->body.len - strlen("{\"type\":\"result\"}\n");
	ck_assert_str_eq(end, "{\"type\":\"result\"}\n");
	ck_assert_uint_eq(count_lines(fake, "\"result\""), 1);
	fake_exchange_free(fake);
	ck_assert(is_registered());
}
END_TEST

START_TEST(a_late_failure_is_the_last_line)
{
	struct blocker blockers[HELPERS];
	char line[100];
	block_helpers(blockers);
	snprintf(line, sizeof(line), "{\"type\":\"validating\",\"verified\":0,\"total\":%zu}\n",
		shard.len);
	struct fake_exchange *const fake = send_slow(line);
	for (int i = 0; i < HELPERS; i++)
		let_go(&blockers[i]);
	while (fake_exchange_read(fake)) /* the xorb was never sent */
		;
	const char *const error = strstr(buffer_text(&fake->body), "{\"type\":\"error\"");
	ck_assert_ptr_nonnull(error);
	ck_assert_ptr_nonnull(strstr(error, "not stored here"));
	ck_assert_ptr_nonnull(strstr(error, "\"retryable\":false}"));
	ck_assert_ptr_eq(strchr(error, '\n'), error + strlen(error) - 1);
	fake_exchange_free(fake);
	ck_assert(!is_registered());
}
END_TEST

/* Only the end of the shard wakes it now, and it still reports that end. */
START_TEST(a_stopping_server_tells_the_end)
{
	struct blocker blocker;
	put_xorb();
	block_committer(&blocker);
	struct fake_exchange *const fake = send_slow("}\n");
	fixture.stopping = true;
	step_watch_wake_all(store_step_watch(fixture.store));
	ck_assert(fake_exchange_read(fake));
	let_go(&blocker);
	while (fake_exchange_read(fake))
		;
	ck_assert_uint_eq(count_lines(fake, "{\"type\":\"result\"}\n"), 1);
	fake_exchange_free(fake);
}
END_TEST

START_TEST(a_client_may_leave_before_the_end)
{
	struct blocker blockers[HELPERS];
	put_xorb();
	block_helpers(blockers);
	struct fake_exchange *const fake = send_slow("}\n");
	fake_exchange_free(fake); /* the shard is given up */
	for (int i = 0; i < HELPERS; i++)
		let_go(&blockers[i]);
	expect(200, METHOD_POST, "/xet/v1/shards", TOKEN_WRITE, buffer_span(&shard),
		"{\"result\":1}");
}
END_TEST

/* The store closes while the shard is in progress. */
START_TEST(a_client_may_leave_a_server_that_stops)
{
	struct blocker blockers[HELPERS];
	put_xorb();
	block_helpers(blockers);
	struct fake_exchange *const fake = send_slow("}\n");
	fixture.stopping = true;
	step_watch_wake_all(store_step_watch(fixture.store));
	for (int i = 1; i < HELPERS; i++)
		let_go(&blockers[i]);
	fake_exchange_free(fake);
	let_go(&blockers[0]);
}
END_TEST

static int no_space_is_left(const struct file_ops *ops, const char *path, struct file_space *out)
{
	(void)ops, (void)path;
	*out = (struct file_space){.free = 1000, .all = 1000000};
	return 0;
}

/* The xorb was refused because of that: the client is told so, and not to try again. */
START_TEST(a_xorb_that_had_no_room_is_told_as_that)
{
	struct blocker blockers[HELPERS];
	static struct file_ops files; /* outlives the store */
	files = *file_system();
	files.space = no_space_is_left;
	face_fixture_reopen(&fixture, &files);
	expect(413, METHOD_POST, "/xet/v1/shards", TOKEN_WRITE, buffer_span(&shard),
		"disk is full");
	expect(413, METHOD_POST, "/xet/v2/shards", TOKEN_WRITE, buffer_span(&shard),
		"disk is full");
	block_helpers(blockers);
	struct fake_exchange *const fake = send_slow("}\n");
	for (int i = 0; i < HELPERS; i++)
		let_go(&blockers[i]);
	while (fake_exchange_read(fake))
		;
	ck_assert_ptr_nonnull(strstr(buffer_text(&fake->body),
		"\"message\":\"The server's disk is full.\",\"retryable\":false}"));
	fake_exchange_free(fake);
}
END_TEST

START_TEST(what_is_not_true_is_refused)
{
	/* the xorb was never sent */
	expect(400, METHOD_POST, "/xet/v1/shards", TOKEN_WRITE, buffer_span(&shard),
		"not stored here");
	expect(200, METHOD_POST, "/xet/v2/shards", TOKEN_WRITE, buffer_span(&shard),
		"\"retryable\":false");
	put_xorb();
	for (size_t len = 0; len < shard.len; len += 16) {
		expect(400, METHOD_POST, "/xet/v1/shards", TOKEN_WRITE, span_of(shard.data, len),
			"error");
		expect(200, METHOD_POST, "/xet/v2/shards", TOKEN_WRITE, span_of(shard.data, len),
			"\"type\":\"error\"");
	}
	ck_assert(!is_registered());
}
END_TEST

START_TEST(tokens_decide)
{
	put_xorb();
	expect(401, METHOD_POST, "/xet/v1/shards", TOKEN_NONE, buffer_span(&shard), "error");
	expect(403, METHOD_POST, "/xet/v1/shards", TOKEN_READ, buffer_span(&shard), "error");
	expect(403, METHOD_POST, "/xet/v2/shards", TOKEN_READ, buffer_span(&shard), "error");
	expect(401, METHOD_GET, "/xet/v1/chunks/default/" HELLO, TOKEN_NONE, span_text(""),
		"error");
	ck_assert(!is_registered());
}
END_TEST

START_TEST(a_body_that_is_too_long_is_not_asked_for)
{
	struct fake_exchange *const fake = begin(METHOD_POST, "/xet/v2/shards", TOKEN_WRITE);
	fake->exchange.has_length = true;
	fake->exchange.length = SHARD_MAX_BYTES + 1;
	ck_assert_int_eq(fake_exchange_run(fake, buffer_span(&shard)), 400);
	face_fixture_assert_holds(fake, "at most");
	fake_exchange_free(fake);
}
END_TEST

START_TEST(a_connection_that_breaks_leaves_nothing)
{
	put_xorb();
	struct fake_exchange *const fake = begin(METHOD_POST, "/xet/v1/shards", TOKEN_WRITE);
	fake_exchange_cut(fake, span_of(shard.data, 200), shard.len);
	fake_exchange_free(fake);
	ck_assert(!is_registered());
}
END_TEST

START_TEST(chunks_are_answered)
{
	expect(404, METHOD_GET, "/xet/v1/chunks/default/" HELLO, TOKEN_WRITE, span_text(""),
		"error");
	put_xorb();
	expect(404, METHOD_GET, "/xet/v1/chunks/default/" OTHER, TOKEN_WRITE, span_text(""),
		"error");
	expect(400, METHOD_GET, "/xet/v1/chunks/default/zz", TOKEN_WRITE, span_text(""), "error");
	static const char *const targets[] = {
		"/xet/v1/chunks/default/" HELLO, "/xet/chunks/default-merkledb/" HELLO};
	for (size_t i = 0; i < sizeof(targets) / sizeof(*targets); i++) {
		struct fake_exchange *const fake =
			begin(METHOD_GET, targets[i], i == 0 ? TOKEN_READ : TOKEN_WRITE);
		ck_assert_int_eq(fake_exchange_run(fake, span_text("")), 200);
		ck_assert_uint_eq(fake->body.len, 440);
		ck_assert_str_eq(fake->exchange.reply.content_type, "application/octet-stream");
		fake_exchange_free(fake);
	}
}
END_TEST

/* The paths of hf_xet 1.1. The bytes are the same. */
START_TEST(old_clients_have_paths_of_their_own)
{
	const struct chunk_entry chunk = {.id = chunk_hash(span_text("Hello World!")), .size = 12};
	const struct chunk_id file = chunk_hash_file(&chunk, 1);
	char target[200];
	char text[CHUNK_ID_TEXT_BYTES];
	chunk_id_format(&file, text);
	expect(404, METHOD_HEAD, "/xet/xorb/default/" HELLO, TOKEN_READ, span_text(""), NULL);
	expect(200, METHOD_POST, "/xet/xorb/default/" HELLO, TOKEN_WRITE,
		span_of(hello, sizeof(hello)), "{\"was_inserted\":true}");
	expect(200, METHOD_HEAD, "/xet/xorb/default/" HELLO, TOKEN_READ, span_text(""), NULL);
	expect(200, METHOD_GET, "/xet/chunk/default-merkledb/" HELLO, TOKEN_WRITE, span_text(""),
		NULL);
	expect(200, METHOD_POST, "/xet/shard/default/" OTHER, TOKEN_WRITE, buffer_span(&shard),
		"{\"result\":1}");
	snprintf(target, sizeof(target), "/xet/reconstruction/%s", text);
	expect(200, METHOD_GET, target, TOKEN_READ, span_text(""), "\"offset_into_first_range\":0");
	expect(403, METHOD_POST, "/xet/shard/default/" OTHER, TOKEN_READ, buffer_span(&shard),
		"error");
}
END_TEST

START_TEST(files_may_be_asked_for_as_a_list)
{
	const struct chunk_entry chunk = {.id = chunk_hash(span_text("Hello World!")), .size = 12};
	const struct chunk_id file = chunk_hash_file(&chunk, 1);
	char body[400];
	char text[CHUNK_ID_TEXT_BYTES];
	put_xorb();
	expect(200, METHOD_POST, "/xet/v1/shards", TOKEN_WRITE, buffer_span(&shard), NULL);
	chunk_id_format(&file, text);
	snprintf(body, sizeof(body),
		"[{\"prefix\":\"default\",\"hash\":\"%s\"},{\"hash\":\"" OTHER "\"}]", text);
	expect(200, METHOD_POST, "/xet/v1/reconstructions", TOKEN_READ, span_text(body), text);
	expect(200, METHOD_POST, "/xet/v1/reconstructions", TOKEN_READ, span_text("[]"),
		"{\"files\":{},\"fetch_info\":{}}");
	static const char *const malformed[] = {"", "{}", "[1]", "[{}]", "[{\"hash\":7}]",
		"[{\"hash\":\"abc\"}]", "[{\"hash\":\"" HELLO "\"}"};
	for (size_t i = 0; i < sizeof(malformed) / sizeof(*malformed); i++)
		expect(400, METHOD_POST, "/xet/v1/reconstructions", TOKEN_READ,
			span_text(malformed[i]), "error");
	expect(401, METHOD_POST, "/xet/v1/reconstructions", TOKEN_NONE, span_text(body), "error");
}
END_TEST

enum { PLACES = 300 };

/* Every other chunk of a xorb; its reconstruction is some hundred kilobytes. */
static struct chunk_id put_scattered_file(void)
{
	struct chunk_entry chunks[2 * PLACES];
	struct chunk_entry taken[PLACES];
	struct shard_term terms[PLACES];
	struct chunk_id ranges[PLACES];
	struct buffer bytes;
	char target[200];
	char text[CHUNK_ID_TEXT_BYTES];
	buffer_init(&bytes, 100000);
	for (unsigned i = 0; i < 2 * PLACES; i++) {
		const uint8_t record[] = {0, 2, 0, 0, 0, 2, 0, 0, (uint8_t)i, (uint8_t)(i >> 8)};
		chunks[i] =
			(struct chunk_entry){.id = chunk_hash(span_of(record + 8, 2)), .size = 2};
		buffer_add(&bytes, record, sizeof(record));
	}
	const struct chunk_id xorb = chunk_hash_xorb(chunks, 2 * PLACES);
	chunk_id_format(&xorb, text);
	snprintf(target, sizeof(target), "/xet/v1/xorbs/default/%s", text);
	expect(200, METHOD_POST, target, TOKEN_WRITE, buffer_span(&bytes), NULL);
	for (uint32_t i = 0; i < PLACES; i++) {
		taken[i] = chunks[2 * i];
		terms[i] = (struct shard_term){
			.xorb = xorb, .first = 2 * i, .end = 2 * i + 1, .bytes = 2};
		ranges[i] = chunk_hash_range(&taken[i], 1);
	}
	const struct chunk_id file = chunk_hash_file(taken, PLACES);
	buffer_reset(&bytes);
	shard_write_header(&bytes, 0);
	shard_write_file(&bytes, &file, terms, ranges, PLACES);
	shard_write_bookend(&bytes);
	shard_write_bookend(&bytes);
	expect(200, METHOD_POST, "/xet/v1/shards", TOKEN_WRITE, buffer_span(&bytes), NULL);
	buffer_release(&bytes);
	return file;
}

static void share_replies(uint64_t limit)
{
	const struct share_options options = {.limit = limit};
	share_pool_free(fixture.context.shares.replies);
	fixture.context.shares.replies = share_pool_new(&options);
}

static void free_replies(void)
{
	share_pool_free(fixture.context.shares.replies);
	fixture.context.shares.replies = NULL;
}

static void expect_large(int status, const char *bearer, const char *target)
{
	struct fake_exchange *const fake = begin_as(bearer, false, METHOD_GET, target);
	ck_assert_int_eq(fake_exchange_run(fake, span_text("")), status);
	if (status == 200) {
		ck_assert_uint_gt(fake->body.len, 64 * 1024);
		ck_assert_uint_ge(share_held(fixture.context.shares.replies), fake->body.len);
	}
	fake_exchange_free(fake);
}

static const char *scattered_target(void)
{
	const struct chunk_id file = put_scattered_file();
	char text[CHUNK_ID_TEXT_BYTES];
	chunk_id_format(&file, text);
	return arena_format(fixture.arena, "/xet/v1/reconstructions/%s", text);
}

/* Replies that other clients are still reading limit it; small replies are always given. */
START_TEST(large_answers_take_turns)
{
	const char *const target = scattered_target();
	share_replies(64 * 1024);
	expect_large(429, face_fixture_root_token, target);
	struct fake_exchange *const small = begin(METHOD_GET, target, TOKEN_READ);
	fake_exchange_add(small, "range", "bytes=0-1");
	ck_assert_int_eq(fake_exchange_run(small, span_text("")), 200);
	fake_exchange_free(small);
	share_replies(64 * 1024 * 1024);
	expect_large(200, face_fixture_root_token, target);
	ck_assert_uint_eq(share_held(fixture.context.shares.replies), 0);
	free_replies();
}
END_TEST

static struct fake_exchange *begin_slow_reader(const char *bearer, const char *target)
{
	struct fake_exchange *const slow = begin_as(bearer, false, METHOD_GET, target);
	ck_assert_int_eq(fake_exchange_run(slow, span_text("")), 200); /* and is not read yet */
	return slow;
}

/* There is room for two: the key that has both loses one to another key. */
START_TEST(no_key_leaves_others_without_answers)
{
	const char *const target = scattered_target();
	const char *const one = face_fixture_key(&fixture, "main", NULL);
	const char *const other = face_fixture_key(&fixture, "main", NULL);
	share_replies(64 * 1024 * 1024);
	struct fake_exchange *const first = begin_slow_reader(one, target);
	const uint64_t held = share_held(fixture.context.shares.replies);
	fake_exchange_free(first);
	share_replies(2 * held + held / 2);
	struct fake_exchange *const older = begin_slow_reader(one, target);
	struct fake_exchange *const younger = begin_slow_reader(one, target);
	expect_large(429, one, target);
	ck_assert(!older->is_cut);
	expect_large(200, other, target);
	ck_assert(older->is_cut);
	ck_assert(!younger->is_cut);
	fake_exchange_free(older);
	fake_exchange_free(younger);
	free_replies();
}
END_TEST

Suite *test_xet_shards_suite(void)
{
	Suite *const suite = suite_create("xet_shards");
	TCase *const all = tcase_create("all");
	tcase_add_checked_fixture(all, setup, teardown);
	tcase_add_test(all, a_shard_registers_its_file);
	tcase_add_test(all, version_2_answers_with_one_line);
	tcase_add_test(all, version_2_tells_of_a_shard_that_takes_long);
	tcase_add_test(all, a_late_failure_is_the_last_line);
	tcase_add_test(all, a_stopping_server_tells_the_end);
	tcase_add_test(all, a_client_may_leave_before_the_end);
	tcase_add_test(all, a_client_may_leave_a_server_that_stops);
	tcase_add_test(all, a_xorb_that_had_no_room_is_told_as_that);
	tcase_add_test(all, what_is_not_true_is_refused);
	tcase_add_test(all, tokens_decide);
	tcase_add_test(all, a_body_that_is_too_long_is_not_asked_for);
	tcase_add_test(all, a_connection_that_breaks_leaves_nothing);
	tcase_add_test(all, chunks_are_answered);
	tcase_add_test(all, old_clients_have_paths_of_their_own);
	tcase_add_test(all, files_may_be_asked_for_as_a_list);
	tcase_add_test(all, large_answers_take_turns);
	tcase_add_test(all, no_key_leaves_others_without_answers);
	suite_add_tcase(suite, all);
	return suite;
}
