/* The table of packs: which are known, held and worked on, and what leaves it when memory is
 * short. */
#include "storage/packs/pack_cache.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

Suite *test_pack_cache_suite(void);

enum { MANY = 300, LENGTH = 1000 };

static struct backend *backend;
static struct pack_cache *cache;

static struct pack_id pack_of(unsigned number)
{
	struct pack_id pack = {{0}};
	/* more packs than buckets, so that some share one */
	pack.bytes[0] = (uint8_t)(number * UINT32_C(2654435761) >> 24);
	pack.bytes[PACK_ID_BYTES - 2] = (uint8_t)(number >> 8);
	pack.bytes[PACK_ID_BYTES - 1] = (uint8_t)number;
	return pack;
}

static void set_up(void)
{
	const struct pack_cache_limits limits = {1 << 20, 4};
	backend = backend_memory_new();
	cache = pack_cache_new(backend, &limits);
}

static void tear_down(void)
{
	pack_cache_free(cache);
	backend->ops->free(backend);
}

static void add_record(const struct pack_id *pack, enum pack_state state)
{
	const struct pack_record record = {.id = *pack, .state = state, .length = LENGTH};
	pack_cache_add_record(cache, &record);
}

static struct pack_index *index_in(const struct pack_id *pack, const struct pack_id *file)
{
	struct pack_index *index = pack_index_new(pack);
	index->file = *file;
	return index;
}

static size_t count_known(void)
{
	struct pack_id *packs;
	size_t count = pack_cache_list(cache, &packs);
	for (size_t i = 0; i < count; i++)
		ck_assert(pack_cache_knows(cache, &packs[i]));
	free(packs);
	return count;
}

START_TEST(each_of_many_is_known_until_it_goes)
{
	for (unsigned i = 0; i < MANY; i++) {
		const struct pack_id pack = pack_of(i);
		add_record(&pack, PACK_SEALED);
	}
	ck_assert_uint_eq(count_known(), MANY);
	for (unsigned i = 0; i < MANY; i += 2) {
		const struct pack_id pack = pack_of(i);
		pack_cache_remove(cache, &pack, NULL);
	}
	for (unsigned i = 0; i < MANY; i++) {
		const struct pack_id pack = pack_of(i);
		ck_assert_int_eq(pack_cache_knows(cache, &pack), i % 2);
	}
	ck_assert_uint_eq(count_known(), MANY / 2);
}
END_TEST

START_TEST(a_pack_that_goes_tells_its_file)
{
	const struct pack_id pack = pack_of(1), file = pack_of(2), unknown = pack_of(3);
	const struct pack_record record = {
		.id = pack, .file = file, .state = PACK_SEALED, .length = LENGTH};
	struct pack_id told;
	pack_cache_add_record(cache, &record);
	pack_cache_remove(cache, &pack, &told);
	ck_assert(pack_id_equal(&told, &file));
	pack_cache_remove(cache, &unknown, &told);
	ck_assert(pack_id_equal(&told, &unknown));
}
END_TEST

/* As gc left it when the process ended. */
START_TEST(nothing_refers_to_a_condemned_pack)
{
	const struct pack_id sealed = pack_of(1), condemned = pack_of(2), unknown = pack_of(3);
	add_record(&sealed, PACK_SEALED);
	add_record(&condemned, PACK_CONDEMNED);
	ck_assert(pack_cache_refer(cache, &sealed));
	ck_assert(!pack_cache_refer(cache, &condemned) && !pack_cache_refer(cache, &unknown));
	pack_cache_retire(cache, &condemned, false);
	ck_assert(pack_cache_refer(cache, &condemned));
	pack_cache_unrefer(cache, &sealed);
	ck_assert(!pack_cache_is_referred(cache, &sealed) &&
		pack_cache_is_referred(cache, &condemned));
	pack_cache_unrefer(cache, &condemned);
}
END_TEST

/* A hold outlives the pack: its owner can release it afterwards. */
START_TEST(a_held_pack_is_not_known_once_it_went)
{
	const struct pack_id pack = pack_of(1);
	add_record(&pack, PACK_SEALED);
	ck_assert(pack_cache_refer(cache, &pack));
	const unsigned turn = pack_cache_hold(cache, &pack);
	pack_cache_remove(cache, &pack, NULL);
	ck_assert(!pack_cache_knows(cache, &pack) && pack_cache_is_held(cache, &pack));
	ck_assert_uint_eq(count_known(), 0);
	pack_cache_unrefer(cache, &pack);
	ck_assert(!pack_cache_is_referred(cache, &pack) && pack_cache_is_held(cache, &pack));
	pack_cache_unhold(cache, &pack, turn);
	ck_assert(!pack_cache_is_held(cache, &pack));
}
END_TEST

/* The index lives as long as somebody may look into it. */
START_TEST(a_pinned_pack_that_went_keeps_its_index)
{
	const struct pack_id pack = pack_of(1);
	struct error err = {0};
	pack_cache_add(cache, &pack, LENGTH, pack_index_new(&pack), PACK_CACHE_SAVED);
	struct pack *pinned = pack_cache_pin(cache, &pack, false, &err);
	pack_cache_remove(cache, &pack, NULL);
	ck_assert(!pack_cache_knows(cache, &pack));
	ck_assert_uint_gt(pack_cache_index_bytes(cache), 0);
	pack_cache_unpin(cache, pinned);
	ck_assert_uint_eq(pack_cache_index_bytes(cache), 0);
}
END_TEST

/* Present holds continue. */
START_TEST(holds_go_on_in_the_new_file)
{
	const struct pack_id pack = pack_of(1), file = pack_of(2);
	add_record(&pack, PACK_SEALED);
	const unsigned before = pack_cache_hold(cache, &pack);
	ck_assert(pack_cache_refer(cache, &pack) && pack_cache_turn(cache, &pack));
	const unsigned later = pack_cache_hold(cache, &pack);
	ck_assert_uint_ne(before, later);
	pack_cache_retire(cache, &pack, true);
	pack_cache_replace(cache, &pack, index_in(&pack, &file));
	ck_assert(pack_cache_is_referred(cache, &pack) && !pack_cache_refer(cache, &pack));
	ck_assert(pack_cache_is_read_from_before(cache, &pack) && !pack_cache_turn(cache, &pack));
	ck_assert_uint_eq(pack_cache_hold(cache, &pack), later);
	pack_cache_unhold(cache, &pack, later);
	pack_cache_unhold(cache, &pack, before);
	ck_assert(
		!pack_cache_is_read_from_before(cache, &pack) && pack_cache_is_held(cache, &pack));
	pack_cache_unhold(cache, &pack, later);
	pack_cache_unrefer(cache, &pack);
	ck_assert(!pack_cache_is_held(cache, &pack) && pack_cache_knows(cache, &pack));
}
END_TEST

/* A compaction has read everything that it wrote; a mend has copied records unread. */
START_TEST(a_mended_pack_has_another_form_and_is_unchecked)
{
	const struct pack_id pack = pack_of(1), file = pack_of(2), unknown = pack_of(3);
	add_record(&pack, PACK_SEALED);
	ck_assert_uint_eq(pack_cache_form(cache, &pack), 0);
	pack_cache_replace(cache, &pack, index_in(&pack, &file));
	ck_assert(pack_cache_form(cache, &pack) == 0 && pack_cache_is_checked(cache, &pack, 0, 9));
	for (unsigned form = 1; form < 4; form++) {
		pack_cache_reform(cache, &pack, index_in(&pack, &file));
		ck_assert(pack_cache_form(cache, &pack) == form &&
			!pack_cache_is_checked(cache, &pack, 0, 1));
	}
	pack_cache_replace(cache, &pack, index_in(&pack, &file));
	ck_assert_uint_eq(pack_cache_form(cache, &pack), 3);
	ck_assert_uint_eq(pack_cache_form(cache, &unknown), 0);
}
END_TEST

START_TEST(files_of_known_packs_are_left_out)
{
	const struct pack_id pack = pack_of(1), file = pack_of(2), gone = pack_of(5);
	const struct pack_record record = {
		.id = pack, .file = file, .state = PACK_SEALED, .length = LENGTH};
	struct pack_id files[] = {
		pack_of(9), pack_of(2), pack_of(5), pack_of(1), pack_of(4), pack_of(8)};
	size_t count = sizeof files / sizeof *files;
	pack_cache_add_record(cache, &record);
	add_record(&gone, PACK_SEALED);
	const unsigned turn = pack_cache_hold(cache, &gone);
	pack_cache_remove(cache, &gone, NULL); /* it lives for its reader alone */
	pack_cache_leave_out(cache, files, &count);
	ck_assert_uint_eq(count, 5);
	for (size_t i = 0; i < count; i++)
		ck_assert(!pack_id_equal(&files[i], &file));
	pack_cache_unhold(cache, &gone, turn);
	count = 0;
	pack_cache_leave_out(cache, files, &count);
	ck_assert_uint_eq(count, 0);
}
END_TEST

static void extend(const struct pack_id *pack, uint32_t expected_first)
{
	const struct pack_entry entries[2] = {
		{.size = 100, .stored = 100}, {.size = 200, .stored = 200}};
	const struct chunk_id xorb = {{1}};
	const struct pack_extension extension = pack_cache_extend(cache, pack, &xorb, entries, 2);
	ck_assert_uint_eq(extension.first, expected_first);
}

/* An index that exists nowhere else stays, however little room there is. */
START_TEST(indexes_that_are_not_saved_stay)
{
	const struct pack_cache_limits limits = {1, 1};
	const struct pack_id growing = pack_of(1), unsaved = pack_of(2), saved = pack_of(3);
	struct error err = {0};
	pack_cache_free(cache);
	cache = pack_cache_new(backend, &limits);
	pack_cache_add(cache, &growing, LENGTH, pack_index_new(&growing), PACK_CACHE_GROWING);
	pack_cache_add(cache, &unsaved, LENGTH, pack_index_new(&unsaved), PACK_CACHE_UNSAVED);
	pack_cache_add(cache, &saved, LENGTH, pack_index_new(&saved), PACK_CACHE_SAVED);
	for (uint32_t i = 0; i < 20; i++)
		extend(&growing, 2 * i);
	const size_t bytes = pack_cache_index_bytes(cache);
	struct pack *pinned = pack_cache_pin(cache, &unsaved, false, &err);
	ck_assert_msg(pinned != NULL, "%s", err.text);
	ck_assert_ptr_nonnull(pack_cache_sealed_index(cache, pinned));
	pack_cache_unpin(cache, pinned);
	pinned = pack_cache_pin(cache, &growing, false, &err);
	ck_assert_msg(
		pinned != NULL && pack_cache_sealed_index(cache, pinned) == NULL, "%s", err.text);
	pack_cache_unpin(cache, pinned);
	/* it was dropped, and there is no file to make it from */
	ck_assert_ptr_null(pack_cache_pin(cache, &saved, false, &err));
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	pack_cache_set_mode(cache, &unsaved, PACK_CACHE_SAVED);
	ck_assert_uint_lt(pack_cache_index_bytes(cache), bytes);
	pack_cache_remove(cache, &growing, NULL);
	ck_assert_uint_eq(pack_cache_index_bytes(cache), 0);
}
END_TEST

START_TEST(a_cut_pack_goes_on_where_it_was_cut)
{
	const struct pack_id pack = pack_of(1);
	struct pack_entry entries[8];
	struct error err = {0};
	pack_cache_add(cache, &pack, LENGTH, pack_index_new(&pack), PACK_CACHE_GROWING);
	extend(&pack, 0);
	extend(&pack, 2);
	pack_cache_cut(cache, &pack, 2);
	struct pack *pinned = pack_cache_pin(cache, &pack, false, &err);
	ck_assert_uint_eq(pack_cache_copy_entries(cache, pinned, 0, entries, 8), 2);
	ck_assert_uint_eq(pack_cache_copy_entries(cache, pinned, 2, entries, 8), 0);
	pack_cache_unpin(cache, pinned);
	extend(&pack, 2);
	ck_assert_int_eq(pack_cache_mode(cache, &pack), PACK_CACHE_GROWING);
	pack_cache_remove(cache, &pack, NULL);
	ck_assert_int_eq(pack_cache_mode(cache, &pack), PACK_CACHE_SAVED);
}
END_TEST

Suite *test_pack_cache_suite(void)
{
	Suite *suite = suite_create("pack_cache");
	TCase *tests = tcase_create("pack_cache");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, each_of_many_is_known_until_it_goes);
	tcase_add_test(tests, a_pack_that_goes_tells_its_file);
	tcase_add_test(tests, nothing_refers_to_a_condemned_pack);
	tcase_add_test(tests, a_held_pack_is_not_known_once_it_went);
	tcase_add_test(tests, a_pinned_pack_that_went_keeps_its_index);
	tcase_add_test(tests, holds_go_on_in_the_new_file);
	tcase_add_test(tests, a_mended_pack_has_another_form_and_is_unchecked);
	tcase_add_test(tests, files_of_known_packs_are_left_out);
	tcase_add_test(tests, indexes_that_are_not_saved_stay);
	tcase_add_test(tests, a_cut_pack_goes_on_where_it_was_cut);
	suite_add_tcase(suite, tests);
	return suite;
}
