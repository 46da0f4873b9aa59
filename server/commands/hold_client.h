/* Takes and ends the hold of a backup (storage/packs/backup_holds.h): of the store, when this
 * process has it open, and otherwise of the running server, over DIR/control.sock. Where nobody
 * can remove anything none is needed. One thread. */
#ifndef SERVER_COMMANDS_HOLD_CLIENT_H
#define SERVER_COMMANDS_HOLD_CLIENT_H

#include "storage/backup/backup.h"
#include "storage/core/store.h"

struct hold_client {
	const char *folder;  /* the data folder */
	struct store *store; /* NULL: the server's */
	bool is_alone;       /* nobody has the store open, nor can: this process has DIR/lock */
	/* the server has no socket, since the disk takes no writes; so nothing goes from there */
	bool is_still;
	bool is_away; /* the server was asked last and did not answer */
};
struct backup_holder hold_client_holder(struct hold_client *client);

#endif
