#include "storage/start/old_catalog.h"

#include <string.h>

#include "storage/packs/backend.h"
#include "storage/packs/pack_format.h"
#include "storage/packs/pack_recovery.h"
#include "storage/packs/pack_store_parts.h"

static int check_named(const struct old_catalog *old, struct db_statement *rows, struct error *err);
static int find_pack_file(
	const struct old_catalog *old, const struct pack_id *file, struct error *err);

int old_catalog_check_ids(const struct old_catalog *old, struct error *err)
{
	const struct pack_names names = {0};
	const struct pack_origin none = {{0}, 0};
	struct pack_recovery *packs = pack_recovery_look(old->packs, &names, &none, err);
	if (packs == NULL)
		return -1;
	const bool has_id = old->store_has_id || pack_recovery_facts(packs)->foreign > 0;
	pack_recovery_free(packs);
	return !has_id
		? 0
		: error_set(err, ERROR_DAMAGED,
			  "%s is from before stores had ids, and the store in this folder has one. Put"
			  " its newest catalog back, with its -wal file.",
			  old->path);
}

int old_catalog_check_packs(const struct old_catalog *old, struct error *err)
{
	static const char SQL_FIRST[] = "SELECT id FROM packs";
	static const char SQL_FILES[] = "SELECT coalesce(file, id) FROM packs WHERE state <> 2";
	struct db_statement *rows =
		db_query(old->db, old->version == 1 ? SQL_FIRST : SQL_FILES, err);
	if (rows == NULL)
		return -1;
	const int result = check_named(old, rows, err);
	db_reset(rows);
	return result;
}

static int check_named(const struct old_catalog *old, struct db_statement *rows, struct error *err)
{
	int got;
	while ((got = db_step(rows, err)) == 1) {
		struct pack_id file = {{0}};
		struct span id = db_column_blob(rows, 0);
		if (id.len == PACK_ID_BYTES)
			memcpy(file.bytes, id.data, PACK_ID_BYTES);
		struct error found = {0};
		if (find_pack_file(old, &file, &found) != 0)
			return error_set(err, ERROR_DAMAGED,
				"%s is from before stores had ids, and names a pack that is not there: %s.",
				old->path, found.text);
	}
	return got;
}

static int find_pack_file(
	const struct old_catalog *old, const struct pack_id *file, struct error *err)
{
	struct backend *backend = old->packs->backend;
	struct backend_file *opened;
	char name[PACK_NAME_BYTES];
	pack_format_name(file, PACK_FILE_PACK, name);
	if (backend->ops->open(backend, name, &opened, err) != 0)
		return -1;
	backend->ops->close(opened);
	return 0;
}
