#include "storage/run_tables/step_anchor_key.h"

#include <stdio.h>

#include "storage/run_tables/run_row.h"

static bool split_anchors(struct span key, struct span *out_run, struct span *out_rest);

size_t step_anchor_key(
	struct span run, uint64_t step, struct span file, char out[STEP_ANCHOR_KEY_BYTES])
{
	const int len = snprintf(out, STEP_ANCHOR_KEY_BYTES, "%.*s/anchors/step_%06llu/%.*s",
		(int)run.len, (const char *)run.data, (unsigned long long)step, (int)file.len,
		(const char *)file.data);
	ASSERT(len > 0 && len < STEP_ANCHOR_KEY_BYTES);
	return (size_t)len;
}

bool step_anchor_key_parse(
	struct span key, struct span *out_run, uint64_t *out_step, struct span *out_file)
{
	static const struct span prefix = {(const uint8_t *)"step_", sizeof("step_") - 1};
	char canonical[STEP_ANCHOR_KEY_BYTES];
	struct span rest;
	struct span folder;
	if (!split_anchors(key, out_run, &rest) || out_run->len == 0 ||
		out_run->len > RUN_NAME_MAX_BYTES || span_find(rest, '/') < 0)
		return false;
	if (!span_split(&rest, '/', &folder) || !span_starts(folder, prefix) || rest.len == 0 ||
		rest.len > STEP_NAME_MAX_BYTES)
		return false;
	if (!span_parse_u64(span_slice(folder, prefix.len, folder.len), out_step) ||
		*out_step > INT64_MAX)
		return false;
	*out_file = rest;
	return span_equal(
		key, span_of(canonical, step_anchor_key(*out_run, *out_step, rest, canonical)));
}

int step_anchor_key_guard(struct db *db, int64_t bucket, struct span key, struct error *err)
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
	return error_set(err, ERROR_DENIED,
		"Keys below '%.*s/anchors/' are the server's: it makes the anchors of the run '%.*s' there. They are removed with their "
		"steps, or with the whole run (`deltabucket runs rm`). Put other objects elsewhere.",
		(int)name.len, (const char *)name.data, (int)name.len, (const char *)name.data);
}

/* "{run}/anchors/REST" */
static bool split_anchors(struct span key, struct span *out_run, struct span *out_rest)
{
	static const struct span prefix = {(const uint8_t *)"anchors/", sizeof("anchors/") - 1};
	struct span rest = key;
	if (span_find(key, '/') < 0 || !span_split(&rest, '/', out_run) ||
		!span_starts(rest, prefix))
		return false;
	*out_rest = span_slice(rest, prefix.len, rest.len);
	return true;
}
