#include "storage/xet/reconstruction.h"

#include <stdlib.h>
#include <string.h>

#include "base/little_endian.h"
#include "base/memory.h"
#include "chunker/chunk_hash.h"
#include "chunker/codec.h"
#include "storage/files/xet_content.h"
#include "storage/objects/object_put.h"
#include "storage/versions/object.h"
#include "storage/versions/part.h"
#include "storage/xet/xorb_source.h"
#include "tests/unit/storage/pack_fixture.h"
#include "tests/unit/storage/store_fixture.h"
#include "tests/unit/unit.h"

enum { LEN = 3 * 1024 * 1024 + 777 };

struct kept {
	struct store_fixture fixture;
	struct object object;
	uint8_t *bytes;
	size_t len;
};

static void put(struct kept *kept, const char *key, const uint8_t *bytes, size_t len)
{
	struct error err = {0};
	struct object_put_params params = {
		.bucket = bucket_named(span_text("models")), .key = span_text(key)};
	ck_assert_msg(fixture_put_object(kept->fixture.store, &params, span_of(bytes, len),
			      &kept->object, &err) == 0,
		"%s", err.text);
	ck_assert(kept->object.has_file_hash);
}

/* Puts an object of noise and text, which has records of several kinds. */
static void kept_open(struct kept *kept, size_t len)
{
	*kept = (struct kept){.len = len};
	store_fixture_open(&kept->fixture);
	struct error err = {0};
	ck_assert_int_eq(fixture_create_bucket(kept->fixture.store, "models", "main", &err), 0);
	kept->bytes = fixture_bytes(FIXTURE_RANDOM, 5, len);
	uint8_t *const text = fixture_bytes(FIXTURE_TEXT, 6, len / 2 + 1);
	memcpy(kept->bytes, text, len / 2);
	free(text);
	put(kept, "a", kept->bytes, len);
}

static void kept_close(struct kept *kept)
{
	free(kept->bytes);
	store_fixture_close(&kept->fixture);
}

struct reader {
	struct store *store;
	struct db *db;
};

static struct reader reader_take(struct kept *kept)
{
	struct error err = {0};
	struct reader reader = {
		.store = kept->fixture.store, .db = store_reader_take(kept->fixture.store, &err)};
	ck_assert_ptr_nonnull(reader.db);
	ck_assert_int_eq(db_snapshot_begin(reader.db, &err), 0);
	return reader;
}

static void reader_give(const struct reader *reader)
{
	db_snapshot_end(reader->db);
	store_reader_give(reader->store, reader->db);
}

static int64_t bucket_id(struct kept *kept)
{
	return fixture_count(
		kept->fixture.store, "SELECT id FROM buckets WHERE name = CAST('models' AS BLOB)");
}

static int find(
	struct kept *kept, const struct reader *reader, struct xet_content *out, struct error *err)
{
	const struct xet_reach reach = {.bucket = bucket_id(kept)};
	return xet_content_find(reader->db, &reach, &kept->object.file_hash, out, err);
}

/* Reads the bytes of one range of the plan, as a client would fetch them. */
static uint8_t *fetch(struct kept *kept, const struct reader *reader,
	const struct xet_content *content, const struct reconstruction *plan,
	const struct reconstruction_range *range, uint64_t *out_len)
{
	struct error err = {0};
	struct body_source *source = NULL;
	const struct reconstruction_piece *const piece = &plan->pieces[range->piece];
	ck_assert_uint_eq(range->piece_count, 1);
	*out_len = piece->length;
	if (piece->place.version != 0) {
		struct span bytes;
		struct db_statement *statement;
		ck_assert_int_eq(part_inline_load(reader->db, content->version, content->contents,
					 &bytes, &statement, &err),
			0);
		source = xorb_source_open_inline(bytes, 0, piece->length);
		db_reset(statement);
	} else {
		const struct xorb_run run = {.pack = piece->place.pack,
			.first = piece->place.base + piece->first,
			.count = piece->end - piece->first,
			.length = piece->length};
		const struct xorb_source_params params = {
			.runs = &run, .count = 1, .length = piece->length};
		source = xorb_source_open(store_packs(kept->fixture.store), &params, &err);
	}
	ck_assert_msg(source != NULL, "%s", err.text);
	uint8_t *const into = memory_new(piece->length + 1);
	uint64_t used = 0;
	ptrdiff_t got;
	while ((got = source->read(source, into + used, piece->length - used, &err)) > 0)
		used += (uint64_t)got;
	source->close(source);
	ck_assert_uint_eq(used, piece->length);
	return into;
}

/* Decodes the chunks of a term from the bytes of its range. */
static void decode_term(const struct reconstruction_term *term,
	const struct reconstruction_range *range, const uint8_t *record, struct buffer *out)
{
	struct codec_context *const codec = codec_context_new();
	uint8_t *const content = memory_new(CHUNK_MAX_BYTES);
	for (uint32_t chunk = range->first; chunk < term->end; chunk++) {
		struct error err = {0};
		const uint32_t stored = (uint32_t)little_endian_get(record + 1, 3);
		const uint32_t size = (uint32_t)little_endian_get(record + 5, 3);
		ck_assert_uint_le(record[4], 2);
		ck_assert_int_eq(codec_decode(codec, (enum codec)record[4],
					 span_of(record + 8, stored), content, size, &err),
			0);
		if (chunk >= term->first)
			buffer_add(out, content, size);
		record += 8 + stored;
	}
	free(content);
	codec_context_free(codec);
}

static const struct reconstruction_range *range_of(
	const struct reconstruction *plan, const struct reconstruction_term *term)
{
	for (size_t i = 0; i < plan->range_count; i++) {
		const struct reconstruction_range *const range = &plan->ranges[i];
		if (chunk_id_equal(&range->xorb, &term->xorb) && range->first <= term->first &&
			term->end <= range->end)
			return range;
	}
	ck_abort_msg("a term lies in no range");
	return NULL;
}

/* Reconstructs [from, to) as a client does. */
static void expect_range(struct kept *kept, uint64_t from, uint64_t to)
{
	const struct reader reader = reader_take(kept);
	struct xet_content content;
	struct error err = {0};
	ck_assert_msg(find(kept, &reader, &content, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(content.size, kept->len);
	struct reconstruction plan = {0};
	struct reconstruction_bytes asked = {.from = from, .to = to};
	ck_assert_msg(
		reconstruction_load(&plan, reader.store, reader.db, &content, &asked, &err) == 0,
		"%s", err.text);
	ck_assert_msg(reconstruction_place(&plan, reader.store, false, &err) == 0, "%s", err.text);
	struct buffer out;
	buffer_init(&out, (size_t)1 << 30);
	for (size_t i = 0; i < plan.term_count; i++) {
		const struct reconstruction_range *const range = range_of(&plan, &plan.terms[i]);
		uint64_t len;
		uint8_t *const records = fetch(kept, &reader, &content, &plan, range, &len);
		const size_t before = out.len;
		decode_term(&plan.terms[i], range, records, &out);
		ck_assert_uint_eq(out.len - before, plan.terms[i].bytes);
		free(records);
	}
	ck_assert_uint_ge(out.len, asked.skip + (to - from));
	ck_assert_int_eq(memcmp(out.data + asked.skip, kept->bytes + from, to - from), 0);
	buffer_release(&out);
	reconstruction_release(&plan);
	reader_give(&reader);
}

START_TEST(any_range_comes_back)
{
	struct kept kept;
	kept_open(&kept, LEN);
	expect_range(&kept, 0, LEN);
	expect_range(&kept, LEN - 1, LEN);
	expect_range(&kept, 0, 1);
	uint64_t state = 3;
	for (unsigned i = 0; i < 20; i++) {
		const uint64_t from = fixture_random(&state) % LEN;
		expect_range(&kept, from, from + 1 + fixture_random(&state) % (LEN - from));
	}
	kept_close(&kept);
}
END_TEST

START_TEST(inline_bytes_come_back)
{
	struct kept kept;
	kept_open(&kept, 500);
	expect_range(&kept, 0, 500);
	expect_range(&kept, 20, 30);
	kept_close(&kept);
}
END_TEST

/* Equal terms share a range, also when another upload stored the chunks: noise, then the same noise
 * after other bytes. */
START_TEST(shared_chunks_come_back)
{
	struct kept kept;
	kept_open(&kept, LEN);
	uint8_t *const twice = memory_new(2 * (size_t)LEN + 100);
	memcpy(twice, kept.bytes, LEN);
	memcpy(twice + LEN + 100, kept.bytes, LEN);
	put(&kept, "b", twice, 2 * (size_t)LEN + 100);
	free(kept.bytes);
	kept.bytes = twice;
	kept.len = 2 * (size_t)LEN + 100;
	expect_range(&kept, 0, kept.len);
	expect_range(&kept, LEN - 5, LEN + 300000);
	kept_close(&kept);
}
END_TEST

/* An offset in the shown xorb is the sum of all records before, as hub-xet.md 3.5 says for
 * url_range. */
START_TEST(offsets_are_of_the_whole_xorb)
{
	struct kept kept;
	kept_open(&kept, LEN);
	const struct reader reader = reader_take(&kept);
	struct xet_content content;
	struct error err = {0};
	ck_assert_int_eq(find(&kept, &reader, &content, &err), 0);
	struct reconstruction whole = {0};
	struct reconstruction part = {0};
	struct reconstruction_bytes all_bytes = {.from = 0, .to = LEN};
	struct reconstruction_bytes some_bytes = {.from = 600000, .to = 700000};
	ck_assert_int_eq(
		reconstruction_load(&whole, reader.store, reader.db, &content, &all_bytes, &err),
		0);
	ck_assert_int_eq(reconstruction_place(&whole, reader.store, false, &err), 0);
	ck_assert_int_eq(
		reconstruction_load(&part, reader.store, reader.db, &content, &some_bytes, &err),
		0);
	ck_assert_int_eq(reconstruction_place(&part, reader.store, false, &err), 0);
	ck_assert_uint_eq(part.range_count, 1);
	const struct reconstruction_range *range = whole.ranges;
	while (!chunk_id_equal(&range->xorb, &part.ranges[0].xorb))
		range++;
	uint64_t len;
	uint8_t *const all = fetch(&kept, &reader, &content, &whole, range, &len);
	uint8_t *const some = fetch(&kept, &reader, &content, &part, &part.ranges[0], &len);
	ck_assert_uint_eq(range->total, part.ranges[0].total);
	ck_assert_uint_gt(part.pieces[0].offset, 0);
	ck_assert_int_eq(memcmp(all + (part.pieces[0].offset - whole.pieces[range->piece].offset),
				 some, len),
		0);
	free(all);
	free(some);
	reconstruction_release(&whole);
	reconstruction_release(&part);
	reader_give(&reader);
	kept_close(&kept);
}
END_TEST

static int may_read_b(void *owner, struct span key, bool is_current, struct error *err)
{
	(void)err;
	ck_assert(is_current);
	++*(unsigned *)owner;
	return span_equal_text(key, "b");
}

static int find_as(struct kept *kept, const struct xet_reach *reach, struct error *err)
{
	const struct reader reader = reader_take(kept);
	struct xet_content content;
	const int result =
		xet_content_find(reader.db, reach, &kept->object.file_hash, &content, err);
	reader_give(&reader);
	return result;
}

START_TEST(a_file_is_reached_through_readable_keys_of_its_bucket)
{
	struct kept kept;
	kept_open(&kept, LEN);
	unsigned asked = 0;
	struct error err = {0};
	struct xet_reach reach = {
		.bucket = bucket_id(&kept), .may_read = may_read_b, .owner = &asked};
	ck_assert_int_eq(
		find_as(&kept, &reach, &err), -1); /* the caller may not read "a", which has it */
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	ck_assert_uint_eq(asked, 1);
	put(&kept, "b", kept.bytes, LEN);
	ck_assert_int_eq(find_as(&kept, &reach, &err), 0);
	reach.bucket++;
	ck_assert_int_eq(find_as(&kept, &reach, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	reach.bucket--;
	ck_assert_int_eq(fixture_delete(kept.fixture.store, "models", "b", NULL, &err), 0);
	ck_assert_int_eq(find_as(&kept, &reach, &err), -1);
	memset(&kept.object.file_hash, 0, sizeof(kept.object.file_hash)); /* the empty file */
	ck_assert_int_eq(find_as(&kept, &reach, &err), 0);
	kept_close(&kept);
}
END_TEST

Suite *test_reconstruction_suite(void);
Suite *test_reconstruction_suite(void)
{
	Suite *const suite = suite_create("reconstruction");
	TCase *const plain = tcase_create("plain");
	tcase_set_timeout(plain, 60);
	tcase_add_test(plain, any_range_comes_back);
	tcase_add_test(plain, inline_bytes_come_back);
	tcase_add_test(plain, shared_chunks_come_back);
	tcase_add_test(plain, offsets_are_of_the_whole_xorb);
	tcase_add_test(plain, a_file_is_reached_through_readable_keys_of_its_bucket);
	suite_add_tcase(suite, plain);
	return suite;
}
