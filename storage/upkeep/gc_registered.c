/* A reader looks for them, since most files are in use; a change then judges the few that were
 * found again. */
#include "storage/upkeep/gc_registered.h"

#include "storage/core/committer.h"
#include "storage/core/store.h"

enum { ENDED_AT_ONCE = 16 }; /* each also removes up to PART_DROP_ROWS rows */

struct ending {
	struct change change; /* first */
	struct store_health *health;
	struct chunk_id files[ENDED_AT_ONCE];
	size_t count;
	struct xet_file_damage damage; /* out */
};

static int gc_registered_apply(struct change *change, struct db *db, struct error *err);
static int find_some(struct store *store, const struct chunk_id *after, struct ending *ending,
	struct error *err);

int gc_registered_end(struct store *store, struct chunk_id *inout_after, bool *out_more,
	struct xet_file_damage *damage, struct error *err)
{
	struct ending ending = {
		.change = {.apply = gc_registered_apply}, .health = store_health(store)};
	if (find_some(store, inout_after, &ending, err) != 0)
		return -1;
	*out_more = ending.count == ENDED_AT_ONCE;
	if (ending.count == 0)
		return 0;
	ASSERT(ending.count <= ENDED_AT_ONCE);
	*inout_after = ending.files[ending.count - 1];
	if (committer_run(store_committer(store), &ending.change, err) != 0)
		return -1;
	*damage = ending.damage;
	return 0;
}

int gc_registered_bytes(struct store *store, uint64_t *out_bytes, struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	const int result = xet_file_unused_bytes(db, out_bytes, err);
	store_reader_give(store, db);
	return result;
}

static int gc_registered_apply(struct change *change, struct db *db, struct error *err)
{
	struct ending *const ending = (struct ending *)change;
	ending->damage = (struct xet_file_damage){0};
	if (store_health_check_delete(ending->health, err) != 0)
		return -1;
	for (size_t i = 0; i < ending->count; i++)
		if (xet_file_end_unused(db, &ending->files[i], &ending->damage, err) != 0)
			return -1;
	return 0;
}

static int find_some(
	struct store *store, const struct chunk_id *after, struct ending *ending, struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	const int result =
		xet_file_list_unused(db, after, ending->files, ENDED_AT_ONCE, &ending->count, err);
	store_reader_give(store, db);
	return result;
}
