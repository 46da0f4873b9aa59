#include "weights/codec/index_code.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/unit/weights/weights_fixture.h"

Suite *test_index_code_suite(void);

static const enum index_form forms[] = {INDEX_GAP16, INDEX_GAP32, INDEX_ABSOLUTE32};
enum { FORM_COUNT = 3, BLOCK = 65536 };

START_TEST(known_bytes)
{
	/* Positions 0, 3, 65536 + 2 by the definition g = i - previous - 1. */
	static const uint16_t first[] = {0, 3};
	static const uint16_t second[] = {2};
	static const char *const expected[] = {
		"\x00\x00\x02\x00\xfe\xff",
		"\x00\x00\x00\x00\x02\x00\x00\x00\xfe\xff\x00\x00",
		"\x00\x00\x00\x00\x03\x00\x00\x00\x02\x00\x01\x00",
	};
	uint8_t out[12];
	struct index_encoder encoder;
	index_encoder_init(&encoder, forms[_i]);
	size_t len = index_encoder_add(&encoder, 0, first, 2, out);
	len += index_encoder_add(&encoder, BLOCK, second, 1, out + len);
	ck_assert_uint_eq(len, 3 * index_form_bytes(forms[_i]));
	ck_assert_mem_eq(out, expected[_i], len);
}
END_TEST

START_TEST(round_trip)
{
	enum { BLOCKS = 5 };
	uint64_t state = 42;
	struct buffer coded;
	struct index_encoder encoder;
	struct index_decoder decoder;
	uint16_t *const positions[BLOCKS] = {memory_new(2 * BLOCK), memory_new(2 * BLOCK),
		memory_new(2 * BLOCK), memory_new(2 * BLOCK), memory_new(2 * BLOCK)};
	uint16_t *const decoded = memory_new(2 * BLOCK);
	uint8_t *const out = memory_new(4 * BLOCK);
	size_t counts[BLOCKS] = {0};
	buffer_init(&coded, 1 << 22);
	index_encoder_init(&encoder, forms[_i]);
	for (unsigned b = 0; b < BLOCKS; b++) {
		/* Full, sparse and empty blocks; 16-bit gaps cannot span an empty one. */
		const unsigned share = b == 0 ? 65536 : b == 2 ? 0 : 600;
		for (unsigned i = 0; i < BLOCK; i++)
			if (fixture_random(&state) < share || (b == 3 && i == 0) ||
				(b == 2 && i == 30000 && forms[_i] == INDEX_GAP16))
				positions[b][counts[b]++] = (uint16_t)i;
		buffer_add(&coded, out,
			index_encoder_add(
				&encoder, (uint64_t)b * BLOCK, positions[b], counts[b], out));
	}
	const struct index_code code = {.form = forms[_i]};
	index_decoder_init(&decoder, &code, buffer_span(&coded), (uint64_t)BLOCKS * BLOCK);
	for (unsigned b = 0; b < BLOCKS; b++) {
		struct error err = {0};
		size_t found = 0;
		ck_assert_int_eq(index_decoder_take(&decoder, (uint64_t)b * BLOCK, BLOCK, decoded,
					 &found, &err),
			0);
		ck_assert_uint_eq(found, counts[b]);
		if (found > 0)
			ck_assert_mem_eq(decoded, positions[b], 2 * found);
		free(positions[b]);
	}
	ck_assert_uint_eq(decoder.taken, coded.len);
	buffer_release(&coded);
	free(decoded);
	free(out);
}
END_TEST

static const struct {
	struct index_code code;
	const char *bytes;
	size_t len;
	uint64_t elements;
	const char *message; /* NULL: good */
} rows[] = {
#define GRID(of, row, col)                                                            \
	{                                                                             \
		.form = INDEX_GRID, .columns = of, .row_bytes = row, .col_bytes = col \
	}
	{{.form = INDEX_GAP16}, "", 0, 0, NULL},
	{{.form = INDEX_GAP16}, "\x04\x00", 2, 5, NULL},
	{{.form = INDEX_GAP16}, "\x05\x00", 2, 5, "outside"},
	{{.form = INDEX_GAP16}, "\x04\x00\x00\x00", 4, 5, "outside"},
	{{.form = INDEX_GAP16}, "\xff\xff", 2, 65536, NULL},
	{{.form = INDEX_GAP32}, "\x04\x00\x00\x00", 4, 5, NULL},
	{{.form = INDEX_GAP32}, "\xff\xff\xff\xff", 4, 5, "outside"},
	{{.form = INDEX_GAP32}, "\x00\x00\x00\x00\xff\xff\xff\xff", 8, 5, "outside"},
	{{.form = INDEX_ABSOLUTE32}, "\x00\x00\x00\x00\x04\x00\x00\x00", 8, 5, NULL},
	{{.form = INDEX_ABSOLUTE32}, "\x05\x00\x00\x00", 4, 5, "outside"},
	{{.form = INDEX_ABSOLUTE32}, "\x02\x00\x00\x00\x02\x00\x00\x00", 8, 5, "not above"},
	{{.form = INDEX_ABSOLUTE32}, "\x03\x00\x00\x00\x02\x00\x00\x00", 8, 5, "not above"},
	{{.form = INDEX_ABSOLUTE32}, "\xff\xff\xff\xff", 4, 5, "negative"},
	{{.form = INDEX_ABSOLUTE32}, "\x00\x00\x00\x80", 4, UINT64_C(1) << 33, "negative"},
	{{.form = INDEX_GAP16}, "\x00\x00", 2, 0, "outside"},
	{{.form = INDEX_STEP32}, "\x00\x00\x00\x00\x04\x00\x00\x00", 8, 5, NULL},
	{{.form = INDEX_STEP32}, "\x01\x00\x00\x00\x04\x00\x00\x00", 8, 5, "outside"},
	{{.form = INDEX_STEP32}, "\x01\x00\x00\x00\x00\x00\x00\x00", 8, 5, "not above"},
	{{.form = INDEX_STEP32}, "\x01\x00\x00\x00\xff\xff\xff\xff", 8, 5, "negative"},
	{{.form = INDEX_STEP32}, "\xff\xff\xff\xff", 4, 5, "negative"},
	{GRID(3, 1, 2),
		"\x00\x00\x01"
		"\x01\x00\x01\x00\x02\x00",
		9, 6, NULL},
	{GRID(3, 4, 4),
		"\x01\x00\x00\x00"
		"\x02\x00\x00\x00",
		8, 6, NULL},
	{GRID(1, 2, 2),
		"\x02\x00\x03\x00"
		"\x00\x00\x00\x00",
		8, 6, NULL},
	{GRID(3, 1, 2),
		"\x00\x00"
		"\x01\x00\x00\x00",
		6, 6, "not above"},
	{GRID(3, 1, 2),
		"\x00\x00"
		"\x01\x00\x02\x00",
		6, 6, "outside"},
	{GRID(3, 1, 2),
		"\x02"
		"\x00\x00",
		3, 6, "outside"},
	{GRID(3, 1, 2),
		"\x00"
		"\x03\x00",
		3, 6, "outside"},
	{GRID(3, 4, 1),
		"\xff\xff\xff\xff"
		"\x00",
		5, 6, "negative"},
	{GRID(3, 1, 4),
		"\x00"
		"\xff\xff\xff\xff",
		5, 6, "negative"},
	{GRID(INT64_MAX, 4, 4),
		"\xff\xff\xff\x7f"
		"\xff\xff\xff\x7f",
		8, INT64_MAX, "outside"},
#undef GRID
};

START_TEST(positions_out_of_order_or_range_are_refused)
{
	struct index_decoder decoder;
	struct error err = {0};
	uint16_t *const positions = memory_new(2 * BLOCK);
	size_t found = 0;
	/* memory of the exact size, so that a sanitizer sees a read behind it */
	uint8_t *const bytes = memory_copy(rows[_i].bytes, rows[_i].len > 0 ? rows[_i].len : 1);
	index_decoder_init(
		&decoder, &rows[_i].code, span_of(bytes, rows[_i].len), rows[_i].elements);
	const size_t block = rows[_i].elements < BLOCK ? (size_t)rows[_i].elements : BLOCK;
	const int result = index_decoder_take(&decoder, 0, block, positions, &found, &err);
	ck_assert_int_eq(result, rows[_i].message == NULL ? 0 : -1);
	if (rows[_i].message != NULL) {
		ck_assert_int_eq(err.kind, ERROR_INVALID);
		ck_assert_msg(strstr(err.text, rows[_i].message) != NULL, "%s", err.text);
	} else {
		ck_assert_uint_eq(found, rows[_i].len / index_code_bytes(&rows[_i].code));
	}
	free(bytes);
	free(positions);
}
END_TEST

Suite *test_index_code_suite(void)
{
	Suite *const suite = suite_create("index_code");
	TCase *const tcase = tcase_create("index_code");
	tcase_add_loop_test(tcase, known_bytes, 0, FORM_COUNT);
	tcase_add_loop_test(tcase, round_trip, 0, FORM_COUNT);
	tcase_add_loop_test(tcase, positions_out_of_order_or_range_are_refused, 0,
		sizeof(rows) / sizeof(rows[0]));
	suite_add_tcase(suite, tcase);
	return suite;
}
