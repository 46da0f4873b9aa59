/* What the server, its commands and SQLite make in a data folder. Pure; any thread. */
#ifndef SERVER_FOLDER_ENTRY_H
#define SERVER_FOLDER_ENTRY_H

#include <stdbool.h>

/* Whether a data folder has an entry of this name: one of the table, a file that SQLite keeps
 * beside a database, or a temporary file of one of them. */
bool folder_entry_is_known(const char *name);
/* Whether only the server's user may open it: also copies that somebody made beside it, whose names
 * begin with its name. */
bool folder_entry_is_private(const char *name);

#endif
