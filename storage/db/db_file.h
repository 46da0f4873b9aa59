/* The files of a database as SQLite sees them, each page checked: a layer between SQLite and its
 * own files (a "VFS"). Pages of the database file carry checksums (page_sum.h) that are put on when
 * a page is written and looked at when it is read; a page whose checksum is wrong is an error and
 * never an answer, unless one flipped bit explains it: then the page is right again, and put back.
 * Pages of the write-ahead log are held against what was written (log_sums.h). Files that were made
 * without room for checksums are passed through until a VACUUM gives them some.
 *
 * Of sqlite3.h's home (storage/db/db*.c). Functions that take a handle: the thread of that
 * connection. */
#ifndef STORAGE_DB_DB_FILE_H
#define STORAGE_DB_DB_FILE_H

#include <stdbool.h>
#include <stdint.h>

struct sqlite3;

extern const char db_file_vfs[]; /* the name to open a connection with */
void db_file_register(void);     /* any thread, any number of times */

/* What was wrong with the files of a connection last, since it was last asked; what could not be
 * written comes before what is found wrong after it, while SQLite takes the transaction back. */
enum db_trouble_kind {
	DB_TROUBLE_NONE,
	DB_TROUBLE_PAGE,  /* a page does not match its checksum */
	DB_TROUBLE_SHORT, /* the file ends before the page */
	DB_TROUBLE_LOG,   /* a page of the log is not what was written */
	DB_TROUBLE_READ,  /* the system could not read; os_errno */
	DB_TROUBLE_WRITE  /* the system could not write, sync or cut; os_errno */
};
struct db_trouble {
	enum db_trouble_kind kind;
	uint32_t page; /* 0: none in particular */
	int os_errno;
};
struct db_trouble db_file_take_trouble(struct sqlite3 *handle);
/* While a transaction ends: SQLite reads pages that changed anew, and keeps those it cannot read
 * unless the read breaks off all. At other times a page that is damaged fails the statement that
 * needs it, and the transaction goes on. What was wrong before is forgotten, each time. */
void db_file_set_ending(struct sqlite3 *handle, bool is_ending);

/* How often a page of this database was found wrong, or could not be read, by any connection of the
 * process since the first of them was opened; pages that were mended count apart. */
uint64_t db_file_damage(struct sqlite3 *handle);
uint64_t db_file_mended(struct sqlite3 *handle);
/* While this is on, the connection reads pages of the database file as they are, right or not: to
 * be written over. */
void db_file_overlook(struct sqlite3 *handle, bool overlooks);
/* Whether the pages of the file carry checksums. */
bool db_file_is_summed(struct sqlite3 *handle);
/* Names the log that this connection wrote to last: changes when SQLite begins the log again,
 * whoever does. 0: it wrote nothing yet. */
uint64_t db_file_written_salt(struct sqlite3 *handle);

#endif
