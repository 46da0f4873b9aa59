/* Files that no row names: which of them a start removes as garbage, which it sets aside, and which
 * it brings back. */
#include "storage/packs/pack_recovery.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "storage/packs/pack_store_parts.h"
#include "tests/unit/power_disk.h"
#include "tests/unit/storage/pack_fixture.h"
#include "tests/unit/unit.h"

enum { LIFE = 7 };

static const struct pack_origin ours = {.store = {9, 8, 7, 6, 5, 4, 3, 2}, .life = LIFE};
static const struct pack_id stray = {{0x3a, 1}};
static struct pack_fixture fixture;

static void set_up(void)
{
	pack_fixture_open(&fixture, PACK_FIXTURE_FOLDER, 0);
}

static void tear_down(void)
{
	pack_fixture_close(&fixture);
}

/* Gives "<folder>/xx/<name>" or "<folder>/<name>". */
static bool is_at(const char *folder, bool in_part, const char *name)
{
	char path[8192];
	if (in_part)
		snprintf(path, sizeof path, "%s/%.2s/%s", folder, name, name);
	else
		snprintf(path, sizeof path, "%s/%s", folder, name);
	return file_exists(path);
}

static bool is_there(const char *name)
{
	return is_at(fixture.packs_folder, true, name);
}

static bool is_aside(const char *name)
{
	return is_at(fixture.aside_folder, false, name);
}

static void put_file(const char *name, struct span bytes)
{
	char path[8192];
	struct error err = {0};
	snprintf(path, sizeof path, "%s/%.2s", fixture.packs_folder, name);
	ck_assert_int_eq(file_make_folder(file_system(), path, 0700, &err), 0);
	snprintf(path, sizeof path, "%s/%.2s/%s", fixture.packs_folder, name, name);
	ck_assert_int_eq(file_place(file_system(), path, bytes, 0600, &err), 0);
}

static void put_pack(const struct pack_id *id, const struct pack_origin *origin)
{
	char name[PACK_NAME_BYTES];
	uint8_t bytes[PACK_HEADER_BYTES + 100] = {0};
	pack_format_put_header(id, origin, bytes);
	pack_format_name(id, PACK_FILE_PACK, name);
	put_file(name, span_of(bytes, sizeof bytes));
}

static char stray_name[PACK_NAME_BYTES];

static const char *name_of(const struct pack_id *id)
{
	pack_format_name(id, PACK_FILE_PACK, stray_name);
	return stray_name;
}

/* The origin in the stray's header, what is known of the life that ended, and the fate of the
 * stray. */
static const struct {
	struct pack_origin origin;
	bool is_whole;
	bool goes;
} fates[] = {
	{{{9, 8, 7, 6, 5, 4, 3, 2}, LIFE}, true, true},
	/* not everything that was acknowledged is there */
	{{{9, 8, 7, 6, 5, 4, 3, 2}, LIFE}, false, false},
	{{{9, 8, 7, 6, 5, 4, 3, 2}, LIFE - 1}, true, false}, /* of an earlier life */
	{{{9, 8, 7, 6, 5, 4, 3, 2}, LIFE + 1}, true, false}, /* of a later life */
	{{{9, 8, 7, 6, 5, 4, 3, 1}, LIFE}, true, false},     /* of another store */
	{{{0}, 0}, true, false},                             /* from before stores had ids */
	{{{0}, LIFE}, true, false},
};

START_TEST(only_what_the_last_life_left_is_refuse)
{
	put_pack(&stray, &fates[_i].origin);
	pack_fixture_reopen_as(&fixture, &ours, fates[_i].is_whole);
	ck_assert(!is_there(name_of(&stray)));
	ck_assert_int_eq(is_aside(name_of(&stray)), !fates[_i].goes);
	ck_assert_uint_eq(fixture.facts.unnamed, 1);
	ck_assert_uint_eq(fixture.facts.foreign, _i == 4);
	ck_assert_uint_eq(fixture.facts.newest_life, _i < 4 ? fates[_i].origin.life : 0);
}
END_TEST

START_TEST(a_damaged_header_proves_nothing)
{
	char path[8192];
	put_pack(&stray, &ours);
	snprintf(path, sizeof path, "%s/3a/%s", fixture.packs_folder, name_of(&stray));
	pack_fixture_flip(path, 20);
	pack_fixture_reopen_as(&fixture, &ours, true);
	ck_assert(!is_there(name_of(&stray)) && is_aside(name_of(&stray)));
	put_file("5b000000000000000000000000000000.pack", span_text("short"));
	pack_fixture_reopen_as(&fixture, &ours, true);
	ck_assert(is_aside("5b000000000000000000000000000000.pack"));
}
END_TEST

/* Zeros are not an id, neither in a pack nor for a store. */
START_TEST(a_store_without_an_id_made_nothing)
{
	static const struct pack_origin none = {{0}, LIFE};
	put_pack(&stray, &none);
	pack_fixture_reopen_as(&fixture, &none, true);
	ck_assert(!is_there(name_of(&stray)) && is_aside(name_of(&stray)));
	ck_assert_uint_eq(fixture.facts.newest_life, 0);
}
END_TEST

START_TEST(an_empty_file_goes_only_from_a_store_without_damage)
{
	put_file(name_of(&stray), span_of("", 0));
	pack_fixture_reopen_as(&fixture, &ours, _i == 1);
	ck_assert(!is_there(name_of(&stray)));
	ck_assert_int_eq(is_aside(name_of(&stray)), _i == 0);
}
END_TEST

START_TEST(what_gc_has_given_up_goes_whoever_made_it)
{
	struct pack_id removals[] = {{{1}}, stray};
	const struct pack_origin other = {.store = {1}, .life = 3};
	fixture.removals = removals;
	fixture.removal_count = 2;
	put_pack(&stray, &other);
	put_file("3a010000000000000000000000000000.index", span_text("index"));
	pack_fixture_reopen_as(&fixture, &ours, false);
	ck_assert(!is_there(name_of(&stray)) && !is_aside(name_of(&stray)));
	ck_assert_uint_eq(pack_fixture_file_count(&fixture), 0);
}
END_TEST

START_TEST(copies_go_only_from_a_store_without_damage)
{
	static const char *const copies[] = {"00112233445566778899aabbccddeeff.index",
		"ff112233445566778899aabbccddeeff.index.tmp-abcdef"};
	for (size_t i = 0; i < 2; i++)
		put_file(copies[i], span_text("x"));
	put_file("notes.txt", span_text("x"));
	pack_fixture_reopen_as(&fixture, &ours, _i == 1);
	for (size_t i = 0; i < 2; i++) {
		ck_assert(!is_there(copies[i]));
		ck_assert_int_eq(is_aside(copies[i]), _i == 0);
	}
	ck_assert(is_there("notes.txt")); /* does not belong to the store */
}
END_TEST

/* First a catalog that does not name a pack, and then the one that does. */
START_TEST(what_is_named_again_comes_back_and_is_read)
{
	uint8_t *bytes = fixture_bytes(FIXTURE_RANDOM, 3, 300000);
	struct stored_stream stream;
	pack_fixture_put(&fixture, span_of(bytes, 300000), 5, &stream);
	size_t count = fixture.record_count;
	struct pack_id id = fixture.records[count - 1].id;
	fixture.record_count--;
	pack_fixture_reopen_as(&fixture, &ours, true);
	ck_assert(is_aside(name_of(&id)) && !is_there(name_of(&id)));
	ck_assert_uint_eq(fixture.facts.unnamed, 1);
	fixture.record_count = count;
	pack_fixture_reopen_as(&fixture, &ours, true);
	ck_assert(!is_aside(name_of(&id)) && is_there(name_of(&id)));
	ck_assert_uint_eq(fixture.facts.missing, 0);
	pack_fixture_expect(&fixture, &stream, span_of(bytes, 300000));
	stored_stream_release(&stream);
	free(bytes);
}
END_TEST

/* A file that was set aside under the same name never replaces one that is there. */
START_TEST(a_named_pack_that_is_there_is_left_alone)
{
	static const struct pack_id named = {{0x5d, 1}};
	char path[8192];
	struct error err = {0};
	uint64_t size = 0;
	put_pack(&named, &ours);
	ck_assert_int_eq(file_make_folder(file_system(), fixture.aside_folder, 0700, &err), 0);
	snprintf(path, sizeof path, "%s/%s", fixture.aside_folder, name_of(&named));
	ck_assert_int_eq(file_place(file_system(), path, span_text("another"), 0600, &err), 0);
	fixture.records = memory_grow(fixture.records, 1, sizeof *fixture.records);
	fixture.records[fixture.record_count++] =
		(struct pack_record){.id = named, .state = PACK_SEALED, .length = 100, .chunks = 1};
	pack_fixture_reopen_as(&fixture, &ours, true);
	ck_assert(is_aside(name_of(&named)));
	snprintf(path, sizeof path, "%s/5d/%s", fixture.packs_folder, name_of(&named));
	ck_assert_int_eq(file_size(path, &size, &err), 0);
	ck_assert_uint_eq(size, PACK_HEADER_BYTES + 100);
}
END_TEST

START_TEST(what_is_missing_is_counted)
{
	fixture.records = memory_grow(fixture.records, 1, sizeof *fixture.records);
	fixture.records[fixture.record_count++] = (struct pack_record){
		.id = {{0xab}}, .state = PACK_SEALED, .length = 500, .chunks = 1};
	pack_fixture_reopen_as(&fixture, &ours, true);
	ck_assert_uint_eq(fixture.facts.named, 1);
	ck_assert_uint_eq(fixture.facts.missing, 1);
}
END_TEST

/* The log's text for a pack that is not as the catalog knows it; NULL: nothing is logged. */
static const struct {
	enum pack_state state;
	int bytes_more;  /* than are committed */
	int chunks_more; /* in the catalog than in the pack */
	const char *told;
} differing[] = {
	{PACK_SEALED, 0, 0, NULL},
	{PACK_SEALED, 10, 0, NULL},
	{PACK_SEALED, -1, 0, "its file has"},
	{PACK_OPEN, 0, 0, NULL},
	{PACK_OPEN, -1, 0, "its file has"},
	{PACK_OPEN, 0, 1, "its footers count"},
	{PACK_OPEN, 0, -1, "its footers count"},
};

static void change_size(const struct pack_id *id, int by)
{
	char *file = pack_fixture_path(&fixture, id, "pack");
	struct error err = {0};
	uint64_t size = 0;
	ck_assert_int_eq(file_size(file, &size, &err), 0);
	ck_assert_int_eq(truncate(file, (off_t)size + by), 0);
	free(file);
}

static void expect_told(const char *path, const char *told)
{
	struct error err = {0};
	struct buffer text;
	buffer_init(&text, 100000);
	ck_assert_int_eq(file_read_all(path, &text, &err), 0);
	buffer_add_byte(&text, 0);
	ck_assert_msg((strstr((char *)text.data, "pack_damaged") != NULL) == (told != NULL), "%s",
		(char *)text.data);
	ck_assert(told == NULL || strstr((char *)text.data, told) != NULL);
	buffer_release(&text);
}

START_TEST(a_pack_that_is_not_as_the_catalog_knows_it_is_told)
{
	uint8_t *bytes = fixture_bytes(FIXTURE_RANDOM, 3, 300000);
	struct stored_stream stream;
	char path[4200];
	snprintf(path, sizeof path, "%s/log", fixture.scratch);
	const int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	pack_fixture_put(&fixture, span_of(bytes, 300000), 5, &stream);
	pack_fixture_settle(&fixture);
	struct pack_record *record = &fixture.records[fixture.record_count - 1];
	record->state = differing[_i].state;
	record->chunks = (uint32_t)((int)record->chunks + differing[_i].chunks_more);
	change_size(&record->id, differing[_i].bytes_more);
	fixture.log = log_new(fd, LOG_WARNING, false, NULL);
	pack_fixture_reopen_as(&fixture, &ours, true);
	expect_told(path, differing[_i].told);
	pack_fixture_settle(&fixture);
	stored_stream_release(&stream);
	free(bytes);
	pack_fixture_close(&fixture);
	log_free(fixture.log);
	close(fd);
	set_up(); /* for tear_down */
}
END_TEST

START_TEST(a_look_moves_nothing)
{
	const struct pack_names none = {NULL, 0, NULL, 0};
	struct error err = {0};
	put_pack(&stray, &ours);
	struct pack_recovery *recovery = pack_recovery_look(fixture.store, &none, &ours, &err);
	ck_assert_uint_eq(pack_recovery_facts(recovery)->unnamed, 1);
	pack_recovery_accept(recovery);
	pack_recovery_free(recovery);
	ck_assert(is_there(name_of(&stray)));
}
END_TEST

static bool is_in(const char *folder, const struct pack_id *id)
{
	char here[8192];
	char aside[8192];
	snprintf(here, sizeof here, "%s/packs/%02x/%s", folder, id->bytes[0], name_of(id));
	snprintf(aside, sizeof aside, "%s/set-aside/%s", folder, stray_name);
	return file_exists(here) || file_exists(aside);
}

/* One file that is garbage, one in doubt, one that is named and was set aside, with a power cut
 * before each operation. */
START_TEST(no_power_cut_loses_what_is_kept_or_brings_back_what_went)
{
	static const struct pack_id doubtful = {{0x4c, 1}};
	static const struct pack_id named = {{0x5d, 1}};
	static const struct pack_origin earlier = {
		.store = {9, 8, 7, 6, 5, 4, 3, 2}, .life = LIFE - 1};
	char path[8192];
	size_t count;
	put_pack(&stray, &ours);
	put_pack(&doubtful, &earlier);
	put_pack(&named, &earlier);
	struct error err = {0};
	ck_assert_int_eq(fixture.store->backend->ops->set_aside(
				 fixture.store->backend, name_of(&named), &err),
		0);
	fixture.records = memory_grow(fixture.records, 1, sizeof *fixture.records);
	fixture.records[fixture.record_count++] =
		(struct pack_record){.id = named, .state = PACK_SEALED, .length = 100, .chunks = 1};
	struct power_disk *disk = power_disk_new(fixture.scratch);
	power_disk_cut_each(disk, (enum power_cut)_i);
	fixture.faults.ops = *power_disk_files(disk);
	pack_fixture_reopen_as(&fixture, &ours, true);
	ck_assert_uint_eq(fixture.facts.missing, 0);
	power_disk_cut_now(disk, "nothing more");
	const struct power_taken *taken = power_disk_taken(disk, &count);
	ck_assert_uint_gt(count, 3);
	for (size_t i = 0; i < count; i++)
		ck_assert_msg(is_in(taken[i].folder, &doubtful) && is_in(taken[i].folder, &named),
			"cut before \"%s\"", taken[i].line);
	const char *last = taken[count - 1].folder;
	ck_assert(!is_in(last, &stray));
	snprintf(path, sizeof path, "%s/packs/5d/%s", last, name_of(&named));
	ck_assert(file_exists(path));
	snprintf(path, sizeof path, "%s/set-aside/%s", last, name_of(&doubtful));
	ck_assert(file_exists(path));
	file_faults_init(&fixture.faults, 0, 0, 0);
	pack_fixture_reopen_as(&fixture, &ours, true);
	power_disk_free(disk);
}
END_TEST

/* Wanted files come back before any file goes, and a file that cannot be moved stops the start. */
START_TEST(a_move_that_fails_is_told_and_nothing_goes_before)
{
	static const struct pack_id named = {{0x5d, 1}};
	struct error err = {0};
	struct pack_record *sealed = NULL;
	size_t count = 0;
	put_pack(&stray, &ours);
	put_pack(&named, &ours);
	ck_assert_int_eq(fixture.store->backend->ops->set_aside(
				 fixture.store->backend, name_of(&named), &err),
		0);
	const struct pack_record record = {
		.id = named, .state = PACK_SEALED, .length = 100, .chunks = 1};
	const struct pack_names names = {.records = &record, .record_count = 1};
	struct pack_recovery *recovery = pack_recovery_look(fixture.store, &names, &ours, &err);
	ck_assert_ptr_nonnull(recovery);
	fixture.faults.failure = EIO;
	fixture.faults.countdown = 0;
	fixture.faults.sticky = true;
	fixture.faults.kinds = FILE_FAULT_OPEN | FILE_FAULT_RENAME;
	ck_assert_int_eq(pack_recovery_settle(recovery, true, &sealed, &count, &err), -1);
	file_faults_init(&fixture.faults, 0, 0, 0);
	ck_assert(is_there(name_of(&stray)) && is_aside(name_of(&named)));
	pack_recovery_free(recovery);
}
END_TEST

Suite *test_pack_recovery_suite(void);
Suite *test_pack_recovery_suite(void)
{
	Suite *suite = suite_create("pack_recovery");
	TCase *tests = tcase_create("pack_recovery");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(
		tests, only_what_the_last_life_left_is_refuse, 0, sizeof fates / sizeof *fates);
	tcase_add_test(tests, a_damaged_header_proves_nothing);
	tcase_add_test(tests, a_store_without_an_id_made_nothing);
	tcase_add_loop_test(tests, an_empty_file_goes_only_from_a_store_without_damage, 0, 2);
	tcase_add_test(tests, what_gc_has_given_up_goes_whoever_made_it);
	tcase_add_loop_test(tests, copies_go_only_from_a_store_without_damage, 0, 2);
	tcase_add_test(tests, what_is_named_again_comes_back_and_is_read);
	tcase_add_test(tests, a_named_pack_that_is_there_is_left_alone);
	tcase_add_test(tests, what_is_missing_is_counted);
	tcase_add_loop_test(tests, a_pack_that_is_not_as_the_catalog_knows_it_is_told, 0,
		sizeof differing / sizeof *differing);
	tcase_add_test(tests, a_look_moves_nothing);
	tcase_add_loop_test(
		tests, no_power_cut_loses_what_is_kept_or_brings_back_what_went, 0, POWER_CUTS);
	tcase_add_test(tests, a_move_that_fails_is_told_and_nothing_goes_before);
	suite_add_tcase(suite, tests);
	return suite;
}
