/* Writes a database again from its tables alone, so that damaged indexes and misused pages are
 * sound again. Part of sqlite3.h's home. */
#ifndef STORAGE_DB_DB_REBUILD_H
#define STORAGE_DB_DB_REBUILD_H

#include "storage/db/db.h"

struct db_rebuild {
	/* path of a file beside the database, as large as that; made and removed here */
	const char *scratch;
	/* Before the indexes are made, this SQL corrects rows that break a rule of an index. It
	 * changes these tables (NULL ends them). NULL: there is nothing to correct. */
	const char *const *settle_tables;
	const char *settle_sql;
};
/* Runs outside of transactions, on the connection that keeps the sums, while nobody else changes
 * anything. One COMMIT makes everything true; readers continue meanwhile. Takes as long as reading
 * and writing everything once. damaged: a table cannot be read; exists: rows of a table break the
 * rule of an index. Nothing has changed then. */
int db_rebuild(struct db *db, const struct db_rebuild *rebuild, struct error *err);

#endif
