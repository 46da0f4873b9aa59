/* A folder that one process has for itself and that ends with it: "deltabucket-PID-START-RANDOM" in
 * a folder that all users share, like /dev/shm. START is when the process started, so that another
 * process with the same number is not taken for it. The maker holds a lock on the folder; a process
 * that dies leaves it unlocked, and the next maker removes it. Nobody but the user may look into
 * it. */
#ifndef CLIENT_LOCAL_PRIVATE_FOLDER_H
#define CLIENT_LOCAL_PRIVATE_FOLDER_H

#include "base/file.h"

struct private_folder {
	const struct file_ops *files;
	char *path;
	int lock_fd;
};

/* Removes what dead processes of this user left in `parent`, then makes the folder. */
int private_folder_make(struct private_folder *folder, const struct file_ops *files,
	const char *parent, struct error *err);
/* Removes the folder with all that is in it. One whose making failed, or a second time, is fine. */
void private_folder_remove(struct private_folder *folder);

#endif
