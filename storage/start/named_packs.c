#include "storage/start/named_packs.h"

#include <string.h>

#include "storage/packs/pack_format.h"
#include "storage/packs/pack_store_parts.h"

static const char SQL_FIRST[] = "SELECT id FROM packs";
static const char SQL_FILES[] = "SELECT coalesce(file, id) FROM packs WHERE state <> 2";

static int check_row(
	struct pack_store *packs, const char *catalog_path, struct span id, struct error *err);
static int find_file(struct pack_store *packs, const struct pack_id *file, struct error *err);

int named_packs_check(struct pack_store *packs, const char *catalog_path, struct db *db,
	int version, struct error *err)
{
	struct db_statement *const rows = db_query(db, version == 1 ? SQL_FIRST : SQL_FILES, err);
	if (rows == NULL)
		return -1;
	int got;
	while ((got = db_step(rows, err)) == 1)
		if (check_row(packs, catalog_path, db_column_blob(rows, 0), err) != 0)
			break;
	db_reset(rows);
	return got == 0 ? 0 : -1;
}

static int check_row(
	struct pack_store *packs, const char *catalog_path, struct span id, struct error *err)
{
	struct pack_id file = {{0}};
	struct error found = {0};
	if (id.len == PACK_ID_BYTES)
		memcpy(file.bytes, id.data, PACK_ID_BYTES);
	if (find_file(packs, &file, &found) == 0)
		return 0;
	return error_set(err, ERROR_DAMAGED,
		"%s is from before stores had ids, and names a pack that is not there: %s.",
		catalog_path, found.text);
}

static int find_file(struct pack_store *packs, const struct pack_id *file, struct error *err)
{
	struct backend_file *opened;
	char name[PACK_NAME_BYTES];
	pack_format_name(file, PACK_FILE_PACK, name);
	if (packs->backend->ops->open(packs->backend, name, &opened, err) != 0)
		return -1;
	packs->backend->ops->close(opened);
	return 0;
}
