/* The content-addressed half, typed. Calls retry as remote_send does; all of them may safely be
 * repeated. docs/PROTOCOL.md, "Xet". */
#ifndef CLIENT_TRANSFER_XET_REMOTE_H
#define CLIENT_TRANSFER_XET_REMOTE_H

#include "client/local/chunk_table.h"
#include "client/remote/fetch_plan.h"
#include "client/transfer/xet_access.h"

/* One thread's way to it. */
struct xet_remote {
	struct xet_access *access;
	struct remote *remote;
};

/* Where a chunk lies, into the table: 1, or 0 when the server does not say. */
int xet_remote_ask(const struct xet_remote *xet, const struct chunk_id *id,
	struct chunk_table *table, struct error *err);
/* Whether the server has the xorb and promises to keep it: 1 or 0. Fails only on a signal or a lost
 * server. */
int xet_remote_has_xorb(
	const struct xet_remote *xet, const struct chunk_id *hash, struct error *err);
int xet_remote_put_xorb(const struct xet_remote *xet, const struct chunk_id *hash, struct span body,
	struct error *err);
int xet_remote_put_shard(const struct xet_remote *xet, struct span shard, struct error *err);
/* How to put bytes [from, to) of the file together; records come as they lie in the store, private
 * codecs included. */
int xet_remote_reconstruct(const struct xet_remote *xet, const struct chunk_id *file, uint64_t from,
	uint64_t to, struct fetch_plan *out, struct error *err);

#endif
