/* Replies with objects whose packs lie in a far place: this thread plays the reactor, so the place
 * ends the test when a request would wait for it. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "storage/db/db.h"
#include "storage/packs/pack_store.h"
#include "tests/unit/api/face_fixture.h"
#include "tests/unit/storage/far_fixture.h"

Suite *test_far_object_suite(void);

enum { SMALL = 20000, LARGE = 2000000 };

static struct face_fixture fixture;
static struct far_fixture far;
static char *small;
static char *large;

static char *make_text(uint64_t state, size_t len)
{
	char *const text = malloc(len + 1);
	for (size_t i = 0; i < len; i++) {
		state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		text[i] = (char)(1 + (state >> 40) % 250);
	}
	text[len] = '\0';
	return text;
}

static void setup(void)
{
	small = make_text(1, SMALL);
	large = make_text(2, LARGE);
	face_fixture_open_far(&fixture, &far);
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt/small", NULL, small);
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt/large", NULL, large);
	face_fixture_cool(&fixture);
}

static void teardown(void)
{
	face_fixture_close(&fixture);
	free(small);
	free(large);
}

static struct fake_exchange *ask(
	int status, enum method method, const char *target, const char *range)
{
	const char *const headers[] = {"range", range, NULL};
	return face_fixture_ask(
		&fixture, status, method, target, range == NULL ? NULL : headers, NULL);
}

static void expect_bytes(
	int status, const char *target, const char *range, const char *text, size_t len)
{
	struct fake_exchange *const fake = ask(status, METHOD_GET, target, range);
	ck_assert_uint_eq(fake->body.len, len);
	ck_assert_mem_eq(fake->body.data, text, len);
	ck_assert_int_gt(fake->waits, 0);
	fake_exchange_free(fake);
	face_fixture_cool(&fixture);
}

START_TEST(bodies_and_ranges_come_in)
{
	expect_bytes(200, "/bkt/small", NULL, small, SMALL);
	expect_bytes(200, "/bkt/large", NULL, large, LARGE);
	expect_bytes(206, "/bkt/small", "bytes=100-199", small + 100, 100);
	expect_bytes(206, "/bkt/large", "bytes=1000000-1000099", large + 1000000, 100);
	expect_bytes(206, "/bkt/large", "bytes=-400000", large + LARGE - 400000, 400000);
	expect_bytes(200, "/buckets/main/bkt/resolve/large", NULL, large, LARGE);
}
END_TEST

START_TEST(head_needs_no_bytes)
{
	struct fake_exchange *const fake = ask(200, METHOD_HEAD, "/bkt/large", NULL);
	ck_assert_uint_eq(fake->exchange.reply.length, LARGE);
	ck_assert_int_eq(fake->waits, 0);
	ck_assert_int_eq(atomic_load(&far.fetches), 0);
	fake_exchange_free(fake);
}
END_TEST

/* What was fetched once is read at once. */
START_TEST(near_bytes_need_no_wait)
{
	fake_exchange_free(ask(200, METHOD_GET, "/bkt/small", NULL));
	const int fetches = atomic_load(&far.fetches);
	struct fake_exchange *const fake = ask(200, METHOD_GET, "/bkt/small", NULL);
	ck_assert_int_eq(fake->waits, 0);
	ck_assert_int_eq(atomic_load(&far.fetches), fetches);
	fake_exchange_free(fake);
}
END_TEST

static void *let_go(void *unused)
{
	(void)unused;
	while (!far_fixture_let_go(&far))
		;
	return NULL;
}

static void expect_no_holds(void)
{
	static const char select[] = "SELECT id FROM packs";
	struct error err = {0};
	struct db *const db = store_reader_take(fixture.store, &err);
	struct db_statement *const statement = db_query(db, select, &err);
	while (db_step(statement, &err) == 1) {
		struct pack_id pack;
		memcpy(pack.bytes, db_column_blob(statement, 0).data, PACK_ID_BYTES);
		ck_assert(!pack_store_is_held(store_packs(fixture.store), &pack));
	}
	db_reset(statement);
	store_reader_give(fixture.store, db);
}

/* The client hangs up while the bytes are fetched: the exchange stays until the wake has come. */
START_TEST(a_client_may_go_while_its_bytes_come)
{
	static const char *const targets[] = {"/bkt/small", "/bkt/large"};
	pthread_t thread;
	fake_exchange_free(ask(200, METHOD_GET, targets[_i], NULL));
	far_fixture_cool(&far); /* the index stays in memory */
	atomic_store(&far.holds_back, true);
	struct fake_exchange *const fake =
		fake_exchange_new(&fixture.context, METHOD_GET, targets[_i]);
	fake_exchange_add(fake, "authorization",
		arena_format(fixture.arena, "Bearer %s", face_fixture_root_token));
	const enum next next = router_begin(&fake->exchange);
	ck_assert_int_eq(next, _i == 0 ? NEXT_WAIT : NEXT_REPLY);
	if (next == NEXT_WAIT)
		fake->is_waiting = true;
	else
		ck_assert(fake_exchange_read(fake));
	ck_assert_int_eq(pthread_create(&thread, NULL, let_go, NULL), 0);
	fake_exchange_free(fake);
	pthread_join(thread, NULL);
	expect_no_holds();
}
END_TEST

/* A small body is refused before its head is sent; a large one ends the connection. */
START_TEST(what_cannot_be_fetched_is_an_error)
{
	pthread_t thread;
	fake_exchange_free(ask(200, METHOD_GET, "/bkt/small", NULL));
	fake_exchange_free(ask(200, METHOD_GET, "/bkt/large", NULL));
	far_fixture_cool(&far);
	atomic_store(&far.is_away, true);
	struct fake_exchange *const refused = ask(503, METHOD_GET, "/bkt/small", NULL);
	ck_assert_ptr_nonnull(fake_exchange_reply_header(refused, "Retry-After"));
	face_fixture_assert_holds(refused, "ServiceUnavailable");
	fake_exchange_free(refused);
	struct fake_exchange *const broken = ask(200, METHOD_GET, "/bkt/large", NULL);
	ck_assert(broken->body_failed);
	ck_assert_uint_eq(broken->body.len, 0);
	fake_exchange_free(broken);
	atomic_store(&far.is_away, false);
	atomic_store(&far.holds_back, true);
	ck_assert_int_eq(pthread_create(&thread, NULL, let_go, NULL), 0);
	fake_exchange_free(ask(200, METHOD_GET, "/bkt/small", NULL));
	pthread_join(thread, NULL);
}
END_TEST

/* Bytes that are wrong twice are damaged; a helper then looks at them before each reply. */
START_TEST(damage_is_told)
{
	atomic_store(&far.garbled, 1);
	fake_exchange_free(ask(200, METHOD_GET, "/bkt/small", NULL));
	far_fixture_cool(&far);
	atomic_store(&far.garbled, 1000);
	for (int i = 0; i < 2; i++) {
		struct fake_exchange *const fake =
			face_fixture_ask_any(&fixture, METHOD_GET, "/bkt/small", NULL, NULL);
		ck_assert_int_eq(fake->exchange.reply.status, 409);
		face_fixture_assert_holds(fake, "damaged");
		fake_exchange_free(fake);
	}
	atomic_store(&far.garbled, 0);
	far_fixture_cool(&far);
	fake_exchange_free(ask(200, METHOD_GET, "/bkt/small", NULL));
}
END_TEST

Suite *test_far_object_suite(void)
{
	Suite *const suite = suite_create("far_object");
	TCase *const all = tcase_create("all");
	tcase_add_checked_fixture(all, setup, teardown);
	tcase_set_timeout(all, 60);
	tcase_add_test(all, bodies_and_ranges_come_in);
	tcase_add_test(all, head_needs_no_bytes);
	tcase_add_test(all, near_bytes_need_no_wait);
	tcase_add_loop_test(all, a_client_may_go_while_its_bytes_come, 0, 2);
	tcase_add_test(all, what_cannot_be_fetched_is_an_error);
	tcase_add_test(all, damage_is_told);
	suite_add_tcase(suite, all);
	return suite;
}
