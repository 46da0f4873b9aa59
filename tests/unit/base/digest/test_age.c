/* A file that age 1.1.1 made opens here; what is made here opens here (and with the program `age`:
 * tests/daemon/test_backup.py). No damage and no cut passes. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/digest/age.h"
#include "base/digest/bech32.h"
#include "base/encode.h"
#include "base/memory.h"

enum { CAP = 1024 * 1024, CHUNK = 64 * 1024, TAG = 16 };

static const char identity_text[] =
	"# created: 2026-11-27T00:59:39Z\r\n"
	"# public key: age19xcax3ry2gw85s3ycaztm3wjj4n0sa782vpy3adaw36cvzjh04tsynqmve\n\n"
	"AGE-SECRET-KEY-18DQSA3K43F8W3E5G57FRU92X5MHJTSKSDXEDQER22DFC6E5DQXFQSWNEPT\r\n";
static const char recipient_text[] =
	"age19xcax3ry2gw85s3ycaztm3wjj4n0sa782vpy3adaw36cvzjh04tsynqmve";
/* printf 'a text' | age -r age19xcax... | base64 */
static const char made_by_age[] =
	"YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IFgyNTUxOSBmdk1VTEdMcEdMTlVQb1ZaT2pnZ2k3Z3Ivb1dpOEtBdGV5"
	"LytzK2hGNzFVCmJJZmhXS1YwZGRJMDF6THpybXRZT3g0SnJ5UXp0V0kwWjRGVy9WRUVhMDgKLS0tIHFQS1Nsdm83"
	"ZW9xcU5KL0FkK3grekRGRkxDMEJhMGhxRjVVMXV0ajVFT0EKkxem4v7sRdc4YVagz2V+FLUCOYK3iSx8CX4JVhCk"
	"z4Cd5/ITv/U=";

static struct age_identities identities;
static struct age_recipient recipient;
static struct buffer sealed;
static struct buffer opened;
static struct error err;

static void set_up(void)
{
	err = (struct error){0};
	buffer_init(&sealed, CAP);
	buffer_init(&opened, CAP);
	ck_assert_int_eq(age_identities_parse(span_text(identity_text), &identities, &err), 0);
	age_identity_recipient(&identities, 0, &recipient);
}

static void tear_down(void)
{
	buffer_release(&sealed);
	buffer_release(&opened);
}

static int open_bytes(struct span bytes)
{
	buffer_reset(&opened);
	return age_open(&identities, bytes, &opened, &err);
}

START_TEST(a_file_of_age_opens)
{
	uint8_t bytes[400];
	size_t len = 0;
	ck_assert(decode_base64(span_text(made_by_age), bytes, sizeof(bytes), &len));
	ck_assert_msg(open_bytes(span_of(bytes, len)) == 0, "%s", err.text);
	ck_assert_str_eq(buffer_text(&opened), "a text");
}
END_TEST

START_TEST(the_public_key_is_that_of_age_keygen)
{
	struct age_recipient parsed;
	char text[AGE_RECIPIENT_BYTES];
	age_recipient_print(&recipient, text);
	ck_assert_str_eq(text, recipient_text);
	ck_assert_int_eq(age_recipient_parse(span_text(recipient_text), &parsed, &err), 0);
	ck_assert_mem_eq(parsed.key, recipient.key, AGE_KEY_BYTES);
}
END_TEST

static const size_t sizes[] = {0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK};

START_TEST(every_length_opens_again)
{
	uint8_t *bytes = memory_new(sizes[_i] + 1);
	for (size_t i = 0; i < sizes[_i]; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 251);
	age_seal(&recipient, span_of(bytes, sizes[_i]), &sealed);
	ck_assert_uint_eq(sealed.len, age_sealed_bytes(sizes[_i]));
	ck_assert_msg(open_bytes(buffer_span(&sealed)) == 0, "%s", err.text);
	ck_assert(span_equal(buffer_span(&opened), span_of(bytes, sizes[_i])));
	free(bytes);
}
END_TEST

START_TEST(no_flipped_bit_passes)
{
	age_seal(&recipient, span_text("a text"), &sealed);
	for (size_t i = 0; i < sealed.len; i++) {
		sealed.data[i] ^= 1;
		ck_assert_msg(open_bytes(buffer_span(&sealed)) == -1, "byte %zu", i);
		ck_assert_uint_eq(opened.len, 0);
		sealed.data[i] ^= 1;
	}
	ck_assert_int_eq(open_bytes(buffer_span(&sealed)), 0);
}
END_TEST

/* Also where a chunk ends. */
START_TEST(no_cut_passes)
{
	uint8_t *bytes = memory_new(2 * CHUNK);
	age_seal(&recipient, span_of(bytes, 2 * CHUNK), &sealed);
	for (size_t len = sealed.len; len-- > 0;)
		if (len < 400 || len % (CHUNK / 2) < 20 || len == sealed.len - CHUNK - TAG ||
			len == sealed.len - 1)
			ck_assert_int_eq(open_bytes(span_of(sealed.data, len)), -1);
	free(bytes);
}
END_TEST

START_TEST(another_identity_does_not_open_it)
{
	age_seal(&recipient, span_text("a text"), &sealed);
	identities.keys[0][5] ^= 1;
	ck_assert_int_eq(open_bytes(buffer_span(&sealed)), -1);
	ck_assert_int_eq(err.kind, ERROR_DENIED);
	memcpy(identities.keys[1], identities.keys[0], AGE_KEY_BYTES);
	identities.keys[1][5] ^= 1;
	identities.count = 2;
	ck_assert_int_eq(open_bytes(buffer_span(&sealed)), 0);
}
END_TEST

/* age_recipient_parse takes 62 letters: each of them wrong, then whole texts. */
START_TEST(a_key_with_a_wrong_letter_is_refused)
{
	static const char *const wrong[] = {"", "age1",
		"AGE19xcax3ry2gw85s3ycaztm3wjj4n0sa782vpy3adaw36cvzjh04tsynqmve",
		"agf19xcax3ry2gw85s3ycaztm3wjj4n0sa782vpy3adaw36cvzjh04tsynqmve"};
	struct age_recipient parsed;
	char text[sizeof(recipient_text)];
	for (size_t i = 0; i < sizeof(text) - 1; i++) {
		memcpy(text, recipient_text, sizeof(text));
		text[i] = text[i] == 'q' ? 'p' : 'q';
		ck_assert_int_eq(age_recipient_parse(span_text(text), &parsed, &err), -1);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ck_assert_int_eq(age_recipient_parse(span_text(wrong[i]), &parsed, &err), -1);
}
END_TEST

START_TEST(a_file_without_an_identity_is_refused_without_showing_it)
{
	static const char *const wrong[] = {"", "# nothing\n",
		"AGE-SECRET-KEY-18DQSA3K43F8W3E5G57FRU92X5MHJTSKSDXEDQER22DFC6E5DQXFQSWNEPQ\n"};
	struct age_identities parsed;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		ck_assert_int_eq(age_identities_parse(span_text(wrong[i]), &parsed, &err), -1);
		ck_assert_ptr_null(strstr(err.text, "18DQSA3K"));
	}
}
END_TEST

/* The vectors of BIP 173 that have whole bytes. */
START_TEST(bech32_is_that_of_its_vectors)
{
	uint8_t bytes[20];
	struct buffer text;
	buffer_init(&text, 200);
	ck_assert(bech32_decode(span_text("a12uel5l"), "a", bytes, 0));
	ck_assert(bech32_decode(span_text("A12UEL5L"), "a", bytes, 0));
	ck_assert(!bech32_decode(span_text("A12uEL5L"), "a", bytes, 0));
	bech32_encode("a", span_of(NULL, 0), &text);
	ck_assert_str_eq(buffer_text(&text), "a12uel5l");
	ck_assert(bech32_decode(
		span_text("abcdef1qpzry9x8gf2tvdw0s3jn54khce6mua7lmqqqxw"), "abcdef", bytes, 20));
	ck_assert_uint_eq(bytes[1], 0x44);
	buffer_reset(&text);
	bech32_encode("abcdef", span_of(bytes, 20), &text);
	ck_assert_str_eq(buffer_text(&text), "abcdef1qpzry9x8gf2tvdw0s3jn54khce6mua7lmqqqxw");
	buffer_release(&text);
}
END_TEST

Suite *test_age_suite(void);
Suite *test_age_suite(void)
{
	Suite *suite = suite_create("age");
	TCase *tests = tcase_create("age");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, a_file_of_age_opens);
	tcase_add_test(tests, the_public_key_is_that_of_age_keygen);
	tcase_add_loop_test(tests, every_length_opens_again, 0, sizeof(sizes) / sizeof(sizes[0]));
	tcase_add_test(tests, no_flipped_bit_passes);
	tcase_add_test(tests, no_cut_passes);
	tcase_add_test(tests, another_identity_does_not_open_it);
	tcase_add_test(tests, a_key_with_a_wrong_letter_is_refused);
	tcase_add_test(tests, a_file_without_an_identity_is_refused_without_showing_it);
	tcase_add_test(tests, bech32_is_that_of_its_vectors);
	suite_add_tcase(suite, tests);
	return suite;
}
