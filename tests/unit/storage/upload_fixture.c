#include "tests/unit/storage/upload_fixture.h"

#include <pthread.h>
#include <string.h>

#include "tests/unit/storage/store_fixture.h"

struct put_room {
	pthread_mutex_t mutex;
	pthread_cond_t condition;
	unsigned calls;
};

static void has_room(void *owner)
{
	struct put_room *const room = owner;
	pthread_mutex_lock(&room->mutex);
	room->calls++;
	pthread_cond_signal(&room->condition);
	pthread_mutex_unlock(&room->mutex);
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

int fixture_upload_create(struct store *store, const struct upload_create_params *params,
	struct upload_ref *out, struct error *err)
{
	*out = (struct upload_ref){.bucket = params->bucket, .key = params->key};
	struct call *const create = upload_create_call(store, params, err);
	if (create == NULL)
		return -1;
	const int result = call_run(create, err);
	out->id = upload_create_result(create);
	call_free(create);
	return result;
}

int fixture_upload_put(struct store *store, const struct upload_ref *ref, uint32_t number,
	struct span bytes, const struct checksum *expected, struct uploaded_part *out,
	struct error *err)
{
	struct put_room room = {
		.mutex = PTHREAD_MUTEX_INITIALIZER, .condition = PTHREAD_COND_INITIALIZER};
	const struct upload_put_params params = {.ref = *ref,
		.number = number,
		.room = has_room,
		.owner = &room,
		.checksum = expected != NULL ? expected->algorithm : CHECKSUM_NONE};
	struct upload_put *const put = upload_put_open(store, &params, err);
	if (put == NULL)
		return -1;
	struct call *const call = upload_put_call(put);
	int result = write_all(put, bytes, &room, err);
	if (result == 0 && expected != NULL)
		upload_put_expect(put, expected);
	if (result == 0)
		result = call_run(call, err);
	if (result == 0 && out != NULL)
		*out = upload_put_result(call);
	call_free(call);
	return result;
}

int fixture_upload_copy(struct store *store, const struct upload_ref *ref, uint32_t number,
	const struct object *source, uint64_t offset, uint64_t length, struct uploaded_part *out,
	struct error *err)
{
	const struct upload_copy_params params = {.ref = *ref,
		.number = number,
		.source = source,
		.offset = offset,
		.length = length};
	struct call *const copy = upload_copy_call(store, &params);
	const int result = call_run(copy, err);
	if (result == 0)
		*out = upload_copy_result(copy);
	call_free(copy);
	return result;
}

int fixture_upload_complete(struct store *store, const struct upload_complete_params *params,
	struct upload_result *out, struct upload_fault *out_fault, struct error *err)
{
	struct call *const complete = upload_complete_call(store, params, err);
	if (complete == NULL)
		return -1;
	const int result = call_run(complete, err);
	*out = upload_complete_result(complete);
	*out_fault = upload_complete_fault(complete);
	call_free(complete);
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
	return fixture_call(upload_abort_call(store, ref), err);
}
