#include "client/remote/spare_clients.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/thread/lock.h"

struct spare_clients {
	struct lock lock;
	struct http_client *clients[SPARE_CLIENTS_MAX]; /* guarded by lock, as is count */
	size_t count;
};

struct spare_clients *spare_clients_new(void)
{
	struct spare_clients *const spares = memory_new(sizeof(*spares));
	lock_init(&spares->lock, LOCK_SPARE_CLIENTS);
	return spares;
}

void spare_clients_free(struct spare_clients *spares)
{
	if (spares == NULL)
		return;
	for (size_t i = 0; i < spares->count; i++)
		http_client_free(spares->clients[i]);
	lock_release(&spares->lock);
	free(spares);
}

struct http_client *spare_clients_take(struct spare_clients *spares)
{
	struct http_client *client = NULL;
	lock_enter(&spares->lock);
	if (spares->count > 0)
		client = spares->clients[--spares->count];
	lock_leave(&spares->lock);
	return client;
}

void spare_clients_give(struct spare_clients *spares, struct http_client *client)
{
	ASSERT(client != NULL);
	bool is_kept = false;
	lock_enter(&spares->lock);
	if (!http_client_is_cancelled(client) && spares->count < SPARE_CLIENTS_MAX) {
		spares->clients[spares->count++] = client;
		is_kept = true;
	}
	lock_leave(&spares->lock);
	if (!is_kept)
		http_client_free(client);
}
