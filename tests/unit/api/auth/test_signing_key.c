#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "api/auth/signing_key.h"
#include "base/encode.h"

static const char secret[] = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";

static const char *find(struct signing_key_cache *cache, size_t owner, const char *with_secret,
	const char *date, const char *region)
{
	static char hex[2 * SHA256_BYTES + 1];
	uint8_t key[SHA256_BYTES];
	signing_key_find(
		cache, owner, span_text(with_secret), span_text(date), span_text(region), key);
	encode_hex(span_of(key, sizeof key), hex);
	return hex;
}

/* Another program made these, for the day and region of the published examples. */
#define KEY_OF_THE_EXAMPLE "dbb893acc010964918f1fd433add87c70e8b0db6be30c1fbeafefa5ec6ba8378"

START_TEST(a_key_comes_from_the_cache_until_it_is_wiped)
{
	static struct signing_key_cache cache;
	ck_assert_str_eq(find(&cache, 1, secret, "20130524", "us-east-1"), KEY_OF_THE_EXAMPLE);
	ck_assert_str_eq(
		find(&cache, 1, "not asked again", "20130524", "us-east-1"), KEY_OF_THE_EXAMPLE);
	signing_key_wipe(&cache);
	ck_assert_str_ne(
		find(&cache, 1, "another secret", "20130524", "us-east-1"), KEY_OF_THE_EXAMPLE);
}
END_TEST

START_TEST(owner_date_and_region_tell_keys_apart)
{
	static struct signing_key_cache cache;
	char first[2 * SHA256_BYTES + 1];
	memcpy(first, find(&cache, 1, secret, "20130524", "us-east-1"), sizeof first);
	ck_assert_str_ne(find(&cache, 2, "another secret", "20130524", "us-east-1"), first);
	ck_assert_str_ne(find(&cache, 1, secret, "20130525", "us-east-1"), first);
	ck_assert_str_ne(find(&cache, 1, secret, "20130524", "us-east-2"), first);
	ck_assert_str_ne(find(&cache, 1, secret, "20130524", "us-east-10"), first);
	ck_assert_str_ne(find(&cache, 1, secret, "20130524", ""), first);
	ck_assert_str_eq(find(&cache, 1, secret, "20130524", "us-east-1"), first);
}
END_TEST

START_TEST(more_keys_than_slots_stay_right)
{
	static struct signing_key_cache cache;
	static struct signing_key_cache fresh;
	char region[40];
	for (int i = 0; i < 3 * SIGNING_KEY_SLOTS; i++) {
		snprintf(region, sizeof region, "region-%d", i % 700);
		char once[2 * SHA256_BYTES + 1];
		memcpy(once, find(&cache, 1, secret, "20130524", region), sizeof once);
		signing_key_wipe(&fresh);
		ck_assert_str_eq(find(&fresh, 1, secret, "20130524", region), once);
	}
}
END_TEST

START_TEST(a_long_region_is_not_cut)
{
	static struct signing_key_cache cache;
	char a[64];
	char first[2 * SHA256_BYTES + 1];
	memset(a, 'r', sizeof a - 1);
	a[sizeof a - 1] = '\0';
	memcpy(first, find(&cache, 1, secret, "20130524", a), sizeof first);
	a[sizeof a - 2] = 's';
	ck_assert_str_ne(find(&cache, 1, secret, "20130524", a), first);
}
END_TEST

Suite *test_signing_key_suite(void);

Suite *test_signing_key_suite(void)
{
	Suite *const suite = suite_create("signing_key");
	TCase *const tcase = tcase_create("signing_key");
	tcase_add_test(tcase, a_key_comes_from_the_cache_until_it_is_wiped);
	tcase_add_test(tcase, owner_date_and_region_tell_keys_apart);
	tcase_add_test(tcase, more_keys_than_slots_stay_right);
	tcase_add_test(tcase, a_long_region_is_not_cut);
	suite_add_tcase(suite, tcase);
	return suite;
}
