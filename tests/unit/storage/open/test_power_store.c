/* The power is cut before each operation on packs, with the catalog as it was last committed. Then
 * the store opens, the catalog names everything that was acknowledged, and all that it names is
 * there and reads right. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "storage/core/store.h"
#include "storage/objects/object_read.h"
#include "storage/open/store_open.h"
#include "storage/packs/pack_format.h"
#include "storage/packs/pack_store_parts.h"
#include "storage/packs/set_aside.h"
#include "storage/upkeep/gc.h"
#include "tests/unit/storage/power_fixture.h"
#include "tests/unit/storage/upload_fixture.h"
#include "tests/unit/storage/xorb_fixture.h"

enum { SMALL = 20000, LARGE = 500000, TINY = 300, KEYS = 12, KEPT_KEY = 6 };

static struct store_fixture fixture;

static void put(const char *key, size_t size, uint64_t seed)
{
	struct error err = {0};
	uint8_t *const bytes = fixture_noise(size, seed);
	ck_assert_msg(fixture_put(fixture.store, "bucket", key, span_of(bytes, size), &err) == 0,
		"%s", err.text);
	free(bytes);
}

static bool is_named(struct store_fixture *left, const char *key)
{
	struct error err = {0};
	struct object object;
	if (fixture_find(left, "bucket", key, &object, &err) == 0)
		return true;
	ck_assert_msg(err.kind == ERROR_NO_KEY, "%s: %s", key, err.text);
	return false;
}

static void expect_right(
	struct store_fixture *left, const char *key, size_t size, uint64_t seed, const char *line)
{
	uint8_t *const bytes = fixture_noise(size, seed);
	ck_assert_msg(fixture_holds(left, "bucket", key, span_of(bytes, size)),
		"cut before \"%s\": %s", line, key);
	free(bytes);
}

static void set_up(void)
{
	struct error err = {0};
	memset(&fixture, 0, sizeof fixture);
	fixture.promise_ms = 3600 * 1000;
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket", "main", &err), 0);
}

static void tear_down(void)
{
	arena_free(fixture.arena);
	unit_scratch_remove(fixture.folder);
}

static void close_store(void)
{
	store_close(fixture.store);
	fixture.store = NULL;
}

/* Content for the shared pack, for packs of its own, for the catalog, and known content. */
static const struct {
	const char *key;
	size_t size;
	uint64_t seed;
} objects[] = {{"a", SMALL, 1}, {"b", LARGE, 2}, {"c", SMALL, 3}, {"tiny", TINY, 4},
	{"again", LARGE, 2}, {"d", LARGE, 5}, {"e", SMALL, 6}};
enum { OBJECTS = sizeof objects / sizeof objects[0] };

static void check_objects(struct store_fixture *left, unsigned acknowledged, const char *line)
{
	for (unsigned i = 0; i < OBJECTS; i++) {
		const bool found = is_named(left, objects[i].key);
		ck_assert_msg(found || i >= acknowledged, "cut before \"%s\": %s was acknowledged",
			line, objects[i].key);
		if (found)
			expect_right(left, objects[i].key, objects[i].size, objects[i].seed, line);
	}
}

START_TEST(acknowledged_objects_last)
{
	close_store();
	struct power_disk *const disk = power_fixture_begin(&fixture, (enum power_cut)_i);
	for (unsigned i = 0; i < OBJECTS; i++) {
		put(objects[i].key, objects[i].size, objects[i].seed);
		power_disk_mark(disk, i + 1);
	}
	power_fixture_end(&fixture, disk, OBJECTS, check_objects);
}
END_TEST

/* A part is acknowledged by itself; a completion makes the object. */
static struct upload_ref upload;
static struct uploaded_part part;

static void complete(struct store *store)
{
	struct error err = {0};
	struct upload_result result;
	struct upload_fault fault;
	struct upload_listed_part listed = {.number = 1};
	memcpy(listed.etag, part.etag, sizeof listed.etag);
	struct upload_complete_params params = {.ref = upload, .parts = &listed, .part_count = 1};
	ck_assert_msg(fixture_upload_complete(store, &params, &result, &fault, &err) == 0, "%s",
		err.text);
}

static void check_upload(struct store_fixture *left, unsigned acknowledged, const char *line)
{
	if (acknowledged == 1)
		complete(left->store);
	if (acknowledged >= 1)
		expect_right(left, "uploaded", LARGE, 7, line);
}

START_TEST(acknowledged_parts_last)
{
	struct error err = {0};
	struct upload_create_params params = {
		.bucket = fixture_bucket("bucket"), .key = span_text("uploaded")};
	uint8_t *const bytes = fixture_noise(LARGE, 7);
	ck_assert_msg(
		fixture_upload_create(fixture.store, &params, &upload, &err) == 0, "%s", err.text);
	close_store();
	struct power_disk *const disk = power_fixture_begin(&fixture, (enum power_cut)_i);
	ck_assert_msg(fixture_upload_put(fixture.store, &upload, 1, span_of(bytes, LARGE), NULL,
			      &part, &err) == 0,
		"%s", err.text);
	power_disk_mark(disk, 1);
	complete(fixture.store);
	power_fixture_end(&fixture, disk, 2, check_upload);
	free(bytes);
}
END_TEST

static const struct xorb_sample shared_xorb = {.seed = 41, .chunks = 3, .chunk_bytes = 8000};
static const struct xorb_sample other_xorb = {.seed = 42, .chunks = 2, .chunk_bytes = 9000};
static const struct xorb_sample own_xorb = {.seed = 43, .chunks = 6, .chunk_bytes = 100001};
static const struct xorb_sample *const xorbs[] = {&shared_xorb, &own_xorb, &other_xorb};
enum { XORBS = 3 };

static bool is_xorb_named(struct store *store, const struct xorb_sample *sample)
{
	struct error err = {0};
	struct xorb xorb;
	const struct chunk_id hash = xorb_sample_hash(sample);
	return xorb_find(store, &hash, &xorb, &err) == 0;
}

static void check_xorbs(struct store_fixture *left, unsigned acknowledged, const char *line)
{
	for (unsigned i = 0; i < XORBS; i++) {
		const bool found = is_xorb_named(left->store, xorbs[i]);
		ck_assert_msg(found || i >= acknowledged,
			"cut before \"%s\": xorb %u was acknowledged", line, i);
		ck_assert_msg(!found || xorb_sample_is_there(left->store, xorbs[i]),
			"cut before \"%s\": xorb %u", line, i);
	}
}

START_TEST(acknowledged_xorbs_last)
{
	struct error err = {0};
	bool inserted;
	close_store();
	struct power_disk *const disk = power_fixture_begin(&fixture, (enum power_cut)_i);
	for (unsigned i = 0; i < XORBS; i++) {
		ck_assert_msg(xorb_sample_put(fixture.store, xorbs[i], &inserted, &err) == 0, "%s",
			err.text);
		power_disk_mark(disk, i + 1);
	}
	power_fixture_end(&fixture, disk, XORBS, check_xorbs);
}
END_TEST

static void key_name(char name[16], unsigned number)
{
	snprintf(name, 16, "k%u", number);
}

static void check_living(struct store_fixture *left, const char *line)
{
	expect_right(left, "alive", LARGE, 1001, line);
	for (unsigned i = 0; i < KEYS; i += KEPT_KEY) {
		char name[16];
		key_name(name, i);
		expect_right(left, name, SMALL, i, line);
	}
}

/* Whether the file is older than the life that was cut off, in which gc ran. */
static bool is_older(const struct store_fixture *left, const char *name)
{
	uint8_t header[PACK_HEADER_BYTES] = {0};
	struct pack_origin origin;
	char path[4096];
	snprintf(path, sizeof path, "%s/set-aside/%s", left->folder, name);
	FILE *const file = fopen(path, "rb");
	ck_assert(file != NULL);
	const size_t got = fread(header, 1, sizeof header, file);
	fclose(file);
	return got == sizeof header && pack_format_read_origin(header, &origin) &&
		origin.life + 1 < store_life(left->store);
}

/* Files that gc took out of use are never set aside; files that it was making may be. */
static void expect_no_doubt(const struct store_fixture *left, const char *line)
{
	struct error err = {0};
	struct set_aside aside;
	ck_assert_int_eq(set_aside_list(left->folder, &aside, &err), 0);
	for (size_t i = 0; i < aside.count; i++)
		ck_assert_msg(!is_older(left, aside.files[i].name),
			"cut before \"%s\": %s was set aside", line, aside.files[i].name);
	set_aside_release(&aside);
}

/* Also after gc has gone on from there. */
static void check_compacted(struct store_fixture *left, unsigned mark, const char *line)
{
	struct error err = {0};
	struct gc_request request = {0};
	if (mark == 1) /* the second copy of a compacted pack's table is never made again */
		ck_assert_int_eq(fixture_pack_files(left, "-name '*.index' -size +0"),
			fixture_pack_files(left, "-name '*.pack'"));
	check_living(left, line);
	expect_no_doubt(left, line);
	ck_assert_msg(gc_run(store_parts(left->store)->gc, &request, &err) == 0,
		"cut before \"%s\": %s", line, err.text);
	check_living(left, line);
}

/* A pack without live chunks, one with all chunks live, and one with few. */
START_TEST(a_compacted_pack_lasts_before_it_is_named)
{
	struct error err = {0};
	struct gc_request request = {0};
	char name[16];
	put("dead", LARGE, 1000);
	put("alive", LARGE, 1001);
	for (unsigned i = 0; i < KEYS; i++) {
		key_name(name, i);
		put(name, SMALL, i);
	}
	for (unsigned i = 0; i < KEYS; i++) {
		key_name(name, i);
		if (i % KEPT_KEY != 0)
			ck_assert_int_eq(
				fixture_delete(fixture.store, "bucket", name, NULL, &err), 0);
	}
	ck_assert_int_eq(fixture_delete(fixture.store, "bucket", "dead", NULL, &err), 0);
	store_fixture_reopen(&fixture); /* seals the shared pack */
	close_store();
	struct power_disk *const disk = power_fixture_begin(&fixture, (enum power_cut)_i);
	ck_assert_int_eq(gc_run(store_parts(fixture.store)->gc, &request, &err), 0);
	ck_assert_uint_eq(request.report.packs_compacted, 1);
	ck_assert_uint_eq(request.report.packs_deleted, 1);
	power_fixture_end(&fixture, disk, 1, check_compacted);
}
END_TEST

/* The first file of the pack. free() it. */
static char *pack_path(const struct xorb *xorb)
{
	char name[PACK_NAME_BYTES];
	char relative[PACK_NAME_BYTES + 10];
	pack_format_name(&xorb->pack, PACK_FILE_PACK, name);
	snprintf(relative, sizeof relative, "packs/%.2s/%s", name, name);
	return store_fixture_path(&fixture, relative);
}

static void spoil_last_chunk(const struct xorb_sample *sample)
{
	struct error err = {0};
	struct xorb xorb;
	struct pack_entry entry;
	struct pack_cache *const cache = store_packs(fixture.store)->cache;
	const struct chunk_id hash = xorb_sample_hash(sample);
	ck_assert_int_eq(xorb_find(fixture.store, &hash, &xorb, &err), 0);
	struct pack *const pinned = pack_cache_pin(cache, &xorb.pack, false, &err);
	ck_assert_uint_eq(
		pack_cache_copy_entries(cache, pinned, xorb.first + sample->chunks - 1, &entry, 1),
		1);
	pack_cache_unpin(cache, pinned);
	char *const path = pack_path(&xorb);
	FILE *const file = fopen(path, "r+b");
	ck_assert(file != NULL &&
		fseek(file, (long)entry.offset + PACK_RECORD_HEADER_BYTES, SEEK_SET) == 0);
	ck_assert(fputs("spoilt", file) >= 0 && fclose(file) == 0);
	free(path);
}

static void check_mended(struct store_fixture *left, unsigned acknowledged, const char *line)
{
	const bool is_whole = xorb_sample_is_there(left->store, &shared_xorb);
	ck_assert_msg(is_whole || acknowledged == 0, "cut before \"%s\": it was mended", line);
	ck_assert_msg(xorb_sample_is_there(left->store, &other_xorb),
		"cut before \"%s\": what lies beside it", line);
}

/* Two xorbs share a pack; one is damaged and sent again. */
START_TEST(a_mended_pack_lasts_before_it_is_named)
{
	struct error err = {0};
	bool mended = false;
	ck_assert_int_eq(xorb_sample_put(fixture.store, &shared_xorb, &mended, &err), 0);
	ck_assert_int_eq(xorb_sample_put(fixture.store, &other_xorb, &mended, &err), 0);
	store_fixture_reopen(&fixture); /* seals the shared pack */
	spoil_last_chunk(&shared_xorb);
	close_store();
	struct power_disk *const disk = power_fixture_begin(&fixture, (enum power_cut)_i);
	mended = false;
	for (int i = 0; i < 1000 && !mended; i++)
		if (xorb_sample_put(fixture.store, &shared_xorb, &mended, &err) != 0)
			ck_assert_msg(err.kind == ERROR_BUSY, "%s", err.text);
	ck_assert(mended);
	power_fixture_end(&fixture, disk, 1, check_mended);
}
END_TEST

static bool fails_once; /* the next sync of a folder fails */

static int sync_or_fail(const struct file_ops *ops, int fd)
{
	struct stat facts;
	const struct file_ops *const files = ops->state;
	const bool is_folder = fstat(fd, &facts) == 0 && S_ISDIR(facts.st_mode);
	if (!is_folder || !fails_once)
		return files->fdatasync(files, fd);
	fails_once = false;
	errno = EIO;
	return -1;
}

/* The sync of its name failed, or the process was killed before it: the next call finds the folder,
 * whose name is not durable yet. */
START_TEST(a_folder_of_packs_that_was_not_synced_is_synced_later)
{
	static const char name[] = "ab000000000000000000000000000001.pack";
	struct error err = {0};
	struct backend_file *file;
	char *const packs = store_fixture_path(&fixture, "packs");
	struct power_disk *const disk = power_disk_new(fixture.folder);
	struct backend *const backend =
		backend_folder_open(packs, "unused", power_disk_files(disk), &err);
	ck_assert_msg(backend != NULL, "%s", err.text);
	char *const folder = store_fixture_path(&fixture, "packs/ab");
	struct file_ops failing = *power_disk_files(disk);
	failing.state = (void *)power_disk_files(disk);
	failing.mkdir = file_system()->mkdir;
	failing.open = file_system()->open;
	failing.fdatasync = sync_or_fail;
	fails_once = true;
	ck_assert_int_eq(file_make_folder(&failing, folder, 0700, &err), -1);
	ck_assert(!fails_once && file_exists(folder));
	ck_assert_msg(backend->ops->create(backend, name, &file, &err) == 0, "%s", err.text);
	ck_assert_int_eq(backend->ops->append(file, span_text("pack"), 0, &err), 0);
	ck_assert_int_eq(backend->ops->sync(file, &err), 0);
	backend->ops->close(file);
	backend->ops->free(backend);
	struct store_fixture left = {.folder = power_disk_cut(disk, POWER_CUT_DROPS_ALL)};
	ck_assert_int_eq(fixture_pack_files(&left, "-name '*.pack' -size +0"), 1);
	unit_scratch_remove(left.folder);
	power_disk_free(disk);
	free(folder);
	free(packs);
	close_store();
}
END_TEST

Suite *test_power_store_suite(void);
Suite *test_power_store_suite(void)
{
	Suite *const suite = suite_create("power_store");
	TCase *const tests = tcase_create("power_store");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(tests, acknowledged_objects_last, 0, POWER_CUTS);
	tcase_add_loop_test(tests, acknowledged_parts_last, 0, POWER_CUTS);
	tcase_add_loop_test(tests, acknowledged_xorbs_last, 0, POWER_CUTS);
	tcase_add_loop_test(tests, a_mended_pack_lasts_before_it_is_named, 0, POWER_CUTS);
	tcase_add_test(tests, a_folder_of_packs_that_was_not_synced_is_synced_later);
	tcase_add_loop_test(tests, a_compacted_pack_lasts_before_it_is_named, 0, POWER_CUTS);
	suite_add_tcase(suite, tests);
	return suite;
}
