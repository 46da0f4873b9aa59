#include "tests/support/library_walk.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	STEPS = 6,
	WEIGHTS = 300 * 1000,
	SCALES = 1000,
	TENSORS = 2,
	STRIDE = 37, /* one weight in so many changes with a step */
	WAIT_MS = 120 * 1000,
	CANCELS = 8
};

static const char RUN[] = "walks/run";

/* A model whose bytes follow from the number of the step. */
struct model {
	uint16_t weights[WEIGHTS];
	uint32_t scales[SCALES];
	struct deltabucket_tensor tensors[TENSORS]; /* over these two */
};

struct role {
	const struct walk *walk;
	struct deltabucket_watch *watch;
	const char *folder; /* NULL: the follower works in memory */
};

/* A call that is cancelled after a while. */
struct cancel {
	struct deltabucket_watch *watch;
	int after_ms;
};

static const uint64_t WEIGHTS_SHAPE[] = {WEIGHTS / 100, 100};
static const uint64_t SCALES_SHAPE[] = {SCALES};
static atomic_int told; /* reports of progress and notes */

static struct model *model_new(uint64_t step);
static void model_set(struct model *model, uint64_t step);
static int model_is(const struct model *model, uint64_t step);
static struct deltabucket_publisher *open_publisher(
	const struct walk *walk, const char *run, const char *state, int take_over);
static int publish_model(struct deltabucket_publisher *publisher, const struct model *model,
	struct deltabucket_watch *watch, struct deltabucket_error *err);
static void publish_steps(const struct walk *walk, struct deltabucket_watch *watch);
static void *follow_steps(void *argument);
static struct deltabucket_follower *open_follower(
	const struct role *role, struct deltabucket_error *err);
static void check_step(const struct deltabucket_step *step, struct model *held, uint64_t number);
static void check_changes(
	const struct deltabucket_step *step, const struct model *before, uint64_t number);
static void check_patch(const struct deltabucket_step *step, size_t deltas, struct model *held);
static int walk_found_changes(
	void *owner, const uint64_t *positions, const void *values, size_t count);
static void walk_progress(void *owner, const char *what, uint64_t done, uint64_t total);
static void walk_note(void *owner, const char *sentence);
static void refuse(const struct walk *walk);
static void publish_paths(const struct walk *walk);
static void cancel_publishers(const struct walk *walk);
static void cancel_followers(const struct walk *walk);
static void *cancel_later(void *argument);

void walk_run(const struct walk *walk)
{
	struct deltabucket_watch_settings settings = DELTABUCKET_WATCH_SETTINGS;
	settings.progress = walk_progress;
	settings.note = walk_note;
	struct deltabucket_watch *const watch = deltabucket_watch_new(&settings);
	char folder[WALK_PATH_BYTES];
	struct role roles[] = {{walk, watch, NULL}, {walk, watch, folder}};
	pthread_t threads[2];
	walk_path(walk, "into", folder);
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, follow_steps, &roles[i]) != 0)
			abort();
	publish_steps(walk, watch);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	deltabucket_watch_free(watch);
	refuse(walk);
	publish_paths(walk);
	cancel_publishers(walk);
	cancel_followers(walk);
}

static struct model *model_new(uint64_t step)
{
	struct model *const model = malloc(sizeof(*model));
	if (model == NULL)
		abort();
	model->tensors[0] = (struct deltabucket_tensor){.name = "weights",
		.dtype = "BF16",
		.shape = WEIGHTS_SHAPE,
		.rank = 2,
		.data = model->weights,
		.bytes = sizeof(model->weights)};
	model->tensors[1] = (struct deltabucket_tensor){.name = "scales",
		.dtype = "F32",
		.shape = SCALES_SHAPE,
		.rank = 1,
		.data = model->scales,
		.bytes = sizeof(model->scales)};
	model_set(model, step);
	return model;
}

static void model_set(struct model *model, uint64_t step)
{
	unsigned state = 12345;
	for (unsigned i = 0; i < WEIGHTS; i++) {
		state = state * 1664525u + 1013904223u;
		model->weights[i] = (uint16_t)((state >> 20 & 0xfff) + 0x3c00);
		if (i % STRIDE < step)
			model->weights[i]++;
	}
	for (unsigned i = 0; i < SCALES; i++)
		model->scales[i] = 0x3f800000u + i;
}

static int model_is(const struct model *model, uint64_t step)
{
	struct model *const wanted = model_new(step);
	const int same = memcmp(model->weights, wanted->weights, sizeof(wanted->weights)) == 0 &&
		memcmp(model->scales, wanted->scales, sizeof(wanted->scales)) == 0;
	free(wanted);
	return same;
}

static struct deltabucket_publisher *open_publisher(
	const struct walk *walk, const char *run, const char *state, int take_over)
{
	struct deltabucket_publisher_settings settings = DELTABUCKET_PUBLISHER_SETTINGS;
	struct deltabucket_error err = {0};
	settings.run = run;
	settings.state = state;
	settings.take_over = take_over;
	struct deltabucket_publisher *const publisher =
		deltabucket_publisher_open(walk->client, &settings, &err);
	walk_expect(publisher != NULL, "publisher_open", &err);
	return publisher;
}

static int publish_model(struct deltabucket_publisher *publisher, const struct model *model,
	struct deltabucket_watch *watch, struct deltabucket_error *err)
{
	static const struct deltabucket_file FILES[] = {{"config.json", "{}", 2}};
	struct deltabucket_publication publication = DELTABUCKET_PUBLICATION;
	publication.tensors = model->tensors;
	publication.tensor_count = TENSORS;
	publication.files = FILES;
	publication.file_count = 1;
	return deltabucket_publish(publisher, &publication, NULL, watch, err);
}

static void publish_steps(const struct walk *walk, struct deltabucket_watch *watch)
{
	struct deltabucket_publisher *const publisher = open_publisher(walk, RUN, NULL, 0);
	struct model *const model = model_new(0);
	struct deltabucket_error err = {0};
	for (uint64_t step = 0; step < STEPS; step++) {
		model_set(model, step);
		walk_expect(publish_model(publisher, model, watch, &err) == 0, "publish", &err);
	}
	free(model);
	deltabucket_publisher_close(publisher);
}

/* Stays on the newest step until the last one has come, and then goes back to the first. */
static void *follow_steps(void *argument)
{
	const struct role *const role = argument;
	struct deltabucket_error err = {0};
	struct deltabucket_follower *const follower = open_follower(role, &err);
	struct deltabucket_step *step = NULL;
	struct deltabucket_step_facts facts = {.size = sizeof(facts)};
	struct model *const held = model_new(0);
	walk_expect(follower != NULL, "follower_open", &err);
	while (step == NULL || facts.number < STEPS - 1) {
		deltabucket_step_free(step);
		walk_expect(deltabucket_follower_next(
				    follower, -1, WAIT_MS, &step, role->watch, &err) == 1,
			"follower_next", &err);
		const uint64_t before = facts.number;
		deltabucket_step_facts(step, &facts);
		check_step(step, held, before);
		walk_expect(deltabucket_follower_paused(follower, 12, &err) == 0, "follower_paused",
			&err);
		walk_expect(deltabucket_follower_report(follower, "ready", NULL, &err) == 0,
			"follower_report", &err);
	}
	deltabucket_step_free(step);
	walk_expect(deltabucket_follower_next(follower, 0, WAIT_MS, &step, NULL, &err) == 1,
		"follower_next of step 0", &err);
	deltabucket_follower_close(follower);
	check_step(step, held, 0);
	deltabucket_step_free(step);
	free(held);
	return NULL;
}

static struct deltabucket_follower *open_follower(
	const struct role *role, struct deltabucket_error *err)
{
	struct deltabucket_follower_settings settings = DELTABUCKET_FOLLOWER_SETTINGS;
	settings.run = RUN;
	settings.folder = role->folder;
	settings.keeps_changes = 1;
	settings.replica = role->folder == NULL ? "memory" : "folder";
	return deltabucket_follower_open(role->walk->client, &settings, role->watch, err);
}

/* Compares the step with what its number says; `held` is the model of step `before`, and becomes
 * this one. */
static void check_step(const struct deltabucket_step *step, struct model *held, uint64_t before)
{
	struct deltabucket_step_facts facts = {.size = sizeof(facts)};
	deltabucket_step_facts(step, &facts);
	if (facts.tensor_count != TENSORS)
		abort();
	if (facts.delta_count > 0) {
		model_set(held, before);
		check_changes(step, held, facts.number);
		check_patch(step, facts.delta_count, held);
	}
	for (size_t i = 0; i < TENSORS; i++) {
		struct deltabucket_tensor tensor;
		deltabucket_step_tensor(step, i, &tensor);
		struct deltabucket_tensor *const own = &held->tensors[TENSORS - 1 - i];
		if (strcmp(tensor.name, own->name) != 0 || tensor.bytes != own->bytes)
			abort();
		memcpy(own->data, tensor.data, own->bytes);
	}
	if (!model_is(held, facts.number))
		abort();
}

static void check_changes(
	const struct deltabucket_step *step, const struct model *before, uint64_t number)
{
	struct deltabucket_error err = {0};
	struct model *const changed = model_new(0);
	memcpy(changed->weights, before->weights, sizeof(before->weights));
	walk_expect(deltabucket_step_changes(step, 1, walk_found_changes, changed, &err) == 0,
		"step_changes", &err);
	if (!model_is(changed, number))
		abort();
	free(changed);
}

/* The caller's tensors are not those that the deltas were made from, and then they are. */
static void check_patch(const struct deltabucket_step *step, size_t deltas, struct model *held)
{
	struct deltabucket_patch_settings settings = DELTABUCKET_PATCH_SETTINGS;
	struct deltabucket_error err = {0};
	const char **const paths = malloc(deltas * sizeof(*paths));
	int spoiled = 1;
	if (paths == NULL)
		abort();
	for (size_t i = 0; i < deltas; i++)
		paths[i] = deltabucket_step_delta(step, i);
	settings.proves_first = 1;
	held->scales[0] ^= 1;
	walk_expect_kind(deltabucket_patch(held->tensors, TENSORS, paths, deltas, &settings,
				 &spoiled, NULL, &err),
		"wrong_base", "patch", &err);
	if (spoiled)
		abort();
	held->scales[0] ^= 1;
	walk_expect(deltabucket_patch(
			    held->tensors, TENSORS, paths, deltas, NULL, NULL, NULL, &err) == 0,
		"patch", &err);
	free(paths);
}

static int walk_found_changes(
	void *owner, const uint64_t *positions, const void *values, size_t count)
{
	struct model *const model = owner;
	for (size_t i = 0; i < count; i++)
		memcpy(&model->weights[positions[i]], (const uint16_t *)values + i,
			sizeof(uint16_t));
	return 0;
}

static void walk_progress(void *owner, const char *what, uint64_t done, uint64_t total)
{
	(void)owner;
	if (what[0] == '\0' || (total != 0 && done > total))
		abort();
	atomic_fetch_add(&told, 1);
}

static void walk_note(void *owner, const char *sentence)
{
	(void)owner;
	if (sentence[0] == '\0')
		abort();
	atomic_fetch_add(&told, 1);
}

static void refuse(const struct walk *walk)
{
	struct deltabucket_error err = {0};
	struct model *const model = model_new(STEPS);
	struct deltabucket_publisher *publisher = open_publisher(walk, RUN, NULL, 0);
	walk_expect_kind(publish_model(publisher, model, NULL, &err), "stale_epoch",
		"publish beside another publisher", &err);
	deltabucket_publisher_close(publisher);
	publisher = open_publisher(walk, RUN, NULL, 1);
	model->tensors[1].bytes--;
	walk_expect_kind(publish_model(publisher, model, NULL, &err), "invalid",
		"publish of a short tensor", &err);
	model->tensors[1].bytes++;
	model->tensors[1].name = "others";
	walk_expect_kind(publish_model(publisher, model, NULL, &err), "schema_mismatch",
		"publish of another model", &err);
	deltabucket_publisher_close(publisher);
	walk_expect(deltabucket_publisher_open(walk->client, NULL, &err) == NULL,
		"publisher_open without settings", &err);
	walk_expect_kind(publish_model(NULL, model, NULL, &err), "invalid",
		"publish without a publisher", &err);
	free(model);
}

/* With a state folder, which the second publisher goes on with. */
static void publish_paths(const struct walk *walk)
{
	const char *const paths[] = {walk->base, walk->next};
	struct deltabucket_error err = {0};
	char state[WALK_PATH_BYTES];
	walk_path(walk, "state", state);
	for (int i = 0; i < 2; i++) {
		struct deltabucket_publisher *const publisher =
			open_publisher(walk, "walks/paths", state, 0);
		struct deltabucket_publication publication = DELTABUCKET_PUBLICATION;
		struct deltabucket_published made = DELTABUCKET_PUBLISHED;
		publication.path = paths[i];
		walk_expect(deltabucket_publish(publisher, &publication, &made, NULL, &err) == 0,
			"publish of a path", &err);
		if (made.step != (uint64_t)i || (i == 1 && made.delta_bytes == 0))
			abort();
		deltabucket_publisher_close(publisher);
	}
}

/* Whatever a publish has done when it is cancelled, the same publisher goes on. */
static void cancel_publishers(const struct walk *walk)
{
	struct deltabucket_publisher *const publisher = open_publisher(walk, RUN, NULL, 1);
	struct model *const model = model_new(0);
	struct deltabucket_error err = {0};
	for (int i = 0; i < CANCELS; i++) {
		struct cancel cancel = {deltabucket_watch_new(NULL), i * i};
		pthread_t thread;
		model_set(model, (uint64_t)(STEPS + i));
		if (pthread_create(&thread, NULL, cancel_later, &cancel) != 0)
			abort();
		if (publish_model(publisher, model, cancel.watch, &err) != 0)
			walk_expect_kind(-1, "busy", "publish that is cancelled", &err);
		walk_expect(publish_model(publisher, model, NULL, &err) == 0,
			"publish after a cancelled one", &err);
		pthread_join(thread, NULL);
		deltabucket_watch_free(cancel.watch);
	}
	deltabucket_publisher_close(publisher);
	free(model);
}

static void cancel_followers(const struct walk *walk)
{
	char folder[WALK_PATH_BYTES];
	walk_path(walk, "into", folder);
	for (int i = 0; i < CANCELS; i++) {
		const struct role role = {walk, NULL, i % 2 == 0 ? NULL : folder};
		struct deltabucket_error err = {0};
		struct deltabucket_step *step = NULL;
		struct cancel cancel = {deltabucket_watch_new(NULL), i * i};
		pthread_t thread;
		struct deltabucket_follower *const follower = open_follower(&role, &err);
		walk_expect(follower != NULL, "follower_open", &err);
		if (pthread_create(&thread, NULL, cancel_later, &cancel) != 0)
			abort();
		if (deltabucket_follower_next(
			    follower, i % STEPS, WAIT_MS, &step, cancel.watch, &err) < 0)
			walk_expect_kind(-1, "busy", "follower_next that is cancelled", &err);
		deltabucket_step_free(step);
		if (i % 3 != 0) {
			walk_expect(deltabucket_follower_next(follower, (i + 1) % STEPS, WAIT_MS,
					    &step, NULL, &err) == 1,
				"follower_next after a cancelled one", &err);
			deltabucket_step_free(step);
		}
		deltabucket_follower_close(follower);
		pthread_join(thread, NULL);
		deltabucket_watch_free(cancel.watch);
	}
}

static void *cancel_later(void *argument)
{
	const struct cancel *const cancel = argument;
	const struct timespec pause = {.tv_nsec = cancel->after_ms * 1000000L};
	nanosleep(&pause, NULL);
	deltabucket_watch_cancel(cancel->watch);
	return NULL;
}
