/* DIR/control.sock, the connection from a command to the server that has locked the data folder. On
 * the server's side it is a listening socket (listener.h) whose peers act as root; their user id is
 * checked. On the command's side it is a blocking HTTP request. */
#ifndef SERVER_CONTROL_SOCKET_H
#define SERVER_CONTROL_SOCKET_H

#include "base/net/http_client.h"

/* Whether the peer of this connected Unix socket is the server's own user, or root. */
bool control_socket_is_ours(int fd);

/* The path of DIR/control.sock, or a shorter path to it through /proc when that is too long for a
 * socket address. */
struct control_place {
	char *path;
	int folder_fd; /* the folder that the path through /proc needs; -1: none */
};
void control_place_init(struct control_place *place, const char *folder);
void control_place_release(struct control_place *place); /* a zeroed one is fine */

/* Sends one request to the server of the data folder. Returns 0 with any status, or -1 when the
 * server cannot be reached. The response must be released in both cases. */
int control_socket_send(const char *folder, const struct http_request *request,
	struct http_response *response, struct error *err);

#endif
