#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/library_walk.h"
#include "weights/device/device_block.h"

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
	walk_expect(model.device != NULL, "device_new", &err);
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
	walk_expect(deltabucket_device_delta_fill(
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
	walk_expect(delta != NULL && facts.blocks > 0, "device_delta_open", &err);
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
	walk_expect(deltabucket_publish(publisher, &publication, NULL, NULL, &err) == 0, "publish",
		&err);
	walk_expect(
		deltabucket_follower_next(follower, -1, 0, &step, NULL, &err) == 1, "next", &err);
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
	walk_expect(deltabucket_patch(
			    model->tensors, model->count, deltas, 1, NULL, NULL, NULL, &err) == 0,
		"patch", &err);
	uint64_t *const made = hash_model(model);
	if (memcmp(made, wanted, deltabucket_device_blocks(model->device) * sizeof(*made)) != 0)
		abort();
	free(made);
	free(wanted);
	free_model(&next);
}

void walk_device(const struct walk *walk)
{
	struct deltabucket_publisher_settings settings = DELTABUCKET_PUBLISHER_SETTINGS;
	struct deltabucket_follower_settings follows = DELTABUCKET_FOLLOWER_SETTINGS;
	struct deltabucket_error err = {0};
	settings.run = follows.run = "walks/device";
	if (strstr(deltabucket_device_source(), "device_apply(") == NULL)
		abort();
	struct deltabucket_publisher *const publisher =
		deltabucket_publisher_open(walk->client, &settings, &err);
	struct deltabucket_follower *const follower =
		deltabucket_follower_open(walk->client, &follows, NULL, &err);
	walk_expect(publisher != NULL && follower != NULL, "open", &err);
	struct deltabucket_step *const first = bring_step(publisher, follower, walk->base);
	struct model model = copy_step(first);
	struct deltabucket_step *const second = bring_step(publisher, follower, walk->next);
	walk_model(&model, second);
	deltabucket_publisher_close(publisher);
	deltabucket_follower_close(follower);
	deltabucket_step_free(first);
	deltabucket_step_free(second);
	free_model(&model);
}
