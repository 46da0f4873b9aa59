#include "tests/unit/unit.h"

#include <string.h>

#include "base/digest/seal.h"

static const uint8_t key[SEAL_KEY_BYTES] = "0123456789abcdef0123456789abcde";
static struct buffer sealed;
static struct buffer opened;

static void set_up(void)
{
	buffer_init(&sealed, 1000);
	buffer_init(&opened, 1000);
	seal(key, span_text("a secret"), &sealed);
}

static void tear_down(void)
{
	buffer_release(&sealed);
	buffer_release(&opened);
}

START_TEST(opens_with_its_key)
{
	struct error err = {0};
	ck_assert_uint_eq(sealed.len, 8 + SEAL_OVERHEAD_BYTES);
	ck_assert_int_eq(seal_open(key, buffer_span(&sealed), &opened, &err), 0);
	ck_assert_str_eq(buffer_text(&opened), "a secret");
	ck_assert_ptr_null(memmem(sealed.data, sealed.len, "secret", 6));
}
END_TEST

START_TEST(nonces_differ)
{
	struct buffer other;
	buffer_init(&other, 1000);
	seal(key, span_text("a secret"), &other);
	ck_assert(!span_equal(buffer_span(&sealed), buffer_span(&other)));
	buffer_release(&other);
}
END_TEST

START_TEST(nothing_can_be_sealed)
{
	struct error err = {0};
	buffer_reset(&sealed);
	seal(key, span_of(NULL, 0), &sealed);
	ck_assert_int_eq(seal_open(key, buffer_span(&sealed), &opened, &err), 0);
	ck_assert_uint_eq(opened.len, 0);
	sealed.data[0] ^= 1;
	ck_assert_int_eq(seal_open(key, buffer_span(&sealed), &opened, &err), -1);
}
END_TEST

static void check_refused(const uint8_t with[SEAL_KEY_BYTES], struct span text)
{
	struct error err = {0};
	ck_assert_int_eq(seal_open(with, text, &opened, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	ck_assert_uint_eq(opened.len, 0);
}

START_TEST(every_changed_bit_is_noticed)
{
	for (size_t bit = 0; bit < 8 * sealed.len; bit++) {
		sealed.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		check_refused(key, buffer_span(&sealed));
		sealed.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}
END_TEST

START_TEST(other_key_and_cut_texts_are_refused)
{
	uint8_t other[SEAL_KEY_BYTES];
	memcpy(other, key, sizeof other);
	other[31] ^= 1;
	check_refused(other, buffer_span(&sealed));
	for (size_t len = 0; len < sealed.len; len++)
		check_refused(key, span_slice(buffer_span(&sealed), 0, len));
}
END_TEST

START_TEST(too_small_a_buffer_is_told)
{
	struct error err = {0};
	struct buffer small;
	buffer_init(&small, 7);
	ck_assert_int_eq(seal_open(key, buffer_span(&sealed), &small, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_TOO_LARGE);
	seal(key, span_text("x"), &small);
	ck_assert(buffer_failed(&small));
	buffer_release(&small);
}
END_TEST

static void make_token(const char *purpose, const char *text)
{
	buffer_reset(&sealed);
	seal_token(key, purpose, span_text(text), &sealed);
}

static bool opens(const uint8_t with[SEAL_KEY_BYTES], const char *purpose, struct span token,
	size_t capacity, size_t *out_len)
{
	uint8_t text[64];
	const bool good = seal_token_open(with, purpose, token, text, capacity, out_len);
	buffer_reset(&opened);
	if (good)
		buffer_add(&opened, text, *out_len);
	return good;
}

START_TEST(a_token_opens_with_its_key_and_purpose)
{
	uint8_t other[SEAL_KEY_BYTES];
	size_t len;
	memcpy(other, key, sizeof(other));
	other[0] ^= 1;
	make_token("tickets", "seat 12");
	ck_assert_uint_eq(sealed.len, 7 + SEAL_TOKEN_OVERHEAD_BYTES);
	ck_assert_ptr_null(memmem(sealed.data, sealed.len, "seat", 4));
	ck_assert(opens(key, "tickets", buffer_span(&sealed), 7, &len));
	ck_assert_str_eq(buffer_text(&opened), "seat 12");
	ck_assert(!opens(key, "tickets", buffer_span(&sealed), 6, &len));
	ck_assert(!opens(key, "coats", buffer_span(&sealed), 64, &len));
	ck_assert(!opens(other, "tickets", buffer_span(&sealed), 64, &len));
	make_token("tickets", "");
	ck_assert(opens(key, "tickets", buffer_span(&sealed), 0, &len));
	ck_assert_uint_eq(len, 0);
}
END_TEST

START_TEST(equal_texts_alone_make_equal_tokens)
{
	struct buffer first;
	buffer_init(&first, 1000);
	seal_token(key, "tickets", span_text("seat 12"), &first);
	make_token("tickets", "seat 12");
	ck_assert(span_equal(buffer_span(&first), buffer_span(&sealed)));
	make_token("tickets", "seat 13");
	ck_assert_mem_ne(first.data, sealed.data, 6); /* equal texts do not look equal */
	buffer_release(&first);
}
END_TEST

START_TEST(every_changed_bit_of_a_token_is_noticed)
{
	size_t len;
	make_token("tickets", "seat 12");
	for (size_t bit = 0; bit < 8 * sealed.len; bit++) {
		sealed.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		ck_assert(!opens(key, "tickets", buffer_span(&sealed), 64, &len));
		sealed.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	for (size_t cut = 0; cut < sealed.len; cut++)
		ck_assert(
			!opens(key, "tickets", span_slice(buffer_span(&sealed), 0, cut), 64, &len));
	ck_assert(opens(key, "tickets", buffer_span(&sealed), 64, &len));
}
END_TEST

Suite *test_seal_suite(void);
Suite *test_seal_suite(void)
{
	Suite *const suite = suite_create("seal");
	TCase *const tc = tcase_create("all");
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, opens_with_its_key);
	tcase_add_test(tc, nonces_differ);
	tcase_add_test(tc, nothing_can_be_sealed);
	tcase_add_test(tc, every_changed_bit_is_noticed);
	tcase_add_test(tc, other_key_and_cut_texts_are_refused);
	tcase_add_test(tc, too_small_a_buffer_is_told);
	tcase_add_test(tc, a_token_opens_with_its_key_and_purpose);
	tcase_add_test(tc, equal_texts_alone_make_equal_tokens);
	tcase_add_test(tc, every_changed_bit_of_a_token_is_noticed);
	suite_add_tcase(suite, tc);
	return suite;
}
