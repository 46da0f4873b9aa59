/* Whom the entries of a data folder belong to. Commands may be run as root on the folder of another
 * user: what they leave there must be that user's, or the server cannot open it. One thread. */
#ifndef SERVER_FOLDER_OWNER_H
#define SERVER_FOLDER_OWNER_H

#include <sys/types.h>

#include "base/error.h"

enum { FOLDER_OWNER_BYTES = 64 };

/* Gives what belongs to root in the folder, and in the store's folders in it, to the folder's owner
 * and group. Does nothing unless this process is root and the folder is not root's. Follows no
 * link, and leaves files alone that have a second name, since that may be outside the folder. What
 * cannot be given stays as it is: folder_owner_advise tells of it. */
void folder_owner_give(const char *folder);
/* After a failure: when an entry of the folder belongs to another user and this one may not write
 * to it, adds its name, both users, and the command that mends it. Returns -1. */
int folder_owner_advise(const char *folder, struct error *err);
/* The user's name, or the number where there is none. */
void folder_owner_name(uid_t user, char out[FOLDER_OWNER_BYTES]);

#endif
