/* Shared by the files of the listener. The only header that includes microhttpd.h. */
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
	/* most bytes of an unwanted body that are read and dropped to keep the connection */
	DRAIN_MAX_BYTES = 1024 * 1024,
	HEADERS_MAX_BYTES = 8 * 1024
};

struct reactor {
	struct listener *listener;
	struct reactor_group *group;
	struct MHD_Daemon *daemon;
	bool secure;
	bool control;
	_Atomic int given_count;  /* connections in `given` */
	struct connection *given; /* not seen by the reactor yet; guarded by the listener's lock */
};

struct reactor_group {
	struct reactor *reactors;
	unsigned count;
	unsigned next;           /* index of the next reactor; only for the accept thread */
	int64_t most;            /* limit of connections */
	_Atomic int64_t dealt;   /* connections given to reactors and not closed yet */
	struct share_pool *pool; /* the shares of the callers; NULL: no connection makes room */
};

struct request;

/* One client connection. */
struct connection {
	struct connection *next; /* in the list reactor->given */
	struct reactor *reactor;
	int fd;
	struct client_address peer; /* the other end: a client or a proxy */
	struct share_hold hold;
	/* the key of the last request; before the first one, the address */
	struct share_caller caller;
	_Atomic bool hung_up; /* the client is gone, and the reading side was shut here */
	bool has_begun;       /* over TLS: the first byte has come */
	bool lingers;         /* the reply was sent before the client had sent its whole request */
	/* the request whose wait ends when the client hangs up; guarded by the listener's lock */
	struct request *waiting;
	/* a request whose headers have not come yet; freed with the connection */
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
	bool strict_library;   /* libmicrohttpd 1.0 or newer, which checks framing itself */
	_Atomic bool quiesced; /* replies close their connections */
	_Atomic bool dropping; /* no step of a request begins any more */
	_Atomic int64_t open;  /* requests between their first line and their end */
	/* guards the connections that connection_take_hang_ups finds, and the lists `given` */
	struct lock lock;
	struct lingering_close *lingering;
	/* an epoll of all connections, only for hang-ups of their clients; -1: not made */
	int hang_up_fd;
	_Atomic int64_t inside; /* running calls of handlers, and suspended requests */
};

/* The progress of a request. */
enum phase {
	PHASE_BEGIN, /* `begin` has not run */
	PHASE_BODY,  /* the sink takes the body */
	PHASE_WAIT,  /* the handler waits */
	PHASE_REPLY, /* the reply is set; the rest of the body is dropped */
	PHASE_SENT   /* the reply is queued; one that may wait is still read */
};
/* Shared by the reactor, which suspends, and the waker, which resumes. After it has stored WOKEN
 * over RUNNING, the waker must not touch the request. */
enum wait_state { WAIT_RUNNING, WAIT_SUSPENDED, WAIT_WOKEN };

struct request {
	struct exchange exchange; /* must be first: exchange_ops cast back */
	struct reactor *reactor;
	struct MHD_Connection *connection;
	struct connection *link; /* the listener's struct for the same connection */
	enum phase phase;
	bool started;   /* the first call has come */
	bool suspended; /* only for the reactor */
	bool has_body;
	bool expects_continue;
	_Atomic int wait_state;
	int64_t started_ms;
	int64_t started_us; /* the machine's own time, whatever clock the context has */
	bool waited;        /* it had a long wait, or is a stream of events */
	uint64_t received;  /* bytes of the body that the sink took */
	uint64_t dropped;   /* bytes of the body */
	uint64_t sent;      /* bytes of the reply's body */
	/* the peer; once the headers are here, the client that a trusted proxy names */
	struct client_address client;
	char *target_text; /* as sent */
	/* its parts; the authority is set only if it replaces Host */
	struct request_target target;
	/* the start in libmicrohttpd's buffer of a chunked body whose framing must be checked; NULL
	 * for other bodies */
	const char *body;
};

/* listener_connection.c */
/* The accept thread gives the reactor a connection, which is counted from then on, and takes it
 * back if libmicrohttpd refuses it. */
void connection_give(struct reactor *reactor, int fd, const struct sockaddr *address);
void connection_take_back(struct reactor *reactor, int fd);
/* libmicrohttpd reports the beginning and the end of a connection. */
void connection_open(struct reactor *reactor, struct MHD_Connection *handle, void **slot);
void connection_close(void **slot);
struct connection *connection_find(struct MHD_Connection *handle);
/* Counts the connection as this caller's, and as busy with a request or idle. This decides whether
 * it is closed when other callers need its place. */
void connection_set_caller(struct connection *connection, struct share_caller caller, bool is_busy);
/* Makes room for one more connection of any caller. False when that is impossible. Only on the
 * accept thread. */
bool connection_make_room(struct reactor_group *group);
/* The count of connections that were cut to make room and are not closed yet. */
int64_t connection_count_leaving(const struct reactor_group *group);
/* Between these two calls the request waits, and a hang-up of the client ends the wait. */
void connection_begin_wait(struct connection *connection, struct request *request);
void connection_end_wait(struct connection *connection);
/* Ends the connection without a reply. Any thread, while it is open. */
void connection_cut(struct connection *connection);
/* Finds clients that have hung up, and ends the waits of their requests. libmicrohttpd does not
 * look at a connection whose request is suspended. It also misses the end of a stream that arrives
 * together with the last bytes, because its epoll is edge-triggered and a short read ends its
 * interest. It would keep such a connection until the idle timeout. Shutting the reading side here
 * makes it look again. Handles a limited number; true when there may be more. */
bool connection_take_hang_ups(struct listener *listener);

/* listener_plain.c */
/* Prepares a TLS connection so that a client that sends plain HTTP gets a 400. Must be called
 * before the connection is read. Does nothing without TLS. */
void connection_answer_plain(struct connection *connection, struct MHD_Connection *handle);

/* listener_request.c */
struct request *request_new(
	struct reactor *reactor, struct MHD_Connection *connection, const char *uri);
/* One call of MHD's access handler. */
enum MHD_Result request_call(
	struct request *request, const char *method, const char *data, size_t *data_size);
/* The same while the listener stops: begins no step. */
enum MHD_Result request_drop(struct request *request);
/* Reads more of a reply that may wait. Returns what its source does; after SOURCE_WAIT the request
 * is suspended until there is more to read. busy when the server stops. */
ptrdiff_t request_stream(struct request *request, char *into, size_t capacity, struct error *err);
void request_end(struct request *request, bool whole); /* logs, counts, frees */

/* listener_reply.c */
enum MHD_Result request_send(struct request *request);
/* Two ways to reply without libmicrohttpd and to close the connection, while the client may still
 * be sending. Only while no other reply is queued. request_send_direct sends the reply that is set,
 * with its body if that is in memory; request_send_bare sends only a status, when a reply has no
 * room. */
enum MHD_Result request_send_direct(struct request *request);
enum MHD_Result request_send_bare(struct request *request, unsigned status);

#endif
