#include "storage/xet/chunk_answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "chunker/chunk_hash.h"
#include "chunker/chunk_stream.h"
#include "chunker/shard.h"
#include "storage/core/store.h"
#include "storage/upkeep/gc.h"
#include "storage/xet/xorb.h"
#include "tests/unit/storage/store_fixture.h"
#include "tests/unit/unit.h"

static const int64_t DAY_MS = 24 * 60 * 60 * 1000;

Suite *test_chunk_answer_suite(void);

static struct store_fixture fixture;

static void set_up(void)
{
	struct error err = {0};
	fixture = (struct store_fixture){.promise_ms = DAY_MS};
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "b", "main", &err), 0);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
}

/* Returns 1 with the shard, or 0 when the chunk is not known. */
static int ask_as(bool promises, const struct chunk_id *id, struct buffer *out)
{
	struct error err = {0};
	struct call *const answer = chunk_answer_call(fixture.store, id, promises, &err);
	const int result = answer == NULL ? -1 : call_run(answer, &err);
	if (result == 0)
		chunk_answer_result(answer, out);
	call_free(answer);
	ck_assert_msg(result == 0 || err.kind == ERROR_NOT_FOUND, "%s", err.text);
	return result == 0;
}

static int ask(const struct chunk_id *id, struct buffer *out)
{
	return ask_as(true, id, out);
}

struct cut {
	struct chunk_entry entries[64];
	size_t count;
};

static int take(void *taker, const struct chunk_id *id, struct span content, struct error *err)
{
	struct cut *const cut = taker;
	(void)err;
	ck_assert_uint_lt(cut->count, 64);
	cut->entries[cut->count++] = (struct chunk_entry){.id = *id, .size = content.len};
	return 0;
}

/* Puts noise through S3, and gives its chunks. */
static struct cut put(const char *key, size_t len, uint64_t seed)
{
	struct error err = {0};
	struct cut cut = {0};
	uint8_t *const bytes = fixture_noise(len, seed);
	struct chunk_stream *const stream = chunk_stream_new(take, &cut);
	ck_assert_int_eq(chunk_stream_push(stream, span_of(bytes, len), &err), 0);
	ck_assert_int_eq(chunk_stream_end(stream, &err), 0);
	chunk_stream_free(stream);
	ck_assert_msg(fixture_put(fixture.store, "b", key, span_of(bytes, len), &err) == 0, "%s",
		err.text);
	free(bytes);
	return cut;
}

/* The answer names a xorb that is promised, and hides the chunk with the day's key. */
static void expect_answer(const struct chunk_id *id, uint32_t number)
{
	struct error err = {0};
	struct buffer shard;
	struct shard_reader reader;
	struct shard_xorb listed;
	struct shard_answer facts;
	struct xorb xorb;
	uint8_t key[SHARD_KEY_BYTES];
	ck_assert_int_eq(ask(id, &shard), 1);
	ck_assert_int_eq(shard_reader_open(&reader, buffer_span(&shard), &err), 0);
	ck_assert_int_eq(shard_reader_xorb(&reader, &listed, &err), 1);
	ck_assert_msg(shard_reader_answer(&reader, &facts, &err) == 0, "%s", err.text);
	chunk_answer_key(fixture.store, fixture.clock.now_ms, key);
	ck_assert(memcmp(key, facts.key, sizeof(key)) == 0);
	ck_assert_uint_lt(number, listed.chunk_count);
	const struct chunk_id hidden = chunk_hash_keyed(key, span_of(id->bytes, CHUNK_ID_BYTES));
	const struct shard_chunk chunk = shard_xorb_chunk(&listed, number);
	ck_assert(chunk_id_equal(&chunk.id, &hidden));
	ck_assert(!chunk_id_equal(&chunk.id, id));
	ck_assert_msg(xorb_find(fixture.store, &listed.hash, &xorb, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(xorb.count, listed.chunk_count);
	ck_assert_int_eq(facts.created_s, fixture.clock.now_ms / 1000);
	ck_assert_int_gt(facts.expires_s, facts.created_s);
	ck_assert_int_lt(facts.expires_s * 1000, xorb.promised_ms);
	buffer_release(&shard);
}

START_TEST(an_unknown_chunk_is_not_known)
{
	struct buffer shard;
	const struct chunk_id id = chunk_hash(span_text("never stored"));
	put("k", 100000, 1);
	ck_assert_int_eq(ask(&id, &shard), 0);
}
END_TEST

START_TEST(a_small_upload_is_found_in_the_shared_pack)
{
	const struct cut cut = put("k", 200000, 2);
	for (uint32_t i = 0; i < cut.count; i++)
		expect_answer(&cut.entries[i].id, i);
}
END_TEST

START_TEST(the_first_chunk_of_a_large_upload_is_found)
{
	struct buffer ignored;
	/* a pack of its own, which a helper adds to the index */
	const struct cut cut = put("k", 900000, 3);
	for (int i = 0; i < 1000 && ask(&cut.entries[0].id, &ignored) != 1; i++)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	buffer_release(&ignored);
	expect_answer(&cut.entries[0].id, 0);
}
END_TEST

/* The chunks of a full shared pack are found through the index, like all others. */
START_TEST(the_first_chunk_is_found_behind_the_next_shared_pack)
{
	struct buffer ignored;
	char key[8];
	const struct cut cut = put("first", 200000, 20);
	for (unsigned i = 0; i < 9; i++) {
		snprintf(key, sizeof(key), "k%u", i);
		put(key, 200000, 21 + i);
	}
	ck_assert_int_gt(fixture_count(fixture.store, "SELECT COUNT(*) FROM packs"), 1);
	int found = 0;
	for (int i = 0; i < 1000 && (found = ask(&cut.entries[0].id, &ignored)) != 1; i++)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	ck_assert_int_eq(found, 1);
	buffer_release(&ignored);
}
END_TEST

START_TEST(a_promise_that_lasts_is_not_made_again)
{
	const struct cut cut = put("k", 100000, 4);
	expect_answer(&cut.entries[0].id, 0);
	static const char sql[] = "SELECT promised_ms FROM xorbs";
	const int64_t first = fixture_count(fixture.store, sql);
	ck_assert_int_eq(first, fixture.clock.now_ms + DAY_MS);
	fixture.clock.now_ms += DAY_MS / 2;
	expect_answer(&cut.entries[0].id, 0);
	ck_assert_int_eq(fixture_count(fixture.store, sql), first);
	fixture.clock.now_ms += 1;
	expect_answer(&cut.entries[0].id, 0);
	ck_assert_int_eq(fixture_count(fixture.store, sql), fixture.clock.now_ms + DAY_MS);
}
END_TEST

/* Such an answer counts for the moment, and gc deletes the chunk as if it had not been given. */
START_TEST(an_answer_to_who_only_reads_holds_nothing)
{
	struct error err = {0};
	struct buffer shard;
	struct shard_reader reader;
	struct shard_xorb listed;
	struct shard_answer facts;
	const struct cut cut = put("k", 200000, 7);
	ck_assert_int_eq(ask_as(false, &cut.entries[0].id, &shard), 1);
	ck_assert_int_eq(shard_reader_open(&reader, buffer_span(&shard), &err), 0);
	ck_assert_int_eq(shard_reader_xorb(&reader, &listed, &err), 1);
	ck_assert_msg(shard_reader_answer(&reader, &facts, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(listed.chunk_count, cut.count);
	ck_assert_int_eq(facts.expires_s, 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM xorbs"), 0);
	buffer_release(&shard);
	ck_assert_int_eq(fixture_delete(fixture.store, "b", "k", NULL, &err), 0);
	struct gc_request request = {0};
	ck_assert_msg(gc_run(store_parts(fixture.store)->gc, &request, &err) == 0, "%s", err.text);
	ck_assert_int_eq(ask_as(false, &cut.entries[0].id, &shard), 0);
}
END_TEST

START_TEST(keys_last_for_a_day)
{
	uint8_t keys[3][SHARD_KEY_BYTES];
	chunk_answer_key(fixture.store, 20000 * DAY_MS, keys[0]);
	chunk_answer_key(fixture.store, 20001 * DAY_MS - 1, keys[1]);
	chunk_answer_key(fixture.store, 20001 * DAY_MS, keys[2]);
	ck_assert(memcmp(keys[0], keys[1], SHARD_KEY_BYTES) == 0);
	ck_assert(memcmp(keys[0], keys[2], SHARD_KEY_BYTES) != 0);
}
END_TEST

START_TEST(who_promises_nothing_answers_nothing)
{
	struct buffer shard;
	store_fixture_close(&fixture);
	fixture.promise_ms = 0;
	store_fixture_open(&fixture);
	struct error err = {0};
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "b", "main", &err), 0);
	const struct cut cut = put("k", 100000, 5);
	ck_assert_int_eq(ask(&cut.entries[0].id, &shard), 0);
}
END_TEST

static void collect(void)
{
	struct error err = {0};
	struct gc_request request = {0};
	ck_assert_msg(gc_run(store_parts(fixture.store)->gc, &request, &err) == 0, "%s", err.text);
}

START_TEST(what_was_answered_stays_until_the_promise_ends)
{
	struct error err = {0};
	struct buffer shard;
	const struct cut cut = put("k", 200000, 6);
	expect_answer(&cut.entries[0].id, 0);
	store_fixture_reopen(&fixture); /* which seals the shared pack */
	ck_assert_int_eq(fixture_delete(fixture.store, "b", "k", NULL, &err), 0);
	collect();
	expect_answer(&cut.entries[0].id, 0);
	fixture.clock.now_ms += 2 * DAY_MS;
	collect();
	ck_assert_int_eq(ask(&cut.entries[0].id, &shard), 0);
}
END_TEST

Suite *test_chunk_answer_suite(void)
{
	Suite *const suite = suite_create("chunk_answer");
	TCase *const cases = tcase_create("answers");
	tcase_add_checked_fixture(cases, set_up, tear_down);
	tcase_set_timeout(cases, 60);
	tcase_add_test(cases, an_unknown_chunk_is_not_known);
	tcase_add_test(cases, a_small_upload_is_found_in_the_shared_pack);
	tcase_add_test(cases, the_first_chunk_of_a_large_upload_is_found);
	tcase_add_test(cases, the_first_chunk_is_found_behind_the_next_shared_pack);
	tcase_add_test(cases, a_promise_that_lasts_is_not_made_again);
	tcase_add_test(cases, an_answer_to_who_only_reads_holds_nothing);
	tcase_add_test(cases, keys_last_for_a_day);
	tcase_add_test(cases, who_promises_nothing_answers_nothing);
	tcase_add_test(cases, what_was_answered_stays_until_the_promise_ends);
	suite_add_tcase(suite, cases);
	return suite;
}
