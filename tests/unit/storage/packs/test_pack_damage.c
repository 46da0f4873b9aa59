#include "storage/packs/pack_damage.h"

#include <string.h>

#include "storage/packs/pack_cache.h"
#include "tests/unit/unit.h"

Suite *test_pack_damage_suite(void);

static struct pack_damage *damage;
static struct heard {
	unsigned noted;
	unsigned forgotten;
	uint32_t first;
	uint32_t count;
} heard;

static struct pack_id pack_of(uint8_t number)
{
	struct pack_id pack = {{0}};
	pack.bytes[PACK_ID_BYTES - 1] = number;
	return pack;
}

static void hear_noted(void *owner, const struct pack_id *pack, uint32_t chunk)
{
	(void)owner, (void)pack;
	heard.noted++;
	heard.first = chunk;
}

static void hear_forgotten(void *owner, const struct pack_id *pack, uint32_t first, uint32_t count)
{
	(void)owner, (void)pack;
	heard.forgotten++;
	heard.first = first;
	heard.count = count;
}

static void set_up(void)
{
	const struct pack_damage_listener listener = {
		.noted = hear_noted, .forgotten = hear_forgotten};
	damage = pack_damage_new();
	pack_damage_listen(damage, &listener);
	heard = (struct heard){0};
}

static void tear_down(void)
{
	pack_damage_free(damage);
}

START_TEST(runs_have_what_was_noted_of_their_pack)
{
	static const uint32_t chunks[] = {40, 7, 4000, 0, 8};
	for (uint8_t number = 3; number > 0; number--)
		for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
			const struct pack_id pack = pack_of(number);
			pack_damage_note(damage, &pack, chunks[i] + number);
		}
	for (uint8_t number = 1; number <= 3; number++) {
		const struct pack_id pack = pack_of(number);
		for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++)
			ck_assert(pack_damage_has(damage, &pack, chunks[i] + number, 1));
		ck_assert(pack_damage_has(damage, &pack, 0, UINT32_MAX));
		ck_assert(pack_damage_has(damage, &pack, 39, 5));
		ck_assert(!pack_damage_has(damage, &pack, 0, number));
		ck_assert(!pack_damage_has(damage, &pack, 41 + number, 3900));
		ck_assert(!pack_damage_has(damage, &pack, 4001 + number, UINT32_MAX));
	}
	const struct pack_id other = pack_of(4);
	ck_assert(!pack_damage_has(damage, &other, 0, UINT32_MAX));
	ck_assert_uint_eq(heard.noted, 15);
}
END_TEST

START_TEST(each_is_told_of_once)
{
	const struct pack_id pack = pack_of(1);
	const struct pack_id other = pack_of(2);
	ck_assert(!pack_damage_is_known(damage));
	for (uint32_t chunk = 10; chunk < 20; chunk++) {
		pack_damage_note(damage, &pack, chunk);
		pack_damage_note(damage, &pack, chunk);
	}
	pack_damage_note(damage, &other, 12);
	ck_assert_uint_eq(heard.noted, 11);
	pack_damage_forget(damage, &pack, 12, 4);
	pack_damage_forget(damage, &pack, 12, 4);
	ck_assert(heard.forgotten == 1 && heard.first == 12 && heard.count == 4);
	ck_assert(!pack_damage_has(damage, &pack, 12, 4));
	ck_assert(pack_damage_has(damage, &pack, 11, 1) && pack_damage_has(damage, &pack, 16, 1));
	ck_assert(pack_damage_has(damage, &other, 12, 1));
	pack_damage_forget(damage, &pack, 0, UINT32_MAX);
	pack_damage_forget(damage, &other, 12, 1);
	ck_assert(!pack_damage_is_known(damage));
}
END_TEST

START_TEST(they_are_bounded)
{
	const struct pack_id pack = pack_of(1);
	for (uint32_t chunk = 0; chunk <= PACK_DAMAGE_MAX; chunk++)
		pack_damage_note(damage, &pack, chunk);
	ck_assert_uint_eq(heard.noted, PACK_DAMAGE_MAX);
	ck_assert(pack_damage_has(damage, &pack, PACK_DAMAGE_MAX - 1, 1) &&
		!pack_damage_has(damage, &pack, PACK_DAMAGE_MAX, 1));
	pack_damage_forget(damage, &pack, 0, 1);
	pack_damage_note(damage, &pack, PACK_DAMAGE_MAX);
	ck_assert(pack_damage_has(damage, &pack, PACK_DAMAGE_MAX, 1));
}
END_TEST

/* The mark is another one after each note, also when the same chunk is damaged again. */
START_TEST(each_note_has_a_mark)
{
	const struct pack_id pack = pack_of(1);
	uint64_t marks[3];
	const uint64_t changes = pack_damage_changes(damage);
	ck_assert_uint_eq(pack_damage_mark(damage), 0);
	for (size_t i = 0; i < 3; i++) {
		pack_damage_note(damage, &pack, 7);
		marks[i] = pack_damage_mark(damage);
		pack_damage_note(damage, &pack, 7);
		ck_assert(marks[i] != 0 && pack_damage_mark(damage) == marks[i]);
		pack_damage_note(damage, &pack, 8);
		ck_assert_uint_ne(pack_damage_mark(damage), marks[i]);
		pack_damage_forget(damage, &pack, 7, 1);
		ck_assert_uint_ne(pack_damage_mark(damage), 0);
		pack_damage_forget(damage, &pack, 8, 1);
		ck_assert_uint_eq(pack_damage_mark(damage), 0);
	}
	ck_assert(marks[0] != marks[1] && marks[1] != marks[2] && marks[0] != marks[2]);
	ck_assert_uint_eq(pack_damage_changes(damage), changes + 12);
	struct pack_damage *const other = pack_damage_new();
	pack_damage_note(other, &pack, 7);
	ck_assert_uint_ne(pack_damage_mark(other), marks[0]);
	pack_damage_free(other);
}
END_TEST

/* The bits of the chunks, in packs that were there at the start. */
START_TEST(chunks_are_checked_one_by_one)
{
	const struct pack_cache_limits limits = {1024, 4};
	const struct pack_record record = {.id = pack_of(9), .state = PACK_SEALED};
	const struct pack_id written = pack_of(8);
	const struct pack_id unknown = pack_of(7);
	struct backend *backend = backend_memory_new();
	struct pack_cache *cache = pack_cache_new(backend, &limits);
	pack_cache_add_record(cache, &record);
	pack_cache_add(cache, &written, 64, NULL, PACK_CACHE_SAVED);
	ck_assert(!pack_cache_is_checked(cache, &record.id, 0, 1) &&
		!pack_cache_is_checked(cache, &unknown, 0, 1));
	ck_assert(pack_cache_is_checked(cache, &written, 0, 30000));
	pack_cache_set_checked(cache, &record.id, 3, 14);
	pack_cache_set_checked(cache, &record.id, 900, 1);
	pack_cache_set_checked(cache, &unknown, 0, 1);
	ck_assert(pack_cache_is_checked(cache, &record.id, 3, 14) &&
		pack_cache_is_checked(cache, &record.id, 900, 1));
	/* only both ends are checked */
	ck_assert(!pack_cache_is_checked(cache, &record.id, 3, 898));
	ck_assert(!pack_cache_is_checked(cache, &record.id, 2, 2) &&
		!pack_cache_is_checked(cache, &record.id, 16, 2));
	ck_assert(!pack_cache_is_checked(cache, &record.id, 899, 1) &&
		!pack_cache_is_checked(cache, &record.id, 901, 1));
	ck_assert(!pack_cache_is_checked(cache, &unknown, 0, 1));
	pack_cache_doubt(cache, &record.id);
	pack_cache_doubt(cache, &written);
	ck_assert(!pack_cache_is_checked(cache, &record.id, 5, 1) &&
		!pack_cache_is_checked(cache, &written, 5, 1));
	pack_cache_set_checked(cache, &written, 5, 1);
	ck_assert(pack_cache_is_checked(cache, &written, 5, 1) &&
		!pack_cache_is_checked(cache, &written, 6, 1));
	pack_cache_free(cache);
	backend->ops->free(backend);
}
END_TEST

Suite *test_pack_damage_suite(void)
{
	Suite *suite = suite_create("pack_damage");
	TCase *tests = tcase_create("all");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, runs_have_what_was_noted_of_their_pack);
	tcase_add_test(tests, each_is_told_of_once);
	tcase_add_test(tests, they_are_bounded);
	tcase_add_test(tests, each_note_has_a_mark);
	tcase_add_test(tests, chunks_are_checked_one_by_one);
	suite_add_tcase(suite, tests);
	return suite;
}
