/* The data folder and what the server itself keeps in it: the lock that makes its holder the only
 * writer, and the master key.
 *
 *   DIR/          0700 when it is made here; all that is made in it is 0600 and 0700, whatever its mode (folder_modes.h)
 *   DIR/lock      held (flock) by the running server or command
 *   DIR/master.key 0600, 64 hex digits and a line feed
 *   DIR/tls/      the private CA (certificate.h)
 *   DIR/control.sock 0600 (control_socket.h)
 * The store's own files are in storage/core/store.h. One thread. */
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

/* Makes the folder when `create`, takes the lock, reads the master key (`master_key_file` NULL:
 * DIR/master.key) or makes it while there is no catalog yet. busy when somebody holds the lock;
 * denied when others may read the folder's key, and when the folder is another user's; corrupt when
 * the key is no key. */
int data_folder_open(struct data_folder *folder, const struct file_ops *files, const char *path,
	const char *master_key_file, bool create, struct error *err);
void data_folder_close(struct data_folder *folder); /* a zeroed one is fine */

/* "DIR/name"; the caller frees. */
char *data_folder_path(const char *folder, const char *name);

#endif
