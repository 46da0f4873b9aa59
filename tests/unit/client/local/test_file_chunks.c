#include "tests/unit/unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/encode.h"
#include "base/file.h"
#include "base/memory.h"
#include "chunker/chunk_hash.h"
#include "client/local/file_chunks.h"
#include "client/local/folder_files.h"

enum { CHANGING_BYTES = 64 * 1024 * 1024 };

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

static void write_file(const void *bytes, size_t len)
{
	struct error err = {0};
	ck_assert_int_eq(file_place(file_system(), path, span_of(bytes, len), 0644, &err), 0);
}

START_TEST(a_file_of_one_chunk_has_the_hash_that_every_client_finds)
{
	struct error err = {0};
	struct file_chunks chunks;
	uint8_t id[CHUNK_ID_BYTES];
	uint8_t hash[CHUNK_ID_BYTES];
	ck_assert(decode_hex(
		span_text("a29cfb08e608d4d8726dd8659a90b9134b3240d5d8e42d5fcb28e2a6e763a3e8"), id,
		sizeof id));
	ck_assert(decode_hex(
		span_text("bd60b088ade0daa9b195cfbd7ac8e7d74f6db014045ac9326571b887d268eb6b"), hash,
		sizeof hash));
	write_file("Hello World!", 12);
	ck_assert_int_eq(file_chunks_read(path, NULL, &chunks, &err), 0);
	ck_assert_uint_eq(chunks.count, 1);
	ck_assert_uint_eq(chunks.entries[0].size, 12);
	ck_assert_uint_eq(chunks.facts.size, 12);
	ck_assert_mem_eq(chunks.entries[0].id.bytes, id, sizeof id);
	ck_assert_mem_eq(chunks.hash.bytes, hash, sizeof hash);
	file_chunks_release(&chunks);
}
END_TEST

START_TEST(sizes_add_up_and_an_empty_file_has_the_zero_hash)
{
	struct error err = {0};
	struct file_chunks chunks;
	const struct chunk_id zero = {{0}};
	const size_t len = 3 * 1024 * 1024 + 17;
	uint8_t *const bytes = malloc(len);
	uint64_t sum = 0;
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(i * 2654435761u >> 11);
	write_file(bytes, len);
	ck_assert_int_eq(file_chunks_read(path, NULL, &chunks, &err), 0);
	for (size_t i = 0; i < chunks.count; i++) {
		const struct chunk_id id = chunk_hash(span_of(bytes + sum, chunks.entries[i].size));
		ck_assert(chunk_id_equal(&id, &chunks.entries[i].id));
		sum += chunks.entries[i].size;
	}
	ck_assert_uint_eq(sum, len);
	const struct chunk_id hash = chunk_hash_file(chunks.entries, chunks.count);
	ck_assert(chunk_id_equal(&hash, &chunks.hash));
	file_chunks_release(&chunks);
	write_file("", 0);
	ck_assert_int_eq(file_chunks_read(path, NULL, &chunks, &err), 0);
	ck_assert_uint_eq(chunks.count, 0);
	ck_assert(chunk_id_equal(&chunks.hash, &zero));
	file_chunks_release(&chunks);
	free(bytes);
}
END_TEST

START_TEST(what_is_no_file_is_refused)
{
	struct error err = {0};
	struct file_chunks chunks;
	struct file_facts facts;
	ck_assert_int_eq(file_chunks_read(folder, NULL, &chunks, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_int_eq(file_facts_read(path, &facts, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
}
END_TEST

static _Atomic bool is_read;

/* Like a trainer that saves into the file while it is sent; the size stays the same. */
static void *rewrite(void *unused)
{
	const int fd = open(path, O_WRONLY);
	while (!atomic_load(&is_read))
		ck_assert_int_eq(pwrite(fd, "x", 1, 1000), 1);
	close(fd);
	return unused;
}

START_TEST(a_file_that_is_written_meanwhile_is_not_taken)
{
	struct error err = {0};
	struct file_chunks chunks;
	pthread_t writer;
	uint8_t *const bytes = memory_new(CHANGING_BYTES);
	write_file(bytes, CHANGING_BYTES);
	free(bytes);
	atomic_store(&is_read, false);
	ck_assert_int_eq(pthread_create(&writer, NULL, rewrite, NULL), 0);
	int result = 0;
	/* On a busy machine the writer may not run during the first reading. */
	for (int tries = 0; result == 0 && tries < 50; tries++) {
		result = file_chunks_read(path, NULL, &chunks, &err);
		if (result == 0)
			file_chunks_release(&chunks);
	}
	ck_assert_int_eq(result, -1);
	atomic_store(&is_read, true);
	pthread_join(writer, NULL);
	ck_assert_msg(strstr(err.text, "changed while it was read") != NULL, "%s", err.text);
}
END_TEST

Suite *test_file_chunks_suite(void);
Suite *test_file_chunks_suite(void)
{
	Suite *const suite = suite_create("file_chunks");
	TCase *const tests = tcase_create("file_chunks");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, a_file_of_one_chunk_has_the_hash_that_every_client_finds);
	tcase_add_test(tests, sizes_add_up_and_an_empty_file_has_the_zero_hash);
	tcase_add_test(tests, what_is_no_file_is_refused);
	tcase_add_test(tests, a_file_that_is_written_meanwhile_is_not_taken);
	suite_add_tcase(suite, tests);
	return suite;
}
