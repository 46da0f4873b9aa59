/* Connections that were answered while their client was still sending: what comes is read and
 * dropped for a while. A socket that is closed with bytes unread resets its connection, and the
 * client loses the answer over it.
 *
 * A thread of its own; a bounded number of connections, of which the oldest gives way. */
#ifndef SERVER_LINGERING_CLOSE_H
#define SERVER_LINGERING_CLOSE_H

struct lingering_close;

enum {
	LINGERING_CLOSE_MOST = 256,     /* connections, a descriptor each */
	LINGERING_CLOSE_IDLE_MS = 5000, /* without a byte */
	LINGERING_CLOSE_MS = 30 * 1000  /* in all */
};

struct lingering_close *lingering_close_start(void);
/* Says to the client that nothing more comes, and keeps a descriptor of its own: `fd` stays the
 * caller's, who may close it. Any thread. */
void lingering_close_take(struct lingering_close *lingering, int fd);
/* Closes what is left. NULL is fine. */
void lingering_close_stop(struct lingering_close *lingering);

#endif
