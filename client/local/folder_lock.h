/* Lets one process at a time work in a folder. The lock is a flock on the folder itself: it ends
 * with the process, however that ends, and leaves nothing behind. Processes that were forked
 * meanwhile hold a lock that their parent has not left. */
#ifndef CLIENT_LOCAL_FOLDER_LOCK_H
#define CLIENT_LOCAL_FOLDER_LOCK_H

#include "base/error.h"

/* Returns a descriptor for folder_lock_leave; -1 with busy when another process holds the lock.
 * `who` names the kind of holder in the message. The folder must exist. */
int folder_lock_enter(const char *folder, const char *who, struct error *err);
/* `held`, an earlier lock of this process, when it is still that of the folder. If the folder has
 * been removed or replaced since, or `held` is -1: a new lock, as by folder_lock_enter. */
int folder_lock_keep(int held, const char *folder, const char *who, struct error *err);
void folder_lock_leave(int fd); /* -1 is fine */

#endif
