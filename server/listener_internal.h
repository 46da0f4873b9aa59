/* What the listener's files share. microhttpd.h is included here and nowhere else. */
#ifndef SERVER_LISTENER_INTERNAL_H
#define SERVER_LISTENER_INTERNAL_H

#include <microhttpd.h>
#include <stdatomic.h>

#include "api/exchange/exchange.h"
#include "base/thread/lock.h"
#include "server/lingering_close.h"
#include "server/listener.h"
#include "server/listener_socket.h"
#include "server/request_target.h"

enum {
	/* of a body that nobody wants any more, to keep its connection */
	DRAIN_MAX_BYTES = 1024 * 1024,
	HEADERS_MAX_BYTES = 8 * 1024
};

struct reactor {
	struct listener *listener;
	struct reactor_group *group;
	struct MHD_Daemon *daemon;
	bool secure;
	bool control;
	_Atomic int given_count;  /* connections that it has not looked at yet: */
	struct connection *given; /* guarded by the listener's lock */
};

struct reactor_group {
	struct reactor *reactors;
	unsigned count;
	unsigned next;           /* the accept thread's */
	int64_t most;            /* connections */
	_Atomic int64_t dealt;   /* connections given to reactors and not closed yet */
	struct share_pool *pool; /* whose they are; NULL: nobody makes room */
};

struct request;

/* One client connection. */
struct connection {
	struct connection *next; /* while it is among those that are given to the reactor */
	struct reactor *reactor;
	int fd;
	struct client_address peer; /* at its other end: a client, or a proxy */
	struct share_hold hold;
	/* whose it is: of its last request's key, before that its address's */
	struct share_caller caller;
	_Atomic bool hung_up; /* its client is gone; its reading side was shut here */
	bool has_begun;       /* over TLS: its first byte has come */
	bool lingers;         /* its client was answered before it had sent all */
	/* guarded by the listener's lock: what to end when the client hangs up */
	struct request *waiting;
	/* the first line is here, the headers are not: nobody else would free it */
	struct request *unstarted;
};

struct listener {
	const struct api_context *context;
	struct listener_options options;
	struct listener_socket *sockets;
	size_t socket_count;
	struct reactor_group groups[GROUP_COUNT];
	int stop_fd; /* an event for the accept thread; -1: not made */
	pthread_t accept_thread;
	bool accepting;
	bool strict_library;   /* libmicrohttpd 1.0 or newer: it is strict by itself */
	_Atomic bool quiesced; /* replies close their connections */
	_Atomic bool dropping; /* no step runs any more */
	_Atomic int64_t open;  /* requests between their first line and their end */
	/* guards what the watch for hang-ups finds: connections, until they are closed; and those
	 * that are given */
	struct lock lock;
	struct lingering_close *lingering;
	/* an epoll of all connections, for the ends of their clients alone; -1: not made */
	int hang_up_fd;
	_Atomic int64_t inside; /* calls of handlers under way, and suspended requests */
};

/* Where a request stands. */
enum phase {
	PHASE_BEGIN, /* begin has not run */
	PHASE_BODY,  /* the sink takes the body */
	PHASE_WAIT,  /* a handler waits */
	PHASE_REPLY, /* the reply is set; what is left of the body is dropped */
	PHASE_SENT   /* the reply is queued, and goes on being read where it has no end yet */
};
/* Between the reactor, who suspends, and the waker, who resumes. The waker touches the request no
 * more once it has stored WOKEN over RUNNING. */
enum wait_state { WAIT_RUNNING, WAIT_SUSPENDED, WAIT_WOKEN };

struct request {
	struct exchange exchange; /* first: ops cast back */
	struct reactor *reactor;
	struct MHD_Connection *connection;
	struct connection *link; /* the same, as the listener knows it */
	enum phase phase;
	bool started;
	bool suspended; /* the reactor's own view */
	bool has_body;
	bool expects_continue;
	_Atomic int wait_state;
	int64_t started_ms;
	uint64_t received;
	uint64_t dropped;
	uint64_t sent;
	/* who asks, as far as is known: the headers may tell more (trusted_proxies.h) */
	struct client_address client;
	char *target_text; /* as sent */
	/* its parts; the authority only where it counts in place of Host */
	struct request_target target;
	/* chunked, to be watched: where it begins in libmicrohttpd's buffer */
	const char *body;
};

/* listener_connection.c */
/* The accept thread gives the reactor a connection, which counts from here on; and takes it back
 * when libmicrohttpd would not have it. */
void connection_give(struct reactor *reactor, int fd, const struct sockaddr *address);
void connection_take_back(struct reactor *reactor, int fd);
/* libmicrohttpd tells of it. */
void connection_open(struct reactor *reactor, struct MHD_Connection *handle, void **slot);
void connection_close(void **slot);
struct connection *connection_find(struct MHD_Connection *handle);
/* The connection is at a request of this caller, or rests behind one: what it counts as when others
 * need its place. */
void connection_belongs(struct connection *connection, struct share_caller caller, bool is_busy);
/* Room for one more connection, of whoever; false: none can be made. The accept thread's. */
bool connection_make_room(struct reactor_group *group);
/* Connections that were cut to make room, and are not closed yet. */
int64_t connection_count_leaving(const struct reactor_group *group);
/* The request waits, until connection_goes_on: the client's end ends its wait. */
void connection_waits(struct connection *connection, struct request *request);
void connection_goes_on(struct connection *connection);
/* Ends the connection, without a reply. Any thread, while it is open. */
void connection_cut(struct connection *connection);
/* Looks which clients have hung up, and ends the waits of their requests. libmicrohttpd does not
 * look at a connection whose request is suspended, and misses the end of a stream that arrives
 * together with its last bytes (its epoll is edge-triggered, and a short read ends its interest);
 * it would keep such a connection until the idle timeout. Shutting the reading side here makes it
 * look again. A bounded number of them; true: there may be more. */
bool connection_take_hang_ups(struct listener *listener);

/* listener_plain.c */
/* Should the first that comes over a connection of TLS be plain HTTP, it gets 400. Before it is
 * read from; where there is no TLS, nothing. */
void connection_answer_plain(struct connection *connection, struct MHD_Connection *handle);

/* listener_request.c */
struct request *request_new(
	struct reactor *reactor, struct MHD_Connection *connection, const char *uri);
/* One call of MHD's access handler. */
enum MHD_Result request_call(
	struct request *request, const char *method, const char *data, size_t *data_size);
/* The same once the listener is stopping: begins nothing any more. */
enum MHD_Result request_drop(struct request *request);
/* One call for more of an endless reply: the bytes, 0 when the request is suspended until there are
 * some, or MHD's codes for the end. */
ssize_t request_stream(struct request *request, char *into, size_t capacity);
void request_end(struct request *request, bool whole); /* logs, counts, frees */

/* listener_reply.c */
enum MHD_Result request_send(struct request *request);
/* Both write past libmicrohttpd and close, while more may come of the request. Only while no other
 * reply is on its way: the reply as it is set, of which nothing but a body in memory is sent; a
 * status alone, for what has no room for a reply. */
enum MHD_Result request_send_past(struct request *request);
enum MHD_Result request_send_bare(struct request *request, unsigned status);

#endif
