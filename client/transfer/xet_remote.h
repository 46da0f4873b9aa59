/* Typed calls to the Xet face. They retry as remote_send does, and may be repeated safely.
 * docs/protocol/xet.md. */
#ifndef CLIENT_TRANSFER_XET_REMOTE_H
#define CLIENT_TRANSFER_XET_REMOTE_H

#include "client/local/chunk_table.h"
#include "client/remote/fetch_plan.h"
#include "client/transfer/xet_access.h"

/* One thread's access to the face. */
struct xet_remote {
	struct xet_access *access;
	struct remote *remote;
};

/* Asks where a chunk lies and adds the answer to the table: 1, or 0 when the server does not
 * say. */
int xet_remote_ask(const struct xet_remote *xet, const struct chunk_id *id,
	struct chunk_table *table, struct error *err);
/* 1 when the server has the xorb and promises to keep it, otherwise 0. Fails only after a signal or
 * when the server is lost. */
int xet_remote_has_xorb(
	const struct xet_remote *xet, const struct chunk_id *hash, struct error *err);
int xet_remote_put_xorb(const struct xet_remote *xet, const struct chunk_id *hash, struct span body,
	struct error *err);
int xet_remote_put_shard(const struct xet_remote *xet, struct span shard, struct error *err);
/* Asks how to put bytes [from, to) of the file together; the range must not be empty. The records
 * come as they are stored, also in the server's private codecs. */
int xet_remote_reconstruct(const struct xet_remote *xet, const struct chunk_id *file, uint64_t from,
	uint64_t to, struct fetch_plan *out, struct error *err);

#endif
