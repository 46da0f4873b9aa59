/* Uses of sessions are written down behind the requests, and wait in a bounded number. A new session
 * ends the one before. */
#include "tests/unit/unit.h"

#include <string.h>

#include "storage/buckets/session_touches.h"
#include "storage/core/committer.h"
#include "tests/unit/storage/store_fixture.h"

static const int64_t start_ms = INT64_C(1770000000000);

static struct store_fixture fixture;

static void set_up(void)
{
	memset(&fixture, 0, sizeof(fixture));
	fixture.metrics = metrics_new();
	store_fixture_open(&fixture);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
	metrics_free(fixture.metrics);
}

struct stall {                /* keeps the committer until somebody lets it go */
	struct change change; /* first */
	struct settled *began;
	struct settled *let_go;
	struct settled *ended;
};

static int apply_stall(struct change *change, struct db *db, struct error *err)
{
	struct stall *const stall = (struct stall *)change;
	(void)db, (void)err;
	settled_done(stall->began);
	settled_wait(stall->let_go);
	return 0;
}

static void end_stall(struct change *change)
{
	settled_done(((struct stall *)change)->ended);
}

static int apply_nothing(struct change *change, struct db *db, struct error *err)
{
	(void)change, (void)db, (void)err;
	return 0;
}

/* Runs behind everything that waits. */
static void pass_all(void)
{
	struct change change = {.apply = apply_nothing};
	struct error err = {0};
	ck_assert_int_eq(committer_run(store_committer(fixture.store), &change, &err), 0);
}

static struct session_record open_session(uint8_t first)
{
	const struct session_opening opening = {
		.id = {first, 1, 2}, .key_id = span_text("KEY"), .now_ms = start_ms};
	struct session_record found;
	struct error err = {0};
	ck_assert_int_eq(fixture_call(session_open_call(fixture.store, &opening), &err), 0);
	ck_assert_int_eq(
		session_find(fixture.store, opening.id, start_ms, fixture.arena, &found, &err), 1);
	return found;
}

static int64_t seen_ms(const struct session_record *session)
{
	struct session_record found;
	struct error err = {0};
	ck_assert_int_eq(
		session_find(fixture.store, session->id, start_ms, fixture.arena, &found, &err), 1);
	return found.seen_ms;
}

START_TEST(uses_do_not_pile_up_while_the_disk_stalls)
{
	struct session_record sessions[2 * SESSION_TOUCHES_MAX];
	struct stall stall = {.change = {.apply = apply_stall, .done = end_stall},
		.began = settled_new(),
		.let_go = settled_new(),
		.ended = settled_new()};
	const size_t count = sizeof(sessions) / sizeof(sessions[0]);
	for (size_t i = 0; i < count; i++)
		sessions[i] = open_session((uint8_t)i);
	committer_submit(store_committer(fixture.store), &stall.change);
	settled_wait(stall.began);
	for (int again = 0; again < 3; again++)
		for (size_t i = 0; i < count; i++)
			session_touch(fixture.store, &sessions[i], start_ms + SESSION_TOUCH_MS);
	ck_assert_int_eq(
		metrics_get(fixture.metrics, METRIC_CHANGES_WAITING), 1 + SESSION_TOUCHES_MAX);
	settled_done(stall.let_go);
	settled_wait(stall.ended);
	pass_all();
	ck_assert_int_eq(seen_ms(&sessions[0]), start_ms + SESSION_TOUCH_MS);
}
END_TEST

START_TEST(a_use_is_written_down_once_a_minute)
{
	struct session_record session = open_session(7);
	session_touch(fixture.store, &session, start_ms + SESSION_TOUCH_MS - 1);
	pass_all();
	ck_assert_int_eq(seen_ms(&session), start_ms);
	for (int i = 1; i <= 3; i++) {
		session_touch(fixture.store, &session, start_ms + i * (int64_t)SESSION_TOUCH_MS);
		pass_all();
		ck_assert_int_eq(seen_ms(&session), start_ms + i * (int64_t)SESSION_TOUCH_MS);
	}
}
END_TEST

/* The earlier session may have ended since the request for the new one was judged. */
START_TEST(a_session_takes_the_place_of_one_that_may_have_ended)
{
	const struct session_record old = open_session(1);
	struct session_opening opening = {
		.key_id = span_text("KEY"), .now_ms = start_ms, .replaces = true};
	struct session_record found;
	struct error err = {0};
	memcpy(opening.replaced, old.id, sizeof(opening.replaced));
	for (uint8_t first = 2; first < 4; first++) {
		opening.id[0] = first;
		ck_assert_int_eq(fixture_call(session_open_call(fixture.store, &opening), &err), 0);
		ck_assert_int_eq(session_find(fixture.store, opening.id, start_ms, fixture.arena,
					 &found, &err),
			1);
		ck_assert_int_eq(
			session_find(fixture.store, old.id, start_ms, fixture.arena, &found, &err),
			0);
	}
}
END_TEST

Suite *test_session_suite(void);
Suite *test_session_suite(void)
{
	Suite *const suite = suite_create("session");
	TCase *const tcase = tcase_create("session");
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, uses_do_not_pile_up_while_the_disk_stalls);
	tcase_add_test(tcase, a_use_is_written_down_once_a_minute);
	tcase_add_test(tcase, a_session_takes_the_place_of_one_that_may_have_ended);
	suite_add_tcase(suite, tcase);
	return suite;
}
