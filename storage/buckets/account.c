/* Keys are listed in one snapshot. If a page cannot be read, they are listed once more from pages
 * as they are: rows whose own sums are right count, the others are listed as damaged, and
 * unreadable places are skipped (leap). So a damaged page costs only its own keys. A key is revoked
 * by removing its row, or by noting its id where the row cannot be removed. */
#include "storage/buckets/account.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "storage/buckets/account_row.h"
#include "storage/buckets/key_row.h"
#include "storage/buckets/key_use.h"
#include "storage/buckets/session_row.h"
#include "storage/core/committer.h"
#include "storage/core/store.h"

/* the distance in row numbers up to which a key is looked for after an unreadable place */
enum { LEAP_MAX = 1 << 20 };
/* with the number of the row: the id of a key whose own is lost */
static const char DAMAGED_PREFIX[] = "damaged-";

struct key_list {
	struct arena *arena;
	struct key_record *keys;
	size_t count;
	size_t room;
	bool leaps; /* over unreadable places, which are listed as damaged keys */
};

struct key_change {
	struct change change; /* first */
	struct store *store;
	const struct key_record *key;
	struct span id;
};

static int list_keys(struct db *db, struct key_list *list, struct error *err);
static int next_key(struct db *db, struct key_list *list, int64_t after, struct key_record *key,
	int64_t *out_row, struct error *err);
static int leap(struct db *db, struct key_list *list, int64_t *row, struct key_record *key,
	struct error *err);
static int add_to_list(
	struct key_list *list, const struct key_record *key, int64_t row, struct error *err);
static struct key_record *list_place(struct key_list *list);
static int no_memory(struct error *err);
static int name_damaged(
	struct key_list *list, struct key_record *key, int64_t row, struct error *err);
static bool is_plain(struct span text);
static int list_damaged(struct store *store, struct key_list *list, struct error *err);
static int account_apply_add(struct change *base, struct db *db, struct error *err);
static int remove_roots(struct db *db, struct error *err);
static int account_apply_revoke(struct change *base, struct db *db, struct error *err);
static int revoke(struct db *db, struct span id, struct arena *arena, struct error *err);
static int find_key(struct db *db, struct span id, struct arena *arena, struct key_record *out,
	int64_t *out_row, struct error *err);
static bool parse_damaged(struct span id, int64_t *out_row);
static int not_found(struct span id, struct error *err);
static int refuse_root(struct error *err);
static int ban(struct key_change *change, const struct error *why, struct error *err);
static int find_listed(struct store *store, struct span id, struct arena *arena,
	struct key_record *out, struct error *err);
static int account_apply_ban(struct change *base, struct db *db, struct error *err);

int account_list_keys(struct store *store, struct arena *arena, struct key_record **out_keys,
	size_t *out_count, struct error *err)
{
	struct key_list list = {.arena = arena};
	struct db *db = store_snapshot_take(store, err);
	if (db == NULL)
		return -1;
	int result = list_keys(db, &list, err);
	store_snapshot_give(store, db);
	if (result != 0 && err->kind != ERROR_NO_MEMORY)
		result = list_damaged(store, &list, err);
	*out_keys = list.keys;
	*out_count = list.count;
	return result;
}

int account_add_key(struct store *store, const struct key_record *key, struct error *err)
{
	struct key_change change = {.change.apply = account_apply_add, .store = store, .key = key};
	return committer_run(store_committer(store), &change.change, err);
}

int account_revoke_key(struct store *store, struct span id, struct error *err)
{
	struct key_change change = {.change.apply = account_apply_revoke, .store = store, .id = id};
	if (committer_run(store_committer(store), &change.change, err) == 0)
		return 0;
	struct error why = *err;
	return why.kind == ERROR_DAMAGED || why.kind == ERROR_CORRUPT ? ban(&change, &why, err)
								      : -1;
}

int account_exists(struct store *store, struct span namespace, bool *out_exists, struct error *err)
{
	int64_t id;
	struct db *db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	int found = account_row_find(db, namespace, &id, err);
	store_reader_give(store, db);
	*out_exists = found == 1;
	return found < 0 ? -1 : 0;
}

static int list_keys(struct db *db, struct key_list *list, struct error *err)
{
	struct key_record key;
	int64_t row = INT64_MIN;
	int got;
	while ((got = next_key(db, list, row, &key, &row, err)) != 0) {
		if (got < 0 && list->leaps)
			got = leap(db, list, &row, &key, err);
		if (got <= 0)
			return got;
		if (add_to_list(list, &key, row, err) != 0)
			return -1;
	}
	return 0;
}

/* Reads the first key after row `after`. Returns 1 with its row, 0 when there is none, -1 on error.
 * A damaged page may have its rows in any order, so one that was read before is refused. */
static int next_key(struct db *db, struct key_list *list, int64_t after, struct key_record *key,
	int64_t *out_row, struct error *err)
{
	int64_t row = after;
	int got = key_row_next(db, after, list->arena, key, &row, err);
	if (got == 1 && row <= after)
		return error_set(err, ERROR_DAMAGED,
			"In the table keys of catalog.db, row %lld is followed by row %lld.",
			(long long)after, (long long)row);
	if (got == 1)
		*out_row = row;
	return got;
}

/* Looks for the next key after an unreadable place, at distances that double. Returns 1 at a key, 0
 * when there is none, -1 on error. */
static int leap(struct db *db, struct key_list *list, int64_t *row, struct key_record *key,
	struct error *err)
{
	int64_t first = *row < 0 ? 1 : *row;
	struct key_record lost = {.is_damaged = true};
	int got = -1;
	ASSERT(list->leaps);
	if (first >= INT64_MAX - LEAP_MAX)
		return 0;
	first += *row >= 0;
	for (int64_t distance = 0; got < 0 && distance < LEAP_MAX; distance = distance * 2 + 1)
		got = next_key(db, list, first + distance, key, row, err);
	if (got < 0 && err->kind == ERROR_NO_MEMORY)
		return -1;
	if (add_to_list(list, &lost, first, err) != 0)
		return -1;
	return got < 0 ? 0 : got;
}

static int add_to_list(
	struct key_list *list, const struct key_record *key, int64_t row, struct error *err)
{
	if (key->is_revoked)
		return 0;
	struct key_record *place = list_place(list);
	if (place == NULL)
		return no_memory(err);
	*place = *key;
	return key->is_damaged ? name_damaged(list, place, row, err) : 0;
}

static struct key_record *list_place(struct key_list *list)
{
	ASSERT(list->count <= list->room);
	if (list->count < list->room)
		return &list->keys[list->count++];
	size_t room = list->room == 0 ? 16 : list->room * 2;
	struct key_record *keys = arena_take_array(list->arena, room, sizeof(*keys));
	if (keys == NULL)
		return NULL;
	if (list->count > 0)
		memcpy(keys, list->keys, list->count * sizeof(*keys));
	list->keys = keys;
	list->room = room;
	return &list->keys[list->count++];
}

static int no_memory(struct error *err)
{
	return error_set(err, ERROR_NO_MEMORY, "Memory ran out while reading keys.");
}

/* A damaged key keeps its id if that can be read. */
static int name_damaged(
	struct key_list *list, struct key_record *key, int64_t row, struct error *err)
{
	static const struct span none = {NULL, 0};
	ASSERT(key->is_damaged);
	key->name = is_plain(key->name) ? key->name : none;
	key->namespace = is_plain(key->namespace) ? key->namespace : none;
	key->grant_count = 0;
	if (is_plain(key->id))
		return 0;
	const char *name = arena_format(list->arena, "%s%lld", DAMAGED_PREFIX, (long long)row);
	if (name == NULL)
		return no_memory(err);
	key->id = span_text(name);
	return 0;
}

static bool is_plain(struct span text)
{
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] <= ' ' || text.data[i] > '~')
			return false;
	return text.len > 0;
}

/* Lists the keys from pages as they are, damaged or not (db_overlook). */
static int list_damaged(struct store *store, struct key_list *list, struct error *err)
{
	struct db *db = db_open(store_catalog_path(store), DB_READ, err);
	if (db == NULL)
		return -1;
	db_overlook(db);
	list->count = 0;
	list->leaps = true;
	int result = list_keys(db, list, err);
	db_close(db);
	return result;
}

static int account_apply_add(struct change *base, struct db *db, struct error *err)
{
	struct key_change *change = (struct key_change *)base;
	const int64_t now_ms = store_now_ms(change->store);
	struct key_record key = *change->key;
	int64_t account;
	if (key.created_ms == 0)
		key.created_ms = now_ms;
	if (key.is_root && remove_roots(db, err) != 0)
		return -1;
	if (account_row_ensure(db, key.namespace, now_ms, &account, err) != 0)
		return -1;
	return key_row_add(db, &key, account, err);
}

/* A damaged row may claim to be a root key, so there may be several. */
static int remove_roots(struct db *db, struct error *err)
{
	int64_t root;
	int found;
	while ((found = key_row_find_root(db, &root, err)) == 1)
		if (key_row_remove(db, root, err) != 0)
			return -1;
	return found;
}

static int account_apply_revoke(struct change *base, struct db *db, struct error *err)
{
	enum { ARENA_BYTES = 64 * 1024 * 1024 };
	struct arena *arena = arena_new(ARENA_BYTES);
	int result = revoke(db, ((struct key_change *)base)->id, arena, err);
	arena_free(arena);
	return result;
}

static int revoke(struct db *db, struct span id, struct arena *arena, struct error *err)
{
	struct key_record key;
	int64_t row = 0;
	int found = find_key(db, id, arena, &key, &row, err);
	if (found == 0)
		return not_found(id, err);
	if (found == 1 && key.is_root && !key.is_damaged)
		return refuse_root(err);
	if (found != 1 || session_row_remove_of_key(db, id, err) != 0 ||
		key_use_remove(db, id, err) != 0)
		return -1;
	return key_row_remove(db, row, err);
}

/* Finds the row of a key by its id, or of a key without an id by the name damaged-N. Returns 1, 0
 * when there is none, -1 on error. */
static int find_key(struct db *db, struct span id, struct arena *arena, struct key_record *out,
	int64_t *out_row, struct error *err)
{
	int64_t wanted = 0;
	int found = key_row_find(db, id, &wanted, err);
	bool by_number = found == 0 && parse_damaged(id, &wanted) && wanted != INT64_MIN;
	if (found < 0 || (found == 0 && !by_number))
		return found;
	found = key_row_next(db, wanted - 1, arena, out, out_row, err);
	if (found == 1 &&
		(*out_row != wanted || (by_number && (!out->is_damaged || is_plain(out->id)))))
		return 0;
	return found;
}

static bool parse_damaged(struct span id, int64_t *out_row)
{
	char text[32];
	size_t prefix = sizeof(DAMAGED_PREFIX) - 1;
	if (id.len <= prefix || id.len >= sizeof(text) ||
		memcmp(id.data, DAMAGED_PREFIX, prefix) != 0)
		return false;
	memcpy(text, id.data, id.len);
	text[id.len] = '\0';
	char *end;
	*out_row = strtoll(text + prefix, &end, 10);
	return *end == '\0';
}

static int not_found(struct span id, struct error *err)
{
	return error_set(err, ERROR_NOT_FOUND, "The key '%.*s' does not exist.", (int)id.len,
		(const char *)id.data);
}

static int refuse_root(struct error *err)
{
	return error_set(
		err, ERROR_DENIED, "The root key cannot be revoked; set another one instead.");
}

/* Notes the id of a key whose row cannot be removed, because its page is damaged. */
static int ban(struct key_change *change, const struct error *why, struct error *err)
{
	enum { ARENA_BYTES = 256 * 1024 * 1024 };
	struct arena *arena = arena_new(ARENA_BYTES);
	struct key_record key = {0};
	int64_t row;
	int result = find_listed(change->store, change->id, arena, &key, err);
	if (result == 0 && key.is_root && !key.is_damaged)
		result = refuse_root(err);
	else if (result == 0 && parse_damaged(key.id, &row)) {
		*err = *why; /* it has no id that could be noted, and opens nothing */
		result = -1;
	}
	arena_free(arena);
	if (result != 0)
		return -1;
	change->change = (struct change){.apply = account_apply_ban};
	return committer_run(store_committer(change->store), &change->change, err);
}

static int find_listed(struct store *store, struct span id, struct arena *arena,
	struct key_record *out, struct error *err)
{
	struct key_record *keys = NULL;
	size_t count = 0;
	if (account_list_keys(store, arena, &keys, &count, err) != 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (span_equal(keys[i].id, id)) {
			*out = keys[i];
			return 0;
		}
	return not_found(id, err);
}

static int account_apply_ban(struct change *base, struct db *db, struct error *err)
{
	return key_row_ban(db, ((struct key_change *)base)->id, err);
}
