#include "storage/packs/pack_index.h"

#include <stdlib.h>
#include <string.h>

#include "base/encode.h"
#include "base/memory.h"
#include "storage/packs/chunk_map.h"
#include "storage/packs/pack_cache.h"
#include "storage/packs/pack_recovery.h"
#include "storage/packs/pack_store.h"
#include "storage/packs/pack_writer.h"
#include "tests/unit/storage/pack_fixture.h"
#include "tests/unit/unit.h"

static const struct pack_id pack = {{0xcd, 9, 8, 7}};

static struct pack_entry entry_of(uint64_t *state)
{
	struct pack_entry entry = {.checksum = fixture_random(state),
		.size = 1 + (uint32_t)(fixture_random(state) % 200),
		.codec = 0};
	entry.stored = entry.size;
	for (size_t i = 0; i < sizeof entry.id.bytes; i++)
		entry.id.bytes[i] = (uint8_t)fixture_random(state);
	return entry;
}

/* Writes a pack of invented xorbs and gives the index that was built on the way. */
static struct pack_index *write_pack(struct pack_writer *writer, unsigned xorbs)
{
	struct error err = {0};
	uint64_t state = 5;
	struct pack_index *const index = pack_index_new(&writer->pack);
	for (unsigned i = 0; i < xorbs; i++) {
		struct pack_entry entries[20];
		struct pack_footer footer = {.count = 1 + i * 7 % 20};
		struct buffer bytes;
		buffer_init(&bytes, 1 << 20);
		footer.hash.bytes[0] = (uint8_t)i;
		for (uint32_t k = 0; k < footer.count; k++) {
			entries[k] = entry_of(&state);
			uint8_t header[PACK_RECORD_HEADER_BYTES];
			const uint8_t payload[256] = {0};
			pack_format_put_record_header(&entries[k], header);
			buffer_add(&bytes, header, sizeof header);
			buffer_add(&bytes, payload, entries[k].stored);
		}
		footer.record_bytes = (uint32_t)bytes.len;
		pack_format_add_footer(&bytes, &footer, entries);
		ck_assert_int_eq(pack_writer_append(writer, buffer_span(&bytes), &err), 0);
		pack_index_add_xorb(index, &footer.hash, entries, footer.count);
		ck_assert_uint_eq(index->length, writer->length);
		buffer_release(&bytes);
	}
	return index;
}

static void expect_equal(const struct pack_index *a, const struct pack_index *b)
{
	ck_assert(pack_id_equal(&a->pack, &b->pack));
	ck_assert_uint_eq(a->length, b->length);
	ck_assert_uint_eq(a->count, b->count);
	ck_assert_uint_eq(a->xorb_count, b->xorb_count);
	for (uint32_t i = 0; i < a->count; i++) {
		ck_assert(chunk_id_equal(&a->entries[i].id, &b->entries[i].id));
		ck_assert_uint_eq(a->entries[i].offset, b->entries[i].offset);
		ck_assert_uint_eq(a->entries[i].checksum, b->entries[i].checksum);
		ck_assert_uint_eq(a->entries[i].size, b->entries[i].size);
	}
	for (uint32_t i = 0; i < a->xorb_count; i++)
		ck_assert_mem_eq(&a->xorbs[i], &b->xorbs[i], sizeof *a->xorbs);
}

struct written {
	struct backend *backend;
	struct pack_writer *writer;
	struct pack_index *index;
};

static void written_open(struct written *written, unsigned xorbs)
{
	struct error err = {0};
	written->backend = backend_memory_new();
	written->writer = pack_writer_open(written->backend, &pack, &err);
	written->index = write_pack(written->writer, xorbs);
}

static void written_close(struct written *written)
{
	pack_index_free(written->index);
	pack_writer_close(written->writer);
	written->backend->ops->free(written->backend);
}

START_TEST(the_sidecar_tells_the_same)
{
	struct written written;
	struct error err = {0};
	written_open(&written, 9);
	struct buffer bytes;
	buffer_init(&bytes, 1 << 20);
	pack_index_encode(written.index, &bytes);
	ck_assert_uint_eq(
		bytes.len, 48 + 40 * written.index->xorb_count + 48 * written.index->count + 8);
	ck_assert_mem_eq(bytes.data, "DBKTPIDX\1\0\1\0", 12);
	struct pack_index *const decoded = pack_index_decode(buffer_span(&bytes), &err);
	ck_assert_msg(decoded != NULL, "%s", err.text);
	expect_equal(decoded, written.index);
	pack_index_free(decoded);
	buffer_release(&bytes);
	written_close(&written);
}
END_TEST

START_TEST(any_changed_or_missing_byte_of_a_sidecar_is_refused)
{
	struct written written;
	written_open(&written, 3);
	struct buffer bytes;
	buffer_init(&bytes, 1 << 20);
	pack_index_encode(written.index, &bytes);
	for (size_t i = 0; i < bytes.len; i++) {
		struct error err = {0};
		bytes.data[i] ^= 4;
		ck_assert_ptr_null(pack_index_decode(buffer_span(&bytes), &err));
		ck_assert_int_ne(err.kind, ERROR_NONE);
		bytes.data[i] ^= 4;
		ck_assert_ptr_null(pack_index_decode(span_of(bytes.data, i), &err));
	}
	buffer_release(&bytes);
	written_close(&written);
}
END_TEST

static void put_u64(uint8_t *at, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

static const struct {
	size_t offset;
	uint64_t value;
	unsigned bytes;
} lies[] = {
	{12, 0, 4},                 /* no chunks */
	{12, 1000000, 4},           /* too many */
	{40, 0, 4},                 /* no xorbs */
	{40, 4000000000u, 4},       /* too many */
	{32, 12345, 8},             /* another length */
	{48 + 32, 1, 4},            /* the first xorb does not begin at 0 */
	{48 + 36, 0, 4},            /* an empty xorb */
	{48 + 36, 4000000000u, 4},  /* too many chunks in one */
	{48 + 36, 2, 4},            /* leaves out the rest */
	{48 + 3 * 40 + 40, 0, 3},   /* an entry without bytes */
	{48 + 3 * 40 + 43, 200, 1}, /* an unknown codec */
	{8, 2, 2},                  /* a newer version */
};

/* A right checksum does not make a sidecar right. */
START_TEST(a_sidecar_that_lies_is_refused)
{
	struct written written;
	struct error err = {0};
	written_open(&written, 3);
	struct buffer bytes;
	buffer_init(&bytes, 1 << 20);
	pack_index_encode(written.index, &bytes);
	put_u64(bytes.data + lies[_i].offset, lies[_i].value, lies[_i].bytes);
	put_u64(bytes.data + bytes.len - 8, xxh3_64(span_of(bytes.data, bytes.len - 8)), 8);
	ck_assert_ptr_null(pack_index_decode(buffer_span(&bytes), &err));
	ck_assert_int_ne(err.kind, ERROR_NONE);
	buffer_release(&bytes);
	written_close(&written);
}
END_TEST

START_TEST(walking_tells_the_same_and_stops_at_the_committed_length)
{
	struct written written;
	struct error err = {0};
	written_open(&written, 12);
	for (uint32_t xorbs = 12; xorbs > 0; xorbs--) {
		struct pack_index *const walked =
			pack_index_walk(written.writer->file, &pack, written.index->length, &err);
		ck_assert_msg(walked != NULL, "%s", err.text);
		expect_equal(walked, written.index);
		pack_index_free(walked);
		const struct pack_xorb *const last = &written.index->xorbs[xorbs - 1];
		pack_index_cut(written.index, last->first);
		ck_assert_uint_eq(written.index->xorb_count, xorbs - 1);
	}
	ck_assert_uint_eq(written.index->length, PACK_HEADER_BYTES);
	written_close(&written);
}
END_TEST

START_TEST(a_cut_or_damaged_pack_is_corrupt)
{
	struct written written;
	written_open(&written, 2);
	uint8_t *const whole = memory_new(written.writer->length);
	struct error err = {0};
	const struct iovec part = {whole, written.writer->length};
	ck_assert_int_eq(written.backend->ops->read(written.writer->file, &part, 1, 0, &err), 0);
	const struct pack_xorb *const second = &written.index->xorbs[1];
	const uint64_t end_of_first = written.index->entries[second->first].offset;
	for (uint64_t length = 0; length < written.index->length; length++) {
		if (length == end_of_first || length == PACK_HEADER_BYTES)
			continue;
		err = (struct error){0};
		ck_assert_ptr_null(pack_index_walk(written.writer->file, &pack, length, &err));
		ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	}
	/* from the start of the first footer to its end every byte counts */
	const struct pack_entry *const last = &written.index->entries[second->first - 1];
	for (uint64_t at = last->offset + PACK_RECORD_HEADER_BYTES + last->stored;
		at < end_of_first; at++) {
		whole[at] ^= 1;
		ck_assert_int_eq(written.backend->ops->append(written.writer->file,
					 span_of(whole, written.writer->length), 0, &err),
			0);
		err = (struct error){0};
		ck_assert_ptr_null(
			pack_index_walk(written.writer->file, &pack, written.index->length, &err));
		ck_assert_int_eq(err.kind, ERROR_CORRUPT);
		whole[at] ^= 1;
	}
	free(whole);
	written_close(&written);
}
END_TEST

START_TEST(loading_prefers_the_sidecar_and_falls_back_to_walking)
{
	struct written written;
	struct error err = {0};
	bool walked;
	written_open(&written, 5);
	struct pack_index *index =
		pack_index_load(written.backend, &pack, written.index->length, &walked, &err);
	ck_assert_msg(index != NULL && walked, "%s", err.text);
	ck_assert_int_eq(pack_index_save(index, written.backend, &err), 0);
	pack_index_free(index);
	index = pack_index_load(written.backend, &pack, written.index->length, &walked, &err);
	ck_assert(index != NULL && !walked);
	expect_equal(index, written.index);
	pack_index_free(index);
	/* a sidecar of another length must not be used */
	pack_index_cut(written.index, written.index->xorbs[4].first);
	index = pack_index_load(written.backend, &pack, written.index->length, &walked, &err);
	ck_assert(index != NULL && walked);
	expect_equal(index, written.index);
	pack_index_free(index);
	/* nor must a damaged one */
	char name[PACK_NAME_BYTES];
	pack_format_name(&pack, PACK_FILE_INDEX, name);
	ck_assert_int_eq(
		written.backend->ops->put(written.backend, name, span_text("nonsense"), &err), 0);
	index = pack_index_load(written.backend, &pack, written.index->length, &walked, &err);
	ck_assert(index != NULL && walked);
	pack_index_free(index);
	const struct pack_id other = {{1}};
	ck_assert_ptr_null(pack_index_load(written.backend, &other, 1000, &walked, &err));
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	written_close(&written);
}
END_TEST

/* A pack of one xorb of one chunk, "Hello World!", and its sidecar, as version 1 wrote them. Every
 * later version must read them. */
static const char golden_pack[] =
	"44424b545041434b010001000000000000112233445566778899aabbccddeeff00000000000000000000000000000000"
	"00000000000000003c96e6b2d0bdb42e000c0000000c000048656c6c6f20576f726c642144424b54584f524201000000"
	"14000000a29cfb08e608d4d8726dd8659a90b9134b3240d5d8e42d5fcb28e2a6e763a3e8a29cfb08e608d4d8726dd865"
	"9a90b9134b3240d5d8e42d5fcb28e2a6e763a3e8d5a22139493c3e670c0000000c00000001000000000000002d622774"
	"c748c60c";
static const char golden_index[] =
	"44424b5450494458010001000100000000112233445566778899aabbccddeeffc4000000000000000100000000000000"
	"a29cfb08e608d4d8726dd8659a90b9134b3240d5d8e42d5fcb28e2a6e763a3e80000000001000000a29cfb08e608d4d8"
	"726dd8659a90b9134b3240d5d8e42d5fcb28e2a6e763a3e8d5a22139493c3e670c0000000c000000e48d6d687d491e38";
enum {
	GOLDEN_PACK_BYTES = (sizeof golden_pack - 1) / 2,
	GOLDEN_INDEX_BYTES = (sizeof golden_index - 1) / 2
};

START_TEST(the_golden_pack_stays_readable)
{
	static const struct pack_id id = {{0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99,
		0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}};
	struct error err = {0};
	uint8_t pack_bytes[GOLDEN_PACK_BYTES];
	uint8_t index_bytes[GOLDEN_INDEX_BYTES];
	ck_assert(decode_hex(span_text(golden_pack), pack_bytes, sizeof pack_bytes));
	ck_assert(decode_hex(span_text(golden_index), index_bytes, sizeof index_bytes));
	struct backend *const backend = backend_memory_new();
	const struct pack_store_options options = {.backend = backend};
	struct pack_store *const store = pack_store_open(&options, &err);
	char name[PACK_NAME_BYTES];
	pack_format_name(&id, PACK_FILE_PACK, name);
	ck_assert_int_eq(
		backend->ops->put(backend, name, span_of(pack_bytes, sizeof pack_bytes), &err), 0);
	const struct pack_record record = {
		.id = id, .state = PACK_SEALED, .length = sizeof pack_bytes, .chunks = 1};
	const struct pack_names names = {&record, 1, NULL, 0};
	struct pack_recovery *recovery =
		pack_recovery_look(store, &names, &(const struct pack_origin){.life = 0}, &err);
	struct pack_record *sealed;
	size_t sealed_count;
	ck_assert_int_eq(pack_recovery_settle(recovery, true, &sealed, &sealed_count, &err), 0);
	pack_recovery_free(recovery);
	ck_assert_uint_eq(sealed_count, 0);
	free(sealed);
	uint8_t content[CHUNK_MAX_BYTES];
	size_t len;
	const struct chunk_place place = {.pack = id, .chunk = 0};
	ck_assert_msg(pack_store_read_chunk(store, &place, NULL, content, &len, &err) == 0, "%s",
		err.text);
	ck_assert(span_equal_text(span_of(content, len), "Hello World!"));
	/* recovery wrote the missing sidecar, equal to the golden one */
	struct buffer index;
	buffer_init(&index, 1000);
	pack_format_name(&id, PACK_FILE_INDEX, name);
	ck_assert_int_eq(backend->ops->get(backend, name, &index, &err), 0);
	ck_assert(span_equal(buffer_span(&index), span_of(index_bytes, sizeof index_bytes)));
	buffer_release(&index);
	pack_store_close(store);
}
END_TEST

START_TEST(the_map_finds_what_was_added)
{
	enum { COUNT = 20000 };
	struct chunk_map map;
	chunk_map_init(&map);
	uint64_t state = 1;
	uint32_t number;
	const struct chunk_id none = {{1, 2, 3}};
	ck_assert(!chunk_map_find(&map, &none, &number));
	for (uint32_t i = 0; i < COUNT; i++) {
		const struct pack_entry entry = entry_of(&state);
		chunk_map_add(&map, &entry.id, i);
	}
	state = 1;
	unsigned found = 0;
	for (uint32_t i = 0; i < COUNT; i++) {
		const struct pack_entry entry = entry_of(&state);
		found += chunk_map_find(&map, &entry.id, &number) && number == i;
	}
	ck_assert_uint_ge(found, COUNT - 2); /* equal tags hide each other, about once in 2^32 */
	chunk_map_release(&map);
}
END_TEST

enum { CACHED_PACKS = 40 };

static struct pack_id cached_id(unsigned number)
{
	return (struct pack_id){{0xee, (uint8_t)number}};
}

static size_t fill_backend(struct backend *backend, struct pack_cache *cache)
{
	size_t memory = 0;
	for (unsigned i = 0; i < CACHED_PACKS; i++) {
		struct error err = {0};
		const struct pack_id id = cached_id(i);
		struct pack_writer *const writer = pack_writer_open(backend, &id, &err);
		struct pack_index *const index = write_pack(writer, 4);
		ck_assert_int_eq(pack_index_save(index, backend, &err), 0);
		pack_cache_add(cache, &id, writer->length, NULL, PACK_CACHE_SAVED);
		memory = pack_index_memory(index);
		pack_index_free(index);
		pack_writer_close(writer);
	}
	return memory;
}

START_TEST(the_cache_keeps_to_its_limits_and_never_takes_what_is_pinned)
{
	struct error err = {0};
	struct backend *const backend = backend_memory_new();
	const struct pack_cache_limits limits = {.index_bytes = 20000, .open_files = 5};
	struct pack_cache *const cache = pack_cache_new(backend, &limits);
	const size_t memory = fill_backend(backend, cache);
	const struct pack_id kept_id = cached_id(0);
	struct pack *const kept = pack_cache_pin(cache, &kept_id, true, &err);
	const struct pack_index *const kept_index = pack_cache_sealed_index(cache, kept);
	for (unsigned i = 1; i < CACHED_PACKS; i++) {
		const struct pack_id id = cached_id(i);
		struct pack *const pinned = pack_cache_pin(cache, &id, true, &err);
		ck_assert_msg(pinned != NULL, "%s", err.text);
		struct pack_entry entry;
		ck_assert_uint_eq(pack_cache_copy_entries(cache, pinned, 0, &entry, 1), 1);
		ck_assert_uint_eq(pack_cache_copy_entries(cache, pinned, 1000, &entry, 1), 0);
		ck_assert_ptr_nonnull(pack_file(pinned));
		pack_cache_unpin(cache, pinned);
		ck_assert_uint_le(pack_cache_open_files(cache), 5);
		ck_assert_uint_le(pack_cache_index_bytes(cache), 20000 + memory);
	}
	ck_assert_uint_ge(pack_cache_open_files(cache), 4);
	ck_assert_ptr_eq(pack_cache_sealed_index(cache, kept), kept_index);
	pack_cache_unpin(cache, kept);
	pack_cache_free(cache);
	backend->ops->free(backend);
}
END_TEST

START_TEST(a_removed_pack_lives_until_it_is_let_go)
{
	struct error err = {0};
	struct backend *const backend = backend_memory_new();
	const struct pack_cache_limits limits = {.index_bytes = 1 << 20, .open_files = 5};
	struct pack_cache *const cache = pack_cache_new(backend, &limits);
	fill_backend(backend, cache);
	const struct pack_id id = cached_id(3);
	struct pack *const pinned = pack_cache_pin(cache, &id, true, &err);
	ck_assert(pack_cache_refer(cache, &id));
	ck_assert(pack_cache_is_held(cache, &id));
	pack_cache_remove(cache, &id, NULL);
	ck_assert(!pack_cache_knows(cache, &id));
	ck_assert(!pack_cache_refer(cache, &id));
	ck_assert_ptr_null(pack_cache_pin(cache, &id, false, &err));
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	struct pack_entry entry;
	ck_assert_uint_eq(pack_cache_copy_entries(cache, pinned, 0, &entry, 1), 1);
	pack_cache_unpin(cache, pinned);
	ck_assert(pack_cache_is_held(cache, &id));
	pack_cache_unrefer(cache, &id);
	ck_assert(!pack_cache_is_held(cache, &id));
	struct pack_id *ids;
	ck_assert_uint_eq(pack_cache_list(cache, &ids), CACHED_PACKS - 1);
	free(ids);
	pack_cache_free(cache);
	backend->ops->free(backend);
}
END_TEST

Suite *test_pack_index_suite(void);
Suite *test_pack_index_suite(void)
{
	Suite *const suite = suite_create("pack_index");
	TCase *const tcase = tcase_create("pack_index");
	tcase_add_test(tcase, the_sidecar_tells_the_same);
	tcase_add_test(tcase, any_changed_or_missing_byte_of_a_sidecar_is_refused);
	tcase_add_loop_test(tcase, a_sidecar_that_lies_is_refused, 0, sizeof lies / sizeof *lies);
	tcase_add_test(tcase, walking_tells_the_same_and_stops_at_the_committed_length);
	tcase_add_test(tcase, a_cut_or_damaged_pack_is_corrupt);
	tcase_add_test(tcase, loading_prefers_the_sidecar_and_falls_back_to_walking);
	tcase_add_test(tcase, the_golden_pack_stays_readable);
	tcase_add_test(tcase, the_map_finds_what_was_added);
	tcase_add_test(tcase, the_cache_keeps_to_its_limits_and_never_takes_what_is_pinned);
	tcase_add_test(tcase, a_removed_pack_lives_until_it_is_let_go);
	suite_add_tcase(suite, tcase);
	return suite;
}
