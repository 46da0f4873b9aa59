/* chunks.db: its pages and its structure. Its rows are hints, which each reader compares with the
 * pack's own index, so a stale one is not a finding. */
#include "storage/fsck/fsck_internal.h"
#include "storage/start/catalog_copy.h"

static const char SQL_CHECK[] = "PRAGMA quick_check(1)";

static int check_file(struct fsck *fsck, const char *path, struct error *err);
static int check_structure(struct fsck *fsck, struct db *db, struct error *err);

int fsck_chunk_index(struct fsck *fsck, struct error *err)
{
	char path[FSCK_PATH_BYTES];
	bool is_there;
	struct catalog_copy *copy = NULL;
	fsck_path(fsck, "chunks.db", path);
	if (file_find(path, &is_there, err) != 0)
		return -1;
	if (!is_there)
		return 0; /* a start makes it */
	if (fsck->takes_no_writes)
		copy = catalog_copy_make(fsck->params->files, path, err);
	const int result = fsck->takes_no_writes && copy == NULL
		? -1
		: check_file(fsck, copy != NULL ? catalog_copy_path(copy) : path, err);
	catalog_copy_free(copy);
	return result;
}

static int check_file(struct fsck *fsck, const char *path, struct error *err)
{
	struct db *db = db_open(path, DB_LOOK, err);
	if (db == NULL)
		return fsck_tell_failure(fsck, FINDING_CHUNK_INDEX, "chunks.db", err);
	db_keep_log(db, true);
	const int result = check_structure(fsck, db, err);
	db_close(db);
	return result;
}

static int check_structure(struct fsck *fsck, struct db *db, struct error *err)
{
	enum { ANSWER_BYTES = 64 * 1024 };
	struct arena *arena = arena_new(ANSWER_BYTES);
	struct span answer = {0};
	int result = db_find_blob(db, SQL_CHECK, arena, &answer, err);
	if (result < 0)
		result = fsck_tell_failure(fsck, FINDING_CHUNK_INDEX, "chunks.db", err);
	else if (!span_equal_text(answer, "ok"))
		result = fsck_tell(fsck, FINDING_CHUNK_INDEX, "chunks.db",
			answer.len > 0 ? arena_text(arena, answer) : "It cannot be checked.", err);
	else
		result = 0;
	arena_free(arena);
	return result;
}
