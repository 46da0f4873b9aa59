#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "client/local/folder_files.h"
#include "client/local/hash_cache.h"

enum { MS = 1000000, LATER_MS = 10000000 };

static char *folder;
static char *path;
static const struct chunk_id HASH = {{1, 2, 3}};
static const struct file_facts FACTS = {.size = 5,
	.mtime_ns = 77 * (int64_t)MS,
	.ctime_ns = 78 * (int64_t)MS,
	.inode = 3,
	.device = 4};

static void set_up(void)
{
	folder = unit_scratch_make();
	path = folder_files_join(folder, "below/cache/hashes");
}

static void tear_down(void)
{
	free(path);
	unit_scratch_remove(folder);
}

static void remember(const char *name, const struct file_facts *facts)
{
	struct hash_cache *const cache = hash_cache_open(file_system(), path);
	hash_cache_add(cache, name, facts, &HASH, LATER_MS);
	hash_cache_close(cache);
}

static bool knows(const char *name, const struct file_facts *facts)
{
	struct chunk_id hash;
	struct hash_cache *const cache = hash_cache_open(file_system(), path);
	const bool found = hash_cache_find(cache, name, facts, &hash);
	ck_assert(!found || chunk_id_equal(&hash, &HASH));
	hash_cache_close(cache);
	return found;
}

START_TEST(any_change_of_a_file_is_seen)
{
	remember("/a", &FACTS);
	ck_assert(knows("/a", &FACTS));
	ck_assert(!knows("/b", &FACTS));
	struct file_facts changed[5] = {FACTS, FACTS, FACTS, FACTS, FACTS};
	changed[0].size++;
	changed[1].mtime_ns++;
	changed[2].ctime_ns++;
	changed[3].inode++;
	changed[4].device++;
	for (size_t i = 0; i < 5; i++)
		ck_assert(!knows("/a", &changed[i]));
}
END_TEST

START_TEST(a_file_that_was_just_written_is_not_remembered)
{
	struct file_facts young = FACTS;
	young.ctime_ns = ((int64_t)LATER_MS - HASH_CACHE_REST_MS + 1) * MS;
	remember("/a", &young);
	ck_assert(!knows("/a", &young));
	young.ctime_ns -= MS;
	remember("/a", &young);
	ck_assert(knows("/a", &young));
}
END_TEST

START_TEST(what_another_process_wrote_meanwhile_stays)
{
	struct hash_cache *const first = hash_cache_open(file_system(), path);
	hash_cache_add(first, "/a", &FACTS, &HASH, LATER_MS);
	remember("/b", &FACTS);
	hash_cache_close(first);
	ck_assert(knows("/a", &FACTS));
	ck_assert(knows("/b", &FACTS));
}
END_TEST

static void flip(off_t at)
{
	uint8_t byte;
	const int fd = open(path, O_RDWR);
	ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
	byte ^= 1;
	ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

START_TEST(damage_costs_the_records_it_hits)
{
	remember("/a", &FACTS);
	remember("/b", &FACTS);
	flip(104 + 30);
	ck_assert_int_eq(knows("/a", &FACTS) + knows("/b", &FACTS), 1);
	flip(3);
	ck_assert_int_eq(knows("/a", &FACTS) + knows("/b", &FACTS), 0);
	ck_assert_int_eq(truncate(path, 50), 0);
	remember("/a", &FACTS);
	ck_assert(knows("/a", &FACTS));
}
END_TEST

START_TEST(it_grows_past_its_first_table_and_stays_bounded)
{
	char name[32];
	struct hash_cache *const cache = hash_cache_open(file_system(), path);
	for (int i = 0; i < HASH_CACHE_RECORDS_MAX + 100; i++) {
		snprintf(name, sizeof name, "/f%d", i);
		hash_cache_add(cache, name, &FACTS, &HASH, LATER_MS + (int64_t)i * 1000);
	}
	hash_cache_close(cache);
	struct error err = {0};
	uint64_t size;
	ck_assert_int_eq(file_size(path, &size, &err), 0);
	ck_assert_uint_eq(size, (HASH_CACHE_RECORDS_MAX + 1) * UINT64_C(104));
	ck_assert(!knows("/f99", &FACTS)); /* the oldest were dropped */
	ck_assert(knows("/f100", &FACTS));
}
END_TEST

START_TEST(a_real_file_is_read_once)
{
	struct error err = {0};
	struct chunk_id first;
	struct chunk_id second;
	char *const file = folder_files_join(folder, "file");
	ck_assert_int_eq(file_place(file_system(), file, span_text("content"), 0644, &err), 0);
	struct hash_cache *const cache = hash_cache_open(file_system(), NULL);
	ck_assert_int_eq(hash_cache_hash(cache, file, NULL, &first, &err), 0);
	ck_assert_int_eq(hash_cache_hash(cache, file, NULL, &second, &err), 0);
	ck_assert(chunk_id_equal(&first, &second));
	struct file_facts facts;
	ck_assert_int_eq(file_facts_read(file, &facts, &err), 0);
	hash_cache_add(cache, file, &facts, &HASH, facts.ctime_ns / MS + HASH_CACHE_REST_MS + 1);
	ck_assert_int_eq(hash_cache_hash(cache, file, NULL, &second, &err), 0);
	ck_assert(chunk_id_equal(&second, &HASH)); /* it was not read again */
	hash_cache_close(cache);
	free(file);
}
END_TEST

Suite *test_hash_cache_suite(void);
Suite *test_hash_cache_suite(void)
{
	Suite *const suite = suite_create("hash_cache");
	TCase *const tests = tcase_create("hash_cache");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, any_change_of_a_file_is_seen);
	tcase_add_test(tests, a_file_that_was_just_written_is_not_remembered);
	tcase_add_test(tests, what_another_process_wrote_meanwhile_stays);
	tcase_add_test(tests, damage_costs_the_records_it_hits);
	tcase_add_test(tests, it_grows_past_its_first_table_and_stays_bounded);
	tcase_add_test(tests, a_real_file_is_read_once);
	suite_add_tcase(suite, tests);
	return suite;
}
