/* The console's files through the router, without a store. */
#include "tests/unit/api/face_fixture.h"

#include <stdio.h>
#include <string.h>

#include "api/console/file_list.h"
#include "base/format/gunzip.h"

#define HEADERS(...) ((const char *const[]){__VA_ARGS__, NULL})

static struct face_fixture fixture;

static void setup(void)
{
	face_fixture_open(&fixture);
	fixture.token = NULL;
}

static void teardown(void)
{
	face_fixture_close(&fixture);
}

START_TEST(a_page_may_load_scripts_from_below_console_alone)
{
	struct fake_exchange *const fake = face_fixture_ask(&fixture, 200, METHOD_GET, "/console/",
		HEADERS("Host", "store.example:9000"), NULL);
	face_fixture_assert_header(fake, "Content-Security-Policy",
		"default-src 'none'; script-src http://store.example:9000/console/; "
		"style-src http://store.example:9000/console/; "
		"font-src http://store.example:9000/console/; img-src 'self' data:; "
		"connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'");
	face_fixture_assert_header(fake, "Referrer-Policy", "no-referrer");
	face_fixture_assert_header(fake, "Cache-Control", "no-cache");
	face_fixture_assert_holds(fake, "<!doctype html>");
	ck_assert_str_eq(fake->exchange.reply.content_type, "text/html; charset=utf-8");
	fake_exchange_free(fake);
}
END_TEST

START_TEST(the_policy_names_the_public_url)
{
	fixture.context.public_url = "https://public.example";
	struct fake_exchange *const fake = face_fixture_ask(&fixture, 404, METHOD_GET,
		"/console/none.js", HEADERS("Host", "evil.example; script-src *"), NULL);
	const char *const policy = fake_exchange_reply_header(fake, "Content-Security-Policy");
	ck_assert_ptr_nonnull(strstr(policy, "script-src https://public.example/console/;"));
	ck_assert_ptr_null(strstr(policy, "evil"));
	fake_exchange_free(fake);
}
END_TEST

START_TEST(a_path_without_the_slash_leads_to_the_page)
{
	struct fake_exchange *const fake =
		face_fixture_ask(&fixture, 308, METHOD_GET, "/console", NULL, NULL);
	face_fixture_assert_header(fake, "Location", "console/");
	fake_exchange_free(fake);
}
END_TEST

START_TEST(gzip_is_sent_where_it_is_accepted)
{
	struct buffer page;
	struct error err = {0};
	struct fake_exchange *fake = face_fixture_ask(&fixture, 200, METHOD_GET,
		"/console/index.html", HEADERS("Accept-Encoding", "br, gzip;q=0.5"), NULL);
	face_fixture_assert_header(fake, "Content-Encoding", "gzip");
	face_fixture_assert_header(fake, "Vary", "Accept-Encoding");
	buffer_init(&page, 1 << 20);
	ck_assert_int_eq(gunzip(buffer_span(&fake->body), &page, &err), 0);
	ck_assert(span_starts(buffer_span(&page), span_text("<!doctype html>")));
	buffer_release(&page);
	fake_exchange_free(fake);
	static const char *const others[] = {"br", "gzip;q=0", "gzip; q=0.00", "notgzip"};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		fake = face_fixture_ask(&fixture, 200, METHOD_GET, "/console/index.html",
			HEADERS("Accept-Encoding", others[i]), NULL);
		face_fixture_assert_header(fake, "Content-Encoding", NULL);
		fake_exchange_free(fake);
	}
}
END_TEST

START_TEST(each_form_has_its_own_tag)
{
	struct fake_exchange *const plain =
		face_fixture_ask(&fixture, 200, METHOD_GET, "/console/index.html", NULL, NULL);
	const char *const tag = fake_exchange_reply_header(plain, "ETag");
	ck_assert_ptr_nonnull(tag);
	face_fixture_expect(&fixture, 304, METHOD_GET, "/console/index.html",
		HEADERS("If-None-Match", tag), NULL);
	face_fixture_expect(&fixture, 200, METHOD_GET, "/console/index.html",
		HEADERS("If-None-Match", tag, "Accept-Encoding", "gzip"), NULL);
	fake_exchange_free(plain);
}
END_TEST

START_TEST(every_file_is_served_under_its_name)
{
	ck_assert_uint_gt(console_file_count, 0);
	for (size_t i = 0; i < console_file_count; i++) {
		char target[512];
		snprintf(target, sizeof(target), "/console/%s", console_files[i].name);
		struct fake_exchange *const fake =
			face_fixture_ask(&fixture, 200, METHOD_GET, target, NULL, NULL);
		ck_assert(span_equal(buffer_span(&fake->body), console_files[i].plain));
		fake_exchange_free(fake);
	}
}
END_TEST

/* Also where the path looks like a way out of the folder, or like one into it. */
START_TEST(nothing_that_is_stored_is_served_below_console)
{
	static const char *const targets[] = {"/console/k", "/console/..%2fbkt%2fk",
		"/console/%2e%2e/bkt/k", "/console/../bkt/k", "/console//bkt/k", "/console/bkt/k",
		"/%63onsole/k", "/console%2fk", "/console%2f..%2fbkt/k"};
	fixture.token = face_fixture_root_token;
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt/k", NULL, "stored");
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		struct fake_exchange *const fake =
			face_fixture_ask_any(&fixture, METHOD_GET, targets[i], NULL, NULL);
		ck_assert_int_ge(fake->exchange.reply.status, 400);
		face_fixture_assert_lacks(fake, "stored");
		fake_exchange_free(fake);
	}
	static const char *const names[] = {"/console", "/%63onsole"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct fake_exchange *const fake =
			face_fixture_ask_any(&fixture, METHOD_PUT, names[i], NULL, NULL);
		ck_assert_int_ge(fake->exchange.reply.status, 400);
		fake_exchange_free(fake);
	}
	face_fixture_expect(&fixture, 400, METHOD_POST, "/api/buckets/main/console", NULL, "{}");
}
END_TEST

Suite *test_console_file_suite(void);
Suite *test_console_file_suite(void)
{
	Suite *const suite = suite_create("console_file");
	TCase *const tcase = tcase_create("console_file");
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, a_page_may_load_scripts_from_below_console_alone);
	tcase_add_test(tcase, the_policy_names_the_public_url);
	tcase_add_test(tcase, a_path_without_the_slash_leads_to_the_page);
	tcase_add_test(tcase, gzip_is_sent_where_it_is_accepted);
	tcase_add_test(tcase, each_form_has_its_own_tag);
	tcase_add_test(tcase, every_file_is_served_under_its_name);
	tcase_add_test(tcase, nothing_that_is_stored_is_served_below_console);
	suite_add_tcase(suite, tcase);
	return suite;
}
