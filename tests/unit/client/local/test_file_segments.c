#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "chunker/chunk_stream.h"
#include "chunker/gear_table.h"
#include "client/local/file_segments.h"
#include "client/local/folder_files.h"

enum { BYTES = 1500000, CHUNKS_MOST = BYTES / CHUNK_MIN_BYTES + 1 };

static char *folder;
static char *path;

static void set_up(void)
{
	folder = unit_scratch_make();
	path = folder_files_join(folder, "file");
}

static void tear_down(void)
{
	free(path);
	unit_scratch_remove(folder);
}

struct list {
	struct chunk_entry entries[CHUNKS_MOST];
	size_t count;
};

static int collect(void *taker, const struct chunk_id *id, struct span content, struct error *err)
{
	struct list *const list = taker;
	(void)err;
	ck_assert_uint_lt(list->count, CHUNKS_MOST);
	list->entries[list->count++] = (struct chunk_entry){.id = *id, .size = content.len};
	return 0;
}

static void fill_random(uint8_t *bytes, size_t len, uint64_t state)
{
	for (size_t i = 0; i < len; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		bytes[i] = (uint8_t)(state >> 56);
	}
}

static void fill_plainly(uint8_t *bytes)
{
	fill_random(bytes, BYTES, 1);
}

/* No place is ever marked. */
static void fill_constant(uint8_t *bytes)
{
	memset(bytes, 59, BYTES);
}

/* From an odd place on, chunks end every 128 KiB: only the chunk before shows where. */
static void fill_constant_behind_random(uint8_t *bytes)
{
	memset(bytes, 59, BYTES);
	fill_random(bytes, 100001, 2);
}

static void fill_constant_with_islands(uint8_t *bytes)
{
	memset(bytes, 0, BYTES);
	for (size_t at = 77777; at + 20000 < BYTES; at += 233333)
		fill_random(bytes + at, 20000, at);
}

/* Repeats 64 bytes with a mark at their end: the marks are far closer together than chunk ends may
 * be. */
static void fill_marks(uint8_t *bytes)
{
	uint8_t found[64];
	uint8_t *const content = memory_new(BYTES);
	uint64_t hash = 0;
	size_t at = 0;
	fill_random(content, BYTES, 3);
	while (at < 64 || hash >> 48 != 0)
		hash = (hash << 1) + gear_table[content[at++]];
	memcpy(found, content + at - 64, sizeof found);
	for (size_t i = 0; i < BYTES; i++)
		bytes[i] = found[i % 64];
	free(content);
}

static void fill_ramp(uint8_t *bytes)
{
	for (size_t i = 0; i < BYTES; i++)
		bytes[i] = (uint8_t)(i / 4096 * 7 + i % 251);
}

static void (*const fills[])(uint8_t *) = {fill_plainly, fill_constant, fill_constant_behind_random,
	fill_constant_with_islands, fill_marks, fill_ramp};
enum { FILLS = sizeof fills / sizeof *fills };

static int read_segments(size_t size, size_t segment_bytes, unsigned workers,
	struct chunk_entry **out, size_t *out_count, struct error *err)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const struct file_segments what = {.fd = fd,
		.path = path,
		.size = size,
		.workers = workers,
		.segment_bytes = segment_bytes};
	ck_assert_int_ge(fd, 0);
	const int result = file_segments_read(&what, out, out_count, err);
	close(fd);
	return result;
}

static void expect_same(const uint8_t *bytes, size_t len, size_t segment_bytes, unsigned workers)
{
	struct error err = {0};
	struct list *const wanted = memory_new(sizeof *wanted);
	struct chunk_stream *const stream = chunk_stream_new(collect, wanted);
	struct chunk_entry *got;
	size_t count;
	ck_assert_int_eq(chunk_stream_push(stream, span_of(bytes, len), &err), 0);
	ck_assert_int_eq(chunk_stream_end(stream, &err), 0);
	chunk_stream_free(stream);
	ck_assert_int_eq(file_place(file_system(), path, span_of(bytes, len), 0644, &err), 0);
	ck_assert_int_eq(read_segments(len, segment_bytes, workers, &got, &count, &err), 0);
	ck_assert_uint_eq(count, wanted->count);
	for (size_t i = 0; i < count; i++) {
		ck_assert_uint_eq(got[i].size, wanted->entries[i].size);
		ck_assert(chunk_id_equal(&got[i].id, &wanted->entries[i].id));
	}
	free(got);
	free(wanted);
}

/* Segments whose size matches chunks or does not, smaller than a chunk, larger than the file. */
START_TEST(any_content_is_cut_as_by_one_thread)
{
	static const size_t SEGMENTS[] = {1021, 65536, 131072, 200001, 2 * BYTES};
	uint8_t *const bytes = memory_new(BYTES);
	fills[_i](bytes);
	for (size_t i = 0; i < sizeof SEGMENTS / sizeof *SEGMENTS; i++)
		expect_same(bytes, BYTES, SEGMENTS[i], 1 + (unsigned)i);
	free(bytes);
}
END_TEST

START_TEST(any_length_is_cut_as_by_one_thread)
{
	static const size_t LENGTHS[] = {
		1, 63, 64, 65, 8191, 8192, 8193, 65536, 131071, 131072, 131073, 262144, 300000};
	uint8_t *const bytes = memory_new(BYTES);
	fill_plainly(bytes);
	for (size_t i = 0; i < sizeof LENGTHS / sizeof *LENGTHS; i++) {
		expect_same(bytes, LENGTHS[i], 32768, 3);
		expect_same(bytes + 1000 * i, LENGTHS[i], 100000, 2);
	}
	free(bytes);
}
END_TEST

START_TEST(a_file_that_gets_shorter_is_told)
{
	struct error err = {0};
	struct chunk_entry *got;
	size_t count;
	uint8_t *const bytes = memory_new(BYTES);
	fill_plainly(bytes);
	ck_assert_int_eq(file_place(file_system(), path, span_of(bytes, BYTES - 1), 0644, &err), 0);
	ck_assert_int_eq(read_segments(BYTES, 65536, 4, &got, &count, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_ptr_null(got);
	free(bytes);
}
END_TEST

Suite *test_file_segments_suite(void);
Suite *test_file_segments_suite(void)
{
	Suite *const suite = suite_create("file_segments");
	TCase *const tests = tcase_create("file_segments");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(tests, any_content_is_cut_as_by_one_thread, 0, FILLS);
	tcase_add_test(tests, any_length_is_cut_as_by_one_thread);
	tcase_add_test(tests, a_file_that_gets_shorter_is_told);
	suite_add_tcase(suite, tests);
	return suite;
}
