/* What a moment promises: the whole store comes back from it, whatever was interrupted while it was
 * made, what gc did meanwhile, and which other moments went. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/backup/backup_source.h"
#include "storage/db/db.h"
#include "storage/upkeep/gc.h"
#include "tests/unit/storage/backup_fixture.h"

enum { SMALL = BACKUP_SMALL, LARGE = BACKUP_LARGE };

static struct backup_fixture fixture;
static struct store_fixture back;

static void set_up(void)
{
	backup_fixture_open(&fixture);
}

static void tear_down(void)
{
	backup_fixture_close(&fixture);
}

static bool has_both(struct store_fixture *store)
{
	return backup_fixture_holds(store, "large", LARGE, 1) &&
		backup_fixture_holds(store, "small", SMALL, 2);
}

static void expect_back(void)
{
	backup_fixture_bring(&fixture, &back);
	ck_assert(has_both(&back));
	backup_fixture_drop(&back);
}

static size_t count_moments(void)
{
	struct backup_moments moments = backup_fixture_moments(&fixture);
	const size_t count = moments.count;
	backup_moments_release(&moments);
	return count;
}

static void collect(void)
{
	struct gc_request request = {.live_percent = 0};
	fixture_sweep(fixture.store.store);
	ck_assert_msg(gc_run(store_parts(fixture.store.store)->gc, &request, &fixture.err) == 0,
		"%s", fixture.err.text);
}

static void put_round(unsigned number)
{
	char key[16];
	snprintf(key, sizeof(key), "r%u", number);
	backup_fixture_put(&fixture, key, LARGE, 50 + number);
	if (number > 0) {
		snprintf(key, sizeof(key), "r%u", number - 1);
		ck_assert_int_eq(
			fixture_delete(fixture.store.store, "bucket", key, NULL, &fixture.err), 0);
		collect();
	}
}

START_TEST(the_store_comes_back)
{
	fixture.is_sealed = _i == 1;
	backup_fixture_make(&fixture);
	ck_assert_uint_gt(fixture.report.shipped, SMALL + LARGE);
	ck_assert_uint_eq(fixture.report.shipped, fixture.report.bytes);
	expect_back();
	ck_assert_uint_eq(fixture.restored.fetched, fixture.report.bytes);
	ck_assert_int_eq(fixture.restored.catalog.objects, 2);
	ck_assert_uint_eq(fixture.restored.catalog.packs.found, 0);
	ck_assert_uint_eq(fixture.restored.catalog.packs.missing, 0);
}
END_TEST

/* Also where all that is known of the pieces is what this side noted. */
START_TEST(only_what_is_new_travels_again)
{
	fixture.is_sealed = _i == 1;
	backup_fixture_make(&fixture);
	ck_assert_int_eq(backup_fixture_run(&fixture, file_system()), 0);
	ck_assert(!fixture.report.is_new);
	ck_assert_uint_eq(fixture.report.pieces, 0);
	ck_assert_uint_eq(count_moments(), 1);
	backup_fixture_put(&fixture, "more", SMALL, 3);
	backup_fixture_make(&fixture);
	ck_assert_uint_gt(fixture.report.shipped, SMALL);
	ck_assert_uint_lt(fixture.report.shipped, 2 * SMALL + 20000);
	expect_back();
}
END_TEST

/* Without notes a plain backup asks the newest moment; one that nobody here can read travels
 * again. */
START_TEST(lost_notes_cost_no_more_than_bytes)
{
	fixture.is_sealed = _i == 1;
	backup_fixture_make(&fixture);
	backup_fixture_shell(fixture.store.folder, "rm -r backup");
	backup_fixture_put(&fixture, "more", SMALL, 3);
	backup_fixture_make(&fixture);
	ck_assert_int_eq(fixture.report.shipped < LARGE, !fixture.is_sealed);
	expect_back();
}
END_TEST

START_TEST(damaged_notes_are_lost_notes)
{
	backup_fixture_make(&fixture);
	backup_fixture_shell(fixture.store.folder,
		"for f in backup/*/*; do printf x | dd of=$f bs=1 seek=30 conv=notrunc status=none; done");
	backup_fixture_put(&fixture, "more", SMALL, 3);
	backup_fixture_make(&fixture);
	ck_assert_uint_lt(fixture.report.shipped, LARGE);
	expect_back();
}
END_TEST

START_TEST(what_the_place_lost_travels_again)
{
	backup_fixture_make(&fixture);
	backup_fixture_shell(fixture.place,
		"rm $(find packs -size +400k); f=$(ls journal/*.snapshot*); truncate -s 100 $f");
	backup_fixture_put(&fixture, "more", SMALL, 3);
	backup_fixture_make(&fixture);
	ck_assert_uint_gt(fixture.report.shipped, LARGE);
	expect_back();
}
END_TEST

/* As a disk that is not mounted: nothing is claimed, and nothing written in its place. */
START_TEST(a_place_that_is_gone_is_told)
{
	static const char *const harms[] = {"rm -r ./*", "rm -r \"$PWD\""};
	backup_fixture_make(&fixture);
	backup_fixture_shell(fixture.place, harms[_i]);
	if (_i == 0)
		backup_fixture_put(&fixture, "more", SMALL, 3);
	ck_assert_int_eq(backup_fixture_run(&fixture, file_system()), -1);
	ck_assert_int_eq(fixture.err.kind, ERROR_NOT_FOUND);
	ck_assert_ptr_nonnull(strstr(fixture.err.text, fixture.place));
	ck_assert_ptr_nonnull(strstr(fixture.err.text, "not mounted"));
	char script[5000];
	snprintf(script, sizeof(script), _i == 0 ? "test -z \"$(ls %s)\"" : "! test -e %s",
		fixture.place);
	backup_fixture_shell("/", script);
	snprintf(script, sizeof(script), "mkdir -p %s", fixture.place);
	backup_fixture_shell("/", script);
	backup_fixture_shell(fixture.store.folder, "rm -r backup");
	backup_fixture_make(&fixture);
	expect_back();
}
END_TEST

/* In one run after another of one process. */
START_TEST(a_place_that_goes_between_two_rounds_is_told)
{
	char script[9000];
	const struct backup_params params = backup_fixture_params(&fixture, file_system());
	struct backup *backup = backup_open(&params, &fixture.err);
	ck_assert_int_eq(backup_round(backup, &fixture.report, &fixture.err), 0);
	snprintf(script, sizeof(script), "mv %s %s-away && mkdir %s", fixture.place, fixture.place,
		fixture.place);
	backup_fixture_shell("/", script);
	backup_fixture_put(&fixture, "more", SMALL, 3);
	ck_assert_int_eq(backup_round(backup, &fixture.report, &fixture.err), -1);
	ck_assert_ptr_nonnull(strstr(fixture.err.text, "not mounted"));
	snprintf(script, sizeof(script), "rmdir %s && mv %s-away %s", fixture.place, fixture.place,
		fixture.place);
	backup_fixture_shell("/", script);
	ck_assert_int_eq(backup_round(backup, &fixture.report, &fixture.err), 0);
	ck_assert(fixture.report.is_new);
	backup_close(backup);
	expect_back();
}
END_TEST

START_TEST(what_the_place_lost_travels_again_without_a_change)
{
	fixture.is_sealed = _i == 1;
	backup_fixture_make(&fixture);
	backup_fixture_put(&fixture, "more", SMALL, 3);
	backup_fixture_make(&fixture);
	backup_fixture_shell(fixture.place, "rm packs/* journal/*");
	ck_assert_int_eq(backup_fixture_run(&fixture, file_system()), 0);
	ck_assert(!fixture.report.is_new);
	ck_assert_uint_gt(fixture.report.pieces, 3);
	ck_assert_uint_eq(fixture.report.missing, 0);
	struct backup_moments moments = backup_fixture_moments(&fixture);
	ck_assert_uint_eq(moments.count, 2);
	for (size_t i = 0; i < 2; i++) {
		char *folder = unit_scratch_make();
		ck_assert_int_eq(backup_fixture_restore(
					 &fixture, &moments.items[i], folder, file_system()),
			0);
		ck_assert_uint_eq(fixture.restored.lacks.count, 0);
		unit_scratch_remove(folder);
	}
	backup_moments_release(&moments);
	ck_assert_int_eq(backup_fixture_run(&fixture, file_system()), 0);
	ck_assert_uint_eq(fixture.report.pieces, 0);
}
END_TEST

/* A file that grows by little each time stays a few pieces, and no byte travels often. */
START_TEST(a_growing_file_has_few_pieces)
{
	enum { ROUNDS = 40, EACH = 2000 };
	uint64_t shipped = 0;
	backup_fixture_make(&fixture);
	for (unsigned i = 0; i < ROUNDS; i++) {
		char key[16];
		snprintf(key, sizeof(key), "k%u", i);
		backup_fixture_put(&fixture, key, EACH, 100 + i);
		backup_fixture_make(&fixture);
		shipped += fixture.report.shipped;
	}
	ck_assert_uint_lt(shipped, 8 * ROUNDS * (EACH + 1500));
	struct backup_moments moments = backup_fixture_moments(&fixture);
	struct backup_target *target =
		backup_target_open(fixture.place, false, file_system(), &fixture.err);
	struct backup_vault vault = {.identities = NULL};
	struct backup_manifest manifest;
	ck_assert_int_eq(backup_vault_find(&vault, target, &fixture.err), 0);
	ck_assert_int_eq(backup_vault_manifest(&vault, &moments.items[moments.count - 1], &manifest,
				 &fixture.err),
		0);
	for (size_t i = 0; i < manifest.count; i++)
		ck_assert_uint_le(manifest.files[i].count, 8);
	backup_manifest_release(&manifest);
	backup_moments_release(&moments);
	backup_target_free(target);
	expect_back();
}
END_TEST

/* From the n-th operation on nothing works any more, as after a kill; then a whole run. */
START_TEST(an_interrupted_backup_leaves_no_moment_and_the_next_goes_on)
{
	struct file_faults faults;
	const int kinds = FILE_FAULT_WRITE | FILE_FAULT_SYNC | FILE_FAULT_RENAME |
		FILE_FAULT_UNLINK | FILE_FAULT_OPEN;
	fixture.is_sealed = _i == 1;
	uint64_t shipped = 0;
	for (int n = 0;; n += unit_stride(7)) {
		backup_fixture_shell(fixture.place, "rm -rf ./*");
		backup_fixture_shell(fixture.store.folder, "rm -rf backup");
		file_faults_init(&faults, kinds, n, EIO);
		faults.sticky = true;
		const int result = backup_fixture_run(&fixture, &faults.ops);
		if (result == 0)
			break;
		ck_assert(!backup_holds_any(store_backup_holds(fixture.store.store)));
		/* The last operations are notes, which may be lost. */
		if (count_moments() == 0) {
			backup_fixture_make(&fixture);
			shipped += fixture.report.shipped;
		}
		if (n % 5 == 0)
			expect_back();
	}
	ck_assert_uint_gt(shipped, 0);
	expect_back();
}
END_TEST

START_TEST(pieces_of_an_interrupted_run_are_used)
{
	struct file_faults faults;
	backup_fixture_make(&fixture);
	const uint64_t all = fixture.report.shipped;
	backup_fixture_shell(fixture.place, "rm -rf ./*");
	backup_fixture_shell(fixture.store.folder, "rm -rf backup");
	file_faults_init(&faults, FILE_FAULT_RENAME, 3, EIO); /* about, two pieces, a manifest */
	ck_assert_int_eq(backup_fixture_run(&fixture, &faults.ops), -1);
	ck_assert_uint_eq(count_moments(), 0);
	backup_fixture_make(&fixture);
	ck_assert_uint_lt(fixture.report.shipped, all);
	expect_back();
}
END_TEST

/* A note with another digest would make a moment that cannot be restored. */
START_TEST(a_damaged_note_of_a_piece_is_not_believed)
{
	struct file_faults faults;
	backup_fixture_shell(fixture.store.folder, "rm -rf backup");
	file_faults_init(&faults, FILE_FAULT_RENAME, 3, EIO);
	ck_assert_int_eq(backup_fixture_run(&fixture, &faults.ops), -1);
	backup_fixture_shell(fixture.store.folder,
		"grep -q packs backup/*/pieces && sed -i -E 's/ ([0-9a-f])([0-9a-f]{63}) / 0\\2 /' backup/*/pieces");
	backup_fixture_make(&fixture);
	expect_back();
}
END_TEST

START_TEST(a_backup_that_is_stopped_ends_its_hold)
{
	fixture.stops = true;
	ck_assert_int_eq(backup_fixture_run(&fixture, file_system()), -1);
	ck_assert_int_eq(fixture.err.kind, ERROR_BUSY);
	ck_assert(!backup_holds_any(store_backup_holds(fixture.store.store)));
	ck_assert_uint_eq(count_moments(), 0);
}
END_TEST

START_TEST(a_hold_that_ended_makes_no_moment)
{
	fixture.loses_hold = true;
	ck_assert_int_eq(backup_fixture_run(&fixture, file_system()), -1);
	ck_assert_ptr_nonnull(strstr(fixture.err.text, "24 hours"));
	ck_assert_uint_eq(count_moments(), 0);
	fixture.loses_hold = false;
	backup_fixture_make(&fixture);
	expect_back();
}
END_TEST

/* The catalog names a pack, which then goes; the file must still be there to ship. */
static bool collect_once(void *owner, const char *key)
{
	bool *done = owner;
	(void)key;
	if (!*done) {
		ck_assert_int_eq(
			fixture_delete(fixture.store.store, "bucket", "large", NULL, &fixture.err),
			0);
		collect();
	}
	*done = true;
	return true;
}

static bool knows_nothing(void *owner, const char *key)
{
	(void)owner, (void)key;
	return false;
}

START_TEST(what_goes_while_it_is_shipped_is_shipped)
{
	struct backup_hold hold;
	struct backup_source source;
	bool done = false;
	ck_assert_int_eq(backup_holds_take(
				 store_backup_holds(fixture.store.store), "a", &hold, &fixture.err),
		0);
	const struct source_options options = {
		.folder = fixture.store.folder, .knows = collect_once, .owner = &done};
	ck_assert_msg(
		backup_source_read(&options, &source, &fixture.err) == 0, "%s", fixture.err.text);
	ck_assert(done);
	collect();
	uint8_t *bytes = malloc(1 << 21);
	for (size_t i = 0; i < source.count; i++)
		ck_assert_msg(source_file_read(&source.files[i], 0, bytes, source.files[i].length,
				      &fixture.err) == 0,
			"%s", fixture.err.text);
	free(bytes);
	backup_source_release(&source);
}
END_TEST

START_TEST(a_missing_pack_is_told_and_the_rest_is_there)
{
	backup_fixture_shell(fixture.store.folder, "rm $(find packs -name '*.pack' -size +400k)");
	backup_fixture_make(&fixture);
	ck_assert_uint_eq(fixture.lacking, 1);
	ck_assert_ptr_nonnull(strstr(fixture.lack, ".pack"));
	backup_fixture_bring(&fixture, &back);
	ck_assert_uint_eq(fixture.restored.lacks.count, 1);
	ck_assert(backup_fixture_holds(&back, "small", SMALL, 2));
	backup_fixture_drop(&back);
}
END_TEST

/* A restored store has no index beside it. */
START_TEST(a_pack_that_describes_itself_wrongly_is_told)
{
	backup_fixture_shell(fixture.store.folder,
		"printf x | dd of=$(find packs -name '*.pack' -size +400k) bs=1 seek=20 conv=notrunc"
		" 2>&1");
	backup_fixture_make(&fixture);
	for (int i = 0; i < 3; i++) {
		ck_assert_uint_eq(fixture.lacking, 1);
		ck_assert_ptr_nonnull(strstr(fixture.lack, "deltabucketd scrub"));
		if (i == 1)
			backup_fixture_put(&fixture, "more", SMALL, 3);
		ck_assert_int_eq(backup_fixture_run(&fixture, file_system()), 0);
		ck_assert_int_eq(fixture.report.is_new, i == 1);
	}
	backup_fixture_bring(&fixture, &back);
	ck_assert_uint_eq(fixture.restored.lacks.count, 1);
	ck_assert_ptr_nonnull(strstr(fixture.restored.lacks.items[0].why, "deltabucketd scrub"));
	ck_assert(has_both(&back));
	backup_fixture_drop(&back);
}
END_TEST

/* The mark goes with the last moment that needs it. */
START_TEST(a_mark_of_a_pack_that_is_gone_goes)
{
	put_round(0);
	backup_fixture_shell(fixture.store.folder,
		"for f in $(find packs -name '*.pack' -size +400k); do printf x |"
		" dd of=$f bs=1 seek=20 conv=notrunc status=none; done");
	backup_fixture_make(&fixture);
	backup_fixture_shell(fixture.place, "test $(ls damaged | wc -l) -ge 1");
	fixture.keep = 1;
	backup_fixture_put(&fixture, "more", SMALL, 3);
	backup_fixture_make(&fixture);
	backup_fixture_shell(fixture.place,
		"ls damaged > ../marks && printf x > damaged/00000000000000000000000000000000 &&"
		" touch -d '26 hours ago' damaged/*");
	backup_fixture_put(&fixture, "more", SMALL, 4);
	backup_fixture_make(&fixture);
	backup_fixture_shell(
		fixture.place, "ls damaged | cmp - ../marks; r=$?; rm ../marks; exit $r");
}
END_TEST

START_TEST(a_damaged_snapshot_is_not_shipped)
{
	struct backup_source source;
	bool done = true;
	const struct source_options options = {
		.folder = fixture.store.folder, .knows = knows_nothing, .owner = &done};
	ck_assert_int_eq(backup_source_read(&options, &source, &fixture.err), 0);
	backup_source_release(&source);
	backup_fixture_shell(fixture.store.folder,
		"for f in journal/*.snapshot; do printf x | dd of=$f bs=1 seek=200 conv=notrunc status=none; done");
	ck_assert_int_eq(backup_source_read(&options, &source, &fixture.err), -1);
	ck_assert_int_eq(fixture.err.kind, ERROR_BUSY);
	backup_source_release(&source);
}
END_TEST

START_TEST(another_store_and_another_key_are_refused)
{
	backup_fixture_make(&fixture);
	fixture.is_sealed = true;
	backup_fixture_put(&fixture, "more", SMALL, 3);
	ck_assert_int_eq(backup_fixture_run(&fixture, file_system()), -1);
	ck_assert_int_eq(fixture.err.kind, ERROR_INVALID);
	fixture.is_sealed = false;
	backup_fixture_shell(
		fixture.place, "sed -i 's/^store f/store e/;t;s/^store ./store f/' about/store");
	ck_assert_int_eq(backup_fixture_run(&fixture, file_system()), -1);
	ck_assert_ptr_nonnull(strstr(fixture.err.text, "another store"));
	ck_assert_uint_eq(count_moments(), 1);
}
END_TEST

START_TEST(nothing_is_readable_in_an_encrypted_backup)
{
	static const char text[] = "a secret of the house that compresses badly 8371";
	ck_assert_int_eq(fixture_put(fixture.store.store, "bucket", "secret-name", span_text(text),
				 &fixture.err),
		0);
	fixture.is_sealed = true;
	backup_fixture_make(&fixture);
	backup_fixture_shell(fixture.place, "! grep -rqaF -e 'secret' -e 'file packs' .");
	fixture.identities.keys[0][3] ^= 1;
	char *folder = unit_scratch_make();
	ck_assert_int_eq(backup_fixture_restore(&fixture, NULL, folder, file_system()), -1);
	ck_assert_int_eq(fixture.err.kind, ERROR_DENIED);
	unit_scratch_remove(folder);
	fixture.identities.keys[0][3] ^= 1;
	expect_back();
}
END_TEST

/* Each moment that stays is whole, and the place does not grow for ever. */
START_TEST(what_no_moment_needs_goes_and_nothing_else)
{
	char key[16];
	fixture.is_sealed = _i == 1;
	fixture.keep = 2;
	for (unsigned i = 0; i < 5; i++) {
		put_round(i);
		backup_fixture_make(&fixture);
		/* as if that were long ago */
		backup_fixture_shell(
			fixture.place, "find . -type f -exec touch -d '26 hours ago' {} +");
	}
	struct backup_moments moments = backup_fixture_moments(&fixture);
	ck_assert_uint_eq(moments.count, 2);
	for (unsigned i = 0; i < 2; i++) {
		char *folder = unit_scratch_make();
		ck_assert_msg(backup_fixture_restore(
				      &fixture, &moments.items[i], folder, file_system()) == 0,
			"%s", fixture.err.text);
		backup_fixture_open_at(&back, folder);
		snprintf(key, sizeof(key), "r%u", 3 + i);
		ck_assert(backup_fixture_holds(&back, key, LARGE, 53 + i) && has_both(&back));
		backup_fixture_drop(&back);
	}
	backup_moments_release(&moments);
	/* "large" and two rounds */
	backup_fixture_shell(fixture.place, "test $(du -sb packs | cut -f 1) -lt 2000000");
}
END_TEST

START_TEST(what_another_run_may_have_put_stays)
{
	fixture.keep = 1;
	backup_fixture_make(&fixture);
	static const char *const name = "packs/00000000000000000000000000000000.0-5";
	char script[200];
	snprintf(script, sizeof(script), "printf 12345 > %s; printf 1 > packs/README", name);
	backup_fixture_shell(fixture.place, script);
	backup_fixture_put(&fixture, "more", SMALL, 3);
	backup_fixture_make(&fixture);
	snprintf(script, sizeof(script), "test -e %s && touch -d '26 hours ago' %s packs/README",
		name, name);
	backup_fixture_shell(fixture.place, script);
	backup_fixture_put(&fixture, "more", SMALL, 4);
	backup_fixture_make(&fixture);
	snprintf(script, sizeof(script), "test ! -e %s && test -e packs/README", name);
	backup_fixture_shell(fixture.place, script);
	expect_back();
}
END_TEST

/* The notes are gone and the moment is damaged: nobody knows what it needs. */
START_TEST(nothing_goes_while_a_moment_cannot_be_read)
{
	put_round(0);
	backup_fixture_make(&fixture);
	put_round(1);
	backup_fixture_make(&fixture);
	backup_fixture_shell(fixture.store.folder, "rm -r backup");
	backup_fixture_shell(fixture.place,
		"f=$(ls -v moments/* | tail -n 1); printf x | dd of=$f bs=1 seek=150 conv=notrunc status=none;"
		" find . -type f -exec touch -d '26 hours ago' {} +; find . -type f | sort > ../before");
	put_round(2);
	fixture.keep = 2;
	ck_assert_int_eq(backup_fixture_run(&fixture, file_system()), -1);
	ck_assert_ptr_nonnull(strstr(fixture.err.text, "Nothing was pruned"));
	backup_fixture_shell(fixture.place,
		"find . -type f | sort > ../after; test -z \"$(comm -23 ../before ../after)\";"
		" r=$?; rm ../before ../after; exit $r");
	ck_assert_uint_eq(count_moments(), 3);
}
END_TEST

/* The newest of each hour, and no more than `keep`. */
START_TEST(moments_are_thinned_by_time)
{
	fixture.spacing_ms = 3600 * 1000;
	backup_fixture_make(&fixture);
	backup_fixture_put(&fixture, "more", SMALL, 3);
	backup_fixture_make(&fixture);
	const size_t left = count_moments(); /* an hour may have begun between the two */
	ck_assert_uint_le(left, 2);
	struct backup_moments moments = backup_fixture_moments(&fixture);
	ck_assert_int_eq(moments.items[moments.count - 1].change, fixture.report.moment.change);
	backup_moments_release(&moments);
	expect_back();
}
END_TEST

/* Neither moments nor pieces go while a restore reads, until its object is a day old. */
START_TEST(nothing_goes_while_somebody_restores)
{
	struct backup_reader reader;
	struct backup_target *target =
		backup_target_open(fixture.place, false, file_system(), &fixture.err);
	fixture.keep = 1;
	put_round(0);
	backup_fixture_make(&fixture);
	ck_assert_int_eq(backup_reader_begin(&reader, target, &fixture.err), 0);
	put_round(1);
	backup_fixture_shell(fixture.place, "find packs -type f | sort > ../before");
	backup_fixture_make(&fixture);
	ck_assert_uint_eq(count_moments(), 2);
	ck_assert_uint_eq(fixture.pruned.left, 2);
	ck_assert_str_eq(fixture.pruned.reader, reader.name);
	backup_fixture_shell(fixture.place,
		"find packs -type f | sort > ../after; test -z \"$(comm -23 ../before ../after)\";"
		" r=$?; rm ../before ../after; exit $r");
	if (_i == 0)
		backup_reader_end(&reader);
	else
		backup_fixture_shell(fixture.place, "touch -d '25 hours ago' about/reader-*");
	put_round(2);
	backup_fixture_make(&fixture);
	ck_assert_uint_eq(count_moments(), 1);
	ck_assert_str_eq(fixture.pruned.reader, "");
	backup_target_free(target);
	expect_back();
}
END_TEST

/* A store restored from an older moment goes on where the lost one went on otherwise, and is backed
 * up to the same place. */
START_TEST(a_restored_store_goes_on_in_the_same_place)
{
	backup_fixture_make(&fixture);
	struct backup_moments moments = backup_fixture_moments(&fixture);
	const struct backup_moment first = moments.items[0];
	backup_moments_release(&moments);
	backup_fixture_put(&fixture, "lost", SMALL, 5);
	backup_fixture_make(&fixture);
	char *folder = unit_scratch_make();
	ck_assert_int_eq(backup_fixture_restore(&fixture, &first, folder, file_system()), 0);
	store_fixture_stop(&fixture.store);
	struct store_fixture lost = fixture.store;
	backup_fixture_open_at(&fixture.store, folder);
	ck_assert_uint_gt(store_life(fixture.store.store), first.life + 1000);
	for (unsigned i = 0; i < 6; i++) {
		backup_fixture_put(&fixture, "kept", SMALL, 6 + i);
		backup_fixture_make(&fixture);
		backup_fixture_bring(&fixture, &back);
		ck_assert(has_both(&back) && backup_fixture_holds(&back, "kept", SMALL, 6 + i));
		ck_assert(!backup_fixture_holds(&back, "lost", SMALL, 5));
		backup_fixture_drop(&back);
	}
	backup_fixture_close_at(&fixture.store);
	unit_scratch_remove(folder);
	fixture.store = lost;
	store_fixture_start(&fixture.store);
}
END_TEST

Suite *test_backup_suite(void);
Suite *test_backup_suite(void)
{
	Suite *suite = suite_create("backup");
	TCase *tests = tcase_create("backup");
	tcase_add_unchecked_fixture(tests, backup_fixture_seed, backup_fixture_unseed);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_set_timeout(tests, 120);
	tcase_add_loop_test(tests, the_store_comes_back, 0, 2);
	tcase_add_loop_test(tests, only_what_is_new_travels_again, 0, 2);
	tcase_add_loop_test(tests, lost_notes_cost_no_more_than_bytes, 0, 2);
	tcase_add_test(tests, damaged_notes_are_lost_notes);
	tcase_add_test(tests, what_the_place_lost_travels_again);
	tcase_add_loop_test(tests, a_place_that_is_gone_is_told, 0, 2);
	tcase_add_test(tests, a_place_that_goes_between_two_rounds_is_told);
	tcase_add_loop_test(tests, what_the_place_lost_travels_again_without_a_change, 0, 2);
	tcase_add_test(tests, a_growing_file_has_few_pieces);
	tcase_add_loop_test(
		tests, an_interrupted_backup_leaves_no_moment_and_the_next_goes_on, 0, 2);
	tcase_add_test(tests, pieces_of_an_interrupted_run_are_used);
	tcase_add_test(tests, a_damaged_note_of_a_piece_is_not_believed);
	tcase_add_test(tests, a_backup_that_is_stopped_ends_its_hold);
	tcase_add_test(tests, a_hold_that_ended_makes_no_moment);
	tcase_add_test(tests, what_goes_while_it_is_shipped_is_shipped);
	tcase_add_test(tests, a_missing_pack_is_told_and_the_rest_is_there);
	tcase_add_test(tests, a_pack_that_describes_itself_wrongly_is_told);
	tcase_add_test(tests, a_mark_of_a_pack_that_is_gone_goes);
	tcase_add_test(tests, a_damaged_snapshot_is_not_shipped);
	tcase_add_test(tests, another_store_and_another_key_are_refused);
	tcase_add_test(tests, nothing_is_readable_in_an_encrypted_backup);
	tcase_add_loop_test(tests, what_no_moment_needs_goes_and_nothing_else, 0, 2);
	tcase_add_test(tests, what_another_run_may_have_put_stays);
	tcase_add_test(tests, nothing_goes_while_a_moment_cannot_be_read);
	tcase_add_test(tests, moments_are_thinned_by_time);
	tcase_add_loop_test(tests, nothing_goes_while_somebody_restores, 0, 2);
	tcase_add_test(tests, a_restored_store_goes_on_in_the_same_place);
	suite_add_tcase(suite, tests);
	return suite;
}
