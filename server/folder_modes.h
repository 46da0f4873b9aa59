/* Who may open what the server keeps. All that it makes in its data folder is its user's alone (but
 * tls/ca.pem, which is for clients): programs begin with folder_modes_begin. A folder that somebody
 * else made may be open to others, and files of older versions may be so in it. One thread. */
#ifndef SERVER_FOLDER_MODES_H
#define SERVER_FOLDER_MODES_H

#include "base/thread/log.h"

/* From here on nothing that this process makes is open to others, unless it says so of that
 * file. */
void folder_modes_begin(void);

/* Takes from others what they may do with the files and folders of the store that lie directly in
 * `folder`, and warns of each, and of the folder's own mode, which stays. What cannot be changed is
 * warned of too, and fails nothing. Only with the folder's lock, before the store is opened: SQLite
 * gives the mode of catalog.db to the files beside it. `log` may be NULL. */
void folder_modes_narrow(const char *folder, struct log *log);

#endif
