/* Downloads one object to a file, which appears whole and proven. It goes over Xet when that can
 * save traffic, because then chunks that are already on this side are not sent. If the server
 * cannot do that for the object, a plain download follows. */
#ifndef CLIENT_TRANSFER_OBJECT_DOWNLOAD_H
#define CLIENT_TRANSFER_OBJECT_DOWNLOAD_H

#include "client/remote/remote_object.h"
#include "client/transfer/session.h"

struct object_download {
	struct session *session;
	struct remote *remote;
	struct object_name name;
	const char *target;               /* of the requests */
	struct remote_object_facts facts; /* what remote_object_head said */
	const char *path;                 /* passed object_download_check */
	const char *const *seeds;         /* paths of local files that may hold parts of it */
	size_t seed_count;
	bool is_plain;             /* never over Xet */
	_Atomic uint64_t received; /* out: bytes that crossed the network */
	/* of the call itself */
	char *part;
	struct progress *progress;
};

/* Refuses a path that nothing can be downloaded to: not_found when its folder does not exist,
 * invalid when it is a folder, device, pipe or socket. Asks nothing of the server. */
int object_download_check(const char *path, struct error *err);
/* A download that was interrupted goes on from the part file beside the path. */
int object_download_run(struct object_download *download, struct error *err);

#endif
