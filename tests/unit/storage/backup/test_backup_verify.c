/* What is damaged or missing at the place is found, and put again where the store still has it; the
 * rest is told, with the moments that need it. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "storage/backup/backup_verify.h"
#include "tests/unit/storage/backup_fixture.h"

enum { SMALL = BACKUP_SMALL, LARGE = BACKUP_LARGE };

static struct backup_fixture fixture;
static struct backup_verified verified;
static bool has_hold;

static void set_up(void)
{
	backup_fixture_open(&fixture);
	has_hold = false;
}

static void tear_down(void)
{
	backup_verified_release(&verified);
	backup_fixture_close(&fixture);
}

static int take_hold(
	void *owner, const char *name, uint8_t out_id[BACKUP_HOLD_ID_BYTES], struct error *err)
{
	(void)owner, (void)name, (void)err;
	memset(out_id, 1, BACKUP_HOLD_ID_BYTES);
	has_hold = true;
	return 0;
}

static int end_hold(void *owner, const uint8_t id[BACKUP_HOLD_ID_BYTES], struct error *err)
{
	(void)owner, (void)id, (void)err;
	has_hold = false;
	return 0;
}

static bool goes_on(void *owner)
{
	(void)owner;
	ck_assert(has_hold);
	return true;
}

static int verify(bool has_identity)
{
	const struct backup_params params = {.folder = fixture.store.folder,
		.place = fixture.place,
		.files = file_system(),
		.identities = has_identity ? &fixture.identities : NULL,
		.holder = {.take = take_hold, .end = end_hold},
		.goes_on = goes_on};
	fixture.err = (struct error){0};
	backup_verified_release(&verified);
	return backup_verify(&params, &verified, &fixture.err);
}

static void expect(size_t mended, size_t lost, size_t touched)
{
	ck_assert_msg(verify(fixture.is_sealed) == 0, "%s", fixture.err.text);
	ck_assert(!has_hold);
	ck_assert_uint_eq(verified.mended.count, mended);
	ck_assert_uint_eq(verified.lost.count, lost);
	ck_assert_uint_eq(verified.touched.count, touched);
	backup_fixture_shell(fixture.place, "! ls about/reader-* 2>&-");
}

static void expect_back(void)
{
	struct store_fixture back;
	backup_fixture_bring(&fixture, &back);
	ck_assert_uint_eq(fixture.restored.lacks.count, 0);
	ck_assert(backup_fixture_holds(&back, "large", LARGE, 1) &&
		backup_fixture_holds(&back, "small", SMALL, 2));
	backup_fixture_drop(&back);
}

START_TEST(a_sound_place_is_read_whole)
{
	fixture.is_sealed = _i == 1;
	backup_fixture_make(&fixture);
	expect(0, 0, 0);
	ck_assert_uint_eq(verified.moments, 1);
	ck_assert_uint_eq(verified.pieces, fixture.report.pieces);
	ck_assert_uint_eq(verified.bytes, fixture.report.shipped);
}
END_TEST

static const char *const damages[] = {
	"for f in $(ls packs/* journal/*); do printf '\\021' | dd of=$f bs=1 seek=300 conv=notrunc"
	" status=none; done",
	"truncate -s -1 packs/* journal/*", "rm packs/* journal/*"};

START_TEST(what_is_damaged_is_put_again)
{
	for (int i = 0; i < 2; i++) {
		fixture.is_sealed = i == 1;
		backup_fixture_shell(fixture.place, "rm -rf ./*");
		backup_fixture_shell(fixture.store.folder, "rm -rf backup");
		backup_fixture_make(&fixture);
		backup_fixture_put(&fixture, i == 0 ? "more" : "other", SMALL, 3);
		backup_fixture_make(&fixture);
		backup_fixture_shell(fixture.place, "find packs journal -type f | sort > ../names");
		backup_fixture_shell(fixture.place, damages[_i]);
		ck_assert_int_eq(verify(fixture.is_sealed), 0);
		ck_assert_uint_eq(verified.lost.count, 0);
		ck_assert_uint_gt(verified.mended.count, 3);
		backup_fixture_shell(fixture.place,
			"find packs journal -type f | sort | cmp - ../names; r=$?; rm ../names; exit $r");
		expect(0, 0, 0);
		expect_back();
	}
}
END_TEST

START_TEST(what_the_store_does_not_have_is_lost)
{
	backup_fixture_make(&fixture);
	backup_fixture_put(&fixture, "later", LARGE, 8);
	backup_fixture_make(&fixture);
	/* that of both moments */
	backup_fixture_shell(fixture.place,
		"for f in $(find packs -size +400k); do n=${f#packs/}; n=${n%%.*};"
		" test $(grep -l $n moments/* | wc -l) = 2 && echo $n; done > ../name;"
		" n=$(cat ../name); truncate -s 100 packs/$n.*");
	char script[5000];
	snprintf(script, sizeof(script), "n=$(cat %s/../name); rm %s/../name packs/*/$n.pack",
		fixture.place, fixture.place);
	backup_fixture_shell(fixture.store.folder, script);
	expect(0, 1, 2);
	ck_assert_ptr_nonnull(strstr(verified.lost.items[0].text, "packs/"));
	char text[BACKUP_MOMENT_BYTES];
	backup_moment_print(&fixture.report.moment, text);
	ck_assert_str_eq(verified.touched.items[1].text, text);
}
END_TEST

/* Of another content than what was backed up: nothing is made up. */
START_TEST(a_damaged_store_does_not_mend)
{
	backup_fixture_make(&fixture);
	backup_fixture_shell(fixture.place, "truncate -s 100 $(find packs -size +400k)");
	backup_fixture_shell(fixture.store.folder,
		"printf x | dd of=$(find packs -name '*.pack' -size +400k) bs=1 seek=2000 conv=notrunc"
		" status=none");
	expect(0, 1, 1);
	backup_fixture_shell(fixture.place, "test $(find packs -type f -size 1 | wc -l) = 1");
}
END_TEST

START_TEST(a_manifest_is_put_again_from_the_notes)
{
	static const char damage[] =
		"printf '\\021' | dd of=$(ls moments/*) bs=1 seek=150 conv=notrunc status=none";
	fixture.is_sealed = _i == 1;
	backup_fixture_make(&fixture);
	backup_fixture_shell(fixture.place, damage);
	expect(1, 0, 0);
	expect(0, 0, 0);
	expect_back();
	backup_fixture_shell(fixture.place, damage);
	backup_fixture_shell(fixture.store.folder, "rm -r backup");
	expect(0, 1, 1);
}
END_TEST

static const char *const about_harms[] = {"sed -i 's/^store [0-9a-f]/store x/' about/store",
	"sed -i 's/^store f/store e/;t;s/^store ./store f/' about/store", "rm about/store",
	"printf z | dd of=about/store bs=1 seek=3 conv=notrunc status=none",
	"sed -i 's/^recipient ./recipient x/' about/store"};
enum { ABOUT_HARMS = sizeof(about_harms) / sizeof(about_harms[0]) };

/* The manifests say whose backups these are. */
START_TEST(a_damaged_about_costs_nothing)
{
	fixture.is_sealed = _i >= ABOUT_HARMS;
	backup_fixture_make(&fixture);
	backup_fixture_shell(fixture.place, "cp about/store ../about-kept");
	backup_fixture_shell(fixture.place, about_harms[_i % ABOUT_HARMS]);
	expect_back();
	expect(1, 0, 0);
	ck_assert_str_eq(verified.mended.items[0].text, "about/store");
	backup_fixture_shell(
		fixture.place, "cmp about/store ../about-kept; r=$?; rm ../about-kept; exit $r");
	expect(0, 0, 0);
}
END_TEST

/* A plain run does not write it: it says what does. */
START_TEST(a_damaged_about_is_told_by_a_run)
{
	if (_i == 2)
		return;
	backup_fixture_make(&fixture);
	backup_fixture_shell(fixture.place, about_harms[_i]);
	ck_assert_int_eq(backup_fixture_run(&fixture, file_system()), -1);
	ck_assert_ptr_nonnull(strstr(fixture.err.text, "--verify"));
}
END_TEST

/* Nobody but the owner of the secret key can tell whose they are. */
START_TEST(a_damaged_about_of_an_encrypted_place_needs_the_secret_key)
{
	fixture.is_sealed = true;
	backup_fixture_make(&fixture);
	backup_fixture_shell(fixture.place, "rm about/store");
	ck_assert_int_eq(verify(false), -1);
	ck_assert_int_eq(fixture.err.kind, ERROR_DENIED);
	ck_assert_int_eq(backup_fixture_run(&fixture, file_system()), -1);
	ck_assert_ptr_nonnull(strstr(fixture.err.text, "--verify"));
	backup_fixture_shell(fixture.place, "! test -e about/store");
}
END_TEST

START_TEST(a_pack_that_describes_itself_wrongly_is_named)
{
	backup_fixture_shell(fixture.store.folder,
		"printf x | dd of=$(find packs -name '*.pack' -size +400k) bs=1 seek=20 conv=notrunc"
		" status=none");
	backup_fixture_make(&fixture);
	expect(0, 0, 0);
	ck_assert_uint_eq(verified.damaged.count, 1);
	backup_fixture_shell(fixture.place, "truncate -s 100 damaged/*");
	expect(1, 0, 0);
	expect(0, 0, 0);
}
END_TEST

START_TEST(an_encrypted_place_needs_the_secret_key)
{
	fixture.is_sealed = true;
	backup_fixture_make(&fixture);
	ck_assert_int_eq(verify(false), -1);
	ck_assert_int_eq(fixture.err.kind, ERROR_DENIED);
	ck_assert(verified.needs_identity);
	backup_fixture_shell(fixture.place, "! ls about/reader-* 2>&-");
}
END_TEST

Suite *test_backup_verify_suite(void);
Suite *test_backup_verify_suite(void)
{
	Suite *suite = suite_create("backup_verify");
	TCase *tests = tcase_create("backup_verify");
	tcase_add_unchecked_fixture(tests, backup_fixture_seed, backup_fixture_unseed);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_set_timeout(tests, 120);
	tcase_add_loop_test(tests, a_sound_place_is_read_whole, 0, 2);
	tcase_add_loop_test(
		tests, what_is_damaged_is_put_again, 0, sizeof(damages) / sizeof(damages[0]));
	tcase_add_test(tests, what_the_store_does_not_have_is_lost);
	tcase_add_test(tests, a_damaged_store_does_not_mend);
	tcase_add_loop_test(tests, a_manifest_is_put_again_from_the_notes, 0, 2);
	tcase_add_loop_test(tests, a_damaged_about_costs_nothing, 0, 2 * ABOUT_HARMS);
	tcase_add_loop_test(tests, a_damaged_about_is_told_by_a_run, 0, ABOUT_HARMS);
	tcase_add_test(tests, a_damaged_about_of_an_encrypted_place_needs_the_secret_key);
	tcase_add_test(tests, a_pack_that_describes_itself_wrongly_is_named);
	tcase_add_test(tests, an_encrypted_place_needs_the_secret_key);
	suite_add_tcase(suite, tests);
	return suite;
}
