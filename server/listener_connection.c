/* Connections from the accept thread to the close by libmicrohttpd: their callers, and whether
 * their clients are still there.
 *
 *   connection_give --> list reactor->given --connection_open--> open --connection_close--> freed
 *                                           --connection_take_back--> freed
 *
 * An epoll of its own reports hang-ups, because libmicrohttpd does not watch suspended requests. */
#include "server/listener_internal.h"

#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "api/exchange/caller.h"
#include "base/memory.h"

enum {
	HANG_UPS_AT_ONCE = 128, /* few enough for a reactor to handle soon */
	/* most connections that are cut and not closed yet; libmicrohttpd has room for more
	 * (SPARE_CONNECTIONS) */
	LEAVING_MAX = 1024
};

static void take_back_stale(struct listener *listener, int fd);
static void connection_displace(struct share_hold *hold);
static struct connection *take_given(struct reactor *reactor, int fd);
static void forget(struct connection *connection);
static void watch(struct connection *connection, int operation);
static void take_hang_up(struct connection *connection);
static bool has_unread(const struct connection *connection);

struct connection *connection_find(struct MHD_Connection *handle)
{
	const union MHD_ConnectionInfo *const info =
		MHD_get_connection_info(handle, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	ASSERT(info != NULL && info->socket_context != NULL);
	return info->socket_context;
}

void connection_give(struct reactor *reactor, int fd, const struct sockaddr *address)
{
	struct reactor_group *const group = reactor->group;
	ASSERT(fd >= 0);
	take_back_stale(reactor->listener, fd);
	struct connection *const connection = memory_new(sizeof(*connection));
	connection->reactor = reactor;
	connection->fd = fd;
	connection->peer = client_address_of(address);
	connection->caller =
		(struct share_caller){client_address_hash(&connection->peer), SHARE_STRANGER};
	connection->hold.displace = connection_displace;
	atomic_fetch_add(&group->dealt, 1);
	if (group->pool != NULL)
		share_count(group->pool, &connection->hold, connection->caller, 1);
	atomic_fetch_add(&reactor->given_count, 1);
	lock_enter(&reactor->listener->lock);
	connection->next = reactor->given;
	reactor->given = connection;
	lock_leave(&reactor->listener->lock);
}

void connection_take_back(struct reactor *reactor, int fd)
{
	struct connection *const connection = take_given(reactor, fd);
	if (connection != NULL)
		forget(connection);
}

void connection_open(struct reactor *reactor, struct MHD_Connection *handle, void **slot)
{
	const union MHD_ConnectionInfo *const fd =
		MHD_get_connection_info(handle, MHD_CONNECTION_INFO_CONNECTION_FD);
	ASSERT(fd != NULL);
	struct connection *const connection = take_given(reactor, fd->connect_fd);
	ASSERT(connection != NULL);
	watch(connection, EPOLL_CTL_ADD);
	if (reactor->secure)
		connection_answer_plain(connection, handle);
	metrics_add(reactor->listener->context->metrics, METRIC_CONNECTIONS, 1);
	*slot = connection;
}

/* Called before libmicrohttpd closes the socket, so that the descriptor is never used after it was
 * given to another connection. */
void connection_close(void **slot)
{
	struct connection *const connection = *slot;
	if (connection == NULL)
		return;
	struct listener *const listener = connection->reactor->listener;
	lock_enter(&listener->lock);
	epoll_ctl(listener->hang_up_fd, EPOLL_CTL_DEL, connection->fd, NULL);
	lock_leave(&listener->lock);
	if (connection->lingers && !atomic_load(&connection->hung_up))
		lingering_close_take(listener->lingering, connection->fd);
	if (connection->unstarted != NULL)
		request_end(connection->unstarted, false);
	forget(connection);
	metrics_add(listener->context->metrics, METRIC_CONNECTIONS, -1);
	*slot = NULL;
}

void connection_set_caller(struct connection *connection, struct share_caller caller, bool is_busy)
{
	struct share_pool *const pool = connection->reactor->group->pool;
	connection->caller = caller;
	if (pool != NULL)
		share_move(pool, &connection->hold, caller, is_busy);
}

int64_t connection_count_leaving(const struct reactor_group *group)
{
	return group->pool != NULL ? (int64_t)share_displaced(group->pool) : 0;
}

bool connection_make_room(struct reactor_group *group)
{
	if (group->pool == NULL)
		return atomic_load(&group->dealt) < group->most;
	for (;;) {
		const int64_t leaving = connection_count_leaving(group);
		if (atomic_load(&group->dealt) - leaving < group->most)
			return true;
		if (leaving >= LEAVING_MAX || !share_make_room(group->pool))
			return false;
	}
}

void connection_begin_wait(struct connection *connection, struct request *request)
{
	struct listener *const listener = connection->reactor->listener;
	ASSERT(request != NULL);
	lock_enter(&listener->lock);
	connection->waiting = request;
	lock_leave(&listener->lock);
	if (atomic_load(&connection->hung_up))
		exchange_hang_up(&request->exchange);
}

void connection_end_wait(struct connection *connection)
{
	struct listener *const listener = connection->reactor->listener;
	lock_enter(&listener->lock);
	connection->waiting = NULL;
	lock_leave(&listener->lock);
}

void connection_cut(struct connection *connection)
{
	shutdown(connection->fd, SHUT_RDWR);
}

bool connection_take_hang_ups(struct listener *listener)
{
	struct epoll_event events[HANG_UPS_AT_ONCE];
	lock_enter(&listener->lock);
	const int count = epoll_wait(listener->hang_up_fd, events, HANG_UPS_AT_ONCE, 0);
	for (int i = 0; i < count; i++)
		take_hang_up(events[i].data.ptr);
	lock_leave(&listener->lock);
	return count == HANG_UPS_AT_ONCE;
}

/* libmicrohttpd may have closed an earlier connection with this descriptor without a report. */
static void take_back_stale(struct listener *listener, int fd)
{
	for (size_t which = 0; which < GROUP_COUNT; which++)
		for (unsigned i = 0; i < listener->groups[which].count; i++) {
			struct reactor *const reactor = &listener->groups[which].reactors[i];
			if (atomic_load(&reactor->given_count) > 0)
				connection_take_back(reactor, fd);
		}
}

static void connection_displace(struct share_hold *hold)
{
	connection_cut((struct connection *)((char *)hold - offsetof(struct connection, hold)));
}

/* Removes the connection with this descriptor from reactor->given; NULL when there is none. */
static struct connection *take_given(struct reactor *reactor, int fd)
{
	lock_enter(&reactor->listener->lock);
	struct connection **link = &reactor->given;
	while (*link != NULL && (*link)->fd != fd)
		link = &(*link)->next;
	struct connection *const found = *link;
	if (found != NULL)
		*link = found->next;
	lock_leave(&reactor->listener->lock);
	if (found != NULL)
		atomic_fetch_sub(&reactor->given_count, 1);
	return found;
}

static void forget(struct connection *connection)
{
	struct reactor_group *const group = connection->reactor->group;
	if (group->pool != NULL)
		share_give(group->pool, &connection->hold);
	atomic_fetch_sub(&group->dealt, 1);
	free(connection);
}

/* `operation` is EPOLL_CTL_ADD at first, and EPOLL_CTL_MOD for another report. */
static void watch(struct connection *connection, int operation)
{
	struct epoll_event event = {.events = EPOLLRDHUP | EPOLLONESHOT, .data.ptr = connection};
	epoll_ctl(connection->reactor->listener->hang_up_fd, operation, connection->fd, &event);
}

/* If there are unread bytes, libmicrohttpd may read only those when it looks. So the next report
 * makes it look again. */
static void take_hang_up(struct connection *connection)
{
	const bool again = has_unread(connection);
	atomic_store(&connection->hung_up, true);
	shutdown(connection->fd, SHUT_RD);
	if (again)
		watch(connection, EPOLL_CTL_MOD);
	if (connection->waiting != NULL)
		exchange_hang_up(&connection->waiting->exchange);
}

static bool has_unread(const struct connection *connection)
{
	char byte;
	return recv(connection->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}
