/* Objects whose bytes lie in very many places: a helper opens them, and the reply goes on after
 * it. */
#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread/helpers.h"
#include "chunker/chunk_hash.h"
#include "chunker/shard.h"
#include "storage/db/db.h"
#include "storage/packs/pack_store.h"
#include "tests/unit/api/face_fixture.h"

Suite *test_object_reply_suite(void);

#define HELLO "d8d408e608fb9ca213b9909a65d86d725f2de4d8d540324be8a363e7a6e228cb"

static const uint8_t hello[] = {
	0, 12, 0, 0, 0, 12, 0, 0, 'H', 'e', 'l', 'l', 'o', ' ', 'W', 'o', 'r', 'l', 'd', '!'};

static struct face_fixture fixture;

static void setup(void)
{
	face_fixture_open(&fixture);
}

static void teardown(void)
{
	face_fixture_close(&fixture);
}

/* Uploads as a Xet client does. */
static void send(const char *target, struct span body)
{
	struct fake_exchange *const fake = fake_exchange_new(&fixture.context, METHOD_POST, target);
	fake_exchange_add(fake, "authorization",
		arena_format(fixture.arena, "Bearer %s",
			face_fixture_xet_token(
				&fixture, "bkt", face_fixture_root_token, true, 60)));
	ck_assert_int_eq(fake_exchange_run(fake, body), 200);
	fake_exchange_free(fake);
}

enum { PIECES = 3000, HELLO_BYTES = 12 };

/* Makes the object "many": "Hello World!" many times, each time from the same record. */
static void put_many(void)
{
	struct chunk_entry *const chunks = calloc(PIECES, sizeof *chunks);
	struct shard_term *const terms = calloc(PIECES, sizeof *terms);
	struct chunk_id *const ranges = calloc(PIECES, sizeof *ranges);
	const struct chunk_entry chunk = {
		.id = chunk_hash(span_text("Hello World!")), .size = HELLO_BYTES};
	char hash[CHUNK_ID_TEXT_BYTES];
	struct buffer many;
	for (size_t i = 0; i < PIECES; i++) {
		chunks[i] = chunk;
		terms[i] = (struct shard_term){
			.xorb = chunk.id, .first = 0, .end = 1, .bytes = HELLO_BYTES};
		ranges[i] = chunk_hash_range(&chunk, 1);
	}
	const struct chunk_id file = chunk_hash_file(chunks, PIECES);
	buffer_init(&many, 1 << 20);
	shard_write_header(&many, 0);
	shard_write_file(&many, &file, terms, ranges, PIECES);
	shard_write_bookend(&many);
	shard_write_xorb(&many, &chunk.id, &chunk, 1);
	shard_write_bookend(&many);
	send("/xet/v1/xorbs/default/" HELLO, span_of(hello, sizeof hello));
	send("/xet/v1/shards", buffer_span(&many));
	chunk_id_format(&file, hash);
	face_fixture_expect(&fixture, 200, METHOD_POST, "/api/buckets/main/bkt/batch", NULL,
		arena_format(fixture.arena,
			"{\"type\":\"addFile\",\"path\":\"many\",\"xetHash\":\"%s\"}\n", hash));
	buffer_release(&many);
	free(chunks);
	free(terms);
	free(ranges);
}

static void expect_many(int status, const char *target, const char *range, size_t from, size_t to)
{
	const char *const headers[] = {"range", range, NULL};
	struct fake_exchange *const fake = face_fixture_ask(
		&fixture, status, METHOD_GET, target, range == NULL ? NULL : headers, NULL);
	ck_assert_uint_eq(fake->body.len, to - from);
	for (size_t i = from; i < to; i++)
		ck_assert_int_eq(fake->body.data[i - from], "Hello World!"[i % HELLO_BYTES]);
	face_fixture_assert_header(fake, "Accept-Ranges", "bytes");
	fake_exchange_free(fake);
}

/* A helper reads the rows of the object, and each face continues where it was. */
START_TEST(an_object_in_very_many_places_is_read)
{
	static const char *const targets[] = {
		"/bkt/many?response-content-language=de&response-expires=1",
		"/buckets/main/bkt/resolve/many"};
	put_many();
	for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
		expect_many(200, targets[i], NULL, 0, PIECES * HELLO_BYTES);
		expect_many(206, targets[i], "bytes=5-24004", 5, 24005);
		/* Bytes in few places are opened at once. */
		expect_many(206, targets[i], "bytes=-30", PIECES * HELLO_BYTES - 30,
			PIECES * HELLO_BYTES);
	}
	struct fake_exchange *const fake =
		face_fixture_ask(&fixture, 200, METHOD_GET, targets[0], NULL, NULL);
	face_fixture_assert_header(fake, "Content-Language", "de");
	face_fixture_assert_header(fake, "Expires", "1");
	fake_exchange_free(fake);
}
END_TEST

static struct pack_id only_pack(void)
{
	static const char select[] = "SELECT id FROM packs";
	struct error err = {0};
	struct pack_id pack;
	struct db *const db = store_reader_take(fixture.store, &err);
	struct db_statement *const statement = db_query(db, select, &err);
	ck_assert_int_eq(db_step(statement, &err), 1);
	memcpy(pack.bytes, db_column_blob(statement, 0).data, PACK_ID_BYTES);
	ck_assert_int_eq(db_step(statement, &err), 0);
	db_reset(statement);
	store_reader_give(fixture.store, db);
	return pack;
}

static struct fake_exchange *begin_many(void)
{
	struct fake_exchange *const fake =
		fake_exchange_new(&fixture.context, METHOD_GET, "/bkt/many");
	fake_exchange_add(fake, "authorization",
		arena_format(fixture.arena, "Bearer %s", face_fixture_root_token));
	ck_assert_int_eq(router_begin(&fake->exchange), NEXT_WAIT);
	fake->is_waiting = true;
	return fake;
}

/* If a client leaves while its bytes are opened, the hold on the pack ends. */
START_TEST(who_asks_for_very_many_places_may_go)
{
	put_many();
	const struct pack_id pack = only_pack();
	ck_assert(!pack_store_is_held(store_packs(fixture.store), &pack));
	fake_exchange_free(begin_many());
	ck_assert(!pack_store_is_held(store_packs(fixture.store), &pack));
}
END_TEST

enum { HELPERS = 4 };

/* Keeps a helper busy until `go` is set. */
struct blocker {
	struct helper_job job;
	struct helper_lane lane;
	sem_t *go;
};

static void block(struct helper_job *job)
{
	while (sem_wait(((struct blocker *)job)->go) != 0)
		ck_assert_int_eq(errno, EINTR);
}

static int resume_once(struct fake_exchange *fake)
{
	lock_enter(&fake->lock);
	while (fake->woken == 0)
		lock_wait(&fake->lock, &fake->condition);
	fake->woken--;
	lock_leave(&fake->lock);
	fake->is_waiting = false;
	ck_assert_int_eq(router_resume(&fake->exchange), NEXT_REPLY);
	return fake->exchange.reply.status;
}

/* A version that is removed before its bytes are opened is not served; its successor is. */
START_TEST(very_many_places_may_go_meanwhile)
{
	static const int statuses[] = {404, 200};
	/* A helper may still use one of them when the test ends. */
	static struct blocker blockers[HELPERS];
	static sem_t go;
	sem_init(&go, 0, 0);
	put_many();
	for (size_t i = 0; i < HELPERS; i++) {
		blockers[i] = (struct blocker){.job.run = block, .go = &go};
		helpers_submit(store_helpers(fixture.store), &blockers[i].lane, &blockers[i].job);
	}
	struct fake_exchange *const fake = begin_many();
	if (_i == 0)
		face_fixture_expect(&fixture, 204, METHOD_DELETE, "/bkt/many", NULL, NULL);
	else
		face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt/many", NULL, "short");
	for (size_t i = 0; i < HELPERS; i++)
		sem_post(&go);
	ck_assert_int_eq(resume_once(fake), statuses[_i]);
	if (_i == 1)
		ck_assert(span_equal_text(fake->exchange.reply.body, "short"));
	fake_exchange_free(fake);
}
END_TEST

Suite *test_object_reply_suite(void)
{
	Suite *const suite = suite_create("object_reply");
	TCase *const all = tcase_create("all");
	tcase_add_checked_fixture(all, setup, teardown);
	tcase_add_test(all, an_object_in_very_many_places_is_read);
	tcase_add_test(all, who_asks_for_very_many_places_may_go);
	tcase_add_loop_test(all, very_many_places_may_go_meanwhile, 0, 2);
	suite_add_tcase(suite, all);
	return suite;
}
