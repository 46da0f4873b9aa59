/* The files of a database as SQLite sees them, with every page checked: a layer between SQLite and
 * its own files (a "VFS"). Pages of the database file carry checksums (page_sum.h), which are added
 * when a page is written and compared when it is read. A page with a wrong checksum is an error and
 * never an answer, unless one flipped bit explains it: then the page is mended and written back.
 * Pages of the write-ahead log are compared with what was written (log_sums.h). Files that were
 * made without room for checksums pass unchecked until a VACUUM makes room.
 *
 * Part of sqlite3.h's home (storage/db/db*.c). Functions that take a handle run on the thread of
 * that connection. */
#ifndef STORAGE_DB_DB_FILE_H
#define STORAGE_DB_DB_FILE_H

#include <stdbool.h>
#include <stdint.h>

struct sqlite3;

extern const char db_file_vfs[]; /* the name to open a connection with */
void db_file_register(void);     /* any thread, any number of times */

/* The last trouble with the files of a connection since the last call. A failure to write outranks
 * whatever is found wrong after it, while SQLite takes the transaction back. */
enum db_trouble_kind {
	DB_TROUBLE_NONE,
	DB_TROUBLE_PAGE,  /* a page does not match its checksum */
	DB_TROUBLE_SHORT, /* the file ends before the page */
	DB_TROUBLE_LOG,   /* a page of the log is not what was written */
	DB_TROUBLE_READ,  /* the system could not read; see os_errno */
	DB_TROUBLE_WRITE  /* the system could not write, sync or truncate; see os_errno */
};
struct db_trouble {
	enum db_trouble_kind kind;
	uint32_t page; /* 0: no page in particular */
	int os_errno;
};
struct db_trouble db_file_take_trouble(struct sqlite3 *handle);
/* Set while a transaction ends: SQLite then reads changed pages again, and keeps those that it
 * cannot read unless the read fails the whole operation. At other times a damaged page fails only
 * the statement that needs it, and the transaction goes on. Each call forgets earlier trouble. */
void db_file_set_ending(struct sqlite3 *handle, bool is_ending);

/* How often any connection of the process found a page of this database wrong or unreadable, since
 * the first one was opened. Mended pages count apart. */
uint64_t db_file_damage(struct sqlite3 *handle);
uint64_t db_file_mended(struct sqlite3 *handle);
/* While this is on, the connection reads pages of the database file as they are, right or not: for
 * a caller that writes over them. */
void db_file_overlook(struct sqlite3 *handle, bool overlooks);
/* From here on the connection writes no page that it has mended in reading. */
void db_file_only_look(struct sqlite3 *handle);
/* Reads the head of the file past all caches. False when it is not that of a database, such as that
 * of an emptied file; *out_os_errno is set when the system could not read it. *out_has_name: the
 * path of the file still leads to it. */
bool db_file_probe(struct sqlite3 *handle, int *out_os_errno, bool *out_has_name);
/* Whether the pages of the file carry checksums. */
bool db_file_is_summed(struct sqlite3 *handle);
/* A name of the log that this connection wrote to last. It changes when any connection begins the
 * log again. 0: it has written nothing yet. */
uint64_t db_file_written_salt(struct sqlite3 *handle);

#endif
