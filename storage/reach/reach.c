/* chunks --segments--> part sets --> versions --derivation_sources--> versions --> keys
 *                                                                             '--> steps, folds
 *
 * The catalog has no index from a part set to its versions: the set of a single PUT has its
 * version's number, and readers never ask for the others. So a set that several versions may share
 * is looked up in a list of all such versions, which one pass over the table makes. */
#include "storage/reach/reach.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/search.h"
#include "storage/reach/number_set.h"

struct set_user { /* a version that leads to a set under another number than its own */
	int64_t set;
	int64_t version;
};
struct reach {
	struct db *db;
	struct arena *texts; /* of the results */
	struct number_set sets;
	struct number_set versions;
	struct number_set owners[REACH_FORMS]; /* of objects: steps, parts of steps, folds */
	bool has_users;
	struct set_user *users; /* sorted by set */
	size_t user_count;
	size_t user_capacity;
	struct reach_key keys[REACH_LIMIT];
	size_t key_count;
	struct reach_step steps[REACH_LIMIT];
	size_t step_count;
	struct reach_upload uploads[REACH_LIMIT];
	size_t upload_count;
};

enum { TEXTS_MAX_BYTES = 3 * REACH_LIMIT * 4096 };

static const char SQL_SETS[] =
	"SELECT DISTINCT part_set FROM segments WHERE pack = ?1 AND first < ?3 AND first + count > ?2";
static const char SQL_UPLOADS[] = /* few are open, so the search begins with them */
	"SELECT DISTINCT coalesce(b.name, x''), u.key, u.upload_id, s.number FROM uploads u"
	" CROSS JOIN segments s ON s.pack = ?1 AND s.part_set = u.part_set"
	" LEFT JOIN buckets b ON b.id = u.bucket"
	" WHERE u.state = 0 AND s.first < ?3 AND s.first + s.count > ?2";
static const char SQL_USERS[] = "SELECT part_set, sequence FROM versions WHERE kind IN (1, 2) AND"
				" part_set IS NOT NULL AND part_set <> 0";
static const char SQL_OWN[] =
	"SELECT 1 FROM versions WHERE sequence = ?1 AND kind = 2 AND coalesce(part_set, 0) = 0";
static const char SQL_IS_SHARED[] = "SELECT 1 FROM part_sets WHERE id = ?1";
static const char SQL_DERIVED[] =
	"WITH RECURSIVE made (version) AS (SELECT version FROM derivation_sources WHERE source = ?1"
	" UNION SELECT s.version FROM derivation_sources s JOIN made m ON s.source = m.version)"
	" SELECT version FROM made";
static const char SQL_KEY[] =
	"SELECT coalesce(b.name, x''), v.key, v.id, v.has_id, v.state FROM versions v"
	" LEFT JOIN buckets b ON b.id = v.bucket WHERE v.sequence = ?1 AND v.state IN (1, 2)";
static const char SQL_OWNERS[] = /* forms as in enum reach_form */
	"SELECT 0, step FROM step_objects WHERE version = ?1 AND step > 0"
	" UNION SELECT 1, -step FROM step_objects WHERE version = ?1 AND step < 0"
	" UNION SELECT 2, fold FROM fold_objects WHERE version = ?1";
static const char *const sql_of_form[REACH_FORMS] = {
	"SELECT b.name, r.name, s.step FROM steps s JOIN runs r ON r.id = s.run"
	" LEFT JOIN buckets b ON b.id = r.bucket WHERE s.id = ?1",
	"SELECT b.name, r.name, p.step FROM step_parts p JOIN runs r ON r.id = p.run"
	" LEFT JOIN buckets b ON b.id = r.bucket WHERE p.id = ?1",
	"SELECT b.name, r.name, f.to_step FROM folds f JOIN runs r ON r.id = f.run"
	" LEFT JOIN buckets b ON b.id = r.bucket WHERE f.id = ?1"};

static int add_uploads(struct reach *reach, int64_t pack, int64_t first, int64_t end,
	struct error *err);
static void take_upload(struct reach *reach, struct db_statement *row);
static int keep_first(int result, int next, const struct error *failure, struct error *err);
static int follow_sets(struct reach *reach, struct error *err);
static int follow_set(struct reach *reach, int64_t set, struct error *err);
static int list_users(struct reach *reach, struct error *err);
static int reach_compare_users(const void *a, const void *b);
static bool reach_user_is_before(const void *element, const void *key);
static int follow_recipes(struct reach *reach, struct error *err);
static int take_key(struct reach *reach, int64_t version, struct error *err);
static int find_owners(struct reach *reach, int64_t version, struct error *err);
static int list_steps(struct reach *reach, enum reach_form form, struct error *err);
static int take_step(struct reach *reach, enum reach_form form, int64_t owner, struct error *err);

const char *reach_form_name(enum reach_form form)
{
	static const char *const names[REACH_FORMS] = {
		[REACH_STEP] = "step", [REACH_PART] = "part", [REACH_FOLD] = "fold"};
	ASSERT(form < REACH_FORMS);
	return names[form];
}

struct reach *reach_new(struct db *db)
{
	struct reach *reach = memory_new(sizeof(*reach));
	reach->db = db;
	reach->texts = arena_new(TEXTS_MAX_BYTES);
	return reach;
}

void reach_free(struct reach *reach)
{
	if (reach == NULL)
		return;
	number_set_release(&reach->sets);
	number_set_release(&reach->versions);
	for (size_t i = 0; i < REACH_FORMS; i++)
		number_set_release(&reach->owners[i]);
	arena_free(reach->texts);
	free(reach->users);
	free(reach);
}

int reach_add_chunks(
	struct reach *reach, int64_t pack, uint32_t first, uint32_t count, struct error *err)
{
	struct db_statement *rows = db_query(reach->db, SQL_SETS, err, db_i64(pack), db_i64(first),
		db_i64((int64_t)first + count));
	int got;
	while ((got = db_step(rows, err)) == 1)
		reach_add_set(reach, db_column_i64(rows, 0));
	db_reset(rows);
	return got != 0 ? -1 : add_uploads(reach, pack, first, (int64_t)first + count, err);
}

void reach_add_set(struct reach *reach, int64_t set)
{
	number_set_add(&reach->sets, set);
}

void reach_add_version(struct reach *reach, int64_t version)
{
	number_set_add(&reach->versions, version);
}

void reach_add_step(struct reach *reach, int64_t step)
{
	number_set_add(&reach->owners[REACH_STEP], step);
}

int reach_settle(struct reach *reach, struct error *err)
{
	struct error failure = {0};
	int result = follow_sets(reach, err);
	result = keep_first(result, follow_recipes(reach, &failure), &failure, err);
	for (size_t i = 0; i < reach->versions.count; i++) {
		const int64_t version = reach->versions.numbers[i];
		result = keep_first(result, take_key(reach, version, &failure), &failure, err);
		result = keep_first(result, find_owners(reach, version, &failure), &failure, err);
	}
	for (int form = 0; form < REACH_FORMS; form++)
		result = keep_first(result, list_steps(reach, (enum reach_form)form, &failure),
			&failure, err);
	return result;
}

void reach_clear(struct reach *reach)
{
	reach->sets.count = 0;
	reach->versions.count = 0;
	for (size_t i = 0; i < REACH_FORMS; i++)
		reach->owners[i].count = 0;
	reach->key_count = 0;
	reach->step_count = 0;
	reach->upload_count = 0;
	arena_free(reach->texts);
	reach->texts = arena_new(TEXTS_MAX_BYTES);
}

const struct reach_key *reach_keys(const struct reach *reach, size_t *out_listed, size_t *out_count)
{
	*out_count = reach->key_count;
	*out_listed = reach->key_count < REACH_LIMIT ? reach->key_count : REACH_LIMIT;
	return reach->keys;
}

const struct reach_step *reach_steps(
	const struct reach *reach, size_t *out_listed, size_t *out_count)
{
	*out_count = reach->step_count;
	*out_listed = reach->step_count < REACH_LIMIT ? reach->step_count : REACH_LIMIT;
	return reach->steps;
}

const struct reach_upload *reach_uploads(
	const struct reach *reach, size_t *out_listed, size_t *out_count)
{
	*out_count = reach->upload_count;
	*out_listed = reach->upload_count < REACH_LIMIT ? reach->upload_count : REACH_LIMIT;
	return reach->uploads;
}

static int add_uploads(struct reach *reach, int64_t pack, int64_t first, int64_t end,
	struct error *err)
{
	struct db_statement *rows = db_query(
		reach->db, SQL_UPLOADS, err, db_i64(pack), db_i64(first), db_i64(end));
	int got;
	while ((got = db_step(rows, err)) == 1)
		take_upload(reach, rows);
	db_reset(rows);
	return got;
}

static void take_upload(struct reach *reach, struct db_statement *row)
{
	const struct span id = db_column_blob(row, 2);
	if (reach->upload_count++ >= REACH_LIMIT)
		return;
	struct reach_upload *upload = &reach->uploads[reach->upload_count - 1];
	*upload = (struct reach_upload){
		.bucket = arena_copy(reach->texts, db_column_blob(row, 0)),
		.key = arena_copy(reach->texts, db_column_blob(row, 1)),
		.part = (uint32_t)db_column_i64(row, 3)};
	if (id.len == REACH_UPLOAD_ID_BYTES)
		memcpy(upload->id, id.data, REACH_UPLOAD_ID_BYTES);
}

/* -1 once anything has failed, with the first error. */
static int keep_first(int result, int next, const struct error *failure, struct error *err)
{
	if (result == 0 && next != 0)
		*err = *failure;
	return result != 0 || next != 0 ? -1 : 0;
}

static int follow_sets(struct reach *reach, struct error *err)
{
	int result = 0;
	number_set_settle(&reach->sets);
	for (size_t i = 0; i < reach->sets.count; i++)
		if (follow_set(reach, reach->sets.numbers[i], err) != 0)
			result = -1;
	return result;
}

static int follow_set(struct reach *reach, int64_t set, struct error *err)
{
	const int owned = set < 0 ? db_exists(reach->db, SQL_OWN, err, db_i64(-set)) : 0;
	if (owned == 1)
		reach_add_version(reach, -set);
	if (owned < 0)
		return -1;
	const int shared = set < 0 ? db_exists(reach->db, SQL_IS_SHARED, err, db_i64(set)) : 1;
	if (shared <= 0)
		return shared;
	if (!reach->has_users && list_users(reach, err) != 0)
		return -1;
	for (size_t i = search_lower_bound(reach->users, reach->user_count, sizeof(*reach->users),
		     reach_user_is_before, &set);
		i < reach->user_count && reach->users[i].set == set; i++)
		reach_add_version(reach, reach->users[i].version);
	return 0;
}

static int list_users(struct reach *reach, struct error *err)
{
	struct db_statement *rows = db_query(reach->db, SQL_USERS, err);
	int got;
	reach->user_count = 0;
	while ((got = db_step(rows, err)) == 1) {
		reach->users = memory_make_room(reach->users, reach->user_count,
			&reach->user_capacity, sizeof(*reach->users));
		reach->users[reach->user_count++] = (struct set_user){
			.set = db_column_i64(rows, 0), .version = db_column_i64(rows, 1)};
	}
	db_reset(rows);
	if (got != 0)
		return -1;
	if (reach->user_count > 0)
		qsort(reach->users, reach->user_count, sizeof(*reach->users), reach_compare_users);
	reach->has_users = true;
	return 0;
}

static int reach_compare_users(const void *a, const void *b)
{
	const struct set_user *left = a;
	const struct set_user *right = b;
	return (left->set > right->set) - (left->set < right->set);
}

static bool reach_user_is_before(const void *element, const void *key)
{
	return ((const struct set_user *)element)->set < *(const int64_t *)key;
}

/* Adds the versions that are made of those found so far, at any depth. */
static int follow_recipes(struct reach *reach, struct error *err)
{
	number_set_settle(&reach->versions);
	const size_t plain = reach->versions.count;
	int result = 0;
	for (size_t i = 0; i < plain; i++) {
		struct db_statement *rows =
			db_query(reach->db, SQL_DERIVED, err, db_i64(reach->versions.numbers[i]));
		int got;
		while ((got = db_step(rows, err)) == 1)
			reach_add_version(reach, db_column_i64(rows, 0));
		db_reset(rows);
		if (got != 0)
			result = -1;
	}
	number_set_settle(&reach->versions);
	return result;
}

static int take_key(struct reach *reach, int64_t version, struct error *err)
{
	struct db_statement *row = db_query(reach->db, SQL_KEY, err, db_i64(version));
	const int got = db_step(row, err);
	if (got == 1 && reach->key_count < REACH_LIMIT) {
		struct reach_key *key = &reach->keys[reach->key_count];
		const struct span id = db_column_blob(row, 2);
		*key = (struct reach_key){.version = version,
			.bucket = arena_copy(reach->texts, db_column_blob(row, 0)),
			.key = arena_copy(reach->texts, db_column_blob(row, 1)),
			.has_id = db_column_i64(row, 3) != 0,
			.is_current = db_column_i64(row, 4) == 1};
		if (id.len == VERSION_ID_BYTES)
			memcpy(key->id, id.data, VERSION_ID_BYTES);
	}
	if (got == 1)
		reach->key_count++;
	db_reset(row);
	return got < 0 ? -1 : 0;
}

static int find_owners(struct reach *reach, int64_t version, struct error *err)
{
	struct db_statement *rows = db_query(reach->db, SQL_OWNERS, err, db_i64(version));
	int got;
	while ((got = db_step(rows, err)) == 1)
		number_set_add(&reach->owners[db_column_i64(rows, 0)], db_column_i64(rows, 1));
	db_reset(rows);
	return got;
}

static int list_steps(struct reach *reach, enum reach_form form, struct error *err)
{
	struct number_set *owners = &reach->owners[form];
	number_set_settle(owners);
	int result = 0;
	for (size_t i = 0; i < owners->count; i++)
		if (take_step(reach, form, owners->numbers[i], err) != 0)
			result = -1;
	return result;
}

static int take_step(struct reach *reach, enum reach_form form, int64_t owner, struct error *err)
{
	struct db_statement *row = db_query(reach->db, sql_of_form[form], err, db_i64(owner));
	const int got = db_step(row, err);
	if (got == 1 && reach->step_count < REACH_LIMIT)
		reach->steps[reach->step_count] = (struct reach_step){
			.bucket = arena_copy(reach->texts, db_column_blob(row, 0)),
			.run = arena_copy(reach->texts, db_column_blob(row, 1)),
			.step = db_column_i64(row, 2),
			.form = form};
	if (got == 1)
		reach->step_count++;
	db_reset(row);
	return got < 0 ? -1 : 0;
}
