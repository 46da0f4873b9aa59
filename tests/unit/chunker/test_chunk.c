#include <check.h>
#include <string.h>

#include "base/encode.h"
#include "tests/unit/chunker/vectors.h"

Suite *test_chunk_suite(void);

static const struct {
	const char *raw;
	const char *text;
} forms[] = {
	{"16af3a84044b83d6be998a42e20399f2cc5650eaf99950639f50418aece7954e",
		"d6834b04843aaf16f29903e2428a99be635099f9ea5056cc4e95e7ec8a41509f"},
	{"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
		"07060504030201000f0e0d0c0b0a090817161514131211101f1e1d1c1b1a1918"},
	{"a29cfb08e608d4d8726dd8659a90b9134b3240d5d8e42d5fcb28e2a6e763a3e8",
		"d8d408e608fb9ca213b9909a65d86d725f2de4d8d540324be8a363e7a6e228cb"},
};

START_TEST(text_form_reverses_each_eight_bytes)
{
	struct chunk_id id;
	ck_assert(decode_hex(span_text(forms[_i].raw), id.bytes, CHUNK_ID_BYTES));
	vectors_expect_id(id, forms[_i].text);
	const struct chunk_id parsed = vectors_id_text(forms[_i].text);
	ck_assert(chunk_id_equal(&id, &parsed));
}
END_TEST

/* Each text has exactly one fault. */
static const char *const malformed[] = {
	"",
	"0706050403020100",
	"07060504030201000f0e0d0c0b0a090817161514131211101f1e1d1c1b1a191",
	"07060504030201000f0e0d0c0b0a090817161514131211101f1e1d1c1b1a19180",
	"07060504030201000F0e0d0c0b0a090817161514131211101f1e1d1c1b1a1918",
	"g7060504030201000f0e0d0c0b0a090817161514131211101f1e1d1c1b1a1918",
	"07060504030201000f0e0d0c0b0a090817161514131211101f1e1d1c1b1a191 ",
	"0x060504030201000f0e0d0c0b0a090817161514131211101f1e1d1c1b1a1918",
};

START_TEST(malformed_text_is_refused_and_leaves_the_id_alone)
{
	struct chunk_id id;
	memset(id.bytes, 0x5a, CHUNK_ID_BYTES);
	const struct chunk_id before = id;
	ck_assert(!chunk_id_parse(span_text(malformed[_i]), &id));
	ck_assert(chunk_id_equal(&id, &before));
}
END_TEST

START_TEST(modulo_word_is_the_last_sixteen_digits)
{
	const struct chunk_id id =
		vectors_id_text("07060504030201000f0e0d0c0b0a090817161514131211101f1e1d1c1b1a1918");
	ck_assert_uint_eq(chunk_id_modulo_word(&id), 0x1f1e1d1c1b1a1918);
}
END_TEST

START_TEST(one_bit_makes_ids_unequal)
{
	struct chunk_id a = vectors_id_text(forms[0].text);
	for (size_t i = 0; i < CHUNK_ID_BYTES; i++) {
		struct chunk_id b = a;
		b.bytes[i] ^= 1;
		ck_assert(!chunk_id_equal(&a, &b));
	}
}
END_TEST

Suite *test_chunk_suite(void)
{
	Suite *const suite = suite_create("chunk");
	TCase *const tests = tcase_create("id");
	tcase_add_loop_test(
		tests, text_form_reverses_each_eight_bytes, 0, sizeof(forms) / sizeof(*forms));
	tcase_add_loop_test(tests, malformed_text_is_refused_and_leaves_the_id_alone, 0,
		sizeof(malformed) / sizeof(*malformed));
	tcase_add_test(tests, modulo_word_is_the_last_sixteen_digits);
	tcase_add_test(tests, one_bit_makes_ids_unequal);
	suite_add_tcase(suite, tests);
	return suite;
}
