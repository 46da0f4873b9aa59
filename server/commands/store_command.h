/* Runs a command on a data folder: on the store itself when the folder is not locked, and otherwise
 * through the admin routes of the running server (DIR/control.sock). One thread. */
#ifndef SERVER_COMMANDS_STORE_COMMAND_H
#define SERVER_COMMANDS_STORE_COMMAND_H

#include "base/net/http_client.h"
#include "server/data_folder.h"
#include "storage/core/store.h"

struct store_command {
	const char *data;            /* the folder */
	const char *master_key;      /* a file; NULL: the folder's own */
	bool makes_store;            /* in an empty folder; otherwise there must be one */
	bool is_for_server;          /* `work` only says so, and gets no store */
	struct http_request request; /* to the server */
	/* Works on the opened store, without a server. Must write the same JSON to `out` as the
	 * server's reply. */
	int (*work)(void *owner, struct store *store, const struct data_folder *folder,
		struct buffer *out, struct error *err);
	void *owner;
};

/* Tries both ways for a few seconds, because the running server may be starting or stopping. */
int store_command_run(const struct store_command *command, struct buffer *out, struct error *err);

#endif
