/* damaged chunks --segments--> part sets --xet_files--> made files --a change--> gone, unless they
 * became registered files meanwhile, which somebody counts on */
#include "storage/scrub/made_drop.h"

#include <string.h>

#include "storage/core/committer.h"
#include "storage/files/xet_file.h"
#include "storage/packs/pack_store_parts.h"

enum { DROPS_MAX = 64 }; /* files of one call; the others wait for the next one */

struct drops {
	struct change change; /* first */
	struct chunk_id files[DROPS_MAX];
	size_t count;
};

static const char SQL_MADE[] =
	"SELECT x.hash FROM xet_files x JOIN segments s ON s.part_set = x.part_set"
	" JOIN damaged_chunks d ON d.pack = s.pack AND d.chunk >= s.first AND d.chunk < s.first + s.count"
	" WHERE x.is_made = 1 GROUP BY x.hash LIMIT ?1";

static int made_drop_apply_nothing(struct change *change, struct db *db, struct error *err);
static int list_made(struct store *store, struct drops *drops, struct error *err);
static int made_drop_apply(struct change *change, struct db *db, struct error *err);
static void log_drops(struct store *store, const struct drops *drops);

int made_drop_run(struct store *store, struct error *err)
{
	struct drops drops = {.change = {.apply = made_drop_apply}};
	struct change notes = {.apply = made_drop_apply_nothing};
	if (!pack_damage_is_known(store_packs(store)->damage))
		return 0;
	/* damage that was noted just now is in the catalog once this change has run */
	if (committer_run(store_committer(store), &notes, err) != 0 ||
		list_made(store, &drops, err) != 0)
		return -1;
	if (drops.count == 0)
		return 0;
	if (committer_run(store_committer(store), &drops.change, err) != 0)
		return -1;
	log_drops(store, &drops);
	return 0;
}

static int made_drop_apply_nothing(struct change *change, struct db *db, struct error *err)
{
	(void)change, (void)db, (void)err;
	return 0;
}

static int list_made(struct store *store, struct drops *drops, struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	struct db_statement *const rows = db_query(db, SQL_MADE, err, db_i64(DROPS_MAX));
	int got;
	while ((got = db_step(rows, err)) == 1) {
		const struct span hash = db_column_blob(rows, 0);
		if (hash.len == CHUNK_ID_BYTES && drops->count < DROPS_MAX)
			memcpy(drops->files[drops->count++].bytes, hash.data, hash.len);
	}
	db_reset(rows);
	store_reader_give(store, db);
	return got;
}

static int made_drop_apply(struct change *change, struct db *db, struct error *err)
{
	const struct drops *const drops = (const struct drops *)change;
	for (size_t i = 0; i < drops->count; i++) {
		struct xet_file file;
		const int found = xet_file_row_find(db, &drops->files[i], &file, err);
		if (found < 0 ||
			(found == 1 && file.is_made && xet_file_row_remove(db, &file, err) != 0))
			return -1;
	}
	return 0;
}

static void log_drops(struct store *store, const struct drops *drops)
{
	const struct log_field field = log_number("files", (int64_t)drops->count);
	log_event(store_log(store), LOG_WARNING, NULL, "made_files_dropped", &field, 1);
}
