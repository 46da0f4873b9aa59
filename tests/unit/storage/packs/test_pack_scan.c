/* A sealed pack of some MB is scanned below its store, after its bytes were changed on the disk. */
#include "storage/packs/pack_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/packs/pack_rewrite.h"
#include "tests/unit/storage/pack_fixture.h"
#include "tests/unit/unit.h"

Suite *test_pack_scan_suite(void);

enum { CONTENT = 5000000, FOUND_MAX = 16, PAYLOAD = PACK_RECORD_HEADER_BYTES };

static struct pack_fixture fixture;
static struct stored_stream stream;
static struct pack *pinned;
static const struct pack_index *index_of_pack;

/* Reads that cover this byte fail so. */
static uint64_t bad_byte;
static int bad_errno;
static bool refuses_direct_open;
static bool refuses_direct_read;
static unsigned direct_reads;

static int open_for_test(const struct file_ops *ops, const char *path, int flags, mode_t mode)
{
	(void)ops;
	if ((flags & O_DIRECT) != 0 && refuses_direct_open) {
		errno = EINVAL;
		return -1;
	}
	return file_system()->open(file_system(), path, flags, mode);
}

static ssize_t read_for_test(
	const struct file_ops *ops, int fd, const struct iovec *parts, int count, off_t offset)
{
	uint64_t end = (uint64_t)offset;
	const bool is_direct = (fcntl(fd, F_GETFL) & O_DIRECT) != 0;
	(void)ops;
	for (int i = 0; i < count; i++)
		end += parts[i].iov_len;
	direct_reads += is_direct;
	errno = 0;
	if (is_direct && refuses_direct_read)
		errno = EINVAL;
	else if (bad_errno != 0 && (uint64_t)offset <= bad_byte && bad_byte < end)
		errno = bad_errno;
	return errno != 0 ? -1 : file_system()->preadv(file_system(), fd, parts, count, offset);
}

static void set_up(void)
{
	struct error err = {0};
	bad_errno = 0;
	direct_reads = 0;
	refuses_direct_open = refuses_direct_read = false;
	pack_fixture_open(&fixture, PACK_FIXTURE_FOLDER, 0);
	fixture.faults.ops.open = open_for_test;
	fixture.faults.ops.preadv = read_for_test;
	uint8_t *const bytes = fixture_bytes(FIXTURE_RANDOM, 3, CONTENT);
	pack_fixture_put(&fixture, span_of(bytes, CONTENT), 0, &stream);
	free(bytes);
	pack_fixture_settle(&fixture);
	pinned = pack_cache_pin(fixture.store->cache, &stream.segments[0].pack, false, &err);
	ck_assert_msg(pinned != NULL, "%s", err.text);
	index_of_pack = pack_cache_sealed_index(fixture.store->cache, pinned);
	ck_assert(index_of_pack != NULL && index_of_pack->count > 20);
}

static void tear_down(void)
{
	pack_cache_unpin(fixture.store->cache, pinned);
	stored_stream_release(&stream);
	pack_fixture_close(&fixture);
}

struct found {
	uint32_t chunks[FOUND_MAX];
	uint32_t count;
	size_t spent;
	size_t budget; /* 0: none */
	uint32_t passed;
};

static bool spend(void *owner, size_t bytes)
{
	struct found *const found = owner;
	found->spent += bytes;
	return found->budget == 0 || found->spent <= found->budget;
}

static void note(void *owner, uint32_t chunk, const struct error *why)
{
	struct found *const found = owner;
	ck_assert(pack_damage_is(why) && why->text[0] != '\0');
	ck_assert_uint_lt(found->count, FOUND_MAX);
	found->chunks[found->count++] = chunk;
}

static void pass(void *owner, uint32_t next)
{
	struct found *const found = owner;
	ck_assert_uint_gt(next, found->passed);
	found->passed = next;
}

static int scan_index(
	const struct pack_index *index, uint32_t from, struct found *found, struct error *err)
{
	struct backend *const backend = fixture.store->backend;
	const struct pack_scan scan = {
		.spend = spend, .found = note, .passed = pass, .owner = found};
	char name[PACK_NAME_BYTES];
	struct backend_file *file;
	pack_format_name(&index->file, PACK_FILE_PACK, name);
	ck_assert_msg(backend->ops->open_uncached(backend, name, &file, err) == 0, "%s", err->text);
	const int result = pack_scan_records(file, index, from, &scan, err);
	backend->ops->close(file);
	return result;
}

static struct found scan_all(void)
{
	struct error err = {0};
	struct found found = {0};
	ck_assert_msg(scan_index(index_of_pack, 0, &found, &err) == 0, "%s", err.text);
	return found;
}

static void expect_found(const struct found *found, const uint32_t *chunks, uint32_t count)
{
	ck_assert_uint_eq(found->count, count);
	for (uint32_t i = 0; i < count; i++)
		ck_assert_uint_eq(found->chunks[i], chunks[i]);
}

static void flip(const struct pack_index *index, uint32_t at, uint32_t byte)
{
	char *const path = pack_fixture_path(&fixture, &index->file, "pack");
	pack_fixture_flip(path, index->entries[at].offset + byte);
	free(path);
}

static char *pack_path(void)
{
	return pack_fixture_path(&fixture, &index_of_pack->file, "pack");
}

START_TEST(a_sound_pack_is_read_once_and_nothing_is_found)
{
	const struct found found = scan_all();
	size_t bytes = 0;
	for (uint32_t at = 0; at < index_of_pack->count; at++)
		bytes += PACK_RECORD_HEADER_BYTES + index_of_pack->entries[at].stored;
	ck_assert_uint_eq(found.count, 0);
	ck_assert_uint_eq(found.spent, bytes);
	ck_assert_uint_eq(found.passed, index_of_pack->count);
}
END_TEST

START_TEST(a_flipped_bit_is_found_wherever_it_is)
{
	const uint32_t last = index_of_pack->count - 1;
	const uint32_t places[][2] = {{0, 0}, {0, PAYLOAD}, {7, 3}, {8, PAYLOAD + 1000},
		{last, PACK_RECORD_HEADER_BYTES + index_of_pack->entries[last].stored - 1}};
	const uint32_t damaged[] = {0, 7, 8, last};
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		flip(index_of_pack, places[i][0], places[i][1]);
		const struct found one = scan_all();
		expect_found(&one, &places[i][0], 1);
		flip(index_of_pack, places[i][0], places[i][1]);
	}
	for (size_t i = 1; i < sizeof places / sizeof *places; i++)
		flip(index_of_pack, places[i][0], places[i][1]);
	const struct found all = scan_all();
	expect_found(&all, damaged, 4);
}
END_TEST

START_TEST(a_scan_begins_where_it_is_told_to)
{
	struct error err = {0};
	struct found found = {0};
	const uint32_t second = 9;
	flip(index_of_pack, 3, PAYLOAD);
	flip(index_of_pack, second, PAYLOAD);
	ck_assert_int_eq(scan_index(index_of_pack, 4, &found, &err), 0);
	expect_found(&found, &second, 1);
	found = (struct found){0};
	ck_assert_int_eq(scan_index(index_of_pack, index_of_pack->count, &found, &err), 0);
	ck_assert(found.count == 0 && found.spent == 0);
}
END_TEST

/* A bad sector takes the records that lie on it, and no others of the piece. */
START_TEST(a_bad_sector_costs_the_records_on_it)
{
	struct found found;
	bad_errno = EIO;
	bad_byte = index_of_pack->entries[5].offset + 20000;
	found = scan_all();
	const uint32_t fifth = 5;
	expect_found(&found, &fifth, 1);
	bad_byte = index_of_pack->entries[6].offset;
	found = scan_all();
	ck_assert(found.count == 1 || found.count == 2); /* two when they share a block */
	ck_assert_uint_eq(found.chunks[found.count - 1], 6);
	bad_errno = 0;
	ck_assert_uint_eq(scan_all().count, 0);
}
END_TEST

START_TEST(a_read_that_fails_otherwise_proves_nothing)
{
	struct error err = {0};
	struct found found = {0};
	bad_errno = EACCES;
	bad_byte = index_of_pack->entries[5].offset;
	ck_assert_int_eq(scan_index(index_of_pack, 0, &found, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_DENIED);
	ck_assert_uint_eq(found.count, 0);
}
END_TEST

START_TEST(what_lies_behind_the_end_of_the_file_is_damaged)
{
	const uint32_t count = index_of_pack->count;
	const uint32_t lost[] = {count - 2, count - 1};
	char *const path = pack_path();
	ck_assert_int_eq(truncate(path, index_of_pack->entries[count - 2].offset + 100), 0);
	struct found found = scan_all();
	expect_found(&found, lost, 2);
	ck_assert_int_eq(truncate(path, index_of_pack->entries[count - 2].offset), 0);
	found = scan_all();
	expect_found(&found, lost, 2);
	free(path);
}
END_TEST

START_TEST(a_scan_can_be_stopped)
{
	struct error err = {0};
	struct found found = {.budget = 2 * PACK_SCAN_BYTES};
	flip(index_of_pack, index_of_pack->count - 1, PAYLOAD);
	ck_assert_int_eq(scan_index(index_of_pack, 0, &found, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUSY);
	ck_assert_uint_eq(found.count, 0);
	ck_assert_uint_gt(found.passed, 0);
	ck_assert_uint_lt(index_of_pack->entries[found.passed].offset, 2 * PACK_SCAN_BYTES);
}
END_TEST

static bool spend_always(void *owner, size_t bytes)
{
	(void)owner, (void)bytes;
	return true;
}

START_TEST(chunks_of_a_compacted_pack_keep_their_numbers)
{
	struct error err = {0};
	struct found found = {0};
	const uint32_t wanted = 11;
	const struct pack_pace pace = {.spend = spend_always};
	uint8_t live[PACK_MAX_CHUNKS / 8];
	memset(live, 0xaa, sizeof live); /* every second one */
	struct pack_index *const index =
		pack_rewrite(fixture.store, &index_of_pack->pack, live, &pace, &err);
	ck_assert_msg(index != NULL, "%s", err.text);
	ck_assert_int_eq(scan_index(index, 0, &found, &err), 0);
	ck_assert_uint_eq(found.count, 0);
	flip(index, pack_index_at(index, wanted), PAYLOAD + 1);
	found = (struct found){0};
	ck_assert_int_eq(scan_index(index, 0, &found, &err), 0);
	expect_found(&found, &wanted, 1);
	pack_index_free(index);
}
END_TEST

/* File systems without O_DIRECT say so at the open, or at the first read. */
START_TEST(a_file_system_without_direct_reads_is_scanned_too)
{
	const uint32_t damaged = 4;
	refuses_direct_open = _i == 0;
	refuses_direct_read = _i == 1;
	flip(index_of_pack, damaged, PAYLOAD);
	const struct found found = scan_all();
	expect_found(&found, &damaged, 1);
	ck_assert_uint_eq(direct_reads, _i == 0 ? 0 : direct_reads);
}
END_TEST

static size_t pages_in_memory(const char *path)
{
	struct stat status;
	size_t count = 0;
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert(fd >= 0 && fstat(fd, &status) == 0);
	const size_t size = (size_t)status.st_size;
	const size_t pages = (size + 4095) / 4096;
	uint8_t *const is_there = calloc(pages, 1);
	void *const map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	ck_assert(map != MAP_FAILED && mincore(map, size, is_there) == 0);
	for (size_t i = 0; i < pages; i++)
		count += is_there[i] & 1;
	ck_assert_int_eq(munmap(map, size), 0);
	free(is_there);
	close(fd);
	return count;
}

static bool left_memory(const char *path)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert(fd >= 0 && fdatasync(fd) == 0);
	ck_assert_int_eq(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	close(fd);
	return pages_in_memory(path) == 0;
}

/* Where the disk of the tests is memory, no read can pass it. */
START_TEST(a_scan_leaves_no_pages_in_memory)
{
	char *const path = pack_path();
	if (left_memory(path)) {
		ck_assert_uint_eq(scan_all().count, 0);
		ck_assert_uint_eq(pages_in_memory(path), 0);
		ck_assert_uint_gt(direct_reads, 0);
	}
	free(path);
}
END_TEST

Suite *test_pack_scan_suite(void)
{
	Suite *const suite = suite_create("pack_scan");
	TCase *const tests = tcase_create("pack_scan");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, a_sound_pack_is_read_once_and_nothing_is_found);
	tcase_add_test(tests, a_flipped_bit_is_found_wherever_it_is);
	tcase_add_test(tests, a_scan_begins_where_it_is_told_to);
	tcase_add_test(tests, a_bad_sector_costs_the_records_on_it);
	tcase_add_test(tests, a_read_that_fails_otherwise_proves_nothing);
	tcase_add_test(tests, what_lies_behind_the_end_of_the_file_is_damaged);
	tcase_add_test(tests, a_scan_can_be_stopped);
	tcase_add_test(tests, chunks_of_a_compacted_pack_keep_their_numbers);
	tcase_add_loop_test(tests, a_file_system_without_direct_reads_is_scanned_too, 0, 2);
	tcase_add_test(tests, a_scan_leaves_no_pages_in_memory);
	suite_add_tcase(suite, tests);
	return suite;
}
