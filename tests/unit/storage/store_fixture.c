#include "tests/unit/storage/store_fixture.h"

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "storage/core/committer.h"
#include "storage/db/db.h"
#include "storage/objects/object_change.h"
#include "storage/objects/object_copy.h"
#include "storage/objects/object_delete.h"
#include "storage/objects/object_put.h"
#include "storage/objects/object_read.h"
#include "storage/objects/scratch.h"
#include "storage/open/store_open.h"
#include "storage/packs/store_health.h"
#include "storage/upkeep/bucket_delete.h"
#include "storage/upkeep/bucket_rename.h"
#include "storage/upkeep/sweeper.h"
#include "tests/unit/catalog_seed.h"
#include "tests/unit/storage/far_fixture.h"
#include "tests/unit/unit.h"

struct settled {
	pthread_mutex_t mutex;
	pthread_cond_t condition;
	bool done;
};

struct settled *settled_new(void)
{
	struct settled *const settled = memory_new(sizeof(*settled));
	pthread_mutex_init(&settled->mutex, NULL);
	pthread_cond_init(&settled->condition, NULL);
	return settled;
}

void settled_done(void *owner)
{
	struct settled *const settled = owner;
	pthread_mutex_lock(&settled->mutex);
	settled->done = true;
	pthread_cond_signal(&settled->condition);
	pthread_mutex_unlock(&settled->mutex);
}

void settled_wait(struct settled *settled)
{
	pthread_mutex_lock(&settled->mutex);
	while (!settled->done)
		pthread_cond_wait(&settled->condition, &settled->mutex);
	pthread_mutex_unlock(&settled->mutex);
	pthread_cond_destroy(&settled->condition);
	pthread_mutex_destroy(&settled->mutex);
	free(settled);
}

static void open_store(struct store_fixture *fixture)
{
	struct error err = {0};
	const struct store_options options = {
		.folder = fixture->folder,
		.files = fixture->files,
		.clock = &fixture->clock.source,
		.metrics = fixture->metrics,
		.pack_max_bytes = 1024 * 1024,
		.xet =
			{
				.upload_promise_ms = fixture->promise_ms,
				.answer_promise_ms = fixture->promise_ms,
				.made_max_bytes = fixture->made_max_bytes != 0
					? fixture->made_max_bytes
					: 1024 * 1024 * 1024,
			},
		.derive = {.enabled = fixture->derives, .min_bytes = 64 * 1024, .interval_ms = 10},
		.steps = {.enabled = fixture->aside_ms != 0, .aside_ms = fixture->aside_ms},
		.open_backend = fixture->far != NULL ? far_fixture_open : NULL,
		.backend_owner = fixture->far,
		.pack_open_ms = fixture->pack_open_ms,
	};
	fixture->store = store_open(&options, &err);
	ck_assert_msg(fixture->store != NULL, "%s", err.text);
	if (fixture->is_damaged)
		ck_assert(store_health_wait(store_health(fixture->store), 100 * 1000));
	else
		fixture_await_start(fixture->store);
}

void fixture_await_start(struct store *store)
{
	struct error err = {0};
	ck_assert(store_health_wait(store_health(store), 100 * 1000));
	ck_assert_int_eq(store_health_proof(store_health(store)), STORE_PROVEN);
	ck_assert_msg(scratch_release_left(store, &err) == 0, "%s", err.text);
}

void store_fixture_open(struct store_fixture *fixture)
{
	fixture->folder = unit_scratch_make();
	catalog_seed(fixture->folder);
	fixture->arena = arena_new(64 * 1024 * 1024);
	clock_fake_init(&fixture->clock, 1700000000000);
	open_store(fixture);
}

void store_fixture_stop(struct store_fixture *fixture)
{
	store_close(fixture->store);
	fixture->store = NULL;
}

void store_fixture_start(struct store_fixture *fixture)
{
	open_store(fixture);
}

void store_fixture_reopen(struct store_fixture *fixture)
{
	store_fixture_stop(fixture);
	store_fixture_start(fixture);
}

void store_fixture_close(struct store_fixture *fixture)
{
	store_close(fixture->store);
	arena_free(fixture->arena);
	unit_scratch_remove(fixture->folder);
}

char *store_fixture_path(const struct store_fixture *fixture, const char *name)
{
	const size_t len = strlen(fixture->folder) + strlen(name) + 2;
	char *const path = memory_new(len);
	snprintf(path, len, "%s/%s", fixture->folder, name);
	return path;
}

int fixture_call(struct call *call, struct error *err)
{
	if (call == NULL)
		return -1;
	const int result = call_run(call, err);
	call_free(call);
	return result;
}

int fixture_settle(struct call *call, struct settled *settled, struct error *err)
{
	settled_wait(settled);
	const int result = call_outcome(call, err);
	call_free(call);
	return result;
}

int fixture_create_bucket(
	struct store *store, const char *name, const char *account, struct error *err)
{
	return fixture_call(
		bucket_create_call(store, span_text(name), span_text(account), NULL), err);
}

int fixture_delete_bucket(struct store *store, const char *name, struct error *err)
{
	return fixture_call(bucket_delete_call(store, fixture_bucket(name)), err);
}

int fixture_drop_bucket(struct store *store, const char *name, struct error *err)
{
	return fixture_call(bucket_drop_call(store, fixture_bucket(name)), err);
}

int fixture_rename_bucket(struct store *store, const char *from, const char *to,
	const char *account, struct error *err)
{
	const struct bucket_rename rename = {
		.from = fixture_bucket(from), .to = span_text(to), .account = span_text(account)};
	return fixture_call(bucket_rename_call(store, &rename), err);
}

int fixture_edit_bucket(
	struct store *store, const char *name, const struct bucket_edit *edit, struct error *err)
{
	return fixture_call(bucket_edit_call(store, fixture_bucket(name), edit), err);
}

struct put_room {
	pthread_mutex_t mutex;
	pthread_cond_t condition;
	unsigned calls;
};

static void put_has_room(void *owner)
{
	struct put_room *const room = owner;
	pthread_mutex_lock(&room->mutex);
	room->calls++;
	pthread_cond_signal(&room->condition);
	pthread_mutex_unlock(&room->mutex);
}

static int write_all(
	struct object_put *put, struct span bytes, struct put_room *room, struct error *err)
{
	enum { PIECE_BYTES = 100000 };
	for (size_t at = 0; at < bytes.len;) {
		const struct span piece = span_slice(bytes, at, PIECE_BYTES);
		pthread_mutex_lock(&room->mutex);
		const unsigned before = room->calls;
		pthread_mutex_unlock(&room->mutex);
		const enum sink_result result = object_put_write(put, piece, err);
		if (result == SINK_FAILED)
			return -1;
		if (result == SINK_TAKEN) {
			at += piece.len;
			continue;
		}
		pthread_mutex_lock(&room->mutex);
		while (room->calls == before)
			pthread_cond_wait(&room->condition, &room->mutex);
		pthread_mutex_unlock(&room->mutex);
	}
	return 0;
}

int fixture_put_object(struct store *store, struct object_put_params *params, struct span bytes,
	struct object *out, struct error *err)
{
	struct put_room room = {
		.mutex = PTHREAD_MUTEX_INITIALIZER, .condition = PTHREAD_COND_INITIALIZER};
	params->room = put_has_room;
	params->owner = &room;
	struct object_put *const put = object_put_open(store, params, err);
	if (put == NULL)
		return -1;
	struct call *const call = object_put_call(put);
	int result = write_all(put, bytes, &room, err);
	if (result == 0)
		result = call_run(call, err);
	if (result == 0)
		result = object_put_result(call, out, err);
	call_free(call);
	return result;
}

int fixture_put_with(struct store *store, struct object_put_params *params, struct span bytes,
	char *out_etag, struct error *err)
{
	struct object object;
	const int result = fixture_put_object(store, params, bytes, &object, err);
	if (result == 0 && out_etag != NULL)
		memcpy(out_etag, object.etag, OBJECT_ETAG_BYTES);
	return result;
}

int fixture_copy(struct store *store, struct object_copy_params *params, struct object *out,
	struct error *err)
{
	struct call *const copy = object_copy_call(store, params, err);
	if (copy == NULL)
		return -1;
	int result = call_run(copy, err);
	if (result == 0)
		result = object_copy_result(copy, out, err);
	call_free(copy);
	return result;
}

int fixture_change(struct store *store, struct object_change_params *params, struct error *err)
{
	return fixture_call(object_change_call(store, params), err);
}

int fixture_delete_items(struct store *store, const char *bucket, struct object_delete_item *items,
	size_t count, struct error *err)
{
	const struct object_delete_params params = {
		.bucket = fixture_bucket(bucket), .items = items, .count = count};
	return fixture_call(object_delete_call(store, &params), err);
}

int fixture_put(struct store *store, const char *bucket, const char *key, struct span bytes,
	struct error *err)
{
	struct object_put_params params = {.bucket = fixture_bucket(bucket), .key = span_text(key)};
	return fixture_put_with(store, &params, bytes, NULL, err);
}

int fixture_delete(struct store *store, const char *bucket, const char *key, const char *if_match,
	struct error *err)
{
	struct object_delete_item item = {
		.key = span_text(key), .conditions.if_match = span_text(if_match)};
	int result = fixture_delete_items(store, bucket, &item, 1, err);
	if (result == 0 && item.error.kind != ERROR_NONE) {
		*err = item.error;
		result = -1;
	}
	return result;
}

int fixture_read(struct store *store, const struct object *object, uint64_t offset, uint64_t length,
	struct buffer *out, struct error *err)
{
	struct body_source *const source = object_open(store, object, offset, length, err);
	if (source == NULL)
		return -1;
	ptrdiff_t got;
	do {
		uint8_t *const into = buffer_reserve(out, 50000);
		got = into == NULL ? -1 : source->read(source, into, 50000, err);
		if (got > 0)
			buffer_commit(out, (size_t)got);
	} while (got > 0);
	source->close(source);
	return (int)got;
}

int fixture_find(struct store_fixture *fixture, const char *bucket, const char *key,
	struct object *out, struct error *err)
{
	const struct object_ref ref = {.bucket = fixture_bucket(bucket), .key = span_text(key)};
	return object_find(fixture->store, &ref, fixture->arena, out, err);
}

bool fixture_holds(
	struct store_fixture *fixture, const char *bucket, const char *key, struct span bytes)
{
	struct error err = {0};
	struct object object;
	struct buffer read;
	buffer_init(&read, bytes.len + 200000);
	bool holds = fixture_find(fixture, bucket, key, &object, &err) == 0 &&
		fixture_read(fixture->store, &object, 0, object.size, &read, &err) == 0 &&
		span_equal(buffer_span(&read), bytes);
	if (!holds)
		fprintf(stderr, "%s/%s: %s\n", bucket, key, err.text);
	buffer_release(&read);
	return holds;
}

uint8_t *fixture_noise(size_t len, uint64_t seed)
{
	uint8_t *const bytes = memory_new(len + 8);
	uint64_t state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
	for (size_t i = 0; i < len; i += 8) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		memcpy(bytes + i, &state, 8);
	}
	return bytes;
}

void fixture_sweep(struct store *store)
{
	struct error err = {0};
	struct sweep sweep = {0};
	bool more = true;
	ck_assert(store_health_wait(
		store_health(store), 100 * 1000)); /* until then nothing is deleted */
	for (int i = 0; more && i < 10000; i++)
		ck_assert_msg(sweeper_slice(store, &sweep, &more, &err) == 0, "%s", err.text);
	ck_assert(!more);
}

struct script {
	struct change change; /* first */
	const char *sql;
};

static int run_script(struct change *change, struct db *db, struct error *err)
{
	return db_run_script(db, ((struct script *)change)->sql, err);
}

int fixture_run(struct store *store, const char *sql, struct error *err)
{
	struct script script = {.change = {.apply = run_script}, .sql = sql};
	return committer_run(store_committer(store), &script.change, err);
}

int64_t fixture_count(struct store *store, const char *sql)
{
	struct error err = {0};
	struct db *const db = store_reader_take(store, &err);
	ck_assert(db != NULL);
	int64_t count = -1;
	ck_assert_msg(db_find_i64(db, sql, &count, &err) == 1, "%s", err.text);
	store_reader_give(store, db);
	return count;
}

int64_t fixture_pack_files(const struct store_fixture *fixture, const char *tests)
{
	char command[1200];
	long long count = -1;
	snprintf(command, sizeof(command), "find %s/packs -type f %s | wc -l", fixture->folder,
		tests);
	FILE *const pipe = popen(command, "r");
	ck_assert(pipe != NULL && fscanf(pipe, "%lld", &count) == 1);
	pclose(pipe);
	return count;
}

int fixture_open_run(struct store *store, const char *bucket, const char *run,
	struct run_message *out, struct error *err)
{
	const struct run_open_params params = {
		.run = {.bucket = fixture_bucket(bucket), .name = span_text(run)}};
	struct call *const call = run_open_call(store, &params);
	const int result = call_run(call, err);
	if (result == 0 && out != NULL)
		*out = *run_open_result(call);
	call_free(call);
	return result;
}
