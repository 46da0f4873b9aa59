#include "tests/unit/unit.h"

#include <string.h>

#include "base/net/trusted_proxies.h"

static char *const TRUSTED[] = {"10.0.0.0/8", "fd00::/16", "192.0.2.9", "unix"};

static const struct {
	const char *peer; /* NULL: a Unix socket */
	const char *forwarded;
	const char *client;
} ROWS[] = {
	/* the header of an untrusted peer is ignored */
	{"203.0.113.5", "1.2.3.4", "203.0.113.5"},
	{"2001:db8::5", "1.2.3.4, 10.0.0.1", "2001:db8::5"},
	{"11.0.0.1", "1.2.3.4", "11.0.0.1"},
	/* the client is the last address that is not a trusted proxy */
	{"10.1.1.1", "203.0.113.5", "203.0.113.5"},
	{"10.1.1.1", "1.2.3.4, 203.0.113.5", "203.0.113.5"},
	{"10.1.1.1", "1.2.3.4, 203.0.113.5, 10.2.2.2,fd00::1 , 192.0.2.9", "203.0.113.5"},
	{NULL, "203.0.113.5", "203.0.113.5"},
	{"fd00:1::1", "2001:db8::7", "2001:db8::7"},
	{"192.0.2.9", "192.0.2.10", "192.0.2.10"},
	{"10.1.1.1", "203.0.113.5:4711", "203.0.113.5"},
	{"10.1.1.1", "[2001:db8::7]:4711", "2001:db8::7"},
	{"10.1.1.1", "[2001:db8::7]", "2001:db8::7"},
	{"10.1.1.1", "::ffff:203.0.113.5", "203.0.113.5"},
	/* only proxies */
	{"10.1.1.1", "", "10.1.1.1"},
	{"10.1.1.1", "10.2.2.2", "10.2.2.2"},
	{NULL, "", "unix"},
	/* a malformed entry ends the search */
	{"10.1.1.1", "203.0.113.5, nobody", "10.1.1.1"},
	{"10.1.1.1", "203.0.113.5, , 10.2.2.2", "10.2.2.2"},
	{"10.1.1.1", "203.0.113.5,", "10.1.1.1"},
	{"10.1.1.1", "unix", "10.1.1.1"},
	{"10.1.1.1", "203.0.113.5:66000", "10.1.1.1"},
	{"10.1.1.1", "203.0.113.5:", "10.1.1.1"},
	{"10.1.1.1", "[2001:db8::7", "10.1.1.1"},
	{"10.1.1.1", "2001:db8::7]", "10.1.1.1"},
	{"10.1.1.1", "[203.0.113.5]", "10.1.1.1"},
	{"10.1.1.1", "[]:80", "10.1.1.1"},
	{"10.1.1.1", "203.0.113.256", "10.1.1.1"},
	{"10.1.1.1", "2001:db8::7%eth0", "10.1.1.1"},
	{"10.1.1.1", "1111111111111111111111111111111111111111111111111111111111111111",
		"10.1.1.1"},
};

static struct client_address address(const char *text)
{
	struct client_address made = {.is_unix = true};
	ck_assert(text == NULL || client_address_parse(span_text(text), &made));
	return made;
}

START_TEST(the_last_that_is_not_trusted_asks)
{
	struct error err = {0};
	char text[CLIENT_ADDRESS_TEXT_BYTES];
	struct trusted_proxies *const proxies = trusted_proxies_new(TRUSTED, 4, &err);
	const struct client_address peer = address(ROWS[_i].peer);
	ck_assert_ptr_nonnull(proxies);
	const struct client_address client =
		trusted_proxies_client(proxies, &peer, span_text(ROWS[_i].forwarded));
	client_address_format(&client, text);
	ck_assert_str_eq(text, ROWS[_i].client);
	trusted_proxies_free(proxies);
}
END_TEST

START_TEST(nobody_is_trusted_unless_named)
{
	struct error err = {0};
	const struct client_address peer = address("127.0.0.1");
	struct trusted_proxies *const proxies = trusted_proxies_new(NULL, 0, &err);
	ck_assert(!trusted_proxies_have(proxies, &peer));
	ck_assert(!trusted_proxies_have(NULL, &peer));
	trusted_proxies_free(proxies);
}
END_TEST

static const char *const malformed[] = {"", "10.0.0.0/33", "10.0.0.1/8", "10.0.0.0/",
	"10.0.0.0/8/8", "fd00::/129", "fd00::1/64", "proxy.example", "10.0.0.1:80", "[fd00::1]",
	"Unix", "10.0.0.0/-1"};

START_TEST(malformed_networks_are_refused_by_name)
{
	struct error err = {0};
	char *const texts[] = {"10.0.0.1", (char *)malformed[_i]};
	ck_assert_ptr_null(trusted_proxies_new(texts, 2, &err));
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_ptr_nonnull(strstr(err.text, malformed[_i]));
}
END_TEST

START_TEST(addresses_of_one_client_count_as_one)
{
	const struct client_address v4 = address("203.0.113.5");
	const struct client_address mapped = address("::ffff:203.0.113.5");
	const struct client_address other = address("203.0.113.6");
	const struct client_address v6 = address("2001:db8::1");
	const struct client_address same = address("2001:db8::ffff:1");
	const struct client_address next = address("2001:db8:0:1::1");
	ck_assert(client_address_hash(&v4) == client_address_hash(&mapped));
	ck_assert(client_address_hash(&v4) != client_address_hash(&other));
	ck_assert(client_address_hash(&v6) == client_address_hash(&same));
	ck_assert(client_address_hash(&v6) != client_address_hash(&next));
}
END_TEST

Suite *test_trusted_proxies_suite(void);
Suite *test_trusted_proxies_suite(void)
{
	Suite *const suite = suite_create("trusted_proxies");
	TCase *const tc = tcase_create("all");
	tcase_add_loop_test(
		tc, the_last_that_is_not_trusted_asks, 0, (int)(sizeof ROWS / sizeof ROWS[0]));
	tcase_add_test(tc, nobody_is_trusted_unless_named);
	tcase_add_loop_test(tc, malformed_networks_are_refused_by_name, 0,
		(int)(sizeof malformed / sizeof malformed[0]));
	tcase_add_test(tc, addresses_of_one_client_count_as_one);
	suite_add_tcase(suite, tc);
	return suite;
}
