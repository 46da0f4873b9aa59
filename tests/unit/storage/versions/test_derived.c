#include "tests/unit/unit.h"

#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/encode.h"
#include "base/memory.h"
#include "storage/core/committer.h"
#include "storage/derive/derive_proof.h"
#include "storage/files/batch.h"
#include "storage/objects/object_copy.h"
#include "storage/objects/object_read.h"
#include "storage/objects/object_view.h"
#include "storage/runs/step_pin.h"
#include "storage/upkeep/gc.h"
#include "storage/versions/derived_recipe.h"
#include "storage/versions/version.h"
#include "storage/packs/pack_store.h"
#include "tests/unit/storage/derived_fixture.h"
#include "tests/unit/storage/far_fixture.h"
#include "tests/unit/storage/upload_fixture.h"
#include "weights/codec/block_code.h"

enum { LARGE = 2 * BLOCK_CODE_ELEMENTS + 777, STEPS = 3, READ_BYTES = 256 * 1024 };

static struct store_fixture fixture;
static char *far_folder; /* NULL: packs lie in the store's folder */
static struct derived_checkpoint steps[STEPS];

static void set_up(void)
{
	struct error err = {0};
	memset(&fixture, 0, sizeof(fixture));
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "b", "main", &err), 0);
	for (unsigned i = 0; i < STEPS; i++)
		derived_checkpoint_make(&steps[i], LARGE, i);
}

static void tear_down(void)
{
	for (unsigned i = 0; i < STEPS; i++)
		derived_checkpoint_release(&steps[i]);
	store_fixture_close(&fixture);
	if (far_folder != NULL)
		unit_scratch_remove(far_folder);
	far_folder = NULL;
}

static bool holds(const char *key, unsigned step)
{
	return fixture_holds(&fixture, "b", key, buffer_span(&steps[step].bytes));
}

static struct object find(const char *key)
{
	struct error err = {0};
	struct object object;
	ck_assert_msg(fixture_find(&fixture, "b", key, &object, &err) == 0, "%s", err.text);
	return object;
}

static void check_range(
	const struct object *object, struct span bytes, uint64_t offset, uint64_t length)
{
	struct error err = {0};
	struct buffer read;
	buffer_init(&read, length + 100000);
	ck_assert_msg(fixture_read(fixture.store, object, offset, length, &read, &err) == 0, "%s",
		err.text);
	ck_assert_msg(
		span_equal(buffer_span(&read), span_slice(bytes, (size_t)offset, (size_t)length)),
		"bytes %llu+%llu differ", (unsigned long long)offset, (unsigned long long)length);
	buffer_release(&read);
}

/* Reads ranges that begin and end around every edge of pieces and blocks. */
static void check_ranges(const struct object *object, const struct derived_checkpoint *checkpoint)
{
	enum { EDGES = 3 * DERIVED_TENSORS + 5 };
	uint64_t edges[EDGES] = {
		0, 100, checkpoint->header, checkpoint->bytes.len, checkpoint->bytes.len / 2};
	size_t count = 5;
	for (size_t i = 0; i < DERIVED_TENSORS; i++) {
		const struct derived_tensor *const tensor = &checkpoint->tensors[i];
		const uint64_t whole = block_code_bytes(tensor->dtype);
		edges[count++] = tensor->begin;
		for (unsigned block = 1; block <= 2; block++)
			edges[count++] = tensor->begin + block * whole < tensor->end
				? tensor->begin + block * whole
				: tensor->end;
	}
	for (size_t i = 0; i < count; i++)
		for (uint64_t offset = edges[i] > 2 ? edges[i] - 2 : 0;
			offset <= edges[i] + 1 && offset < object->size; offset++) {
			static const uint64_t lengths[] = {0, 1, 3, 70001};
			for (size_t j = 0; j < sizeof(lengths) / sizeof(lengths[0]); j++)
				check_range(object, buffer_span(&checkpoint->bytes), offset,
					lengths[j] < object->size - offset ? lengths[j]
									   : object->size - offset);
		}
}

START_TEST(test_a_swapped_version_says_and_gives_what_it_did)
{
	const struct object base = derived_fixture_put(&fixture, "b", "k0", &steps[0]);
	const struct object before =
		derived_fixture_put_swapped(&fixture, "b", "k1", &steps[0], &base, &steps[1]);
	const struct object after = find("k1");
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT count(*) FROM versions WHERE kind = 3"), 1);
	ck_assert_int_eq(after.sequence, before.sequence);
	ck_assert_str_eq(after.etag, before.etag);
	ck_assert(after.has_digest && digest128_equal(&after.digest, &before.digest));
	ck_assert(after.has_file_hash && checksum_equal(&after.checksum, &before.checksum));
	ck_assert_int_eq(after.modified_ms, before.modified_ms);
	ck_assert_mem_eq(after.version, before.version, VERSION_ID_BYTES);
	ck_assert(holds("k1", 1) && holds("k0", 0));
	store_fixture_reopen(&fixture);
	ck_assert(holds("k1", 1));
}
END_TEST

START_TEST(test_ranges)
{
	const struct object base = derived_fixture_put(&fixture, "b", "k0", &steps[0]);
	const struct object first =
		derived_fixture_put_swapped(&fixture, "b", "k1", &steps[0], &base, &steps[1]);
	check_ranges(&first, &steps[1]);
	const struct object second =
		derived_fixture_put_swapped(&fixture, "b", "k2", &steps[1], &first, &steps[2]);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT max(depth) FROM derivations"), 2);
	check_ranges(&second, &steps[2]);
}
END_TEST

static void post(void *wakes)
{
	sem_post(wakes);
}

/* As a reactor reads: the place ends the test when a read would wait for it. */
static int count_waits(const struct object *object, struct span bytes, uint64_t offset)
{
	struct error err = {0};
	struct buffer read;
	sem_t wakes;
	int waits = 0;
	ptrdiff_t got;
	sem_init(&wakes, 0, 0);
	buffer_init(&read, object->size + READ_BYTES);
	struct object_view *const view = object_view_new(fixture.store, &err);
	struct body_source *const source =
		object_view_open_soon(view, object, offset, object->size - offset, &err);
	ck_assert_msg(source != NULL, "%s", err.text);
	object_view_free(view);
	source->let_wait(source, post, &wakes);
	while ((got = source->read(source, buffer_reserve(&read, READ_BYTES), READ_BYTES, &err)) !=
		0) {
		ck_assert_msg(got != -1, "%s", err.text);
		buffer_commit(&read, got > 0 ? (size_t)got : 0);
		waits += got == SOURCE_WAIT;
		while (got == SOURCE_WAIT && sem_wait(&wakes) != 0)
			ck_assert_int_eq(errno, EINTR);
	}
	ck_assert(span_equal(
		buffer_span(&read), span_slice(bytes, (size_t)offset, object->size - offset)));
	source->close(source);
	sem_destroy(&wakes);
	buffer_release(&read);
	return waits;
}

/* A step over a step, with all their bytes in a far place. */
START_TEST(test_far_bytes_are_awaited)
{
	static struct far_fixture far;
	struct error err = {0};
	far_folder = unit_scratch_make();
	store_fixture_close(&fixture);
	memset(&fixture, 0, sizeof(fixture));
	far = (struct far_fixture){.folder = far_folder};
	fixture.far = &far;
	fixture.pack_open_ms = 1;
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "b", "main", &err), 0);
	const struct object base = derived_fixture_put(&fixture, "b", "k0", &steps[0]);
	const struct object first =
		derived_fixture_put_swapped(&fixture, "b", "k1", &steps[0], &base, &steps[1]);
	const struct object second =
		derived_fixture_put_swapped(&fixture, "b", "k2", &steps[1], &first, &steps[2]);
	fixture.clock.now_ms += 10;
	for (int i = 0; i < 2000 && pack_store_shared_waits(store_packs(fixture.store)); i++)
		usleep(5000);
	for (int i = 0; i < 6; i++) {
		if (i % 2 == 0)
			store_fixture_reopen(&fixture);
		far_fixture_cool(&far);
		far_fixture_play_reactor(&far, true);
		ck_assert_int_gt(count_waits(&second, buffer_span(&steps[2].bytes),
					 second.size * (unsigned)i / 7),
			0);
		far_fixture_play_reactor(&far, false);
	}
}
END_TEST

START_TEST(test_ranges_of_pieces_with_many_blocks)
{
	struct error err = {0};
	const struct object base = derived_fixture_put(&fixture, "b", "k0", &steps[0]);
	const struct object plain = derived_fixture_put(&fixture, "b", "k1", &steps[1]);
	struct derived_recipe *const recipe =
		derived_fixture_recipe(&fixture, &steps[0], &base, &steps[1], false);
	ck_assert_int_eq(
		derived_fixture_swap(fixture.store, plain.sequence, recipe, &plain.digest, &err),
		0);
	derived_recipe_free(recipe);
	check_ranges(&plain, &steps[1]);
}
END_TEST

START_TEST(test_a_third_derivation_is_refused)
{
	struct error err = {0};
	const struct object base = derived_fixture_put(&fixture, "b", "k0", &steps[0]);
	const struct object first =
		derived_fixture_put_swapped(&fixture, "b", "k1", &steps[0], &base, &steps[1]);
	const struct object second =
		derived_fixture_put_swapped(&fixture, "b", "k2", &steps[1], &first, &steps[2]);
	const struct object third = derived_fixture_put(&fixture, "b", "k3", &steps[0]);
	struct derived_recipe *const recipe =
		derived_fixture_recipe(&fixture, &steps[2], &second, &steps[0], true);
	ck_assert_int_eq(
		derived_fixture_swap(fixture.store, third.sequence, recipe, &third.digest, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	derived_recipe_free(recipe);
	ck_assert(holds("k3", 0));
}
END_TEST

START_TEST(test_a_source_is_not_swapped)
{
	struct error err = {0};
	const struct object base = derived_fixture_put(&fixture, "b", "k0", &steps[0]);
	derived_fixture_put_swapped(&fixture, "b", "k1", &steps[0], &base, &steps[1]);
	const struct object other = derived_fixture_put(&fixture, "b", "k2", &steps[2]);
	struct derived_recipe *const recipe =
		derived_fixture_recipe(&fixture, &steps[2], &other, &steps[0], true);
	ck_assert_int_eq(
		derived_fixture_swap(fixture.store, base.sequence, recipe, &base.digest, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_PRECONDITION);
	derived_recipe_free(recipe);
	ck_assert(holds("k0", 0) && holds("k1", 1));
}
END_TEST

START_TEST(test_what_cannot_be_swapped)
{
	struct error err = {0};
	const struct object base = derived_fixture_put(&fixture, "b", "k0", &steps[0]);
	const struct object next = derived_fixture_put(&fixture, "b", "k1", &steps[1]);
	const struct object two = derived_fixture_put(&fixture, "b", "k2", &steps[2]);
	struct derived_recipe *const recipe =
		derived_fixture_recipe(&fixture, &steps[0], &base, &steps[1], true);
	/* the recipe makes other bytes */
	ck_assert_int_eq(
		derived_fixture_swap(fixture.store, two.sequence, recipe, &next.digest, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_PRECONDITION);
	ck_assert_int_eq(derived_fixture_swap(fixture.store, 999, recipe, &next.digest, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_PRECONDITION);
	ck_assert_int_eq(fixture_put(fixture.store, "b", "inline", span_text("short"), &err), 0);
	ck_assert_int_eq(derived_fixture_swap(fixture.store, find("inline").sequence, recipe,
				 &next.digest, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_PRECONDITION);
	struct object lie = base; /* a source of another size */
	lie.size++;
	struct derived_recipe *other =
		derived_fixture_recipe(&fixture, &steps[0], &lie, &steps[1], true);
	ck_assert_int_eq(
		derived_fixture_swap(fixture.store, next.sequence, other, &next.digest, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	derived_recipe_free(other);
	ck_assert_int_eq(
		derived_fixture_swap(fixture.store, next.sequence, recipe, &next.digest, &err), 0);
	/* it is derived already */
	ck_assert_int_eq(
		derived_fixture_swap(fixture.store, next.sequence, recipe, &next.digest, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_PRECONDITION);
	ck_assert_int_eq(fixture_delete(fixture.store, "b", "k0", NULL, &err), 0);
	derived_recipe_free(recipe);
	ck_assert(holds("k1", 1) && holds("k2", 2));
}
END_TEST

START_TEST(test_sources_stay_while_they_are_named)
{
	struct error err = {0};
	const struct object base = derived_fixture_put(&fixture, "b", "k0", &steps[0]);
	const struct object first =
		derived_fixture_put_swapped(&fixture, "b", "k1", &steps[0], &base, &steps[1]);
	derived_fixture_put_swapped(&fixture, "b", "k2", &steps[1], &first, &steps[2]);
	ck_assert_int_eq(fixture_delete(fixture.store, "b", "k0", NULL, &err), 0);
	ck_assert_int_eq(
		fixture_put(fixture.store, "b", "k1", span_text("something else"), &err), 0);
	fixture_sweep(fixture.store);
	store_fixture_reopen(&fixture);
	ck_assert(holds("k2", 2));
	ck_assert_int_eq(fixture_delete(fixture.store, "b", "k2", NULL, &err), 0);
	fixture_sweep(fixture.store);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM versions"), 1);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM derivations"), 0);
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT count(*) FROM derivation_sources"), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM segments"), 0);
}
END_TEST

static atomic_bool is_round_done;

static void gc_all(void)
{
	struct error err = {0};
	struct gc_request request = {0};
	ck_assert_int_eq(gc_run(store_parts(fixture.store)->gc, &request, &err), 0);
}

START_TEST(test_space_comes_back)
{
	const struct object base = derived_fixture_put(&fixture, "b", "k0", &steps[0]);
	const int64_t one = fixture_count(fixture.store, "SELECT sum(length) FROM packs");
	derived_fixture_put_swapped(&fixture, "b", "k1", &steps[0], &base, &steps[1]);
	fixture_sweep(fixture.store);
	store_fixture_reopen(&fixture); /* this seals the open pack */
	gc_all();
	const int64_t both = fixture_count(fixture.store, "SELECT sum(length) FROM packs");
	ck_assert_int_ge(both, one);
	ck_assert_msg(both * 20 < one * 23, "one takes %lld bytes, both take %lld", (long long)one,
		(long long)both);
	ck_assert(holds("k0", 0) && holds("k1", 1));
}
END_TEST

static void copy(const char *from, const char *to, enum checksum_algorithm checksum)
{
	struct error err = {0};
	struct object out;
	const struct object source = find(from);
	struct object_copy_params params = {.source = &source,
		.bucket = bucket_named(span_text("b")),
		.key = span_text(to),
		.checksum = checksum};
	ck_assert_msg(fixture_copy(fixture.store, &params, &out, &err) == 0, "%s", err.text);
	ck_assert_str_eq(out.etag, source.etag);
}

START_TEST(test_copies)
{
	struct error err = {0};
	const struct object base = derived_fixture_put(&fixture, "b", "k0", &steps[0]);
	derived_fixture_put_swapped(&fixture, "b", "k1", &steps[0], &base, &steps[1]);
	copy("k1", "copy", CHECKSUM_NONE);
	copy("k1", "sum", CHECKSUM_SHA256);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM derivations"), 3);
	ck_assert_int_eq(fixture_delete(fixture.store, "b", "k0", NULL, &err), 0);
	ck_assert_int_eq(fixture_delete(fixture.store, "b", "k1", NULL, &err), 0);
	copy("copy", "copy", CHECKSUM_NONE); /* a copy onto itself removes the version before */
	fixture_sweep(fixture.store);
	gc_all();
	ck_assert(holds("copy", 1) && holds("sum", 1));
	ck_assert_int_eq(fixture_delete(fixture.store, "b", "copy", NULL, &err), 0);
	ck_assert_int_eq(fixture_delete(fixture.store, "b", "sum", NULL, &err), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM versions"), 0);
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT count(*) FROM derivation_sources"), 0);
}
END_TEST

static int may_read_all(
	void *owner, struct bucket_ref bucket, struct span key, bool is_current, struct error *err)
{
	(void)err;
	(void)owner;
	(void)bucket;
	(void)is_current;
	(void)key;
	return true;
}

/* The bytes of a derived version have no chunks to refer to. */
START_TEST(test_a_part_copied_out_of_a_derived_version)
{
	struct error err = {0};
	struct upload_create_params params = {.bucket = bucket_named(span_text("b")),
		.key = span_text("copy"),
		.initiator = span_text("main")};
	struct upload_ref ref;
	struct uploaded_part part;
	const struct object base = derived_fixture_put(&fixture, "b", "k0", &steps[0]);
	struct object source;
	const uint64_t skip = _i == 0 ? 0 : 777;
	(void)derived_fixture_put_swapped(&fixture, "b", "k1", &steps[0], &base, &steps[1]);
	ck_assert_int_eq(fixture_find(&fixture, "b", "k1", &source, &err), 0);
	ck_assert_int_eq(fixture_upload_create(fixture.store, &params, &ref, &err), 0);
	ck_assert_msg(fixture_upload_copy(fixture.store, &ref, 1, &source, skip, source.size - skip,
			      &part, &err) == 0,
		"%s", err.text);
	const struct upload_listed_part listed = fixture_upload_listed(&part);
	ck_assert_msg(fixture_upload_complete_parts(fixture.store, &ref, &listed, 1, &err) == 0,
		"%s", err.text);
	store_fixture_reopen(&fixture);
	ck_assert(fixture_holds(&fixture, "b", "copy",
		span_slice(buffer_span(&steps[1].bytes), (size_t)skip, steps[1].bytes.len)));
}
END_TEST

/* Lines of a batch share a recipe as copies do, whichever version with these bytes they find. */
START_TEST(test_lines_of_a_batch)
{
	struct error err = {0};
	const struct object base = derived_fixture_put(&fixture, "b", "k0", &steps[0]);
	derived_fixture_put_swapped(&fixture, "b", "k1", &steps[0], &base, &steps[1]);
	const struct object source = find("k1");
	struct batch_line lines[] = {{.kind = BATCH_COPY,
					     .path = span_text("copy"),
					     .file = source.file_hash,
					     .source = bucket_named(span_text("b"))},
		{.kind = BATCH_ADD, .path = span_text("k1"), .file = source.file_hash},
		{.kind = BATCH_DELETE, .path = span_text("k0")}};
	const struct batch_params params = {.bucket = bucket_named(span_text("b")),
		.account = span_text("main"),
		.lines = lines,
		.count = 3,
		.may_read = may_read_all};
	ck_assert_msg(fixture_call(batch_call(fixture.store, &params), &err) == 0, "%s", err.text);
	for (size_t i = 0; i < 3; i++)
		ck_assert_msg(lines[i].error.kind == ERROR_NONE, "%s", lines[i].error.text);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM derivations"), 2);
	fixture_sweep(fixture.store);
	gc_all();
	ck_assert(holds("copy", 1) && holds("k1", 1));
}
END_TEST

START_TEST(test_a_copy_of_the_plain_one_keeps_its_segments)
{
	struct error err = {0};
	const struct object base = derived_fixture_put(&fixture, "b", "k0", &steps[0]);
	const struct object plain = derived_fixture_put(&fixture, "b", "k1", &steps[1]);
	copy("k1", "copy", CHECKSUM_NONE);
	struct derived_recipe *const recipe =
		derived_fixture_recipe(&fixture, &steps[0], &base, &steps[1], true);
	ck_assert_int_eq(
		derived_fixture_swap(fixture.store, plain.sequence, recipe, &plain.digest, &err),
		0);
	derived_recipe_free(recipe);
	gc_all();
	ck_assert(holds("k1", 1) && holds("copy", 1));
	ck_assert_int_eq(fixture_delete(fixture.store, "b", "copy", NULL, &err), 0);
	fixture_sweep(fixture.store);
	gc_all();
	ck_assert(holds("k1", 1));
}
END_TEST

struct adding {
	struct change change; /* first */
	struct derived_add add;
	int64_t version;
};

static int add_pinned(struct change *change, struct db *db, struct error *err)
{
	struct adding *const adding = (struct adding *)change;
	if (derived_add(db, &adding->add, &adding->version, err) != 0)
		return -1;
	return step_pin_add(
		db, 7, STEP_PIN_ANCHOR, span_text("model.safetensors"), adding->version, err);
}

START_TEST(test_a_made_version)
{
	struct error err = {0};
	char hex[33];
	struct object object;
	const struct object base = derived_fixture_put(&fixture, "b", "k0", &steps[0]);
	struct derived_recipe *const recipe =
		derived_fixture_recipe(&fixture, &steps[0], &base, &steps[1], true);
	const struct digest128 digest = xxh3_128(buffer_span(&steps[1].bytes));
	struct digest128 proven;
	ck_assert_int_eq(derived_recipe_digest(fixture.store, recipe, &proven, &err), 0);
	ck_assert(digest128_equal(&proven, &digest));
	struct adding adding = {.change = {.apply = add_pinned},
		.add = {.bucket = 1,
			.key = span_text("made"),
			.is_hidden = true,
			.recipe = recipe,
			.digest = digest,
			.modified_ms = 1234}};
	ck_assert_msg(committer_run(store_committer(fixture.store), &adding.change, &err) == 0,
		"%s", err.text);
	derived_recipe_free(recipe);
	ck_assert_int_eq(fixture_find(&fixture, "b", "made", &object, &err), -1);
	ck_assert_int_eq(fixture_delete(fixture.store, "b", "k0", NULL, &err), 0);
	store_fixture_reopen(&fixture);
	ck_assert_int_eq(
		object_find_sequence(fixture.store, adding.version, fixture.arena, &object, &err),
		0);
	encode_hex(span_of(digest.bytes, sizeof(digest.bytes)), hex);
	ck_assert_mem_eq(object.etag, hex, 32);
	ck_assert_str_eq(object.etag + 32, "-d");
	check_range(&object, buffer_span(&steps[1].bytes), 0, object.size);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM scratch_versions"), 0);
}
END_TEST

/* Reads everything from several offsets, and expects an error or the right bytes. True when any
 * read failed. */
static bool fails_and_never_lies(const struct object *object, struct span bytes)
{
	bool failed = false;
	for (uint64_t offset = 0; offset < object->size; offset += object->size / 7 + 1) {
		struct error err = {0};
		struct buffer read;
		buffer_init(&read, bytes.len + 100000);
		const int result = fixture_read(
			fixture.store, object, offset, object->size - offset, &read, &err);
		if (read.len > 0)
			ck_assert_mem_eq(read.data, bytes.data + offset, read.len);
		ck_assert(result != 0 || read.len == object->size - offset);
		ck_assert(result == 0 || err.kind == ERROR_CORRUPT);
		failed |= result != 0;
		buffer_release(&read);
	}
	return failed;
}

START_TEST(test_a_wrong_base_is_an_error)
{
	struct error err = {0};
	const struct object base = derived_fixture_put(&fixture, "b", "k0", &steps[0]);
	const struct object wrong = derived_fixture_put(&fixture, "b", "wrong", &steps[2]);
	const struct object plain = derived_fixture_put(&fixture, "b", "k1", &steps[1]);
	struct object lie = base;
	lie.sequence = wrong.sequence;
	struct derived_recipe *const recipe =
		derived_fixture_recipe(&fixture, &steps[0], &lie, &steps[1], true);
	struct digest128 digest;
	ck_assert_int_eq(derived_recipe_digest(fixture.store, recipe, &digest, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	/* a caller must not do this, because the recipe is not proven */
	ck_assert_int_eq(
		derived_fixture_swap(fixture.store, plain.sequence, recipe, &plain.digest, &err),
		0);
	derived_recipe_free(recipe);
	ck_assert(fails_and_never_lies(&plain, buffer_span(&steps[1].bytes)));
}
END_TEST

/* A recipe that takes the pieces of a derived version from back to front: pieces that were passed
 * are made again. */
START_TEST(test_pieces_in_any_order)
{
	struct error err = {0};
	struct buffer turned;
	const struct object base = derived_fixture_put(&fixture, "b", "k0", &steps[0]);
	struct object next = derived_fixture_put(&fixture, "b", "k1", &steps[1]);
	struct derived_recipe *recipe =
		derived_fixture_recipe(&fixture, &steps[0], &base, &steps[1], false);
	ck_assert_int_eq(
		derived_fixture_swap(fixture.store, next.sequence, recipe, &next.digest, &err), 0);
	derived_recipe_free(recipe);
	const struct span bytes = buffer_span(&steps[1].bytes);
	const uint64_t slice = bytes.len / 40;
	buffer_init(&turned, bytes.len + 100000);
	recipe = derived_recipe_new();
	const size_t source = derived_recipe_source(recipe, next.sequence, next.size);
	for (uint64_t i = 40; i-- > 0;) {
		derived_recipe_add_copy(recipe, source, i * slice, slice - 3);
		buffer_add_span(&turned, span_slice(bytes, (size_t)(i * slice), (size_t)slice - 3));
	}
	const struct digest128 wanted = xxh3_128(buffer_span(&turned));
	struct digest128 digest;
	ck_assert_msg(
		derived_recipe_digest(fixture.store, recipe, &digest, &err) == 0, "%s", err.text);
	ck_assert(digest128_equal(&digest, &wanted));
	derived_recipe_free(recipe);
	buffer_release(&turned);
}
END_TEST

/* The blocks make the whole piece, and some bytes are left over. */
START_TEST(test_a_piece_with_bytes_left_is_an_error)
{
	struct error err = {0};
	struct digest128 digest;
	const struct object base = derived_fixture_put(&fixture, "b", "k0", &steps[0]);
	struct derived_recipe *recipe =
		derived_fixture_recipe(&fixture, &steps[0], &base, &steps[1], false);
	for (size_t i = 0; i + 1 < recipe->piece_count; i++)
		if (recipe->pieces[i].kind == DERIVED_DELTA)
			recipe->pieces[i].delta_length++;
	ck_assert_int_eq(derived_recipe_digest(fixture.store, recipe, &digest, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	derived_recipe_free(recipe);
}
END_TEST

static int prove(
	const char *key, const struct derived_recipe *recipe, const struct digest128 *digest)
{
	struct error err = {0};
	struct version version;
	struct db *db = store_reader_take(fixture.store, &err);
	ck_assert_int_eq(
		version_find_sequence(db, find(key).sequence, fixture.arena, &version, &err), 1);
	store_reader_give(fixture.store, db);
	return derive_proof(fixture.store, &version, recipe, digest, &err);
}

/* A read fails for another digest than the one that was claimed, and for other bytes under the
 * right digest. */
START_TEST(test_a_recipe_is_proven_by_the_very_bytes)
{
	const struct object base = derived_fixture_put(&fixture, "b", "k0", &steps[0]);
	const struct object next = derived_fixture_put(&fixture, "b", "k1", &steps[1]);
	derived_fixture_put(&fixture, "b", "k2", &steps[2]);
	struct derived_recipe *recipe =
		derived_fixture_recipe(&fixture, &steps[0], &base, &steps[1], true);
	const struct digest128 right = xxh3_128(buffer_span(&steps[1].bytes));
	const struct digest128 other = xxh3_128(buffer_span(&steps[2].bytes));
	ck_assert_int_eq(prove("k1", recipe, &right), 1);
	ck_assert_int_eq(prove("k1", recipe, &other), 0);
	ck_assert_int_eq(prove("k2", recipe, &other), 0);
	ck_assert_int_eq(prove("k2", recipe, &right), 0);
	ck_assert_uint_eq(next.size, derived_recipe_size(recipe));
	derived_recipe_free(recipe);
}
END_TEST

/* Once a read has met the damage, every range is refused at once or is read to its end. */
static void ranges_are_refused_or_whole(const struct object *object, struct span bytes)
{
	enum { PIECES = 50 };
	const uint64_t length = object->size / PIECES;
	unsigned refused = 0;
	for (unsigned i = 0; i < PIECES; i++) {
		struct error err = {0};
		struct object_view *const view = object_view_new(fixture.store, &err);
		struct body_source *const source =
			object_view_open_told(view, object, i * length, length, &err);
		object_view_free(view);
		refused += source == NULL;
		if (source == NULL) {
			ck_assert_msg(err.kind == ERROR_CONTENT_DAMAGED, "%s", err.text);
			continue;
		}
		uint8_t *const read = memory_new(length);
		ck_assert_msg(body_source_read_whole(source, read, length, &err) == 0,
			"%u of %u: %s", i, PIECES, err.text);
		ck_assert_mem_eq(read, bytes.data + i * length, length);
		source->close(source);
		free(read);
	}
	ck_assert(refused > 0 && refused < PIECES);
}

/* Flips a byte in each pack file in turn. */
static void damage_packs(const struct object *object, struct span bytes)
{
	char **names;
	size_t count;
	size_t failures = 0;
	struct error err = {0};
	char *const packs = store_fixture_path(&fixture, "packs");
	ck_assert_int_eq(file_list(packs, &names, &count, &err), 0);
	for (size_t i = 0; i < count; i++) {
		char **files;
		size_t file_count;
		const char *const folder = arena_format(fixture.arena, "%s/%s", packs, names[i]);
		ck_assert_int_eq(file_list(folder, &files, &file_count, &err), 0);
		for (size_t j = 0; j < file_count; j++) {
			if (!span_ends_text(span_text(files[j]), ".pack"))
				continue;
			const char *const path =
				arena_format(fixture.arena, "%s/%s", folder, files[j]);
			struct buffer whole;
			buffer_init(&whole, 20000000);
			ck_assert_int_eq(file_read_all(path, &whole, &err), 0);
			whole.data[whole.len / 3] ^= 0x10;
			ck_assert_int_eq(
				file_place(file_system(), path, buffer_span(&whole), 0600, &err),
				0);
			store_fixture_reopen(&fixture);
			if (fails_and_never_lies(object, bytes)) {
				failures++;
				ranges_are_refused_or_whole(object, bytes);
			}
			whole.data[whole.len / 3] ^= 0x10;
			ck_assert_int_eq(
				file_place(file_system(), path, buffer_span(&whole), 0600, &err),
				0);
			store_fixture_reopen(&fixture);
			buffer_release(&whole);
		}
		file_names_free(files, file_count);
	}
	file_names_free(names, count);
	free(packs);
	ck_assert_uint_ge(failures, 2); /* a pack with the base, and at least one with the blocks */
}

START_TEST(test_damaged_records_are_errors)
{
	struct error err = {0};
	const struct object base = derived_fixture_put(&fixture, "b", "k0", &steps[0]);
	const struct object derived =
		derived_fixture_put_swapped(&fixture, "b", "k1", &steps[0], &base, &steps[1]);
	ck_assert_int_eq(fixture_delete(fixture.store, "b", "k0", NULL, &err), 0);
	fixture_sweep(fixture.store);
	store_fixture_reopen(&fixture);
	gc_all();
	damage_packs(&derived, buffer_span(&steps[1].bytes));
	check_range(&derived, buffer_span(&steps[1].bytes), 0, derived.size);
}
END_TEST

/* Both recipes are sound, and each belongs to another object. */
START_TEST(test_exchanged_recipes_are_errors)
{
	struct error err = {0};
	const struct object base = derived_fixture_put(&fixture, "b", "k0", &steps[0]);
	const struct object one =
		derived_fixture_put_swapped(&fixture, "b", "k1", &steps[0], &base, &steps[1]);
	const struct object two =
		derived_fixture_put_swapped(&fixture, "b", "k2", &steps[0], &base, &steps[2]);
	ck_assert(holds("k1", 1) && holds("k2", 2));
	ck_assert_int_eq(
		fixture_run(fixture.store,
			"CREATE TEMP TABLE old AS SELECT version, recipe FROM derivations", &err),
		0);
	ck_assert_int_eq(
		fixture_run(fixture.store,
			"UPDATE derivations SET recipe ="
			" (SELECT old.recipe FROM old WHERE old.version <> derivations.version)",
			&err),
		0);
	store_fixture_reopen(&fixture);
	ck_assert(fails_and_never_lies(&one, buffer_span(&steps[1].bytes)));
	ck_assert(fails_and_never_lies(&two, buffer_span(&steps[2].bytes)));
}
END_TEST

START_TEST(test_damaged_rows_are_errors)
{
	static const char *const scripts[] = {
		"UPDATE derivations SET recipe = substr(recipe, 1, 60) || x'01' || substr(recipe, 62)",
		"UPDATE derivations SET recipe = x''",
		"DELETE FROM derivations",
	};
	const struct object base = derived_fixture_put(&fixture, "b", "k0", &steps[0]);
	const struct object derived =
		derived_fixture_put_swapped(&fixture, "b", "k1", &steps[0], &base, &steps[1]);
	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
		struct error err = {0};
		ck_assert_int_eq(fixture_run(fixture.store, scripts[i], &err), 0);
		ck_assert(object_open(fixture.store, &derived, 0, 1, &err) == NULL);
		ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	}
}
END_TEST

static void round_is_done(void *owner)
{
	(void)owner;
	atomic_store(&is_round_done, true);
}

START_TEST(test_a_read_that_goes_on_while_its_version_is_swapped)
{
	struct error err = {0};
	const struct gc_request request = {0};
	uint8_t piece[100000];
	const struct object base = derived_fixture_put(&fixture, "b", "k0", &steps[0]);
	const struct object plain = derived_fixture_put(&fixture, "b", "k1", &steps[1]);
	struct body_source *const source = object_open(fixture.store, &plain, 0, plain.size, &err);
	ck_assert(source != NULL);
	size_t at = (size_t)source->read(source, piece, sizeof(piece), &err);
	struct derived_recipe *const recipe =
		derived_fixture_recipe(&fixture, &steps[0], &base, &steps[1], true);
	ck_assert_int_eq(
		derived_fixture_swap(fixture.store, plain.sequence, recipe, &plain.digest, &err),
		0);
	derived_recipe_free(recipe);
	struct body_source *const after = object_open(fixture.store, &plain, 0, plain.size, &err);
	ck_assert_int_eq(fixture_delete(fixture.store, "b", "k1", NULL, &err), 0);
	ck_assert_int_eq(fixture_delete(fixture.store, "b", "k0", NULL, &err), 0);
	fixture_sweep(fixture.store);
	struct call *const round = gc_call(store_parts(fixture.store)->gc, &request);
	call_start(round, round_is_done, NULL); /* the round waits for the reads */
	usleep(300000);
	ck_assert(!atomic_load(&is_round_done));
	ptrdiff_t got;
	while ((got = source->read(source, piece, sizeof(piece), &err)) > 0) {
		ck_assert_mem_eq(piece, steps[1].bytes.data + at, (size_t)got);
		at += (size_t)got;
	}
	ck_assert_uint_eq(at, plain.size);
	for (at = 0; (got = after->read(after, piece, sizeof(piece), &err)) > 0; at += (size_t)got)
		ck_assert_mem_eq(piece, steps[1].bytes.data + at, (size_t)got);
	ck_assert_uint_eq(at, plain.size);
	source->close(source);
	after->close(after);
	while (!atomic_load(&is_round_done))
		usleep(1000);
	ck_assert_msg(call_outcome(round, &err) == 0, "%s", err.text);
	call_free(round);
	gc_all();
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM versions"), 0);
}
END_TEST

Suite *test_derived_suite(void);
Suite *test_derived_suite(void)
{
	Suite *const suite = suite_create("derived");
	TCase *const tests = tcase_create("derived");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_set_timeout(tests, 120);
	tcase_add_test(tests, test_a_swapped_version_says_and_gives_what_it_did);
	tcase_add_test(tests, test_ranges);
	tcase_add_test(tests, test_far_bytes_are_awaited);
	tcase_add_test(tests, test_ranges_of_pieces_with_many_blocks);
	tcase_add_test(tests, test_a_third_derivation_is_refused);
	tcase_add_test(tests, test_a_source_is_not_swapped);
	tcase_add_test(tests, test_what_cannot_be_swapped);
	tcase_add_test(tests, test_sources_stay_while_they_are_named);
	tcase_add_test(tests, test_space_comes_back);
	tcase_add_test(tests, test_copies);
	tcase_add_test(tests, test_lines_of_a_batch);
	tcase_add_loop_test(tests, test_a_part_copied_out_of_a_derived_version, 0, 2);
	tcase_add_test(tests, test_a_copy_of_the_plain_one_keeps_its_segments);
	tcase_add_test(tests, test_a_made_version);
	tcase_add_test(tests, test_a_wrong_base_is_an_error);
	tcase_add_test(tests, test_pieces_in_any_order);
	tcase_add_test(tests, test_a_piece_with_bytes_left_is_an_error);
	tcase_add_test(tests, test_a_recipe_is_proven_by_the_very_bytes);
	tcase_add_test(tests, test_damaged_records_are_errors);
	tcase_add_test(tests, test_exchanged_recipes_are_errors);
	tcase_add_test(tests, test_damaged_rows_are_errors);
	tcase_add_test(tests, test_a_read_that_goes_on_while_its_version_is_swapped);
	suite_add_tcase(suite, tests);
	return suite;
}
