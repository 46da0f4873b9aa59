#include "base/digest/checksum_adler.h"

#include <check.h>
#include <stdlib.h>

#include "base/memory.h"
#include "tests/unit/unit.h"

Suite *test_checksum_adler_suite(void);

START_TEST(known_values)
{
	ck_assert_uint_eq(checksum_adler32(ADLER32_SEED, span_text("")), 1);
	ck_assert_uint_eq(checksum_adler32(ADLER32_SEED, span_text("Wikipedia")), 0x11e60398);
	ck_assert_uint_eq(checksum_adler32(checksum_adler32(ADLER32_SEED, span_text("Wiki")),
				  span_text("pedia")),
		0x11e60398);
}
END_TEST

/* Follows the definition in RFC 1950, on bytes that make both sums wrap often. */
START_TEST(long_runs_agree_with_the_definition)
{
	enum { BYTES = 100003 };
	uint8_t *const content = memory_new(BYTES);
	uint32_t low = 1;
	uint32_t high = 0;
	for (size_t i = 0; i < BYTES; i++) {
		content[i] = (uint8_t)(255 - i % 7);
		low = (low + content[i]) % 65521;
		high = (high + low) % 65521;
	}
	ck_assert_uint_eq(
		checksum_adler32(ADLER32_SEED, span_of(content, BYTES)), high << 16 | low);
	free(content);
}
END_TEST

Suite *test_checksum_adler_suite(void)
{
	Suite *const suite = suite_create("checksum_adler");
	TCase *const tcase = tcase_create("checksum_adler");
	tcase_add_test(tcase, known_values);
	tcase_add_test(tcase, long_runs_agree_with_the_definition);
	suite_add_tcase(suite, tcase);
	return suite;
}
