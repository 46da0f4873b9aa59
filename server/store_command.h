/* How a command beside the server works on a data folder: itself when nobody holds the folder, else
 * through the admin routes of the server that does (DIR/control.sock). One thread. */
#ifndef SERVER_STORE_COMMAND_H
#define SERVER_STORE_COMMAND_H

#include "base/net/http_client.h"
#include "server/data_folder.h"
#include "storage/core/store.h"

struct store_command {
	const char *data;            /* the folder */
	const char *master_key;      /* a file; NULL: the folder's own */
	struct http_request request; /* to the server */
	/* Without a server: on the opened store. The same JSON as the server's answer goes to
	 * `out`. */
	int (*work)(void *owner, struct store *store, const struct data_folder *folder,
		struct buffer *out, struct error *err);
	void *owner;
};

/* The holder of the folder may still be starting, or just be going: both ways are tried for a few
 * seconds. */
int store_command_run(const struct store_command *command, struct buffer *out, struct error *err);

#endif
