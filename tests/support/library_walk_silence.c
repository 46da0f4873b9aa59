#include "tests/support/library_walk.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* A server that takes one connection, reads what comes, and cancels the call that waits for its
 * answer. */
struct deaf {
	int listener;
	struct deltabucket_watch *watch;
};

typedef int call_fn(const struct walk *walk, struct deltabucket_client *client,
	struct deltabucket_watch *watch, struct deltabucket_error *err);

static int remove_key(const struct walk *walk, struct deltabucket_client *client,
	struct deltabucket_watch *watch, struct deltabucket_error *err);
static int publish_path(const struct walk *walk, struct deltabucket_client *client,
	struct deltabucket_watch *watch, struct deltabucket_error *err);
static int follow(const struct walk *walk, struct deltabucket_client *client,
	struct deltabucket_watch *watch, struct deltabucket_error *err);
static int bind_any(struct deltabucket_client **out_client);
static void *cancel_when_asked(void *argument);

static const struct {
	const char *what;
	call_fn *call;
} CALLS[] = {{"remove", remove_key}, {"publish", publish_path}, {"follow", follow}};

void walk_silence(const struct walk *walk)
{
	for (size_t i = 0; i < sizeof(CALLS) / sizeof(CALLS[0]); i++) {
		struct deltabucket_error err = {0};
		struct deltabucket_client *client;
		struct deaf deaf = {.watch = deltabucket_watch_new(NULL)};
		pthread_t thread;
		deaf.listener = bind_any(&client);
		walk_expect_kind(
			CALLS[i].call(walk, client, NULL, &err), "upstream", CALLS[i].what, &err);
		if (listen(deaf.listener, 1) != 0 ||
			pthread_create(&thread, NULL, cancel_when_asked, &deaf) != 0)
			abort();
		walk_expect_kind(
			CALLS[i].call(walk, client, deaf.watch, &err), "busy", CALLS[i].what, &err);
		deltabucket_client_free(client);
		pthread_join(thread, NULL);
		deltabucket_watch_free(deaf.watch);
		close(deaf.listener);
	}
}

static int remove_key(const struct walk *walk, struct deltabucket_client *client,
	struct deltabucket_watch *watch, struct deltabucket_error *err)
{
	(void)walk;
	return deltabucket_remove(client, "walks", "key", watch, err);
}

static int publish_path(const struct walk *walk, struct deltabucket_client *client,
	struct deltabucket_watch *watch, struct deltabucket_error *err)
{
	struct deltabucket_publisher_settings settings = DELTABUCKET_PUBLISHER_SETTINGS;
	struct deltabucket_publication publication = DELTABUCKET_PUBLICATION;
	settings.run = "walks/silent";
	publication.path = walk->base;
	struct deltabucket_publisher *const publisher =
		deltabucket_publisher_open(client, &settings, err);
	const int result = deltabucket_publish(publisher, &publication, NULL, watch, err);
	deltabucket_publisher_close(publisher);
	return result;
}

/* Without a watch it does not wait. */
static int follow(const struct walk *walk, struct deltabucket_client *client,
	struct deltabucket_watch *watch, struct deltabucket_error *err)
{
	struct deltabucket_follower_settings settings = DELTABUCKET_FOLLOWER_SETTINGS;
	struct deltabucket_step *step;
	(void)walk;
	settings.run = "walks/silent";
	settings.is_silent = 1;
	struct deltabucket_follower *const follower =
		deltabucket_follower_open(client, &settings, watch, err);
	walk_expect(follower != NULL, "follower_open", err);
	const int result =
		deltabucket_follower_next(follower, -1, watch == NULL ? 0 : -1, &step, watch, err);
	deltabucket_follower_close(follower);
	return result;
}

/* A socket that does not listen yet, and a client of it. */
static int bind_any(struct deltabucket_client **out_client)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(address);
	struct deltabucket_client_settings settings = DELTABUCKET_CLIENT_SETTINGS;
	struct deltabucket_error err = {0};
	char endpoint[WALK_OWN_BYTES];
	const int listener = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (const struct sockaddr *)&address, len) != 0 ||
		getsockname(listener, (struct sockaddr *)&address, &len) != 0)
		abort();
	snprintf(endpoint, sizeof(endpoint), "http://127.0.0.1:%d", ntohs(address.sin_port));
	settings.endpoint = endpoint;
	settings.retries = -1;
	*out_client = deltabucket_client_new(&settings, &err);
	walk_expect(*out_client != NULL, "client_new", &err);
	return listener;
}

static void *cancel_when_asked(void *argument)
{
	const struct deaf *const deaf = argument;
	const int fd = accept(deaf->listener, NULL, NULL);
	char bytes[100];
	while (read(fd, bytes, sizeof(bytes)) > 0)
		deltabucket_watch_cancel(deaf->watch);
	close(fd);
	return NULL;
}
