/* Long polls through the router, over a real store: early ends, places of callers, and callers that
 * lose their access while they wait. */
#include "tests/unit/api/face_fixture.h"

#include "api/auth/keyring.h"
#include "api/exchange/long_wait.h"

#define RUN  "/v1/runs/bkt/r"
#define POLL RUN "/steps/latest?after=0&wait=60"

static struct face_fixture fixture;

static void setup(void)
{
	face_fixture_open(&fixture);
	face_fixture_expect(&fixture, 200, METHOD_POST, RUN, NULL, "{}");
}

static void teardown(void)
{
	share_pool_free(fixture.context.shares.waits);
	face_fixture_close(&fixture);
}

static void share_waits(uint64_t limit)
{
	const struct share_options options = {.limit = limit};
	fixture.context.shares.waits = share_pool_new(&options);
}

static struct fake_exchange *ask(const char *token)
{
	struct fake_exchange *const fake = fake_exchange_new(&fixture.context, METHOD_GET, POLL);
	if (token != NULL)
		fake_exchange_add(
			fake, "Authorization", arena_format(fixture.arena, "Bearer %s", token));
	return fake;
}

static struct fake_exchange *begin(const char *token)
{
	struct fake_exchange *const fake = ask(token);
	ck_assert_int_eq(router_begin(&fake->exchange), NEXT_WAIT);
	return fake;
}

/* It was woken, or is woken at once. */
static int end(struct fake_exchange *fake)
{
	lock_enter(&fake->lock);
	while (fake->woken == 0)
		lock_wait(&fake->lock, &fake->condition);
	ck_assert_int_eq(fake->woken, 1);
	fake->woken = 0;
	lock_leave(&fake->lock);
	ck_assert_int_eq(router_resume(&fake->exchange), NEXT_REPLY);
	return fake->exchange.reply.status;
}

static void end_with(struct fake_exchange *fake, int status)
{
	const int actual = end(fake);
	ck_assert_msg(actual == status, "%d instead of %d: %.*s", actual, status,
		(int)fake->exchange.reply.body.len, (const char *)fake->exchange.reply.body.data);
	fake_exchange_free(fake);
}

START_TEST(a_client_that_hangs_up_waits_no_more)
{
	struct fake_exchange *const fake = begin(fixture.token);
	exchange_hang_up(&fake->exchange);
	exchange_hang_up(&fake->exchange);
	end_with(fake, 499);
}
END_TEST

/* The interruption may come before the waiter is registered. */
START_TEST(a_hang_up_before_the_wait_is_not_missed)
{
	struct long_wait wait;
	struct fake_exchange *const fake = ask(fixture.token);
	long_wait_init(&wait, &fake->exchange, NULL, 60 * 1000);
	exchange_hang_up(&fake->exchange);
	ck_assert_int_eq(long_wait_left_ms(&wait), 0);
	step_watch_wait(store_step_watch(fixture.store), span_text("b"), span_text("r"), 0,
		60 * 1000, &wait.waiter);
	ck_assert_int_eq(fake->woken, 0);
	long_wait_begun(&wait);
	ck_assert_int_eq(fake->woken, 1);
	fake->exchange.wait = NULL;
	fake_exchange_free(fake);
}
END_TEST

START_TEST(places_are_bounded_and_come_back)
{
	const char *const key = face_fixture_key(&fixture, "main", NULL);
	share_waits(2);
	struct fake_exchange *const first = begin(key);
	struct fake_exchange *const second = begin(key);
	struct fake_exchange *const third = ask(key);
	ck_assert_int_eq(router_begin(&third->exchange), NEXT_REPLY);
	ck_assert_int_eq(third->exchange.reply.status, 503);
	ck_assert_ptr_nonnull(fake_exchange_reply_header(third, "Retry-After"));
	fake_exchange_free(third);
	exchange_hang_up(&first->exchange);
	end_with(first, 499);
	struct fake_exchange *const fourth = begin(key);
	exchange_hang_up(&second->exchange);
	exchange_hang_up(&fourth->exchange);
	end_with(second, 499);
	end_with(fourth, 499);
}
END_TEST

START_TEST(a_poll_without_a_wait_takes_no_place)
{
	share_waits(0);
	face_fixture_expect(&fixture, 204, METHOD_GET, RUN "/steps/latest?after=0", NULL, NULL);
	face_fixture_expect(&fixture, 503, METHOD_GET, POLL, NULL, NULL);
}
END_TEST

START_TEST(one_key_does_not_keep_all_places_from_another)
{
	const char *const one = face_fixture_key(&fixture, "main", NULL);
	const char *const other = face_fixture_key(&fixture, "main", NULL);
	share_waits(2);
	struct fake_exchange *const older = begin(one);
	struct fake_exchange *const younger = begin(one);
	struct fake_exchange *const others = begin(other);
	ck_assert_int_eq(younger->woken, 0);
	end_with(older, 503);
	exchange_hang_up(&younger->exchange);
	exchange_hang_up(&others->exchange);
	end_with(younger, 499);
	end_with(others, 499);
	ck_assert_uint_eq(share_held(fixture.context.shares.waits), 0);
}
END_TEST

START_TEST(root_finds_a_place_where_others_have_all)
{
	const struct share_options options = {.limit = 1, .reserve = 1};
	fixture.context.shares.waits = share_pool_new(&options);
	struct fake_exchange *const other = begin(face_fixture_key(&fixture, "main", NULL));
	struct fake_exchange *const roots = begin(fixture.token);
	ck_assert_int_eq(other->woken, 0);
	exchange_hang_up(&other->exchange);
	exchange_hang_up(&roots->exchange);
	end_with(other, 499);
	end_with(roots, 499);
}
END_TEST

static void publish(void)
{
	step_watch_published(store_step_watch(fixture.store), span_text("bkt"), span_text("r"));
}

/* Access that was public when the poll began, and is not when a step comes. */
START_TEST(a_bucket_that_went_private_meanwhile_is_private)
{
	static const char *const open[] = {"x-amz-acl", "public-read", NULL};
	static const char *const shut[] = {"x-amz-acl", "private", NULL};
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt?acl", open, NULL);
	struct fake_exchange *const fake = begin(NULL);
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt?acl", shut, NULL);
	publish();
	end_with(fake, 401);
}
END_TEST

START_TEST(a_key_that_was_revoked_meanwhile_opens_nothing)
{
	struct error err = {0};
	const char *const key = face_fixture_key(&fixture, "main", NULL);
	struct fake_exchange *const fake = begin(key);
	ck_assert_int_eq(
		keyring_revoke(fixture.keyring, fake->exchange.principal->key_id, &err), 0);
	publish();
	end_with(fake, 401);
}
END_TEST

Suite *test_long_wait_suite(void);
Suite *test_long_wait_suite(void)
{
	Suite *const suite = suite_create("long_wait");
	TCase *const all = tcase_create("all");
	tcase_add_checked_fixture(all, setup, teardown);
	tcase_add_test(all, a_client_that_hangs_up_waits_no_more);
	tcase_add_test(all, a_hang_up_before_the_wait_is_not_missed);
	tcase_add_test(all, places_are_bounded_and_come_back);
	tcase_add_test(all, a_poll_without_a_wait_takes_no_place);
	tcase_add_test(all, one_key_does_not_keep_all_places_from_another);
	tcase_add_test(all, root_finds_a_place_where_others_have_all);
	tcase_add_test(all, a_bucket_that_went_private_meanwhile_is_private);
	tcase_add_test(all, a_key_that_was_revoked_meanwhile_opens_nothing);
	suite_add_tcase(suite, all);
	return suite;
}
