/* A folder that one process has for itself and that ends with it: "deltabucket-PID-START-RANDOM" in
 * a folder that all users share, like /dev/shm. START is when the process started, so that another
 * process with the same number is not taken for it. The maker holds a lock on the folder; a process
 * that dies leaves it unlocked, and the next maker removes it. Nobody but the user may look into
 * it.
 *
 * What lies in it has names, which a process that is killed leaves there with the bytes: downloads
 * and publishers rename and link files, and know by the links of a file whether they may write into
 * it. A follower's weights, which stay where they are, lose theirs (live_checkpoint.h). */
#ifndef CLIENT_LOCAL_PRIVATE_FOLDER_H
#define CLIENT_LOCAL_PRIVATE_FOLDER_H

#include "base/file.h"

struct private_folder {
	const struct file_ops *files;
	char *path;
	int lock_fd;
};

/* Removes what dead processes of this user left in `parent`. Failures are ignored. */
void private_folder_clean(const struct file_ops *files, const char *parent);
/* Cleans `parent`, then makes the folder there. */
int private_folder_make(struct private_folder *folder, const struct file_ops *files,
	const char *parent, struct error *err);
/* Removes the folder with all that is in it. One whose making failed, or a second time, is fine. */
void private_folder_remove(struct private_folder *folder);

#endif
