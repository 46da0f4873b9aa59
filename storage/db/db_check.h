/* A look at all of a database: whether each table has the rows that it is said to have
 * (table_sums.h), each index those of its table, and each page its one use. Reads everything once;
 * commits of others go on meanwhile. Of sqlite3.h's home. */
#ifndef STORAGE_DB_DB_CHECK_H
#define STORAGE_DB_DB_CHECK_H

#include "storage/db/db.h"

enum db_finding_kind {
	DB_FINDING_TABLE, /* rows of a table are damaged, lost, or not the newest */
	/* an index is damaged, or is not what its table says: it can be made from that */
	DB_FINDING_INDEX,
	/* pages that nothing or more than one thing uses: VACUUM puts that right */
	DB_FINDING_STRUCTURE
};
struct db_finding {
	enum db_finding_kind kind;
	const char *table;  /* of a table or an index */
	const char *index;  /* of an index, else NULL */
	const char *detail; /* a sentence */
};
struct db_check {
	/* what the finding names is borrowed */
	void (*found)(void *owner, const struct db_finding *finding);
	/* asked often, and may sleep; false ends the check with busy */
	bool (*goes_on)(void *owner);
	void *owner;
};
/* `db`: a connection with nothing open. 0 when all was looked at, whatever was found. */
int db_check(struct db *db, const struct db_check *check, struct error *err);

#endif
