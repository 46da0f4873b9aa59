/* usage: library_walk FOLDER BASE NEXT   uses libdeltabucket as a program in C would, from several
 * threads, and compares what comes back. FOLDER must be empty; BASE and NEXT are two checkpoints of
 * one model. The environment says which server. Ends with 0 when all is well; the sanitizer that it
 * was built with tells the rest. */
#include "tests/support/library_walk.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, BYTES = 200 * 1000 };

struct objects {
	const struct walk *walk;
	int number;
};

static struct deltabucket_watch *watch;

void walk_expect(int is_so, const char *what, const struct deltabucket_error *err)
{
	if (is_so)
		return;
	fprintf(stderr, "library_walk: %s: %s: %s\n", what, err->kind, err->text);
	exit(1);
}

void walk_expect_kind(
	int result, const char *kind, const char *what, const struct deltabucket_error *err)
{
	walk_expect(result == -1 && strcmp(err->kind, kind) == 0, what, err);
}

void walk_path(const struct walk *walk, const char *name, char out[WALK_PATH_BYTES])
{
	snprintf(out, WALK_PATH_BYTES, "%s/%s", walk->folder, name);
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
	const struct objects *const objects = argument;
	struct deltabucket_client *const client = objects->walk->client;
	const int number = objects->number;
	struct deltabucket_error err = {0};
	char key[WALK_OWN_BYTES], name[WALK_OWN_BYTES], from[WALK_PATH_BYTES], to[WALK_PATH_BYTES];
	unsigned char *const sent = malloc(BYTES);
	unsigned char *const came = malloc(BYTES);
	size_t len = 0;
	int found = 0;
	if (sent == NULL || came == NULL)
		abort();
	fill(sent, number);
	snprintf(key, sizeof(key), "walk/%d", number);
	walk_path(objects->walk, key + 5, from);
	write_file(from, sent);
	snprintf(name, sizeof(name), "%d.to", number);
	walk_path(objects->walk, name, to);
	walk_expect(deltabucket_put_file(client, "walks", key, from, watch, &err) == 0, "put_file",
		&err);
	walk_expect(
		deltabucket_get_file(client, "walks", key, to, watch, &err) == 0, "get_file", &err);
	walk_expect(
		deltabucket_get(client, "walks", key, 0, came, BYTES, &len, NULL, watch, &err) == 0,
		"get", &err);
	if (len != BYTES || memcmp(sent, came, BYTES) != 0)
		abort();
	walk_expect(deltabucket_head(client, "walks", key, count_found, &found, watch, &err) == 0,
		"head", &err);
	walk_expect(
		deltabucket_list(client, "walks", key, NULL, count_found, &found, watch, &err) == 0,
		"list", &err);
	if (found != 2)
		abort();
	walk_expect(deltabucket_put(client, "walks", key, sent, 10, watch, &err) == 0, "put", &err);
	walk_expect(deltabucket_remove(client, "walks", key, watch, &err) == 0, "remove", &err);
	walk_expect(deltabucket_get_file(client, "walks", key, to, watch, &err) == -1 &&
			strcmp(err.kind, "no_key") == 0 && err.request_id[0] != '\0',
		"get_file of nothing", &err);
	free(came);
	free(sent);
	return NULL;
}

static void walk_deltas(const struct walk *walk)
{
	struct deltabucket_error err = {0};
	char delta[WALK_PATH_BYTES], whole[WALK_PATH_BYTES];
	const char *const deltas[] = {delta};
	walk_path(walk, "delta", delta);
	walk_path(walk, "whole", whole);
	walk_expect(deltabucket_diff(walk->base, walk->next, delta, NULL, watch, &err) == 0, "diff",
		&err);
	walk_expect(
		deltabucket_apply(walk->base, deltas, 1, whole, watch, &err) == 0, "apply", &err);
	walk_expect(deltabucket_apply(walk->next, deltas, 1, delta, watch, &err) == -1,
		"apply onto a file", &err);
	walk_expect(deltabucket_diff(walk->base, walk->next, delta, "nosuch", watch, NULL) == -1,
		"a format", &err);
}

int main(int argc, char **argv)
{
	struct deltabucket_error err = {0};
	pthread_t threads[THREADS];
	struct objects objects[THREADS];
	int is_json = 0;
	if (argc != 4)
		return 2;
	struct walk walk = {.folder = argv[1], .base = argv[2], .next = argv[3]};
	watch = deltabucket_watch_new(NULL);
	walk.client = deltabucket_client_new(NULL, &err);
	walk_expect(walk.client != NULL, "client_new", &err);
	walk_expect(deltabucket_make_bucket(walk.client, "walks", watch, &err) == 0, "make_bucket",
		&err);
	for (int i = 0; i < THREADS; i++) {
		objects[i] = (struct objects){&walk, i};
		pthread_create(&threads[i], NULL, walk_objects, &objects[i]);
	}
	walk_deltas(&walk);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	walk_run(&walk);
	walk_expect(deltabucket_ask(walk.client, "/v1/runs/walks/run", keep_answer, &is_json, watch,
			    &err) == 0 &&
			is_json,
		"ask", &err);
	walk_sync(&walk);
	walk_ranks(&walk);
	walk_device(&walk);
	walk_silence(&walk);
	deltabucket_client_free(walk.client);
	deltabucket_watch_free(watch);
	puts("walked");
	return 0;
}
