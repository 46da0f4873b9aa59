/* The modes of the server's files. Only the server's user may open the files that it makes in its
 * data folder, except tls/ca.pem, which is for clients. But a data folder that somebody else made,
 * and files of older versions, may be open to other users. One thread. */
#ifndef SERVER_FOLDER_MODES_H
#define SERVER_FOLDER_MODES_H

#include "base/thread/log.h"

/* Sets the umask, so that nothing that this process makes is open to other users, unless it changes
 * the mode of that file. Programs call it first. */
void folder_modes_begin(void);

/* Removes the rights of other users from the store's files and folders directly in `folder`. Logs a
 * warning for each, also when its mode cannot be changed, and for the mode of the folder itself,
 * which stays. Must be called with the folder's lock and before the store is opened, because SQLite
 * copies the mode of catalog.db to the files beside it. `log` may be NULL. */
void folder_modes_narrow(const char *folder, struct log *log);

#endif
