/* URLs that outlive an hour, over a store that takes no changes. */
#include "tests/unit/api/face_fixture.h"

#include "storage/packs/store_health.h"

#define REQUESTS "\"requests\":[{\"method\":\"GET\",\"bucket\":\"bkt\",\"key\":\"k\"}]}"

static struct face_fixture fixture;

static void setup(void)
{
	face_fixture_open(&fixture);
}

static void teardown(void)
{
	face_fixture_close(&fixture);
}

START_TEST(what_the_audit_trail_cannot_take_is_not_told)
{
	store_health_set_read_only(store_health(fixture.store), "A test says so.");
	face_fixture_expect_text(&fixture, 200, METHOD_POST, "/-/signed-urls", NULL,
		"{\"expires_s\":3600," REQUESTS, "X-Amz-Signature");
	struct fake_exchange *const fake = face_fixture_ask(&fixture, 503, METHOD_POST,
		"/-/signed-urls", NULL, "{\"expires_s\":3601," REQUESTS);
	face_fixture_assert_holds(fake, "\"code\":\"read_only\"");
	face_fixture_assert_lacks(fake, "X-Amz-Signature");
	fake_exchange_free(fake);
}
END_TEST

Suite *test_admin_signed_urls_suite(void);
Suite *test_admin_signed_urls_suite(void)
{
	Suite *const suite = suite_create("admin_signed_urls");
	TCase *const tcase = tcase_create("all");
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, what_the_audit_trail_cannot_take_is_not_told);
	suite_add_tcase(suite, tcase);
	return suite;
}
