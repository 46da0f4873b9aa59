/* A database is written once more from its tables alone: what is damaged of its indexes, or of the
 * use of its pages, is sound then. Of sqlite3.h's home. */
#ifndef STORAGE_DB_DB_REBUILD_H
#define STORAGE_DB_DB_REBUILD_H

#include "storage/db/db.h"

struct db_rebuild {
	/* path of a file beside the database, which is made and removed; as large as that */
	const char *scratch;
	/* Before the indexes are made, rows that break a rule of theirs are put right by this SQL,
	 * which changes these tables (NULL ends them). NULL: nothing is to be done. */
	const char *const *settle_tables;
	const char *settle_sql;
};
/* Outside of transactions, on the connection that keeps the sums, while nobody else changes
 * anything. Everything becomes true by one COMMIT; readers go on meanwhile. Takes as long as
 * reading and writing everything once. damaged: a table cannot be read; exists: rows of a table
 * break the rule of an index; nothing has changed then. */
int db_rebuild(struct db *db, const struct db_rebuild *rebuild, struct error *err);

#endif
