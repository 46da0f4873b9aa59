#include "storage/runs/step_anchor_form.h"

#include "base/encode.h"
#include "storage/runs/step_pin.h"
#include "storage/versions/version.h"

enum { URL_MAX_BYTES = 4 * STEP_NAME_MAX_BYTES };

static int read_object(struct db *db, const struct step_row *row, const struct step_pin *pin,
	struct arena *arena, struct step_object *out, struct error *err);

int step_anchor_form(struct db *db, const struct step_row *row, struct arena *arena,
	struct step_form *out, struct error *err)
{
	struct step_pins pins;
	ASSERT(row->has_made);
	*out = (struct step_form){.kind = STEP_ANCHOR, .format = span_text("full")};
	if (step_pin_list(db, row->id, STEP_PIN_MADE, arena, &pins, err) != 0)
		return -1;
	out->object_count = pins.count;
	out->objects = arena_take_array(arena, out->object_count + 1, sizeof(*out->objects));
	if (out->objects == NULL)
		return error_set(err, ERROR_NO_MEMORY,
			"The request's memory ran out while reading a made anchor.");
	for (size_t i = 0; i < out->object_count; i++)
		if (read_object(db, row, &pins.items[i], arena, &out->objects[i], err) != 0)
			return -1;
	return 0;
}

static int read_object(struct db *db, const struct step_row *row, const struct step_pin *pin,
	struct arena *arena, struct step_object *out, struct error *err)
{
	struct version version;
	struct buffer url;
	const int found = version_find_sequence(db, pin->version, arena, &version, err);
	if (found < 0)
		return -1;
	if (found == 0 || !version.has_digest) /* invariant 6 */
		return error_set(err, ERROR_CORRUPT, "%s: a made anchor has lost its version %lld.",
			db_path(db), (long long)pin->version);
	buffer_init(&url, URL_MAX_BYTES);
	buffer_format(&url, "steps/%llu/objects/anchor/", (unsigned long long)row->step);
	encode_percent(pin->name, true, &url);
	*out = (struct step_object){.name = pin->name,
		.key = version.key,
		.size = version.size,
		.digest = version.digest,
		.url = arena_copy(arena, buffer_span(&url))};
	buffer_release(&url);
	return 0;
}
