/* Checks a whole database: whether each table has the rows that its sum says (table_sums.h), each
 * index the entries of its table, and each page exactly one use. Reads everything once; commits of
 * others continue meanwhile. Part of sqlite3.h's home. */
#ifndef STORAGE_DB_DB_CHECK_H
#define STORAGE_DB_DB_CHECK_H

#include "storage/db/db.h"

enum db_finding_kind {
	DB_FINDING_TABLE, /* rows of a table are damaged, lost, or not the newest */
	/* an index is damaged, or differs from its table: it can be made from that */
	DB_FINDING_INDEX,
	/* pages with no use or more than one: VACUUM corrects that */
	DB_FINDING_STRUCTURE
};
struct db_finding {
	enum db_finding_kind kind;
	const char *table;  /* of a table or an index */
	const char *index;  /* NULL for a table */
	const char *detail; /* a sentence */
};
struct db_check {
	/* The strings of the finding are borrowed. */
	void (*found)(void *owner, const struct db_finding *finding);
	/* Called often, and may sleep. false ends the check with busy. */
	bool (*goes_on)(void *owner);
	void *owner;
};
/* `db` has nothing open. Returns 0 when everything was checked, whatever was found. */
int db_check(struct db *db, const struct db_check *check, struct error *err);

#endif
