/* One pack on its way through gc, step by step: what happens to it in between, and what is known of
 * it afterwards. */
#include "storage/upkeep/gc_pack.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "chunker/chunk_hash.h"
#include "storage/core/store.h"
#include "tests/unit/storage/store_fixture.h"
#include "tests/unit/unit.h"

Suite *test_gc_pack_suite(void);

enum { OBJECTS = 20, BYTES = 8000 };

static struct store_fixture fixture;
static struct error err;
static bool is_closing;
static struct gc_report report;

static bool goes_on(void *owner, size_t bytes)
{
	(void)owner, (void)bytes;
	return !is_closing;
}

static struct gc_work new_work(void)
{
	return (struct gc_work){.store = fixture.store,
		.report = &report,
		.live_percent = 90,
		.is_asked = true,
		.pace.spend = goes_on};
}

static uint8_t *bytes_of(unsigned number)
{
	return fixture_noise(BYTES, 1000 + 17 * number);
}

static const char *key_of(unsigned number)
{
	static char key[16];
	snprintf(key, sizeof key, "k%u", number);
	return key;
}

static void delete_objects(unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++)
		ck_assert_int_eq(fixture_delete(fixture.store, "bucket", key_of(i), NULL, &err), 0);
}

/* All objects lie in one pack, which is sealed. */
static void set_up(void)
{
	fixture = (struct store_fixture){0};
	report = (struct gc_report){0};
	is_closing = false;
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket", "main", &err), 0);
	for (unsigned i = 0; i < OBJECTS; i++) {
		uint8_t *bytes = bytes_of(i);
		ck_assert_msg(fixture_put(fixture.store, "bucket", key_of(i), span_of(bytes, BYTES),
				      &err) == 0,
			"%s", err.text);
		free(bytes);
	}
	store_fixture_reopen(&fixture);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM packs"), 1);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
}

static void rest(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static struct gc_pack *look(const struct gc_work *work)
{
	struct gc_pack *pack = NULL;
	for (int i = 0; i < 1000 && pack == NULL; i++, rest())
		pack = gc_pack_look(work, 1);
	ck_assert_ptr_nonnull(pack);
	return pack;
}

static void advance_to(const struct gc_work *work, struct gc_pack *pack, enum gc_stage stage)
{
	for (int i = 0; i < 5000 && pack->stage != stage; i++)
		if (!gc_pack_advance(work, pack))
			rest();
	ck_assert_int_eq(pack->stage, stage);
}

static bool is_due(void)
{
	int64_t due[2];
	size_t count = pack_touches_due(store_pack_touches(fixture.store), 0, due, 2);
	return count == 1 && due[0] == 1;
}

static bool is_found(unsigned number)
{
	struct chunk_place place;
	uint8_t *bytes = bytes_of(number);
	const struct chunk_id id = chunk_hash(span_of(bytes, BYTES));
	free(bytes);
	return chunk_index_find(store_chunk_index(fixture.store), &id, &place);
}

static bool holds(unsigned number)
{
	uint8_t *bytes = bytes_of(number);
	bool result = fixture_holds(&fixture, "bucket", key_of(number), span_of(bytes, BYTES));
	free(bytes);
	return result;
}

START_TEST(what_a_compacted_pack_lost_is_not_looked_for_any_more)
{
	const struct gc_work work = new_work();
	ck_assert(is_found(0) && is_found(5));
	delete_objects(1, OBJECTS);
	struct gc_pack *pack = look(&work);
	ck_assert(!pack->deletes);
	advance_to(&work, pack, GC_DONE);
	gc_pack_close(&work, pack);
	ck_assert_uint_eq(report.packs_compacted, 1);
	ck_assert(is_found(0));
	for (unsigned i = 1; i < OBJECTS; i++)
		ck_assert(!is_found(i));
	ck_assert(!is_due());
	ck_assert(holds(0));
}
END_TEST

/* The last object goes before the pack is looked at again. */
START_TEST(a_pack_that_is_empty_by_then_goes_as_a_whole)
{
	const struct gc_work work = new_work();
	delete_objects(1, OBJECTS);
	struct gc_pack *pack = look(&work);
	ck_assert(!pack->deletes);
	advance_to(&work, pack, GC_VIEW);
	delete_objects(0, 1);
	advance_to(&work, pack, GC_DONE);
	gc_pack_close(&work, pack);
	ck_assert_uint_eq(report.packs_deleted, 1);
	ck_assert_uint_eq(report.packs_compacted, 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM packs"), 0);
}
END_TEST

START_TEST(a_look_that_was_broken_off_is_made_again)
{
	const struct gc_work work = new_work();
	ck_assert_ptr_null(gc_pack_look(&work, 1)); /* all of it lives */
	ck_assert(!is_due());
	delete_objects(1, OBJECTS);
	ck_assert(is_due());
	is_closing = true;
	ck_assert_ptr_null(gc_pack_look(&work, 1));
	ck_assert(is_due());
	is_closing = false;
	struct gc_pack *pack = look(&work);
	ck_assert(!is_due());
	gc_pack_close(&work, pack);
	ck_assert(is_due());
}
END_TEST

START_TEST(a_compaction_that_was_broken_off_is_made_again)
{
	const struct gc_work work = new_work();
	delete_objects(1, OBJECTS);
	struct gc_pack *pack = look(&work);
	advance_to(&work, pack, GC_ACT);
	ck_assert(!is_due());
	is_closing = true;
	advance_to(&work, pack, GC_DONE);
	gc_pack_close(&work, pack);
	ck_assert_uint_eq(report.packs_compacted, 0);
	ck_assert(is_due());
	ck_assert(holds(0));
	is_closing = false;
	pack = look(&work);
	advance_to(&work, pack, GC_DONE);
	gc_pack_close(&work, pack);
	ck_assert_uint_eq(report.packs_compacted, 1);
	ck_assert(holds(0));
}
END_TEST

Suite *test_gc_pack_suite(void)
{
	Suite *suite = suite_create("gc_pack");
	TCase *all = tcase_create("all");
	tcase_add_checked_fixture(all, set_up, tear_down);
	tcase_add_test(all, what_a_compacted_pack_lost_is_not_looked_for_any_more);
	tcase_add_test(all, a_pack_that_is_empty_by_then_goes_as_a_whole);
	tcase_add_test(all, a_look_that_was_broken_off_is_made_again);
	tcase_add_test(all, a_compaction_that_was_broken_off_is_made_again);
	suite_add_tcase(suite, all);
	return suite;
}
