#include "server/listener_internal.h"

#include <stdlib.h>
#include <sys/socket.h>

#include "base/memory.h"

struct connection *connection_find(struct MHD_Connection *handle)
{
	const union MHD_ConnectionInfo *const info = MHD_get_connection_info(handle, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	ASSERT(info != NULL && info->socket_context != NULL);
	return info->socket_context;
}

void connection_open(struct reactor *reactor, struct MHD_Connection *handle, void **slot)
{
	struct listener *const listener = reactor->listener;
	struct connection *const connection = memory_new(sizeof *connection);
	const union MHD_ConnectionInfo *const info = MHD_get_connection_info(handle, MHD_CONNECTION_INFO_CONNECTION_FD);
	connection->reactor = reactor;
	connection->fd = info != NULL ? info->connect_fd : -1;
	lock_enter(&listener->lock);
	connection->next = listener->connections;
	if (connection->next != NULL)
		connection->next->previous = connection;
	listener->connections = connection;
	lock_leave(&listener->lock);
	metrics_add(listener->context->metrics, METRIC_CONNECTIONS, 1);
	*slot = connection;
}

/* Before libmicrohttpd closes the socket: a sweep never meets a descriptor that means something else already. */
void connection_close(void **slot)
{
	struct connection *const connection = *slot;
	if (connection == NULL)
		return;
	struct reactor *const reactor = connection->reactor;
	struct listener *const listener = reactor->listener;
	lock_enter(&listener->lock);
	if (connection->previous != NULL)
		connection->previous->next = connection->next;
	else
		listener->connections = connection->next;
	if (connection->next != NULL)
		connection->next->previous = connection->previous;
	lock_leave(&listener->lock);
	if (connection->unstarted != NULL)
		request_end(connection->unstarted, false);
	free(connection);
	atomic_fetch_sub(&reactor->group->dealt, 1);
	metrics_add(listener->context->metrics, METRIC_CONNECTIONS, -1);
	*slot = NULL;
}

void connection_sweep(struct listener *listener)
{
	char byte;
	lock_enter(&listener->lock);
	for (struct connection *each = listener->connections; each != NULL; each = each->next)
		if (!each->hung_up && recv(each->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0) {
			each->hung_up = true;
			shutdown(each->fd, SHUT_RD);
		}
	lock_leave(&listener->lock);
}
