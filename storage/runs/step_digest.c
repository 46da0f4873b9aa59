/* Objects from multipart uploads have no digest. The helper that reads ahead for a publish reads
 * them once and stores the digest of their bytes for good. */
#include "storage/runs/step_digest.h"

#include <stdlib.h>

#include "base/memory.h"
#include "storage/objects/object_row.h"
#include "storage/runs/step_publish.h"

struct digest_change {
	struct change change; /* first */
	int64_t sequence;
	struct digest128 digest;
};

struct lacking {
	struct version version;
	struct span key;
};

static int give_to_form(
	struct store *store, int64_t bucket, const struct step_form *form, struct error *err);
static int find_lacking(struct store *store, int64_t bucket, const struct step_form *form,
	struct lacking *out, size_t *out_count, struct error *err);
static bool lacks_digest(
	struct db *db, int64_t bucket, const struct step_object *object, struct version *out);
static int give_digest(
	struct store *store, const struct version *version, struct span key, struct error *err);
static int step_digest_apply(struct change *base, struct db *db, struct error *err);
static void step_digest_add(void *stream, struct span bytes);

int step_give_digests(
	struct store *store, int64_t bucket, const struct step_message *step, struct error *err)
{
	for (size_t i = 0; i < step->form_count; i++)
		if (give_to_form(store, bucket, &step->forms[i], err) != 0)
			return -1;
	return 0;
}

static int give_to_form(
	struct store *store, int64_t bucket, const struct step_form *form, struct error *err)
{
	struct lacking *const lacking = memory_new_array(form->object_count + 1, sizeof(*lacking));
	size_t count = 0;
	int result = find_lacking(store, bucket, form, lacking, &count, err);
	ASSERT(count <= form->object_count);
	for (size_t i = 0; result == 0 && i < count; i++)
		result = give_digest(store, &lacking[i].version, lacking[i].key, err);
	free(lacking);
	return result;
}

/* Finds the objects of a form that lack a digest. `out` has room for all objects. This is a step of
 * its own, so that no catalog reader is in use while bytes are read. */
static int find_lacking(struct store *store, int64_t bucket, const struct step_form *form,
	struct lacking *out, size_t *out_count, struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	for (size_t i = 0; i < form->object_count; i++) {
		struct lacking *const next = &out[*out_count];
		next->key = form->objects[i].key;
		*out_count += lacks_digest(db, bucket, &form->objects[i], &next->version);
	}
	store_reader_give(store, db);
	return 0;
}

/* Whether the object is as declared except that it has no digest. */
static bool lacks_digest(
	struct db *db, int64_t bucket, const struct step_object *object, struct version *out)
{
	struct error ignored;
	return step_find_object(db, bucket, object, out, &ignored) == 1 && !out->has_digest &&
		out->size == object->size;
}

static int give_digest(
	struct store *store, const struct version *version, struct span key, struct error *err)
{
	const struct object object = {
		.sequence = version->sequence, .size = version->size, .key = key};
	struct digest_change change = {
		.change = {.apply = step_digest_apply}, .sequence = version->sequence};
	struct xxh3_stream *const stream = xxh3_stream_new();
	const int result = object_read_whole(store, &object, step_digest_add, stream, err);
	change.digest = xxh3_stream_result(stream);
	xxh3_stream_free(stream);
	return result != 0 ? -1 : committer_run(store_committer(store), &change.change, err);
}

static int step_digest_apply(struct change *base, struct db *db, struct error *err)
{
	const struct digest_change *const change = (const struct digest_change *)base;
	return version_set_digest(db, change->sequence, &change->digest, err);
}

static void step_digest_add(void *stream, struct span bytes)
{
	xxh3_stream_add(stream, bytes);
}
