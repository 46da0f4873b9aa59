/* One process at a time in a folder: a flock on the folder itself, gone with the process however it
 * ends and leaving nothing behind. */
#ifndef CLIENT_LOCAL_FOLDER_LOCK_H
#define CLIENT_LOCAL_FOLDER_LOCK_H

#include "base/error.h"

/* A descriptor to give to folder_lock_leave; -1 with busy when another process holds it. `who`
 * names the holder in the message. The folder must exist. */
int folder_lock_enter(const char *folder, const char *who, struct error *err);
void folder_lock_leave(int fd); /* -1 is fine */

#endif
