/* Uploads one file as an object. A large file goes over Xet, because then chunks that the server
 * already has are not sent. Small files, open descriptors, and keys that the Hub face does not take
 * go with one plain request; so does a file whose upload over Xet the server refuses. */
#ifndef CLIENT_TRANSFER_OBJECT_UPLOAD_H
#define CLIENT_TRANSFER_OBJECT_UPLOAD_H

#include "client/transfer/session.h"

struct object_upload {
	struct session *session;
	struct remote *remote;
	const char *path;
	/* Uploads from this open file instead, plainly; `path` is then for messages. NULL: from
	 * `path`. */
	const int *fd;
	struct object_name name;
	bool is_plain; /* never over Xet */
	/* out */
	uint64_t size;
	uint64_t sent; /* bytes that crossed the network */
};

/* invalid when the path is not that of a regular file. */
int object_upload_run(struct object_upload *upload, struct error *err);

#endif
