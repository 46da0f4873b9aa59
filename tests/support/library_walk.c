/* usage: library_walk FOLDER BASE NEXT   uses libdeltabucket as a program in C would, from several
 * threads, and compares what comes back. FOLDER must be empty; BASE and NEXT are two checkpoints of
 * one model. The environment says which server. Ends with 0 when all is well; the sanitizer that it
 * was built with tells the rest. */
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "library/deltabucket.h"

enum { THREADS = 4, BYTES = 200 * 1000, PATH_BYTES = 4096, OWN_BYTES = 64 };

static struct deltabucket_client *client;
static struct deltabucket_watch *watch;
static const char *folder;

static void expect(int is_so, const char *what, const struct deltabucket_error *err)
{
	if (is_so)
		return;
	fprintf(stderr, "library_walk: %s: %s: %s\n", what, err->kind, err->text);
	exit(1);
}

static void path_in_folder(char out[PATH_BYTES], const char *name)
{
	snprintf(out, PATH_BYTES, "%s/%s", folder, name);
}

static void fill(unsigned char *bytes, int seed)
{
	unsigned state = 12345u + (unsigned)seed;
	for (size_t i = 0; i < BYTES; i++) {
		state = state * 1664525u + 1013904223u;
		bytes[i] = (unsigned char)(state >> 24);
	}
}

static void write_file(const char *path, const unsigned char *bytes)
{
	FILE *const file = fopen(path, "wb");
	if (file == NULL || fwrite(bytes, 1, BYTES, file) != BYTES || fclose(file) != 0)
		abort();
}

static int count_found(void *owner, const struct deltabucket_object *object)
{
	if (object->key == NULL || object->etag == NULL)
		abort();
	++*(int *)owner;
	return 0;
}

static int keep_answer(void *owner, const char *bytes, size_t len)
{
	*(int *)owner = len > 0 && bytes[0] == '{';
	return 0;
}

static void *walk_objects(void *argument)
{
	const int number = *(const int *)argument;
	struct deltabucket_error err = {0};
	char key[OWN_BYTES], name[OWN_BYTES], from[PATH_BYTES], to[PATH_BYTES];
	unsigned char *const sent = malloc(BYTES);
	unsigned char *const came = malloc(BYTES);
	size_t len = 0;
	int found = 0;
	if (sent == NULL || came == NULL)
		abort();
	fill(sent, number);
	snprintf(key, sizeof(key), "walk/%d", number);
	path_in_folder(from, key + 5);
	write_file(from, sent);
	snprintf(name, sizeof(name), "%d.to", number);
	path_in_folder(to, name);
	expect(deltabucket_put_file(client, "walks", key, from, watch, &err) == 0, "put_file",
		&err);
	expect(deltabucket_get_file(client, "walks", key, to, watch, &err) == 0, "get_file", &err);
	expect(deltabucket_get(client, "walks", key, 0, came, BYTES, &len, NULL, watch, &err) == 0,
		"get", &err);
	if (len != BYTES || memcmp(sent, came, BYTES) != 0)
		abort();
	expect(deltabucket_head(client, "walks", key, count_found, &found, watch, &err) == 0,
		"head", &err);
	expect(deltabucket_list(client, "walks", key, NULL, count_found, &found, watch, &err) == 0,
		"list", &err);
	if (found != 2)
		abort();
	expect(deltabucket_put(client, "walks", key, sent, 10, watch, &err) == 0, "put", &err);
	expect(deltabucket_remove(client, "walks", key, watch, &err) == 0, "remove", &err);
	expect(deltabucket_get_file(client, "walks", key, to, watch, &err) == -1 &&
			strcmp(err.kind, "no_key") == 0 && err.request_id[0] != '\0',
		"get_file of nothing", &err);
	free(came);
	free(sent);
	return NULL;
}

static void walk_deltas(const char *base, const char *next)
{
	struct deltabucket_error err = {0};
	char delta[PATH_BYTES], whole[PATH_BYTES];
	const char *const deltas[] = {delta};
	path_in_folder(delta, "delta");
	path_in_folder(whole, "whole");
	expect(deltabucket_diff(base, next, delta, NULL, watch, &err) == 0, "diff", &err);
	expect(deltabucket_apply(base, deltas, 1, whole, watch, &err) == 0, "apply", &err);
	expect(deltabucket_apply(next, deltas, 1, delta, watch, &err) == -1, "apply onto a file",
		&err);
	expect(deltabucket_diff(base, next, delta, "nosuch", watch, NULL) == -1, "a format", &err);
}

static void count_told(void *owner, const char *what, const char *name, uint64_t bytes)
{
	if (what == NULL || name == NULL || bytes != BYTES)
		abort();
	++*(int *)owner;
}

/* A folder of its own goes up and comes down again. */
static void walk_sync(void)
{
	struct deltabucket_sync_settings settings = DELTABUCKET_SYNC_SETTINGS;
	struct deltabucket_synced synced = DELTABUCKET_SYNCED;
	struct deltabucket_error err = {0};
	char up[PATH_BYTES], file[PATH_BYTES], down[PATH_BYTES];
	unsigned char *const bytes = malloc(BYTES);
	int told = 0;
	path_in_folder(up, "up");
	path_in_folder(file, "up/file");
	path_in_folder(down, "down");
	if (bytes == NULL || mkdir(up, 0755) != 0)
		abort();
	fill(bytes, THREADS);
	write_file(file, bytes);
	settings.bucket = "walks";
	settings.prefix = "synced";
	settings.folder = up;
	settings.direction = "up";
	settings.told = count_told;
	settings.owner = &told;
	expect(deltabucket_sync(client, &settings, &synced, watch, &err) == 0 && synced.moved == 1,
		"sync up", &err);
	settings.folder = down;
	settings.direction = "down";
	settings.deletes = 1;
	expect(deltabucket_sync(client, &settings, NULL, watch, &err) == 0 && told == 2,
		"sync down", &err);
	settings.prefix = "nothing";
	expect(deltabucket_sync(client, &settings, &synced, watch, &err) == -1 &&
			strcmp(err.kind, "not_found") == 0,
		"sync from nothing", &err);
	free(bytes);
}

static void *cancel_when_connected(void *argument)
{
	const int fd = accept(*(const int *)argument, NULL, NULL);
	char bytes[100];
	while (read(fd, bytes, sizeof(bytes)) > 0)
		deltabucket_watch_cancel(watch);
	close(fd);
	return NULL;
}

/* A call against a server that does not answer ends when another thread cancels it. */
static void walk_cancel(void)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	struct deltabucket_client_settings settings = DELTABUCKET_CLIENT_SETTINGS;
	struct deltabucket_error err = {0};
	char endpoint[OWN_BYTES];
	pthread_t thread;
	if (bind(listener, (const struct sockaddr *)&address, len) != 0 ||
		listen(listener, 1) != 0 ||
		getsockname(listener, (struct sockaddr *)&address, &len) != 0)
		abort();
	snprintf(endpoint, sizeof(endpoint), "http://127.0.0.1:%d", ntohs(address.sin_port));
	settings.endpoint = endpoint;
	struct deltabucket_client *const deaf = deltabucket_client_new(&settings, &err);
	expect(deaf != NULL, "client_new", &err);
	pthread_create(&thread, NULL, cancel_when_connected, &listener);
	expect(deltabucket_remove(deaf, "walks", "key", watch, &err) == -1 &&
			strcmp(err.kind, "busy") == 0,
		"cancel", &err);
	pthread_join(thread, NULL);
	deltabucket_client_free(deaf);
	close(listener);
}

int main(int argc, char **argv)
{
	struct deltabucket_error err = {0};
	pthread_t threads[THREADS];
	int numbers[THREADS];
	int is_json = 0;
	if (argc != 4)
		return 2;
	folder = argv[1];
	watch = deltabucket_watch_new(NULL);
	client = deltabucket_client_new(NULL, &err);
	expect(client != NULL, "client_new", &err);
	expect(deltabucket_make_bucket(client, "walks", watch, &err) == 0, "make_bucket", &err);
	for (int i = 0; i < THREADS; i++) {
		numbers[i] = i;
		pthread_create(&threads[i], NULL, walk_objects, &numbers[i]);
	}
	walk_deltas(argv[2], argv[3]);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	expect(deltabucket_ask(client, "/v1/runs/walks", keep_answer, &is_json, watch, &err) == 0 &&
			is_json,
		"ask", &err);
	walk_sync();
	walk_cancel();
	deltabucket_client_free(client);
	deltabucket_watch_free(watch);
	puts("walked");
	return 0;
}
