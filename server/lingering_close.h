/* Closes connections whose client got its reply while it was still sending. Closing a socket with
 * unread bytes resets the connection, and the client may lose the reply. So a thread of this module
 * reads and drops the bytes for a while before it closes. The number of connections is limited; a
 * new one replaces the oldest. */
#ifndef SERVER_LINGERING_CLOSE_H
#define SERVER_LINGERING_CLOSE_H

struct lingering_close;

enum {
	LINGERING_CLOSE_MOST = 256,     /* connections, with one descriptor each */
	LINGERING_CLOSE_IDLE_MS = 5000, /* closes a connection after this time without a byte */
	LINGERING_CLOSE_MS = 30 * 1000  /* closes a connection after this time in any case */
};

struct lingering_close *lingering_close_start(void); /* NULL with errno set */
/* Ends the sending side of the connection, and keeps a duplicate of its descriptor; `fd` still
 * belongs to the caller. Any thread. */
void lingering_close_take(struct lingering_close *lingering, int fd);
/* Closes the connections that are left. NULL is fine. */
void lingering_close_stop(struct lingering_close *lingering);

#endif
