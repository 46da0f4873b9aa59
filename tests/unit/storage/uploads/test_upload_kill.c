/* A child uploads and copies parts and is killed at its n-th write, sync, rename or unlink below
 * packs. The parent opens the store that is left: each acknowledged part must be listed as it was
 * uploaded, and completing with one of them must give its bytes. n grows until a child survives. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/digest/digest.h"
#include "base/encode.h"
#include "storage/objects/object_read.h"
#include "storage/open/store_open.h"
#include "tests/unit/storage/kill_fixture.h"
#include "tests/unit/storage/store_fixture.h"
#include "tests/unit/storage/upload_fixture.h"

enum { OPERATIONS = 6, ROUNDS_MAX = 300, NOISE_BYTES = 4000000, PACK_BYTES = 1024 * 1024 };

static const struct {
	uint32_t number;
	bool is_copy; /* copied from the source, which is the noise */
	size_t offset;
	size_t length;
} operations[OPERATIONS] = {
	{3, false, 0, 300000},
	{1, false, 100000, 700},
	{2, true, 77, 3000000},
	{1, false, 500000, 2300000},
	{4, true, 5000, 100},
	{5, false, 9, 90000},
};

static struct store_fixture fixture;
static uint8_t *noise;

static void set_up(void)
{
	memset(&fixture, 0, sizeof(fixture));
	fixture.folder = unit_scratch_make();
	noise = fixture_noise(NOISE_BYTES, 7);
}

static void tear_down(void)
{
	unit_scratch_remove(fixture.folder);
	free(noise);
}

static struct store *open_store(const struct file_ops *files)
{
	struct error err = {0};
	const struct store_options options = {
		.folder = fixture.folder, .files = files, .pack_max_bytes = PACK_BYTES};
	struct store *const store = store_open(&options, &err);
	ck_assert_msg(store != NULL, "%s", err.text);
	return store;
}

static struct object find(struct store *store, const char *key)
{
	struct error err = {0};
	struct object object;
	ck_assert_int_eq(object_find(store,
				 &(struct object_ref){
					 .bucket = fixture_bucket("bucket"), .key = span_text(key)},
				 fixture.arena, &object, &err),
		0);
	return object;
}

static int run_operation(
	struct store *store, const struct upload_ref *ref, int index, const struct object *source)
{
	struct error err = {0};
	struct uploaded_part part;
	if (operations[index].is_copy)
		return fixture_upload_copy(store, ref, operations[index].number, source,
			operations[index].offset, operations[index].length, &part, &err);
	return fixture_upload_put(store, ref, operations[index].number,
		span_of(noise + operations[index].offset, operations[index].length), NULL, &part,
		&err);
}

static int work(const struct kill_child *child, const struct file_ops *files)
{
	struct store *const store = open_store(files);
	fixture.arena = arena_new(1024 * 1024);
	const struct object source = find(store, "source");
	for (int i = 0; i < OPERATIONS; i++) {
		if (run_operation(store, child->owner, i, &source) != 0)
			return 1;
		kill_child_tell(child);
	}
	store_close(store);
	return 0;
}

static bool is_of(const struct uploaded_part *part, int index)
{
	uint8_t md5[MD5_BYTES];
	char etag[2 * MD5_BYTES + 1];
	struct md5_stream *const stream = md5_stream_new();
	md5_stream_add(stream, span_of(noise + operations[index].offset, operations[index].length));
	md5_stream_result(stream, md5);
	md5_stream_free(stream);
	encode_hex(span_of(md5, sizeof(md5)), etag);
	return part->number == operations[index].number && part->size == operations[index].length &&
		strcmp(part->etag, etag) == 0;
}

/* The last acknowledged operation on this number, or -1. *out_next is a later one that may have
 * happened. */
static int last_on(uint32_t number, int acknowledged, int *out_next)
{
	int last = -1;
	*out_next = -1;
	for (int i = 0; i < acknowledged; i++)
		if (operations[i].number == number)
			last = i;
	if (acknowledged < OPERATIONS && operations[acknowledged].number == number)
		*out_next = acknowledged;
	return last;
}

/* Completes the upload with only this part. */
static void expect_bytes(const struct upload_ref *ref, const struct uploaded_part *part, int index)
{
	struct error err = {0};
	struct upload_result result;
	struct upload_fault fault;
	struct upload_listed_part listed = {.number = part->number};
	memcpy(listed.etag, part->etag, sizeof(listed.etag));
	struct upload_complete_params params = {.ref = *ref, .parts = &listed, .part_count = 1};
	ck_assert_msg(fixture_upload_complete(fixture.store, &params, &result, &fault, &err) == 0,
		"%s", err.text);
	ck_assert(fixture_holds(&fixture, "bucket", "k",
		span_of(noise + operations[index].offset, operations[index].length)));
}

static void verify(const struct upload_ref *ref, int round, int acknowledged)
{
	struct error err = {0};
	struct upload_parts parts;
	size_t at = 0;
	fixture.arena = arena_new(16 * 1024 * 1024);
	fixture.store = open_store(NULL);
	ck_assert_int_eq(upload_list_parts(fixture.store, ref, (struct upload_parts_range){0, 1000},
				 fixture.arena, &parts, &err),
		0);
	struct uploaded_part chosen = {.number = 0};
	int chosen_index = 0;
	for (uint32_t number = 1; number <= 5; number++) {
		int next;
		const int last = last_on(number, acknowledged, &next);
		const struct uploaded_part *const part =
			at < parts.count && parts.parts[at].number == number ? &parts.parts[at++]
									     : NULL;
		if (part == NULL) {
			ck_assert_msg(last < 0, "round %d: part %u is lost", round, number);
			continue;
		}
		const int index = last >= 0 && is_of(part, last) ? last : next;
		ck_assert_msg(index >= 0 && is_of(part, index), "round %d: part %u is another",
			round, number);
		if (chosen.number == 0 || (round + (int)number) % 3 == 0) {
			chosen = *part;
			chosen_index = index;
		}
	}
	ck_assert_uint_eq(at, parts.count);
	if (chosen.number != 0)
		expect_bytes(ref, &chosen, chosen_index);
	else
		ck_assert_int_eq(fixture_upload_abort(fixture.store, ref, &err), 0);
	fixture_sweep(fixture.store);
	/* Only the part of the last completed upload is left, if there was one: the source has no
	 * part. */
	ck_assert_int_eq(
		fixture_count(fixture.store,
			"SELECT COUNT(*) - (SELECT COUNT(*) FROM versions WHERE kind = 1) FROM parts"),
		0);
}

static struct upload_ref begin(struct store *store)
{
	struct error err = {0};
	struct upload_ref ref;
	struct upload_create_params params = {
		.bucket = fixture_bucket("bucket"), .key = span_text("k")};
	ck_assert_int_eq(fixture_upload_create(store, &params, &ref, &err), 0);
	return ref;
}

START_TEST(acknowledged_parts_outlive_a_kill)
{
	struct error err = {0};
	struct store *store = open_store(NULL);
	ck_assert_int_eq(fixture_create_bucket(store, "bucket", "main", &err), 0);
	ck_assert_int_eq(
		fixture_put(store, "bucket", "source", span_of(noise, NOISE_BYTES), &err), 0);
	struct upload_ref ref = begin(store);
	store_close(store);
	bool alive = false;
	int round = 0;
	for (; !alive; round += unit_stride(5)) {
		ck_assert_int_lt(round, ROUNDS_MAX);
		struct kill_child child = {.kinds = KILL_ANYWHERE & ~FILE_FAULT_OPEN,
			.countdown = round + 1,
			.work = work,
			.owner = &ref};
		int acknowledged;
		alive = kill_child_run(&child, &acknowledged);
		verify(&ref, round, acknowledged);
		ref = begin(fixture.store);
		store_close(fixture.store);
		arena_free(fixture.arena);
	}
	ck_assert_int_gt(round, OPERATIONS);
}
END_TEST

Suite *test_upload_kill_suite(void);

Suite *test_upload_kill_suite(void)
{
	Suite *const suite = suite_create("upload_kill");
	TCase *const tests = tcase_create("upload_kill");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_set_timeout(tests, 240);
	tcase_add_test(tests, acknowledged_parts_outlive_a_kill);
	suite_add_tcase(suite, tests);
	return suite;
}
