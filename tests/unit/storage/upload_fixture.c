#include "tests/unit/storage/upload_fixture.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/storage/store_fixture.h"

struct put_room {
	pthread_mutex_t mutex;
	pthread_cond_t condition;
	unsigned calls;
	struct settled *settled;
};

static void has_room(void *owner)
{
	struct put_room *const room = owner;
	pthread_mutex_lock(&room->mutex);
	room->calls++;
	pthread_cond_signal(&room->condition);
	pthread_mutex_unlock(&room->mutex);
}

static void is_done(void *owner)
{
	struct put_room *const room = owner;
	settled_done(room->settled);
}

static int write_all(
	struct upload_put *put, struct span bytes, struct put_room *room, struct error *err)
{
	enum { PIECE_BYTES = 200000 };
	for (size_t at = 0; at < bytes.len;) {
		const struct span piece = span_slice(bytes, at, PIECE_BYTES);
		pthread_mutex_lock(&room->mutex);
		const unsigned before = room->calls;
		pthread_mutex_unlock(&room->mutex);
		const enum sink_result result = upload_put_write(put, piece, err);
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

static void not_started(struct settled *settled)
{
	settled_done(settled);
	settled_wait(settled);
}

int fixture_upload_create(struct store *store, struct upload_create_params *params,
	struct upload_ref *out, struct error *err)
{
	struct settled *const settled = settled_new();
	params->done = settled_done;
	params->owner = settled;
	*out = (struct upload_ref){.bucket = params->bucket, .key = params->key};
	struct upload_create *const create = upload_create_start(store, params, err);
	if (create == NULL) {
		not_started(settled);
		return -1;
	}
	settled_wait(settled);
	const int result = upload_create_outcome(create, &out->id, err);
	upload_create_free(create);
	return result;
}

int fixture_upload_put(struct store *store, const struct upload_ref *ref, uint32_t number,
	struct span bytes, const struct checksum *expected, struct uploaded_part *out,
	struct error *err)
{
	struct put_room room = {.mutex = PTHREAD_MUTEX_INITIALIZER,
		.condition = PTHREAD_COND_INITIALIZER,
		.settled = settled_new()};
	struct uploaded_part ignored;
	const struct upload_put_params params = {.ref = *ref,
		.number = number,
		.room = has_room,
		.done = is_done,
		.owner = &room,
		.checksum = expected != NULL ? expected->algorithm : CHECKSUM_NONE};
	struct upload_put *const put = upload_put_open(store, &params, err);
	if (put == NULL || write_all(put, bytes, &room, err) != 0) {
		upload_put_free(put);
		not_started(room.settled);
		return -1;
	}
	if (expected != NULL)
		upload_put_expect(put, expected);
	upload_put_finish(put);
	settled_wait(room.settled);
	const int result = upload_put_outcome(put, out != NULL ? out : &ignored, err);
	upload_put_free(put);
	return result;
}

int fixture_upload_copy(struct store *store, const struct upload_ref *ref, uint32_t number,
	const struct object *source, uint64_t offset, uint64_t length, struct uploaded_part *out,
	struct error *err)
{
	struct settled *const settled = settled_new();
	const struct upload_copy_params params = {.ref = *ref,
		.number = number,
		.source = source,
		.offset = offset,
		.length = length,
		.done = settled_done,
		.owner = settled};
	struct upload_copy *const copy = upload_copy_start(store, &params, err);
	settled_wait(settled);
	const int result = upload_copy_outcome(copy, out, err);
	upload_copy_free(copy);
	return result;
}

int fixture_upload_complete(struct store *store, struct upload_complete_params *params,
	struct upload_result *out, struct upload_fault *out_fault, struct error *err)
{
	struct settled *const settled = settled_new();
	params->done = settled_done;
	params->owner = settled;
	struct upload_complete *const complete = upload_complete_start(store, params, err);
	if (complete == NULL) {
		not_started(settled);
		return -1;
	}
	settled_wait(settled);
	const int result = upload_complete_outcome(complete, out, out_fault, err);
	upload_complete_free(complete);
	return result;
}

struct upload_listed_part fixture_upload_listed(const struct uploaded_part *part)
{
	struct upload_listed_part listed = {.number = part->number};
	memcpy(listed.etag, part->etag, sizeof listed.etag);
	return listed;
}

int fixture_upload_complete_parts(struct store *store, const struct upload_ref *ref,
	const struct upload_listed_part *parts, size_t count, struct error *err)
{
	struct upload_complete_params params = {.ref = *ref, .parts = parts, .part_count = count};
	struct upload_result result;
	struct upload_fault fault;
	return fixture_upload_complete(store, &params, &result, &fault, err);
}

int fixture_upload_abort(struct store *store, const struct upload_ref *ref, struct error *err)
{
	struct settled *const settled = settled_new();
	struct upload_abort *const abort = upload_abort_start(store, ref, settled_done, settled);
	settled_wait(settled);
	const int result = upload_abort_outcome(abort, err);
	upload_abort_free(abort);
	return result;
}
