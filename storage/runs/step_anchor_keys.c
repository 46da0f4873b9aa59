#include "storage/runs/step_anchor_keys.h"

#include "storage/runs/step_pin.h"
#include "storage/versions/version.h"

enum { PINS_ARENA_BYTES = 32 * 1024 * 1024 };

static int for_each(struct db *db, int64_t step,
	int (*act)(struct db *db, int64_t step, const struct step_pin *pin, struct arena *arena,
		struct error *err),
	struct error *err);
static int step_anchor_keys_show_one(struct db *db, int64_t step, const struct step_pin *pin,
	struct arena *arena, struct error *err);
static int step_anchor_keys_hide_one(struct db *db, int64_t step, const struct step_pin *pin,
	struct arena *arena, struct error *err);
static int step_anchor_keys_let_go_one(struct db *db, int64_t step, const struct step_pin *pin,
	struct arena *arena, struct error *err);

int step_anchor_keys_free(
	struct db *db, int64_t bucket, struct span key, bool *out_free, struct error *err)
{
	struct version version;
	int found = version_find_current(db, bucket, key, NULL, &version, err);
	if (found == 0)
		found = version_find_null(db, bucket, key, NULL, &version, err);
	*out_free = found == 0;
	return found < 0 ? -1 : 0;
}

int step_anchor_keys_show(struct db *db, int64_t step, struct error *err)
{
	return for_each(db, step, step_anchor_keys_show_one, err);
}

int step_anchor_keys_hide(struct db *db, int64_t step, struct error *err)
{
	return for_each(db, step, step_anchor_keys_hide_one, err);
}

int step_anchor_keys_let_go(struct db *db, int64_t step, struct error *err)
{
	return for_each(db, step, step_anchor_keys_let_go_one, err);
}

static int for_each(struct db *db, int64_t step,
	int (*act)(struct db *db, int64_t step, const struct step_pin *pin, struct arena *arena,
		struct error *err),
	struct error *err)
{
	struct arena *const arena = arena_new(PINS_ARENA_BYTES);
	struct step_pins pins;
	int result = step_pin_list(db, step, STEP_PIN_MADE, arena, &pins, err);
	for (size_t i = 0; result == 0 && i < pins.count; i++)
		result = act(db, step, &pins.items[i], arena, err);
	arena_free(arena);
	return result;
}

static int step_anchor_keys_show_one(struct db *db, int64_t step, const struct step_pin *pin,
	struct arena *arena, struct error *err)
{
	struct version version;
	bool is_free = false;
	(void)step;
	const int found = version_find_sequence(db, pin->version, arena, &version, err);
	if (found != 1 || version.state != VERSION_HIDDEN)
		return found < 0 ? -1 : 0;
	if (step_anchor_keys_free(db, version.bucket, version.key, &is_free, err) != 0)
		return -1;
	return is_free ? version_show(db, pin->version, err) : 0;
}

static int step_anchor_keys_hide_one(struct db *db, int64_t step, const struct step_pin *pin,
	struct arena *arena, struct error *err)
{
	struct version version;
	(void)step;
	(void)arena;
	const int found = version_find_sequence(db, pin->version, NULL, &version, err);
	if (found != 1 || version.state == VERSION_HIDDEN)
		return found < 0 ? -1 : 0;
	return version_remove(db, &version, 0, err);
}

static int step_anchor_keys_let_go_one(struct db *db, int64_t step, const struct step_pin *pin,
	struct arena *arena, struct error *err)
{
	(void)arena;
	return step_pin_let_go(db, step, STEP_PIN_MADE, pin, err);
}
