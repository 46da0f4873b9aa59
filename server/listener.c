/* Starts and stops the reactors, and runs the accept thread.
 *
 * Stopping: libmicrohttpd aborts the process when a daemon is stopped while a request is suspended.
 * So listener_stop first sets `dropping`, after which no step begins. Then `inside`, which counts
 * handler calls and suspended requests, falls to zero, because each wait ends by itself once the
 * long polls were woken. A call counts itself in `inside` before it reads `dropping`, and
 * listener_stop sets `dropping` before it reads `inside`, so one of them sees the other. */
#include "server/listener_internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/thread/lock.h"
#include "server/certificate.h"
#include "server/control_socket.h"

/* Each connection counts as a stranger's until its first request has shown a key, so the part of
 * the strangers must be large enough for new connections. */
enum { STRANGERS_PART = 8 };
enum {
	BEHIND = 2,       /* a reactor with so many unseen connections is behind */
	BEHIND_MOST = 32, /* a reactor with so many unseen connections gets no more */
	PAUSE_NS = 500 * 1000,
	PAUSES_MOST = 2000,
	ACCEPTS_AT_ONCE = 256,
	LEAVING_MANY = 256 /* cut connections that are not closed yet */
};
enum { CONTROL_CONNECTIONS = 64, SPARE_CONNECTIONS = 4096, SOCKETS_MAX = 66, HANG_UPS_MS = 10 };

static void *listener_take_uri(void *owner, const char *uri, struct MHD_Connection *connection)
{
	struct connection *const from = connection_find(connection);
	ASSERT(from->unstarted == NULL);
	from->unstarted = request_new(owner, connection, uri);
	return from->unstarted;
}

static enum MHD_Result listener_take_call(void *owner, struct MHD_Connection *connection,
	const char *url, const char *method, const char *version, const char *data,
	size_t *data_size, void **state)
{
	(void)url;
	(void)version;
	struct listener *const listener = ((struct reactor *)owner)->listener;
	struct request *const request = *state;
	if (request == NULL)
		return MHD_NO;
	if (!request->started)
		connection_find(connection)->unstarted = NULL;
	atomic_fetch_add(&listener->inside, 1);
	const bool dropping = atomic_load(&listener->dropping);
	const enum MHD_Result result =
		dropping ? request_drop(request) : request_call(request, method, data, data_size);
	atomic_fetch_sub(&listener->inside, 1);
	return result;
}

static void listener_take_end(void *owner, struct MHD_Connection *connection, void **state,
	enum MHD_RequestTerminationCode code)
{
	(void)owner;
	struct request *const request = *state;
	if (request == NULL)
		return;
	if (!request->started)
		connection_find(connection)->unstarted = NULL;
	request_end(request, code == MHD_REQUEST_TERMINATED_COMPLETED_OK);
	*state = NULL;
}

static void listener_take_connection(void *owner, struct MHD_Connection *connection, void **state,
	enum MHD_ConnectionNotificationCode code)
{
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		connection_open(owner, connection, state);
	else
		connection_close(state);
}

/* The router decodes paths, from the target as sent. */
static size_t listener_leave_escaped(void *owner, struct MHD_Connection *connection, char *text)
{
	(void)owner;
	(void)connection;
	return strlen(text);
}

__attribute__((format(printf, 2, 0))) static void listener_take_message(
	void *owner, const char *format, va_list arguments)
{
	const struct reactor *const reactor = owner;
	char text[512];
	struct log *const log = reactor->listener->context->log;
	if (log == NULL || !log_wants(log, LOG_DEBUG))
		return;
	vsnprintf(text, sizeof(text), format, arguments);
	text[strcspn(text, "\n")] = '\0';
	const struct log_field field = log_text("message", text);
	log_event(log, LOG_DEBUG, NULL, "http", &field, 1);
}

/* `deal` keeps the limit of connections. The limit of libmicrohttpd is set higher, so that it is
 * never reached: release 0.9.75 can leave its own mutex locked there, and the reactor never wakes
 * again. */
static int start_reactor(struct reactor *reactor, struct error *err)
{
	const struct listener_options *const options = &reactor->listener->options;
	const struct MHD_OptionItem tls[] = {
		{MHD_OPTION_HTTPS_CERT_CALLBACK2, 0, (void *)(uintptr_t)certificate_callback()},
		{MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)options->tls_priorities},
		{MHD_OPTION_END, 0, NULL}};
	const struct MHD_OptionItem plain[] = {{MHD_OPTION_END, 0, NULL}};
	const unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_NO_LISTEN_SOCKET |
		MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC | MHD_USE_ERROR_LOG |
		(reactor->secure ? MHD_USE_TLS : 0);
	reactor->daemon = MHD_start_daemon(flags, 0, NULL, NULL, listener_take_call, reactor,
		MHD_OPTION_EXTERNAL_LOGGER, listener_take_message, reactor,
		MHD_OPTION_URI_LOG_CALLBACK, listener_take_uri, reactor,
		MHD_OPTION_NOTIFY_COMPLETED, listener_take_end, reactor,
		MHD_OPTION_NOTIFY_CONNECTION, listener_take_connection, reactor,
		MHD_OPTION_UNESCAPE_CALLBACK, listener_leave_escaped, NULL,
		MHD_OPTION_STRICT_FOR_CLIENT, (int)reactor->listener->strict_library,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, options->connection_memory_bytes,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)reactor->group->most + SPARE_CONNECTIONS,
		MHD_OPTION_CONNECTION_TIMEOUT, options->idle_timeout_s, MHD_OPTION_ARRAY,
		reactor->secure ? tls : plain, MHD_OPTION_END);
	if (reactor->daemon == NULL)
		return error_set(err, ERROR_IO,
			"cannot start an HTTP%s reactor; are the TLS priorities valid?",
			reactor->secure ? "S" : "");
	return 0;
}

/* `deal` counts the connections. The pool knows their callers and chooses which one makes room. */
static struct share_pool *new_pool(const struct listener *listener)
{
	const struct share_options options = {.limit = listener->options.connections,
		.strangers = listener->options.connections / STRANGERS_PART,
		.metrics = listener->context->metrics,
		.held = METRIC_COUNT,
		.refused = METRIC_CONNECTIONS_REFUSED,
		.displaced = METRIC_CONNECTIONS_DISPLACED};
	return share_pool_new(&options);
}

static int start_group(struct listener *listener, enum listener_group which, struct error *err)
{
	struct reactor_group *const group = &listener->groups[which];
	const struct listener_options *const options = &listener->options;
	const bool control = which == GROUP_CONTROL;
	const unsigned count = control ? 1 : options->reactors;
	group->most = control ? CONTROL_CONNECTIONS : options->connections;
	group->pool = control ? NULL : new_pool(listener);
	ASSERT(group->count == 0 && count > 0);
	group->reactors = memory_new_array(count, sizeof(*group->reactors));
	for (unsigned i = 0; i < count; i++) {
		struct reactor *const reactor = &group->reactors[i];
		*reactor =
			(struct reactor){.listener = listener, .group = group, .control = control};
		reactor->secure = options->secure && which == GROUP_MAIN;
		if (start_reactor(reactor, err) != 0)
			return -1;
		group->count++;
	}
	return 0;
}

/* The next reactor that is not behind, or the next one if all are. */
static struct reactor *choose_reactor(struct reactor_group *group)
{
	ASSERT(group->count > 0);
	struct reactor *const first = &group->reactors[group->next++ % group->count];
	struct reactor *chosen = first;
	for (unsigned i = 1; i < group->count && atomic_load(&chosen->given_count) >= BEHIND; i++)
		chosen = &group->reactors[group->next++ % group->count];
	return atomic_load(&chosen->given_count) < BEHIND ? chosen : first;
}

static void deal(struct listener *listener, enum listener_group which, int fd,
	const struct sockaddr *address, socklen_t len)
{
	struct reactor_group *const group = &listener->groups[which];
	const int on = 1;
	if (!connection_make_room(group)) {
		metrics_add(listener->context->metrics, METRIC_CONNECTIONS_REFUSED, 1);
		close(fd);
		return;
	}
	if (which == GROUP_MAIN)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on,
			sizeof(on)); /* so that a small reply never waits for an acknowledgement */
	struct reactor *const reactor = choose_reactor(group);
	connection_give(reactor, fd, address);
	if (MHD_add_connection(reactor->daemon, fd, address, len) !=
		MHD_YES) /* MHD has closed the socket */
		connection_take_back(reactor, fd);
}

/* Whether each reactor has at least `given` unseen connections. A reactor looks at all of them in
 * each of its rounds. */
static bool are_behind(const struct reactor_group *group, int given)
{
	for (unsigned i = 0; i < group->count; i++)
		if (atomic_load(&group->reactors[i].given_count) < given)
			return false;
	return true;
}

static bool has_hung_up(int fd)
{
	struct pollfd polled = {.fd = fd, .events = POLLRDHUP};
	return poll(&polled, 1, 0) == 1;
}

/* While the reactors are behind, connections whose clients have hung up are closed at once, because
 * there may be many of them. */
static void admit(struct listener *listener, const struct listener_socket *from, int fd,
	const struct sockaddr *address, socklen_t len)
{
	const bool is_foreign = from->group == GROUP_CONTROL && !control_socket_is_ours(fd);
	if (is_foreign || (are_behind(&listener->groups[from->group], BEHIND) && has_hung_up(fd)))
		close(fd);
	else
		deal(listener, from->group, fd, address, len);
}

/* Accepts the queued connections of one socket, at most ACCEPTS_AT_ONCE before the other sockets
 * have their turn. False when the reactors are behind, or when many cut connections are not closed
 * yet and the caller is still patient. The connections then stay in the queue for a moment, so that
 * the reactors can serve their clients. */
static bool accept_from(
	struct listener *listener, const struct listener_socket *from, bool is_patient)
{
	const struct reactor_group *const group = &listener->groups[from->group];
	for (int i = 0; i < ACCEPTS_AT_ONCE; i++) {
		struct sockaddr_storage address;
		socklen_t len = sizeof(address);
		if (are_behind(group, BEHIND_MOST) ||
			(is_patient && connection_count_leaving(group) >= LEAVING_MANY))
			return false;
		const int fd = accept4(
			from->fd, (struct sockaddr *)&address, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
				errno == ENOMEM)
				nanosleep(&(struct timespec){.tv_nsec = 50 * 1000 * 1000},
					NULL); /* The connection stays queued; do not spin. */
			return true;
		}
		admit(listener, from, fd, (const struct sockaddr *)&address, len);
	}
	return true;
}

/* Handles hang-ups together, at most 100 times a second, because libmicrohttpd closes most of these
 * connections by itself. Returns the time until the next look in ms; -1: until a hang-up comes. */
static int look_for_hang_ups(struct listener *listener, bool is_due, int64_t *looked_ms)
{
	const int64_t now_ms = clock_monotonic_ms();
	const int64_t wait_ms = *looked_ms + HANG_UPS_MS - now_ms;
	if (!is_due)
		return -1;
	if (wait_ms > 0)
		return (int)wait_ms;
	*looked_ms = now_ms;
	return connection_take_hang_ups(listener) ? HANG_UPS_MS : -1;
}

static void *listener_accept_run(void *owner)
{
	struct listener *const listener = owner;
	struct pollfd polled[SOCKETS_MAX + 2] = {
		{.fd = listener->stop_fd, .events = POLLIN}, {.events = POLLIN}};
	int64_t looked_ms = 0;
	int wait_ms = -1;
	bool keeps_up = true;
	int pauses = 0;
	for (size_t i = 0; i < listener->socket_count; i++)
		polled[i + 2] = (struct pollfd){.fd = listener->sockets[i].fd, .events = POLLIN};
	do {
		polled[1].fd = wait_ms < 0 ? listener->hang_up_fd : -1;
		pauses = keeps_up ? 0 : pauses + 1;
		if (!keeps_up)
			nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
		if (poll(polled, listener->socket_count + 2, wait_ms) < 0 && errno != EINTR)
			break;
		wait_ms = look_for_hang_ups(
			listener, wait_ms >= 0 || (polled[1].revents & POLLIN) != 0, &looked_ms);
		keeps_up = true;
		for (size_t i = 0; i < listener->socket_count; i++)
			if ((polled[i + 2].revents & POLLIN) != 0)
				keeps_up = accept_from(listener, &listener->sockets[i],
						   pauses < PAUSES_MOST) &&
					keeps_up;
	} while ((polled[0].revents & POLLIN) == 0);
	return NULL;
}

static int open_sockets(struct listener *listener, struct error *err)
{
	const struct listener_options *const options = &listener->options;
	if (options->address_count + 1 > SOCKETS_MAX)
		return error_set(err, ERROR_INVALID, "there are over %d addresses to listen on",
			SOCKETS_MAX - 1);
	listener->sockets =
		memory_new_array(options->address_count + 1, sizeof(*listener->sockets));
	for (size_t i = 0; i < options->address_count; i++) {
		if (listener_socket_open(&listener->sockets[i], options->addresses[i], err) != 0)
			return -1;
		listener->socket_count++;
	}
	if (options->control_path == NULL)
		return 0;
	struct listener_socket *const control = &listener->sockets[listener->socket_count];
	if (listener_socket_open_unix(control, options->control_path, 0600, err) != 0)
		return err->os_errno == EROFS
			? 0
			: -1; /* On a read-only disk commands cannot reach this server. */
	control->group = GROUP_CONTROL;
	listener->socket_count++;
	return 0;
}

struct listener *listener_bind(const struct listener_options *options, struct error *err)
{
	ASSERT(options->reactors > 0);
	struct listener *const listener = memory_new(sizeof(*listener));
	listener->context = options->context;
	listener->options = *options;
	listener->stop_fd = -1;
	listener->hang_up_fd = -1;
	listener->strict_library = MHD_get_version()[0] != '0';
	lock_init(&listener->lock, LOCK_CONNECTIONS);
	if (open_sockets(listener, err) == 0)
		return listener;
	listener_stop(listener);
	return NULL;
}

int listener_serve(struct listener *listener, struct error *err)
{
	ASSERT(listener->hang_up_fd < 0 && !listener->accepting);
	listener->hang_up_fd = epoll_create1(EPOLL_CLOEXEC);
	if (listener->hang_up_fd < 0)
		return error_set_errno(err, "cannot make an epoll descriptor");
	listener->lingering = lingering_close_start();
	if (listener->lingering == NULL)
		return error_set_errno(err, "cannot make an event descriptor");
	for (size_t i = 0; i < listener->socket_count; i++) {
		const enum listener_group which = listener->sockets[i].group;
		if (listener->groups[which].count == 0 && start_group(listener, which, err) != 0)
			return -1;
	}
	listener->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (listener->stop_fd < 0)
		return error_set_errno(err, "cannot make an event descriptor");
	lock_thread_start(&listener->accept_thread, "accept", listener_accept_run, listener);
	listener->accepting = true;
	return 0;
}

unsigned listener_port(const struct listener *listener, size_t number)
{
	ASSERT(number < listener->socket_count);
	return listener_socket_port(&listener->sockets[number]);
}

void listener_print_endpoints(const struct listener *listener, struct buffer *out)
{
	for (size_t i = 0; i < listener->socket_count; i++) {
		if (listener->sockets[i].group == GROUP_CONTROL)
			continue;
		if (out->len > 0)
			buffer_add_byte(out, ' ');
		listener_socket_print(
			&listener->sockets[i], listener->options.secure ? "https" : "http", out);
	}
}

void listener_quiesce(struct listener *listener)
{
	const uint64_t one = 1;
	atomic_store(&listener->quiesced, true);
	if (listener->accepting) {
		const ssize_t written = write(listener->stop_fd, &one, sizeof(one));
		ASSERT(written == sizeof(one));
		pthread_join(listener->accept_thread, NULL);
		listener->accepting = false;
	}
	for (size_t i = 0; i < listener->socket_count; i++)
		listener_socket_close(&listener->sockets[i]);
	listener->socket_count = 0;
}

void listener_sweep(struct listener *listener)
{
	while (connection_take_hang_ups(listener))
		;
}

int64_t listener_active(const struct listener *listener)
{
	return atomic_load(&listener->open);
}

static void stop_reactor(struct reactor *reactor)
{
	MHD_stop_daemon(reactor->daemon);
	while (reactor->given != NULL)
		connection_take_back(reactor, reactor->given->fd);
}

void listener_stop(struct listener *listener)
{
	if (listener == NULL)
		return;
	listener_quiesce(listener);
	atomic_store(&listener->dropping, true);
	while (atomic_load(&listener->inside) > 0)
		nanosleep(&(struct timespec){.tv_nsec = 2 * 1000 * 1000}, NULL);
	for (size_t which = 0; which < GROUP_COUNT; which++) {
		struct reactor_group *const group = &listener->groups[which];
		for (unsigned i = 0; i < group->count; i++)
			stop_reactor(&group->reactors[i]);
		free(group->reactors);
		share_pool_free(group->pool);
	}
	lingering_close_stop(listener->lingering);
	if (listener->stop_fd >= 0)
		close(listener->stop_fd);
	if (listener->hang_up_fd >= 0)
		close(listener->hang_up_fd);
	lock_release(&listener->lock);
	free(listener->sockets);
	free(listener);
}
