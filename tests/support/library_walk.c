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
#include "weights/device/device_block.h"

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

/* Two tensors, of which the other byte is `value`. */
static void publish_rank(
	struct deltabucket_publisher *publisher, unsigned rank, uint64_t epoch, unsigned char value)
{
	static const uint64_t shape[] = {OWN_BYTES};
	static const char index[] = "{\"weight_map\":{\"a\":\"model-00001-of-00002.safetensors\","
				    "\"b\":\"model-00002-of-00002.safetensors\"}}";
	unsigned char bytes[OWN_BYTES] = {value};
	const struct deltabucket_tensor tensor = {.name = rank == 0 ? "a" : "b",
		.dtype = "U8",
		.shape = shape,
		.rank = 1,
		.data = bytes,
		.bytes = sizeof(bytes)};
	const struct deltabucket_file file = {
		.path = "model.safetensors.index.json", .bytes = index, .len = sizeof(index) - 1};
	struct deltabucket_publication publication = DELTABUCKET_PUBLICATION;
	struct deltabucket_published published = DELTABUCKET_PUBLISHED;
	struct deltabucket_error err = {0};
	publication.tensors = &tensor;
	publication.tensor_count = 1;
	publication.files = &file;
	publication.file_count = 1;
	publication.rank = rank;
	publication.ranks = 2;
	publication.epoch = epoch;
	publication.wait_s = rank == 0 ? -1 : 0; /* rank 1 brings the last part */
	const int result = deltabucket_publish(publisher, &publication, &published, watch, &err);
	expect(rank == 0 ? result == -1 && strcmp(err.kind, "not_ready") == 0
			 : result == 0 && (published.delta_bytes > 0) == (value > 0),
		"publish as a rank", &err);
}

static void follow_part(unsigned char value)
{
	struct deltabucket_follower_settings settings = DELTABUCKET_FOLLOWER_SETTINGS;
	struct deltabucket_error err = {0};
	struct deltabucket_step *step = NULL;
	struct deltabucket_tensor tensor;
	settings.run = "walks/ranks";
	settings.tensors = "b";
	struct deltabucket_follower *const follower =
		deltabucket_follower_open(client, &settings, watch, &err);
	expect(follower != NULL, "follower_open", &err);
	expect(deltabucket_follower_next(follower, -1, 0, &step, watch, &err) == 1, "next", &err);
	deltabucket_step_tensor(step, 0, &tensor);
	if (strcmp(tensor.name, "b") != 0 || *(const unsigned char *)tensor.data != value)
		abort();
	deltabucket_step_free(step);
	deltabucket_follower_close(follower);
}

static void walk_ranks(void)
{
	struct deltabucket_publisher_settings settings = DELTABUCKET_PUBLISHER_SETTINGS;
	struct deltabucket_publisher *ranks[2];
	struct deltabucket_error err = {0};
	uint64_t epoch = 0;
	settings.run = "walks/ranks";
	for (unsigned rank = 0; rank < 2; rank++) {
		ranks[rank] = deltabucket_publisher_open(client, &settings, &err);
		expect(ranks[rank] != NULL, "publisher_open", &err);
	}
	expect(deltabucket_publisher_epoch(ranks[0], &epoch, watch, &err) == 0, "epoch", &err);
	for (unsigned char step = 0; step < 3; step++) {
		for (unsigned rank = 0; rank < 2; rank++)
			publish_rank(ranks[rank], rank, epoch, step);
		follow_part(step);
	}
	for (unsigned rank = 0; rank < 2; rank++)
		deltabucket_publisher_close(ranks[rank]);
}

/* The tensors of a step, in memory of our own, and the device that this memory stands for. */
struct model {
	struct deltabucket_tensor *tensors;
	size_t count;
	struct deltabucket_device *device;
};

static void *own_memory(size_t count, size_t bytes)
{
	void *const made = calloc(count + 1, bytes);
	if (made == NULL)
		abort();
	return made;
}

static struct model copy_step(const struct deltabucket_step *step)
{
	struct deltabucket_step_facts facts = DELTABUCKET_STEP_FACTS;
	struct deltabucket_error err = {0};
	struct model model = {NULL, 0, NULL};
	deltabucket_step_facts(step, &facts);
	model.count = facts.tensor_count;
	model.tensors = own_memory(model.count, sizeof(*model.tensors));
	for (size_t i = 0; i < model.count; i++) {
		struct deltabucket_tensor *const tensor = &model.tensors[i];
		deltabucket_step_tensor(step, i, tensor);
		void *const bytes = own_memory((size_t)tensor->bytes, 1);
		memcpy(bytes, tensor->data, (size_t)tensor->bytes);
		tensor->data = bytes;
	}
	model.device = deltabucket_device_new(model.tensors, model.count, &err);
	expect(model.device != NULL, "device_new", &err);
	return model;
}

static void free_model(struct model *model)
{
	for (size_t i = 0; i < model->count; i++)
		free(model->tensors[i].data);
	free(model->tensors);
	deltabucket_device_free(model->device);
}

static uint64_t *hash_model(const struct model *model)
{
	const size_t blocks = deltabucket_device_blocks(model->device);
	uint64_t *const hashes = own_memory(blocks, sizeof(*hashes));
	const void **const places = own_memory(model->count, sizeof(*places));
	unsigned char *const table = own_memory(blocks, DELTABUCKET_DEVICE_BLOCK_BYTES);
	for (size_t i = 0; i < model->count; i++)
		places[i] = model->tensors[i].data;
	deltabucket_device_hash(model->device, places, 2, hashes);
	if (deltabucket_device_keep(model->device, hashes, table) != blocks)
		abort();
	free(table);
	free(places);
	return hashes;
}

/* A delta of a device while two threads fill tables of their own from it. */
struct filling {
	const struct deltabucket_device_delta *delta;
	struct deltabucket_device_delta_facts facts;
	unsigned char *upload;
	struct device_block *blocks;
};

static void *fill_table(void *argument)
{
	struct filling *const filling = argument;
	struct deltabucket_error err = {0};
	filling->upload = own_memory((size_t)filling->facts.upload_bytes, 1);
	filling->blocks = own_memory(filling->facts.blocks, sizeof(*filling->blocks));
	expect(deltabucket_device_delta_fill(
		       filling->delta, filling->upload, filling->blocks, 2, &err) == 0,
		"device_delta_fill", &err);
	return NULL;
}

/* The table says of each block what the model must become there: `wanted` has those hashes. */
static void walk_device_delta(const struct model *model, const char *path, const uint64_t *wanted)
{
	struct deltabucket_device_delta_facts facts = DELTABUCKET_DEVICE_DELTA_FACTS;
	struct deltabucket_error err = {0};
	pthread_t thread;
	struct deltabucket_device_delta *const delta =
		deltabucket_device_delta_open(model->device, path, &facts, &err);
	expect(delta != NULL && facts.blocks > 0, "device_delta_open", &err);
	struct filling fillings[] = {{delta, facts, NULL, NULL}, {delta, facts, NULL, NULL}};
	pthread_create(&thread, NULL, fill_table, &fillings[0]);
	fill_table(&fillings[1]);
	pthread_join(thread, NULL);
	if (memcmp(fillings[0].upload, fillings[1].upload, (size_t)facts.upload_bytes) != 0)
		abort();
	for (size_t i = 0; i < facts.blocks; i++)
		if (fillings[1].blocks[i].result_hash != wanted[fillings[0].blocks[i].number])
			abort();
	for (size_t i = 0; i < 2; i++) {
		free(fillings[i].upload);
		free(fillings[i].blocks);
	}
	deltabucket_device_delta_close(delta);
}

static void *read_step(void *argument)
{
	struct model read = copy_step(argument);
	free_model(&read);
	return NULL;
}

static struct deltabucket_step *bring_step(struct deltabucket_publisher *publisher,
	struct deltabucket_follower *follower, const char *path)
{
	struct deltabucket_publication publication = DELTABUCKET_PUBLICATION;
	struct deltabucket_error err = {0};
	struct deltabucket_step *step = NULL;
	pthread_t thread;
	publication.path = path;
	expect(deltabucket_publish(publisher, &publication, NULL, watch, &err) == 0, "publish",
		&err);
	expect(deltabucket_follower_next(follower, -1, 0, &step, watch, &err) == 1, "next", &err);
	pthread_create(&thread, NULL, read_step, step);
	read_step(step); /* any number of threads may read it */
	pthread_join(thread, NULL);
	return step;
}

/* Brings the model from one step to the next, and lays the same delta out for its device. */
static void walk_model(struct model *model, const struct deltabucket_step *step)
{
	struct deltabucket_error err = {0};
	const char *const deltas[] = {deltabucket_step_delta(step, 0)};
	struct model next = copy_step(step);
	uint64_t *const wanted = hash_model(&next);
	if (deltas[0] == NULL || deltabucket_step_delta(step, 1) != NULL)
		abort();
	walk_device_delta(model, deltas[0], wanted);
	expect(deltabucket_patch(
		       model->tensors, model->count, deltas, 1, NULL, NULL, watch, &err) == 0,
		"patch", &err);
	uint64_t *const made = hash_model(model);
	if (memcmp(made, wanted, deltabucket_device_blocks(model->device) * sizeof(*made)) != 0)
		abort();
	free(made);
	free(wanted);
	free_model(&next);
}

/* A worker in memory whose weights lie on a device, too. The device outlives all else. */
static void walk_device(const char *base, const char *next)
{
	struct deltabucket_publisher_settings settings = DELTABUCKET_PUBLISHER_SETTINGS;
	struct deltabucket_follower_settings follows = DELTABUCKET_FOLLOWER_SETTINGS;
	struct deltabucket_error err = {0};
	settings.run = follows.run = "walks/device";
	if (strstr(deltabucket_device_source(), "device_apply(") == NULL)
		abort();
	struct deltabucket_publisher *const publisher =
		deltabucket_publisher_open(client, &settings, &err);
	struct deltabucket_follower *const follower =
		deltabucket_follower_open(client, &follows, watch, &err);
	expect(publisher != NULL && follower != NULL, "open", &err);
	struct deltabucket_step *const first = bring_step(publisher, follower, base);
	struct model model = copy_step(first);
	struct deltabucket_step *const second = bring_step(publisher, follower, next);
	walk_model(&model, second);
	deltabucket_publisher_close(publisher);
	deltabucket_follower_close(follower);
	deltabucket_step_free(first);
	deltabucket_step_free(second);
	free_model(&model);
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
	walk_ranks();
	walk_device(argv[2], argv[3]);
	walk_cancel();
	deltabucket_client_free(client);
	deltabucket_watch_free(watch);
	puts("walked");
	return 0;
}
