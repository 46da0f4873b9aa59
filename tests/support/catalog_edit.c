/* usage: catalog_edit CATALOG SQL...   changes the catalog of a stopped store as the server would: with the checksums of its pages and the sums of
 * its tables. */
#include <stdio.h>

#include "storage/start/catalog.h"

static int run(struct db *db, char **scripts, struct error *err)
{
	if (db_begin(db, err) != 0)
		return -1;
	for (; *scripts != NULL; scripts++)
		if (db_run_script(db, *scripts, err) != 0)
			return -1;
	return db_commit(db, err);
}

int main(int argument_count, char **arguments)
{
	struct error err = {0};
	if (argument_count < 3)
		return 2;
	struct db *db = catalog_open(arguments[1], &err);
	int result = db == NULL ? -1 : run(db, arguments + 2, &err);
	if (result != 0)
		fprintf(stderr, "%s\n", err.text);
	if (db != NULL)
		db_rollback(db);
	db_close(db);
	return result == 0 ? 0 : 1;
}
