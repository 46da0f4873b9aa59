/* Gives the server back bytes that it has lost and this worker has: chunks of files of the held
 * step, for which the answer to a report asks (docs/protocol/steps.md, "PutReplica"). Files are
 * found by size and digest, never by a name that the server chose, and a chunk is sent only if its
 * bytes have the id that was asked for. */
#ifndef CLIENT_FOLLOW_CHUNK_GIFT_H
#define CLIENT_FOLLOW_CHUNK_GIFT_H

#include "client/local/proven_files.h"
#include "client/remote/remote_json.h"

struct chunk_gift {
	struct remote *remote;
	const struct run_name *run;
	const struct proven_files *files; /* of the held step, */
	const char *folder;               /* in this folder */
};
/* Answers what `answer` asks for. What cannot be read or sent is left out: the server asks again,
 * or another worker. Returns the number of chunks that the server took. */
size_t chunk_gift_send(const struct chunk_gift *gift, const struct json_node *answer);

#endif
