/* Lets one process at a time work in a folder. The lock is a flock on the folder itself: it ends
 * with the process, however that ends, and leaves nothing behind. */
#ifndef CLIENT_LOCAL_FOLDER_LOCK_H
#define CLIENT_LOCAL_FOLDER_LOCK_H

#include "base/error.h"

/* Returns a descriptor for folder_lock_leave; -1 with busy when another process holds the lock.
 * `who` names the kind of holder in the message. The folder must exist. */
int folder_lock_enter(const char *folder, const char *who, struct error *err);
/* A second descriptor of a lock that this process holds: the lock ends when both have been left. If
 * the folder has been removed or replaced since, the new one is locked, as by folder_lock_enter. */
int folder_lock_share(int held, const char *folder, const char *who, struct error *err);
void folder_lock_leave(int fd); /* -1 is fine */

#endif
