/* DIR/control.sock: how a command reaches the server that holds the data folder. The server's side
 * is one more listening socket (listener.h) whose peers, checked by their user id, act as root on
 * the admin routes; the command's side is a blocking HTTP request. */
#ifndef SERVER_CONTROL_SOCKET_H
#define SERVER_CONTROL_SOCKET_H

#include "base/net/http_client.h"

/* Is the peer of this connected unix socket the server's own user, or root? */
bool control_socket_is_ours(int fd);

/* Where DIR/control.sock is: its path, or a shorter way to it through /proc when the path is over
 * what a socket address can hold. */
struct control_place {
	char *path;
	int folder_fd; /* -1: not needed */
};
void control_place_init(struct control_place *place, const char *folder);
void control_place_release(struct control_place *place); /* a zeroed one is fine */

/* One request to the server of the data folder. 0 with any status; -1 when it cannot be reached.
 * Release the response in both cases. */
int control_socket_send(const char *folder, const struct http_request *request,
	struct http_response *response, struct error *err);

#endif
