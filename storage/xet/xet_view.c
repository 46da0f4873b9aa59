#include "storage/xet/xet_view.h"

#include <stdlib.h>

#include "base/memory.h"
#include "storage/packs/pack_format.h"
#include "storage/versions/part.h"
#include "storage/versions/version.h"
#include "storage/xet/xorb_source.h"

struct xet_view {
	struct store *store;
	struct db *db; /* in a snapshot */
};

struct xet_view *xet_view_new(struct store *store, struct error *err)
{
	struct db *const db = store_snapshot_take(store, err);
	if (db == NULL)
		return NULL;
	struct xet_view *const view = memory_new(sizeof(*view));
	view->store = store;
	view->db = db;
	return view;
}

void xet_view_free(struct xet_view *view)
{
	if (view == NULL)
		return;
	store_snapshot_give(view->store, view->db);
	free(view);
}

int xet_view_find(struct xet_view *view, const struct xet_reach *reach, const struct chunk_id *file,
	struct xet_content *out, struct error *err)
{
	return xet_content_find(view->db, reach, file, out, err);
}

int xet_view_load(struct xet_view *view, struct reconstruction *plan,
	const struct xet_content *content, struct reconstruction_bytes *bytes, struct error *err)
{
	return reconstruction_load(plan, view->store, view->db, content, bytes, err);
}

struct body_source *xet_view_open_inline(struct xet_view *view, int64_t bucket, int64_t version,
	uint64_t offset, uint64_t length, struct error *err)
{
	struct version row;
	struct span content;
	struct db_statement *statement = NULL;
	ASSERT(version != 0);
	const int found = version_find_sequence(view->db, version, NULL, &row, err);
	if (found < 0)
		return NULL;
	if (found == 0 || row.kind != VERSION_INLINE || row.bucket != bucket ||
		offset + length > PACK_RECORD_HEADER_BYTES + row.size) {
		error_set(err, ERROR_NOT_FOUND,
			"The inline version %lld does not exist, or is not as long as asked for.",
			(long long)version);
		return NULL;
	}
	if (part_inline_load(view->db, version, row.contents, &content, &statement, err) != 0)
		return NULL;
	struct body_source *const source = xorb_source_open_inline(content, offset, length);
	db_reset(statement);
	return source;
}
