#include "storage/runs/step_pin.h"

#include "storage/versions/version.h"

static const char SQL_PIN_ADD[] =
	"INSERT INTO step_objects (step, form, name, version) VALUES (?1, ?2, ?3, ?4)";
static const char SQL_PIN_FIND[] =
	"SELECT version FROM step_objects WHERE step = ?1 AND form = ?2 AND name = ?3";
static const char SQL_PIN_FIRST[] =
	"SELECT form, name, version FROM step_objects WHERE step = ?1 ORDER BY form, name LIMIT 1";
static const char SQL_PIN_LIST[] =
	"SELECT name, version FROM step_objects WHERE step = ?1 AND form = ?2 ORDER BY name";
static const char SQL_PIN_REMOVE[] =
	"DELETE FROM step_objects WHERE step = ?1 AND form = ?2 AND name = ?3";

static int release_one(struct db *db, int64_t step, struct error *err);

int step_pin_add(struct db *db, int64_t step, enum step_pin_form form, struct span name,
	int64_t version, struct error *err)
{
	ASSERT(step != 0 && version > 0);
	if (db_run(db, SQL_PIN_ADD, err, db_i64(step), db_i64(form), db_blob(name),
		    db_i64(version)) == 0)
		return 0;
	if (err->kind == ERROR_EXISTS)
		error_set(err, ERROR_INVALID, "The form names the object '%.*s' twice.",
			(int)name.len, (const char *)name.data);
	return -1;
}

int step_pin_find(struct db *db, int64_t step, enum step_pin_form form, struct span name,
	int64_t *out_version, struct error *err)
{
	return db_find_i64(
		db, SQL_PIN_FIND, out_version, err, db_i64(step), db_i64(form), db_blob(name));
}

int step_pin_list(struct db *db, int64_t step, enum step_pin_form form, struct arena *arena,
	struct step_pins *out, struct error *err)
{
	*out = (struct step_pins){
		.items = arena_take_array(arena, STEP_OBJECTS_MAX, sizeof(*out->items))};
	if (out->items == NULL)
		return error_set(err, ERROR_NO_MEMORY,
			"The request's memory ran out while reading a step's objects.");
	struct db_statement *const list =
		db_query(db, SQL_PIN_LIST, err, db_i64(step), db_i64(form));
	int got = 0;
	while (out->count < STEP_OBJECTS_MAX && (got = db_step(list, err)) == 1)
		out->items[out->count++] = (struct step_pin){
			arena_copy(arena, db_column_blob(list, 0)), db_column_i64(list, 1)};
	db_reset(list);
	if (arena_overflowed(arena))
		return error_set(err, ERROR_NO_MEMORY,
			"The request's memory ran out while reading a step's objects.");
	return got < 0 ? -1 : 0;
}

/* Only the step needs what the server made of it, so the key goes with it. */
int step_pin_let_go(struct db *db, int64_t step, enum step_pin_form form,
	const struct step_pin *pin, struct error *err)
{
	struct version version = {.sequence = 0};
	if (db_run(db, SQL_PIN_REMOVE, err, db_i64(step), db_i64(form), db_blob(pin->name)) != 0)
		return -1;
	const int found = form >= STEP_PIN_MADE
		? version_find_sequence(db, pin->version, NULL, &version, err)
		: 0;
	if (found == 1 && version.state != VERSION_HIDDEN)
		return version_remove(db, &version, 0, err);
	return version_drop_unless_named(db, pin->version, err);
}

int step_pin_release(struct db *db, int64_t step, bool *out_more, struct error *err)
{
	int got = 1;
	for (int i = 0; got == 1 && i < STEP_PIN_RELEASE_ROWS; i++)
		got = release_one(db, step, err);
	*out_more = got == 1;
	return got < 0 ? -1 : 0;
}

/* 1: an object was released; 0: none is left; -1. */
static int release_one(struct db *db, int64_t step, struct error *err)
{
	struct db_statement *const first = db_query(db, SQL_PIN_FIRST, err, db_i64(step));
	int got = db_step(first, err);
	if (got == 1) {
		const struct step_pin pin = {db_column_blob(first, 1), db_column_i64(first, 2)};
		if (step_pin_let_go(
			    db, step, (enum step_pin_form)db_column_i64(first, 0), &pin, err) != 0)
			got = -1;
	}
	db_reset(first);
	return got;
}
