/* Keys are printed from a table of layouts. To parse a key, the number of the step is read and the
 * key printed again from it, so that only the spelling that the server uses counts. */
#include "storage/run_tables/view_key.h"

#include <stdio.h>
#include <string.h>

#include "storage/run_tables/run_row.h"

static const struct view_layout {
	const char *setting;
	const char *folder;
	const char *before; /* text before the step's number */
	const char *behind; /* text after it */
} layouts[VIEW_KINDS] = {
	[VIEW_TRL] = {"view_trl", "deltas/", "step_", ".safetensors"},
	[VIEW_SLIME] = {"view_slime", "updates/", "weight_v", "/"},
};
static const struct view_layout anchor_layout = {"view_trl", "anchors/", "step_", ".safetensors"};

static size_t print_step(
	const struct view_layout *layout, struct span run, uint64_t step, char out[VIEW_KEY_BYTES]);
static bool parse_step(
	const struct view_layout *layout, struct span run, struct span key, uint64_t *out_step);

const char *view_key_setting(enum view_kind kind)
{
	ASSERT((size_t)kind < VIEW_KINDS);
	return layouts[kind].setting;
}

bool view_key_is_on(const struct run_settings *settings, enum view_kind kind)
{
	ASSERT((size_t)kind < VIEW_KINDS);
	return kind == VIEW_TRL ? settings->view_trl : settings->view_slime;
}

size_t view_key_prefix(enum view_kind kind, struct span run, char out[VIEW_KEY_BYTES])
{
	const int len = snprintf(out, VIEW_KEY_BYTES, "%.*s/%s", (int)run.len,
		(const char *)run.data, layouts[kind].folder);
	ASSERT(len > 0 && len < VIEW_KEY_BYTES);
	return (size_t)len;
}

size_t view_key_step(enum view_kind kind, struct span run, uint64_t step, char out[VIEW_KEY_BYTES])
{
	return print_step(&layouts[kind], run, step, out);
}

size_t view_key_anchor(struct span run, uint64_t step, char out[VIEW_KEY_BYTES])
{
	return print_step(&anchor_layout, run, step, out);
}

bool view_key_place(struct span key, struct span *out_run, enum view_kind *out_kind)
{
	const ptrdiff_t slash = span_find(key, '/');
	if (slash <= 0 || slash > RUN_NAME_MAX_BYTES)
		return false;
	*out_run = span_slice(key, 0, (size_t)slash);
	const struct span rest = span_slice(key, (size_t)slash + 1, key.len);
	for (int kind = 0; kind < VIEW_KINDS; kind++) {
		*out_kind = (enum view_kind)kind;
		if (span_starts(rest, span_text(layouts[kind].folder)))
			return true;
	}
	return false;
}

bool view_key_parse(
	struct span key, struct span *out_run, enum view_kind *out_kind, uint64_t *out_step)
{
	const ptrdiff_t slash = span_find(key, '/');
	if (slash <= 0 || slash > RUN_NAME_MAX_BYTES)
		return false;
	*out_run = span_slice(key, 0, (size_t)slash);
	for (int kind = 0; kind < VIEW_KINDS; kind++) {
		*out_kind = (enum view_kind)kind;
		if (parse_step(&layouts[kind], *out_run, key, out_step))
			return kind == VIEW_SLIME || span_ends_text(key, ".safetensors");
	}
	*out_kind = VIEW_TRL;
	return parse_step(&anchor_layout, *out_run, key, out_step) &&
		span_ends_text(key, ".safetensors") &&
		span_find(
			span_slice(key, (size_t)slash + 1 + strlen(anchor_layout.folder), key.len),
			'/') < 0;
}

int view_key_guard(struct db *db, int64_t bucket, struct span key, struct error *err)
{
	struct span name;
	enum view_kind kind;
	struct run_row run;
	if (!view_key_place(key, &name, &kind))
		return 0;
	const int found = run_row_find(db, bucket, name, &run, err);
	if (found != 1 || !view_key_is_on(&run.settings, kind))
		return found < 0 ? -1 : 0;
	return error_set(err, ERROR_DENIED,
		"The key '%.*s' is the server's: it keeps a view of the run '%.*s' there as long as the run's setting \"%s\" is on "
		"(`deltabucket runs settings BUCKET/%.*s %s=false` turns it off).",
		(int)span_slice(key, 0, 200).len, (const char *)key.data, (int)name.len,
		(const char *)name.data, view_key_setting(kind), (int)name.len,
		(const char *)name.data, view_key_setting(kind));
}

static size_t print_step(
	const struct view_layout *layout, struct span run, uint64_t step, char out[VIEW_KEY_BYTES])
{
	const int len = snprintf(out, VIEW_KEY_BYTES, "%.*s/%s%s%06llu%s", (int)run.len,
		(const char *)run.data, layout->folder, layout->before, (unsigned long long)step,
		layout->behind);
	ASSERT(len > 0 && len < VIEW_KEY_BYTES);
	return (size_t)len;
}

/* Reads the number behind the run, the folder and the text before it. */
static bool parse_step(
	const struct view_layout *layout, struct span run, struct span key, uint64_t *out_step)
{
	char canonical[VIEW_KEY_BYTES];
	ASSERT(run.len < key.len && run.len <= RUN_NAME_MAX_BYTES);
	const size_t start = run.len + 1 + strlen(layout->folder) + strlen(layout->before);
	size_t end = start;
	while (end < key.len && key.data[end] >= '0' && key.data[end] <= '9')
		end++;
	if (end <= start || !span_parse_u64(span_slice(key, start, end - start), out_step) ||
		*out_step > INT64_MAX)
		return false;
	return span_starts(key, span_of(canonical, print_step(layout, run, *out_step, canonical)));
}
