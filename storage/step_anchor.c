#include "storage/step_anchor.h"

#include <stdio.h>

#include "base/encode.h"
#include "storage/object_internal.h"
#include "storage/run_internal.h"
#include "storage/step_anchor_row.h"
#include "storage/step_pin.h"
#include "storage/step_worker.h"
#include "storage/store_internal.h"

enum { URL_MAX_BYTES = 4 * STEP_NAME_MAX_BYTES };

size_t step_anchor_key(const struct span run, const uint64_t step, const struct span file, char out[STEP_ANCHOR_KEY_BYTES])
{
	const int len = snprintf(out, STEP_ANCHOR_KEY_BYTES, "%.*s/anchors/step_%06llu/%.*s", (int)run.len, (const char *)run.data,
		(unsigned long long)step, (int)file.len, (const char *)file.data);
	ASSERT(len > 0 && len < STEP_ANCHOR_KEY_BYTES);
	return (size_t)len;
}

/* "{run}/anchors/REST" */
static bool split_anchors(const struct span key, struct span *const out_run, struct span *const out_rest)
{
	static const struct span prefix = {(const uint8_t *)"anchors/", sizeof("anchors/") - 1};
	struct span rest = key;
	if (span_find(key, '/') < 0 || !span_split(&rest, '/', out_run) || !span_starts(rest, prefix))
		return false;
	*out_rest = span_slice(rest, prefix.len, rest.len);
	return true;
}

bool step_anchor_key_parse(const struct span key, struct span *const out_run, uint64_t *const out_step, struct span *const out_file)
{
	static const struct span prefix = {(const uint8_t *)"step_", sizeof("step_") - 1};
	char canonical[STEP_ANCHOR_KEY_BYTES];
	struct span rest;
	struct span folder;
	if (!split_anchors(key, out_run, &rest) || out_run->len == 0 || out_run->len > RUN_NAME_MAX_BYTES || span_find(rest, '/') < 0)
		return false;
	if (!span_split(&rest, '/', &folder) || !span_starts(folder, prefix) || rest.len == 0 || rest.len > STEP_NAME_MAX_BYTES)
		return false;
	if (!span_parse_u64(span_slice(folder, prefix.len, folder.len), out_step) || *out_step > INT64_MAX)
		return false;
	*out_file = rest;
	return span_equal(key, span_of(canonical, step_anchor_key(*out_run, *out_step, rest, canonical)));
}

static int read_object(struct db *const db, const struct step_row *const row, const struct step_pin *const pin, struct arena *const arena,
	struct step_object *const out, struct error *const err)
{
	struct version version;
	struct buffer url;
	const int found = version_find_sequence(db, pin->version, arena, &version, err);
	if (found < 0)
		return -1;
	if (found == 0 || !version.has_digest) /* invariant 6 */
		return error_set(err, ERROR_CORRUPT, "%s: a made anchor has lost its version %lld.", db_path(db), (long long)pin->version);
	buffer_init(&url, URL_MAX_BYTES);
	buffer_format(&url, "steps/%llu/objects/anchor/", (unsigned long long)row->step);
	encode_percent(pin->name, true, &url);
	*out = (struct step_object){.name = pin->name, .key = version.key, .size = version.size, .digest = version.digest,
		.url = arena_copy(arena, buffer_span(&url))};
	buffer_release(&url);
	return 0;
}

int step_anchor_form(struct db *const db, const struct step_row *const row, struct arena *const arena, struct step_form *const out,
	struct error *const err)
{
	struct step_pin *pins;
	*out = (struct step_form){.kind = STEP_ANCHOR, .format = span_text("full")};
	if (step_pin_list(db, row->id, STEP_PIN_MADE, arena, &pins, &out->object_count, err) != 0)
		return -1;
	out->objects = arena_take_array(arena, out->object_count + 1, sizeof(*out->objects));
	if (out->objects == NULL)
		return error_set(err, ERROR_NO_MEMORY, "The request's memory ran out while reading a made anchor.");
	for (size_t i = 0; i < out->object_count; i++)
		if (read_object(db, row, &pins[i], arena, &out->objects[i], err) != 0)
			return -1;
	return 0;
}

int step_anchor_guard(struct db *const db, const int64_t bucket, const struct span key, struct error *const err)
{
	struct run_row run;
	struct span name;
	struct span rest;
	uint64_t step;
	if (!split_anchors(key, &name, &rest))
		return 0;
	const int found = run_row_find(db, bucket, name, &run, err);
	if (found != 1)
		return found;
	if (run.settings.adopt != ADOPT_NONE && !step_anchor_key_parse(key, &name, &step, &rest))
		return 0;
	return error_set(err, ERROR_DENIED, "Keys below '%.*s/anchors/' are the server's: it makes the anchors of the run '%.*s' there, which go with their steps, "
		"or with the run and all of its steps (`deltabucket runs rm`). Put other objects elsewhere.", (int)name.len, (const char *)name.data, (int)name.len,
		(const char *)name.data);
}
