#include "server/control_socket.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/memory.h"
#include "server/data_folder.h"

bool control_socket_is_ours(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0)
		return false;
	return peer.uid == geteuid() || peer.uid == 0;
}

void control_place_init(struct control_place *place, const char *folder)
{
	enum { PROC_PATH_BYTES = 64 };
	static const struct sockaddr_un room;
	*place = (struct control_place){
		.path = data_folder_path(folder, "control.sock"), .folder_fd = -1};
	if (strlen(place->path) < sizeof(room.sun_path))
		return;
	place->folder_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (place->folder_fd < 0)
		return;
	free(place->path);
	place->path = memory_new(PROC_PATH_BYTES);
	snprintf(place->path, PROC_PATH_BYTES, "/proc/self/fd/%d/control.sock", place->folder_fd);
}

void control_place_release(struct control_place *place)
{
	if (place->path != NULL && place->folder_fd >= 0)
		close(place->folder_fd);
	free(place->path);
	*place = (struct control_place){.path = NULL, .folder_fd = -1};
}

/* The address in the failure is not one that anybody has set. */
static void advise(const char *folder, struct error *err)
{
	error_set(err, ERROR_UPSTREAM,
		"the server that uses %s does not answer at %s/control.sock: on a disk that takes"
		" no writes it cannot make one; use its address, or stop it",
		folder, folder);
}

int control_socket_send(const char *folder, const struct http_request *request,
	struct http_response *response, struct error *err)
{
	struct control_place place;
	control_place_init(&place, folder);
	const struct http_client_options options = {
		.endpoint = "http://localhost", .unix_socket = place.path};
	struct http_client *const client = http_client_new(&options, err);
	memset(response, 0, sizeof(*response));
	const int outcome = client != NULL ? http_client_send(client, request, response, err) : -1;
	if (outcome != 0 && err->kind == ERROR_UPSTREAM)
		advise(folder, err);
	if (client != NULL)
		http_client_free(client);
	control_place_release(&place);
	return outcome;
}
