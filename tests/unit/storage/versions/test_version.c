/* Compares a bucket with a model of it: random writes, deletes, copies, changes of versioning and
 * names by steps, then every query. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/core/committer.h"
#include "storage/objects/object_change.h"
#include "storage/objects/object_copy.h"
#include "storage/objects/object_delete.h"
#include "storage/objects/object_list.h"
#include "storage/objects/object_put.h"
#include "storage/objects/object_read.h"
#include "storage/versions/version.h"
#include "storage/versions/version_list.h"
#include "tests/unit/storage/store_fixture.h"

enum { KEYS = 8, VERSIONS_MAX = 64, PINS_MAX = 16, OPERATIONS = 1200, BODIES = 12 };

static const char *const keys[KEYS] = {"a", "a/", "a/1", "a/b/c", "a0", "b", "\xc3\xa9", "\xff/x"};

struct model_version {
	char version[VERSION_TEXT_BYTES];
	int64_t sequence;
	bool is_marker;
	unsigned body;
	unsigned tag; /* 0: none */
};
struct model_key {
	struct model_version versions[VERSIONS_MAX]; /* newest first */
	size_t count;
};
struct model_pin {
	int64_t sequence;
	unsigned body;
};

static struct store_fixture fixture;
static struct model_key model[KEYS];
static struct model_pin pins[PINS_MAX];
static size_t pin_count;
static enum bucket_versioning versioning;
static uint8_t *noise;
static uint64_t random_state;

static void set_up(void)
{
	struct error err = {0};
	memset(&fixture, 0, sizeof(fixture));
	memset(model, 0, sizeof(model));
	pin_count = 0;
	versioning = BUCKET_UNVERSIONED;
	noise = fixture_noise(16000, 5);
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket", "main", &err), 0);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
	free(noise);
}

static unsigned draw(unsigned below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (unsigned)(random_state >> 20) % below;
}

/* Some bodies are stored inline, some in packs. */
static struct span body_of(unsigned body)
{
	return span_of(noise + body, body % 3 == 0 ? 2000 + body : 10 + body);
}

static struct model_version *push(struct model_key *key, const char *version)
{
	size_t keep = 0;
	for (size_t i = 0; i < key->count; i++)
		if (strcmp(version, "null") != 0 || strcmp(key->versions[i].version, "null") != 0)
			key->versions[keep++] = key->versions[i];
	key->count = keep;
	ck_assert_uint_lt(key->count, VERSIONS_MAX);
	memmove(&key->versions[1], &key->versions[0], key->count * sizeof(key->versions[0]));
	key->count++;
	key->versions[0] = (struct model_version){0};
	strcpy(key->versions[0].version, version);
	return &key->versions[0];
}

static void take(struct model_key *key, size_t at)
{
	key->count--;
	memmove(&key->versions[at], &key->versions[at + 1],
		(key->count - at) * sizeof(key->versions[0]));
}

static void expect_id(const char *version)
{
	if (versioning == BUCKET_VERSIONED)
		ck_assert_uint_eq(strlen(version), VERSION_TEXT_BYTES - 1);
	else
		ck_assert_str_eq(version, "null");
}

static void put(unsigned at)
{
	struct error err = {0};
	struct object object;
	char version[VERSION_TEXT_BYTES];
	const unsigned body = draw(BODIES);
	struct object_put_params params = {
		.bucket = bucket_named(span_text("bucket")), .key = span_text(keys[at])};
	ck_assert_msg(fixture_put_object(fixture.store, &params, body_of(body), &object, &err) == 0,
		"%s", err.text);
	object_version_text(&object, version);
	expect_id(version);
	struct model_version *const pushed = push(&model[at], version);
	pushed->body = body;
	pushed->sequence = object.sequence;
}

static void delete_current(unsigned at)
{
	struct error err = {0};
	struct model_key *const key = &model[at];
	struct object_delete_item item = {.key = span_text(keys[at])};
	ck_assert_msg(
		fixture_delete_items(fixture.store, "bucket", &item, 1, &err) == 0, "%s", err.text);
	ck_assert_int_eq(item.error.kind, ERROR_NONE);
	ck_assert_int_eq(item.is_marker, versioning != BUCKET_UNVERSIONED);
	ck_assert_int_eq(item.has_version, versioning != BUCKET_UNVERSIONED);
	if (versioning == BUCKET_UNVERSIONED) {
		if (key->count > 0)
			take(key, 0);
		return;
	}
	expect_id(item.version);
	push(key, item.version)->is_marker = true;
}

static void delete_version(unsigned at)
{
	struct error err = {0};
	struct model_key *const key = &model[at];
	struct object_delete_item item = {.key = span_text(keys[at])};
	const size_t which = key->count == 0 ? 0 : draw((unsigned)key->count + 1);
	const bool exists = which < key->count;
	ck_assert(version_ref_parse(span_text(exists ? key->versions[which].version
						     : "00112233445566778899aabbccddeeff"),
		&item.ref));
	ck_assert_msg(
		fixture_delete_items(fixture.store, "bucket", &item, 1, &err) == 0, "%s", err.text);
	ck_assert_int_eq(item.error.kind, ERROR_NONE);
	ck_assert_int_eq(item.is_marker, exists && key->versions[which].is_marker);
	if (exists)
		take(key, which);
}

static struct version_ref ref_of(const struct model_version *version)
{
	struct version_ref ref;
	ck_assert(version_ref_parse(span_text(version->version), &ref));
	return ref;
}

static void copy(unsigned from, unsigned to)
{
	struct error err = {0};
	struct object source;
	struct object object;
	char version[VERSION_TEXT_BYTES];
	if (model[from].count == 0)
		return;
	const struct model_version original =
		model[from].versions[draw((unsigned)model[from].count)];
	const struct object_ref ref = {.bucket = bucket_named(span_text("bucket")),
		.key = span_text(keys[from]),
		.version = ref_of(&original)};
	ck_assert_msg(object_find(fixture.store, &ref, fixture.arena, &source, &err) == 0, "%s",
		err.text);
	ck_assert_int_eq(source.is_marker, original.is_marker);
	if (source.is_marker)
		return;
	struct object_copy_params params = {.source = &source,
		.bucket = bucket_named(span_text("bucket")),
		.key = span_text(keys[to])};
	if (draw(4) == 0)
		params.checksum = CHECKSUM_SHA256;
	ck_assert_msg(fixture_copy(fixture.store, &params, &object, &err) == 0, "%s", err.text);
	ck_assert_str_eq(object.etag, source.etag);
	object_version_text(&object, version);
	expect_id(version);
	struct model_version *const pushed = push(&model[to], version);
	pushed->body = original.body;
	pushed->tag = original.tag;
	pushed->sequence = object.sequence;
}

static void set_tag(unsigned at)
{
	struct error err = {0};
	if (model[at].count == 0)
		return;
	struct model_version *const version = &model[at].versions[draw((unsigned)model[at].count)];
	const char text[] = {1, 0, 't', 1, 0, (char)('0' + draw(10))};
	struct object_change_params params = {
		.object = {.bucket = bucket_named(span_text("bucket")),
			.key = span_text(keys[at]),
			.version = ref_of(version)},
		.sets_tags = true,
		.tags = span_of(text, draw(4) == 0 ? 0 : sizeof(text))};
	const int result = fixture_change(fixture.store, &params, &err);
	ck_assert_int_eq(result, version->is_marker ? -1 : 0);
	if (version->is_marker)
		ck_assert_int_eq(err.kind, ERROR_METHOD);
	else
		version->tag = params.tags.len == 0 ? 0 : (unsigned)text[5];
}

static void switch_versioning(void)
{
	struct error err = {0};
	versioning = draw(2) == 0 ? BUCKET_VERSIONED : BUCKET_SUSPENDED;
	ck_assert_int_eq(
		fixture_run(fixture.store,
			versioning == BUCKET_VERSIONED ? "UPDATE buckets SET versioning = 1"
						       : "UPDATE buckets SET versioning = 2",
			&err),
		0);
}

static void pin(unsigned at)
{
	struct error err = {0};
	char sql[128];
	if (model[at].count == 0 || pin_count == PINS_MAX)
		return;
	const struct model_version *const version =
		&model[at].versions[draw((unsigned)model[at].count)];
	if (version->is_marker)
		return;
	pins[pin_count++] = (struct model_pin){version->sequence, version->body};
	snprintf(sql, sizeof(sql),
		"INSERT INTO step_objects (step, form, name, version) VALUES (1, 0, randomblob(8), %lld)",
		(long long)version->sequence);
	ck_assert_msg(fixture_run(fixture.store, sql, &err) == 0, "%s", err.text);
}

struct unpin {
	struct change change;
	int64_t sequence;
};

static int apply_unpin(struct change *change, struct db *db, struct error *err)
{
	return version_drop_unless_named(db, ((struct unpin *)change)->sequence, err);
}

static void unpin(void)
{
	struct error err = {0};
	char sql[128];
	if (pin_count == 0)
		return;
	const struct model_pin pinned = pins[--pin_count];
	snprintf(sql, sizeof(sql),
		"DELETE FROM step_objects WHERE name = (SELECT MIN(name) FROM step_objects WHERE version = %lld)",
		(long long)pinned.sequence);
	ck_assert_msg(fixture_run(fixture.store, sql, &err) == 0, "%s", err.text);
	struct unpin change = {.change.apply = apply_unpin, .sequence = pinned.sequence};
	ck_assert_msg(committer_run(store_committer(fixture.store), &change.change, &err) == 0,
		"%s", err.text);
}

static void act(void)
{
	const unsigned at = draw(KEYS);
	switch (draw(12)) {
	case 0:
	case 1:
	case 2:
		put(at);
		break;
	case 3:
	case 4:
		delete_current(at);
		break;
	case 5:
	case 6:
	case 7:
		delete_version(at);
		break;
	case 8:
		copy(at, draw(3) == 0 ? at : draw(KEYS));
		break;
	case 9:
		set_tag(at);
		break;
	case 10:
		draw(2) == 0 ? pin(at) : unpin();
		break;
	default:
		if (draw(12) == 0)
			switch_versioning();
	}
	if (model[at].count > VERSIONS_MAX - 4)
		delete_version(at);
}

static void check_bytes(const struct object *object, unsigned body)
{
	struct error err = {0};
	struct buffer read;
	buffer_init(&read, 100000);
	ck_assert_msg(fixture_read(fixture.store, object, 0, object->size, &read, &err) == 0, "%s",
		err.text);
	ck_assert(span_equal(buffer_span(&read), body_of(body)));
	buffer_release(&read);
}

static void check_find(unsigned at)
{
	const struct model_key *const key = &model[at];
	struct error err = {0};
	struct object object;
	const bool exists = key->count > 0 && !key->versions[0].is_marker;
	ck_assert_int_eq(
		fixture_find(&fixture, "bucket", keys[at], &object, &err), exists ? 0 : -1);
	ck_assert(exists || err.kind == ERROR_NO_KEY);
	ck_assert_int_eq(object.is_marker, key->count > 0 && !exists);
	for (size_t i = 0; i < key->count; i++) {
		const struct model_version *const version = &key->versions[i];
		const struct object_ref ref = {.bucket = bucket_named(span_text("bucket")),
			.key = span_text(keys[at]),
			.version = ref_of(version)};
		char text[VERSION_TEXT_BYTES];
		ck_assert_int_eq(object_find(fixture.store, &ref, fixture.arena, &object, &err), 0);
		object_version_text(&object, text);
		ck_assert_str_eq(text, version->version);
		ck_assert_int_eq(object.is_marker, version->is_marker);
		ck_assert_int_eq(object.is_current, i == 0);
		ck_assert_int_eq(object.retired_ms != 0, i > 0);
		ck_assert_int_eq(object.tags.len, version->tag == 0 ? 0 : 6);
		if (version->tag != 0)
			ck_assert_int_eq(object.tags.data[5], version->tag);
		if (!version->is_marker && draw(4) == 0)
			check_bytes(&object, version->body);
	}
}

static void check_object_list(void)
{
	struct error err = {0};
	struct object_list page = {.truncated = true};
	struct object_list_params params = {
		.bucket = bucket_named(span_text("bucket")), .limit = 1 + draw(KEYS)};
	size_t at = 0;
	while (page.truncated) {
		ck_assert_int_eq(
			object_list(fixture.store, &params, fixture.arena, &page, &err), 0);
		for (size_t i = 0; i < page.entry_count; i++, at++) {
			while (at < KEYS &&
				(model[at].count == 0 || model[at].versions[0].is_marker))
				at++;
			ck_assert_uint_lt(at, KEYS);
			ck_assert(span_equal_text(page.entries[i].key, keys[at]));
			ck_assert_uint_eq(
				page.entries[i].size, body_of(model[at].versions[0].body).len);
			ck_assert_uint_ne(page.entries[i].checksum_algorithm, CHECKSUM_NONE);
		}
		params.after = page.last;
	}
	for (; at < KEYS; at++)
		ck_assert(model[at].count == 0 || model[at].versions[0].is_marker);
}

static void check_version_list(size_t limit)
{
	struct error err = {0};
	struct version_list page = {.truncated = true};
	struct version_list_params params = {
		.bucket = bucket_named(span_text("bucket")), .limit = limit};
	size_t at = 0;
	size_t version = 0;
	while (page.truncated) {
		ck_assert_msg(version_list(fixture.store, &params, fixture.arena, &page, &err) == 0,
			"%s", err.text);
		ck_assert(!page.truncated || page.entry_count == params.limit);
		for (size_t i = 0; i < page.entry_count; i++, version++) {
			while (at < KEYS && version == model[at].count) {
				at++;
				version = 0;
			}
			ck_assert_uint_lt(at, KEYS);
			const struct version_entry *const entry = &page.entries[i];
			const struct model_version *const expected = &model[at].versions[version];
			ck_assert(span_equal_text(entry->object.key, keys[at]));
			ck_assert_str_eq(entry->version, expected->version);
			ck_assert_int_eq(entry->is_latest, version == 0);
			ck_assert_int_eq(entry->is_marker, expected->is_marker);
			ck_assert_uint_eq(entry->object.size,
				expected->is_marker ? 0 : body_of(expected->body).len);
		}
		params.after_key = page.last_key;
		if (page.truncated)
			ck_assert(version_ref_parse(
				span_text(page.last_version), &params.after_version));
	}
	for (; at < KEYS; at++, version = 0)
		ck_assert_uint_eq(version, model[at].count);
}

static void check_all(void)
{
	struct error err = {0};
	struct object object;
	arena_free(fixture.arena);
	fixture.arena = arena_new(8 * 1024 * 1024);
	for (unsigned i = 0; i < KEYS; i++)
		check_find(i);
	check_object_list();
	check_version_list(1 + draw(20));
	for (size_t i = 0; i < pin_count; i++) { /* invariant 6 */
		ck_assert_msg(object_find_sequence(fixture.store, pins[i].sequence, fixture.arena,
				      &object, &err) == 0,
			"%s", err.text);
		check_bytes(&object, pins[i].body);
	}
}

static void clear_all(void)
{
	for (unsigned i = 0; i < KEYS; i++)
		while (model[i].count > 0)
			delete_version(i);
	while (pin_count > 0)
		unpin();
}

START_TEST(a_bucket_is_what_its_model_says)
{
	random_state = UINT64_C(0x9E3779B97F4A7C15) * (uint64_t)(_i + 1);
	for (int i = 0; i < OPERATIONS; i++) {
		act();
		if (i % 8 == 0)
			check_all();
	}
	check_version_list(1);
	store_fixture_reopen(&fixture);
	check_all();
	clear_all();
	fixture_sweep(fixture.store);
	static const char *const tables[] = {"SELECT COUNT(*) FROM versions",
		"SELECT COUNT(*) FROM inline_bytes", "SELECT COUNT(*) FROM part_sets",
		"SELECT COUNT(*) FROM parts", "SELECT COUNT(*) FROM segments"};
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		ck_assert_msg(fixture_count(fixture.store, tables[i]) == 0, "%s", tables[i]);
}
END_TEST

Suite *test_version_suite(void);
Suite *test_version_suite(void)
{
	Suite *const suite = suite_create("version");
	TCase *const tests = tcase_create("version");
	tcase_set_timeout(tests, 300);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(tests, a_bucket_is_what_its_model_says, 0, 3);
	suite_add_tcase(suite, tests);
	return suite;
}
