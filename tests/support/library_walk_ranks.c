#include <stdlib.h>
#include <string.h>

#include "tests/support/library_walk.h"

static void publish_rank(struct deltabucket_publisher *publisher, unsigned rank, uint64_t epoch,
	unsigned char value);
static void follow_part(const struct walk *walk, unsigned char value);

void walk_ranks(const struct walk *walk)
{
	struct deltabucket_publisher_settings settings = DELTABUCKET_PUBLISHER_SETTINGS;
	struct deltabucket_publisher *ranks[2];
	struct deltabucket_error err = {0};
	uint64_t epoch = 0;
	settings.run = "walks/ranks";
	for (unsigned rank = 0; rank < 2; rank++) {
		ranks[rank] = deltabucket_publisher_open(walk->client, &settings, &err);
		walk_expect(ranks[rank] != NULL, "publisher_open", &err);
	}
	walk_expect(deltabucket_publisher_epoch(ranks[0], &epoch, NULL, &err) == 0, "epoch", &err);
	for (unsigned char step = 0; step < 3; step++) {
		for (unsigned rank = 0; rank < 2; rank++)
			publish_rank(ranks[rank], rank, epoch, step);
		follow_part(walk, step);
	}
	for (unsigned rank = 0; rank < 2; rank++)
		deltabucket_publisher_close(ranks[rank]);
}

/* Two tensors, of which the other byte is `value`. */
static void publish_rank(
	struct deltabucket_publisher *publisher, unsigned rank, uint64_t epoch, unsigned char value)
{
	static const uint64_t shape[] = {WALK_OWN_BYTES};
	static const char index[] = "{\"weight_map\":{\"a\":\"model-00001-of-00002.safetensors\","
				    "\"b\":\"model-00002-of-00002.safetensors\"}}";
	unsigned char bytes[WALK_OWN_BYTES] = {value};
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
	const int result = deltabucket_publish(publisher, &publication, &published, NULL, &err);
	walk_expect(rank == 0 ? result == -1 && strcmp(err.kind, "not_ready") == 0
			      : result == 0 && (published.delta_bytes > 0) == (value > 0),
		"publish as a rank", &err);
}

static void follow_part(const struct walk *walk, unsigned char value)
{
	struct deltabucket_follower_settings settings = DELTABUCKET_FOLLOWER_SETTINGS;
	struct deltabucket_error err = {0};
	struct deltabucket_step *step = NULL;
	struct deltabucket_tensor tensor;
	settings.run = "walks/ranks";
	settings.tensors = "b";
	struct deltabucket_follower *const follower =
		deltabucket_follower_open(walk->client, &settings, NULL, &err);
	walk_expect(follower != NULL, "follower_open", &err);
	walk_expect(
		deltabucket_follower_next(follower, -1, 0, &step, NULL, &err) == 1, "next", &err);
	deltabucket_step_tensor(step, 0, &tensor);
	if (strcmp(tensor.name, "b") != 0 || *(const unsigned char *)tensor.data != value)
		abort();
	deltabucket_step_free(step);
	deltabucket_follower_close(follower);
}
