/* The data folder, and the files in it that belong to the server itself: the lock, whose owner is
 * the only writer, and the master key.
 *
 *   DIR/          0700 when it is made here; new files and folders in it are 0600 and 0700, whatever its mode (folder_modes.h)
 *   DIR/lock      locked (flock) by the running server or command
 *   DIR/master.key 0600, 64 hex digits and a line feed
 *   DIR/tls/      the private CA (certificate.h)
 *   DIR/control.sock 0600 (control_socket.h)
 * storage/core/store.h names the files of the store. One thread. */
#ifndef SERVER_DATA_FOLDER_H
#define SERVER_DATA_FOLDER_H

#include "base/file.h"

enum { MASTER_KEY_BYTES = 32 };

struct data_folder {
	const struct file_ops *files;
	char *path; /* absolute */
	int lock_fd;
	uint8_t master_key[MASTER_KEY_BYTES];
};

/* Makes the folder if it is missing and `create` is set, takes the lock, and reads the master key
 * (`master_key_file` NULL: DIR/master.key). A missing key is made, but only while there is no
 * catalog yet. Without `create` there must be a store (data_folder_need_store). Fails with busy
 * when another process has the lock, with not_found after a restore that was interrupted, with
 * denied when other users may read the key or own the folder, and with corrupt when the key is
 * malformed. */
int data_folder_open(struct data_folder *folder, const struct file_ops *files, const char *path,
	const char *master_key_file, bool create, struct error *err);
/* Reads a master key from its file: denied when other users may read it, corrupt when it is
 * malformed. */
int data_folder_read_key(const char *path, uint8_t out[MASTER_KEY_BYTES], struct error *err);
/* Takes the lock alone. */
int data_folder_lock(struct data_folder *folder, const struct file_ops *files, const char *path,
	bool create, struct error *err);
/* What root has made in another user's folder is given to that user (folder_owner.h). A zeroed one
 * is fine. */
void data_folder_close(struct data_folder *folder);

/* Whether the folder is there: not_found, invalid when it is not a folder, or why it cannot be
 * seen. */
int data_folder_need(const char *path, struct error *err);
/* Whether a store is in it: also not_found when there is none, and denied when that cannot be
 * seen. A store whose catalog is lost is one. */
int data_folder_need_store(const char *path, struct error *err);
/* Before a store is made: exists when the folder has no store and something else than a data folder
 * has before the first start. `settings_file` may lie in it; NULL: there is none. */
int data_folder_check_new(const char *path, const char *settings_file, struct error *err);

/* "DIR/name"; the caller frees. */
char *data_folder_path(const char *folder, const char *name);

#endif
