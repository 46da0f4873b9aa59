#include "storage/packs/pack_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/digest/xxh3.h"
#include "base/little_endian.h"
#include "base/memory.h"
#include "storage/packs/pack_writer.h"
#include "tests/unit/unit.h"

enum { XORBS = 3, XORB_CHUNKS = 5, CHUNKS = XORBS * XORB_CHUNKS };

static const struct pack_id pack = {{1, 2, 3}};
static const struct pack_id file = {{9, 8, 7}};

static struct pack_index *full_index(void)
{
	struct pack_index *const index = pack_index_new(&pack);
	for (unsigned x = 0; x < XORBS; x++) {
		struct pack_entry entries[XORB_CHUNKS] = {0};
		struct chunk_id hash = {{(uint8_t)(0x80 + x)}};
		for (unsigned i = 0; i < XORB_CHUNKS; i++)
			entries[i] = (struct pack_entry){.id = {{(uint8_t)(x * XORB_CHUNKS + i)}},
				.checksum = i,
				.stored = 100 + i,
				.size = 100 + i};
		pack_index_add_xorb(index, &hash, entries, XORB_CHUNKS);
	}
	return index;
}

static void set_bits(uint8_t *live, const uint32_t *numbers, size_t count)
{
	memset(live, 0, CHUNKS / 8 + 1);
	for (size_t i = 0; i < count; i++)
		live[numbers[i] / 8] |= (uint8_t)(1u << numbers[i] % 8);
}

static struct pack_index *selected(
	const struct pack_index *from, const uint32_t *numbers, size_t count)
{
	uint8_t live[CHUNKS / 8 + 1];
	set_bits(live, numbers, count);
	struct pack_index *const index = pack_table_select(from, &file, live);
	ck_assert_uint_eq(pack_table_length(from, live), index->length);
	return index;
}

static const uint32_t some[] = {1, 2, 4, 11, 14};

START_TEST(living_chunks_keep_their_numbers)
{
	struct pack_index *const from = full_index();
	struct pack_index *const index = selected(from, some, 5);
	ck_assert(!pack_id_equal(&index->pack, &index->file) &&
		pack_id_equal(&from->pack, &from->file));
	ck_assert_uint_eq(index->count, 5);
	ck_assert_uint_eq(index->xorb_count, 2); /* no chunk of the second lives */
	ck_assert_uint_eq(index->xorbs[1].first, 2 * XORB_CHUNKS);
	uint64_t end = PACK_HEADER_BYTES;
	for (uint32_t i = 0; i < 5; i++) {
		const struct pack_entry *const entry = pack_index_find(index, some[i]);
		ck_assert_ptr_nonnull(entry);
		ck_assert(chunk_id_equal(&entry->id, &pack_index_find(from, some[i])->id));
		ck_assert_uint_eq(pack_index_number(index, i), some[i]);
		ck_assert_uint_eq(entry->offset, end);
		end += PACK_RECORD_HEADER_BYTES + entry->stored;
	}
	ck_assert_uint_eq(index->length,
		end + 2 * PACK_TABLE_XORB_BYTES + 5 * PACK_TABLE_ENTRY_BYTES +
			PACK_TABLE_TAIL_BYTES);
	const uint32_t gone[] = {0, 3, 5, 9, 10, 12, 13, CHUNKS, UINT32_MAX};
	for (size_t i = 0; i < sizeof gone / sizeof *gone; i++)
		ck_assert_ptr_null(pack_index_find(index, gone[i]));
	pack_index_free(index);
	pack_index_free(from);
}
END_TEST

START_TEST(a_compacted_pack_can_be_compacted_again)
{
	const uint32_t fewer[] = {4, 14};
	struct pack_index *const from = full_index();
	struct pack_index *const once = selected(from, some, 5);
	struct pack_index *const twice = selected(once, fewer, 2);
	struct pack_index *const direct = selected(from, fewer, 2);
	struct buffer a, b;
	buffer_init(&a, 1 << 20);
	buffer_init(&b, 1 << 20);
	pack_table_encode(twice, &a);
	pack_table_encode(direct, &b);
	ck_assert(span_equal(buffer_span(&a), buffer_span(&b)));
	buffer_release(&a);
	buffer_release(&b);
	pack_index_free(direct);
	pack_index_free(twice);
	pack_index_free(once);
	pack_index_free(from);
}
END_TEST

static struct buffer encoded(void)
{
	struct pack_index *const from = full_index();
	struct pack_index *const index = selected(from, some, 5);
	struct buffer bytes;
	buffer_init(&bytes, 1 << 20);
	pack_table_encode(index, &bytes);
	pack_index_free(index);
	pack_index_free(from);
	return bytes;
}

START_TEST(a_table_is_read_back)
{
	struct error err = {0};
	struct buffer bytes = encoded();
	ck_assert_uint_eq(
		pack_table_size(bytes.data + bytes.len - PACK_TABLE_TAIL_BYTES), bytes.len);
	struct pack_index *const index = pack_table_decode(buffer_span(&bytes), &pack, &file, &err);
	ck_assert_msg(index != NULL, "%s", err.text);
	ck_assert_uint_eq(index->count, 5);
	ck_assert_uint_eq(pack_index_find(index, 11)->checksum, 1);
	pack_index_free(index);
	buffer_release(&bytes);
}
END_TEST

/* The form that small objects leave. */
START_TEST(xorbs_of_one_chunk_each_are_read_back)
{
	const uint32_t ones[] = {1, 7, 12};
	struct error err = {0};
	struct buffer bytes;
	struct pack_index *const from = full_index();
	struct pack_index *const made = selected(from, ones, 3);
	buffer_init(&bytes, 1 << 20);
	pack_table_encode(made, &bytes);
	struct pack_index *const read = pack_table_decode(buffer_span(&bytes), &pack, &file, &err);
	ck_assert_msg(read != NULL, "%s", err.text);
	ck_assert_uint_eq(read->count, 3);
	ck_assert_uint_eq(read->xorb_count, 3);
	pack_index_free(read);
	pack_index_free(made);
	pack_index_free(from);
	buffer_release(&bytes);
}
END_TEST

START_TEST(no_changed_byte_is_accepted)
{
	struct buffer bytes = encoded();
	for (size_t i = 0; i < bytes.len; i++) {
		struct error err = {0};
		bytes.data[i] ^= 4;
		ck_assert_ptr_null(pack_table_decode(buffer_span(&bytes), &pack, &file, &err));
		ck_assert_int_eq(err.kind, ERROR_CORRUPT);
		bytes.data[i] ^= 4;
	}
	buffer_release(&bytes);
}
END_TEST

/* The checksum is right and the content is not: one number at a place of the table is replaced. */
static const struct {
	size_t offset;
	uint32_t value;
} wrong[] = {
	/* the first xorb begins after its chunks */
	{CHUNK_ID_BYTES, 6},
	{CHUNK_ID_BYTES + 4, 0}, /* it has no chunk */
	/* it has too many */
	{CHUNK_ID_BYTES + 4, XORB_MAX_CHUNKS + 1},
	/* it overlaps the next */
	{CHUNK_ID_BYTES + 4, 12},
	/* its last possible chunk number is too high */
	{PACK_TABLE_XORB_BYTES + CHUNK_ID_BYTES, PACK_MAX_CHUNKS},
	/* none of its chunks is there */
	{PACK_TABLE_XORB_BYTES + CHUNK_ID_BYTES, 15},
	/* a number twice */
	{2 * PACK_TABLE_XORB_BYTES, 2},
	/* falling numbers */
	{2 * PACK_TABLE_XORB_BYTES + PACK_TABLE_ENTRY_BYTES, 0},
	/* in no xorb */
	{2 * PACK_TABLE_XORB_BYTES + 2 * PACK_TABLE_ENTRY_BYTES, 7},
	/* no stored bytes */
	{2 * PACK_TABLE_XORB_BYTES + 4 + 40, 0},
};

START_TEST(what_does_not_add_up_is_refused)
{
	struct error err = {0};
	struct buffer bytes = encoded();
	little_endian_put(bytes.data + wrong[_i].offset, wrong[_i].value, 4);
	little_endian_put(
		bytes.data + bytes.len - 8, xxh3_64(span_of(bytes.data, bytes.len - 8)), 8);
	ck_assert_ptr_null(pack_table_decode(buffer_span(&bytes), &pack, &file, &err));
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	buffer_release(&bytes);
}
END_TEST

/* Makes a compacted pack in memory, with its copy; returns its length. */
static uint64_t write_compacted(struct backend *backend)
{
	struct error err = {0};
	const uint8_t zeros[1024] = {0};
	struct pack_index *const from = full_index();
	struct pack_index *const index = selected(from, some, 5);
	struct pack_writer *const writer = pack_writer_open_compacted(backend, &pack, &file, &err);
	struct buffer bytes = encoded();
	ck_assert_ptr_nonnull(writer);
	ck_assert_int_eq(
		pack_writer_append(writer,
			span_of(zeros, (size_t)(index->length - bytes.len) - PACK_HEADER_BYTES),
			&err),
		0);
	ck_assert_int_eq(pack_writer_append(writer, buffer_span(&bytes), &err), 0);
	ck_assert_int_eq(pack_table_save(index, backend, &err), 0);
	const uint64_t length = writer->length;
	ck_assert_uint_eq(length, index->length);
	pack_writer_close(writer);
	buffer_release(&bytes);
	pack_index_free(index);
	pack_index_free(from);
	return length;
}

static void overwrite(struct backend *backend, uint64_t offset, uint8_t byte)
{
	struct error err = {0};
	struct backend_file *opened;
	char name[PACK_NAME_BYTES];
	pack_format_name(&file, PACK_FILE_PACK, name);
	ck_assert_int_eq(backend->ops->open(backend, name, &opened, &err), 0);
	ck_assert_int_eq(backend->ops->append(opened, span_of(&byte, 1), offset, &err), 0);
	backend->ops->close(opened);
}

static void remove_copy(struct backend *backend)
{
	struct error err = {0};
	char name[PACK_NAME_BYTES];
	pack_format_name(&file, PACK_FILE_INDEX, name);
	ck_assert_int_eq(backend->ops->remove(backend, name, &err), 0);
}

START_TEST(a_pack_tells_what_it_holds_and_its_copy_helps_out)
{
	struct error err = {0};
	struct backend *const backend = backend_memory_new();
	const uint64_t length = write_compacted(backend);
	struct pack_index *index = pack_table_load(backend, &pack, &file, length, &err);
	ck_assert_msg(index != NULL && index->count == 5, "%s", err.text);
	pack_index_free(index);
	overwrite(backend, length - 40, 0xee);
	index = pack_table_load(backend, &pack, &file, length, &err);
	ck_assert_msg(index != NULL && index->count == 5, "%s", err.text);
	pack_index_free(index);
	remove_copy(backend);
	ck_assert_ptr_null(pack_table_load(backend, &pack, &file, length, &err));
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	backend->ops->free(backend);
}
END_TEST

START_TEST(another_pack_name_or_length_is_refused)
{
	struct error err = {0};
	struct backend *const backend = backend_memory_new();
	const uint64_t length = write_compacted(backend);
	const struct pack_id other = {{5}};
	remove_copy(backend);
	ck_assert_ptr_null(pack_table_load(backend, &other, &file, length, &err));
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	ck_assert_ptr_null(pack_table_load(backend, &pack, &file, length - 1, &err));
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	ck_assert_ptr_null(pack_table_load(backend, &pack, &file, 50, &err));
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	ck_assert_ptr_null(pack_table_load(backend, &pack, &pack, length, &err));
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	backend->ops->free(backend);
}
END_TEST

START_TEST(each_version_of_header_is_taken_for_itself_alone)
{
	struct error err = {0};
	const struct pack_origin origin = {.store = {1, 2, 3}, .life = 7};
	struct pack_origin found;
	uint8_t header[PACK_HEADER_BYTES];
	pack_format_put_compacted_header(&pack, &file, &origin, header);
	ck_assert_int_eq(pack_format_check_compacted_header(header, &pack, &file, &err), 0);
	ck_assert(pack_format_read_origin(header, &found));
	ck_assert(found.life == 7 && found.store[2] == 3);
	/* a program that knows only version 1 refuses the pack because of this number */
	ck_assert_int_eq(little_endian_get(header + 8, 2), 2);
	ck_assert_int_eq(pack_format_check_header(header, &pack, &err), -1);
	ck_assert_int_eq(pack_format_check_compacted_header(header, &pack, &pack, &err), -1);
	pack_format_put_header(&pack, &origin, header);
	ck_assert_int_eq(pack_format_check_compacted_header(header, &pack, &file, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
}
END_TEST

Suite *test_pack_table_suite(void);
Suite *test_pack_table_suite(void)
{
	Suite *const suite = suite_create("pack_table");
	TCase *const one = tcase_create("pack_table");
	tcase_add_test(one, living_chunks_keep_their_numbers);
	tcase_add_test(one, a_compacted_pack_can_be_compacted_again);
	tcase_add_test(one, a_table_is_read_back);
	tcase_add_test(one, xorbs_of_one_chunk_each_are_read_back);
	tcase_add_test(one, no_changed_byte_is_accepted);
	tcase_add_loop_test(one, what_does_not_add_up_is_refused, 0, sizeof wrong / sizeof *wrong);
	tcase_add_test(one, a_pack_tells_what_it_holds_and_its_copy_helps_out);
	tcase_add_test(one, another_pack_name_or_length_is_refused);
	tcase_add_test(one, each_version_of_header_is_taken_for_itself_alone);
	suite_add_tcase(suite, one);
	return suite;
}
