#include "tests/unit/unit.h"

#include <string.h>

#include "base/digest/fingerprint.h"

/* "abc" in place of a certificate: its SHA-256 is well known. */
#define DIGITS "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define PEM    "text before\n-----BEGIN CERTIFICATE-----\nYW\nJj\r\n-----END CERTIFICATE-----\n"

START_TEST(it_is_the_digest_of_the_bytes_behind_the_pem)
{
	struct fingerprint fingerprint;
	char text[FINGERPRINT_TEXT_BYTES];
	ck_assert(fingerprint_of_pem(span_text(PEM), &fingerprint));
	fingerprint_format(&fingerprint, text);
	ck_assert_str_eq(text, "sha256:" DIGITS);
}
END_TEST

static const char *const no_certificates[] = {"", "text", "-----BEGIN CERTIFICATE-----\nYWJj\n",
	"-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----",
	"-----BEGIN CERTIFICATE-----\nY?Jj\n-----END CERTIFICATE-----"};

START_TEST(what_is_no_certificate_has_none)
{
	struct fingerprint fingerprint;
	ck_assert(!fingerprint_of_pem(span_text(no_certificates[_i]), &fingerprint));
}
END_TEST

static const char *const forms[] = {"sha256:" DIGITS, DIGITS, " SHA256:" DIGITS " ",
	"BA:78:16:BF:8F:01:CF:EA:41:41:40:DE:5D:AE:22:23:B0:03:61:A3:96:17:7A:9C:B4:10:FF:61:F2:00:15:AD"};

START_TEST(its_forms_are_the_same)
{
	struct fingerprint of_pem;
	struct fingerprint parsed;
	ck_assert(fingerprint_of_pem(span_text(PEM), &of_pem));
	ck_assert(fingerprint_parse(span_text(forms[_i]), &parsed));
	ck_assert(fingerprint_equal(&of_pem, &parsed));
	parsed.bytes[31] ^= 1;
	ck_assert(!fingerprint_equal(&of_pem, &parsed));
}
END_TEST

static const char *const malformed[] = {"", "sha256:", "sha256:ba78", DIGITS "00", "sha1:" DIGITS};

START_TEST(malformed_ones_are_refused)
{
	struct fingerprint parsed;
	ck_assert(!fingerprint_parse(span_text(malformed[_i]), &parsed));
}
END_TEST

Suite *test_fingerprint_suite(void);
Suite *test_fingerprint_suite(void)
{
	Suite *const suite = suite_create("fingerprint");
	TCase *const tests = tcase_create("fingerprint");
	tcase_add_test(tests, it_is_the_digest_of_the_bytes_behind_the_pem);
	tcase_add_loop_test(tests, what_is_no_certificate_has_none, 0,
		sizeof no_certificates / sizeof no_certificates[0]);
	tcase_add_loop_test(tests, its_forms_are_the_same, 0, sizeof forms / sizeof forms[0]);
	tcase_add_loop_test(
		tests, malformed_ones_are_refused, 0, sizeof malformed / sizeof malformed[0]);
	suite_add_tcase(suite, tests);
	return suite;
}
