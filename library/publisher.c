/* A publisher with a state folder opens it anew for each call, as the command line does. One
 * without makes a folder in memory with the first call, when it knows how much room it needs, and
 * holds it until it is closed. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "client/publish/memory_folder.h"
#include "client/publish/rank_epoch.h"
#include "library/call.h"
#include "library/publication.h"
#include "library/sized.h"

enum { SPARE_BYTES = 64 << 20 /* for deltas */ };

struct deltabucket_publisher {
	const struct deltabucket_client *client;
	struct deltabucket_publisher_settings settings; /* its texts are owned */
	struct private_folder folder;                   /* without a state folder */
	struct kept_mapping mapping;                    /* of a file in that folder */
	struct file_ops volatile_files;                 /* for that folder: nothing is synced */
	bool has_published;
	bool is_alone, is_rank; /* what it was asked for; the two keep different states */
	uint64_t epoch;         /* as a rank; 0: none */
};

static int check_settings(const struct deltabucket_publisher_settings *settings, struct error *err);
static int check_rank(
	struct deltabucket_publisher *publisher, const struct rank_order *rank, struct error *err);
static int publish(struct deltabucket_publisher *publisher, struct library_call *call,
	struct library_publication *publication, struct publish_outcome *out);
static int make_folder(struct deltabucket_publisher *publisher, struct library_call *call,
	const struct library_publication *publication);
static void complete_order(struct deltabucket_publisher *publisher, struct publish_order *order);
static void complete_rank(const struct deltabucket_publisher *publisher, struct rank_order *rank);
static int give(struct deltabucket_published *out, const struct publish_outcome *outcome,
	struct error *err);

struct deltabucket_publisher *deltabucket_publisher_open(struct deltabucket_client *client,
	const struct deltabucket_publisher_settings *settings, struct deltabucket_error *err)
{
	struct deltabucket_publisher_settings taken = DELTABUCKET_PUBLISHER_SETTINGS;
	struct error failure = {0};
	if (library_check(client, "client", &failure) != 0 ||
		library_check(settings, "settings", &failure) != 0 ||
		sized_take(&taken, sizeof(taken), settings, "deltabucket_publisher_settings",
			&failure) != 0 ||
		check_settings(&taken, &failure) != 0) {
		library_error_give(&failure, err);
		return NULL;
	}
	struct deltabucket_publisher *const publisher = memory_new(sizeof(*publisher));
	*publisher = (struct deltabucket_publisher){.client = client,
		.settings = taken,
		.folder = {.lock_fd = -1},
		.volatile_files = *file_system()};
	publisher->settings.run = memory_copy_text(taken.run);
	publisher->settings.state = memory_copy_text(taken.state);
	publisher->volatile_files.is_volatile = true;
	return publisher;
}

int deltabucket_publish(struct deltabucket_publisher *publisher,
	const struct deltabucket_publication *publication, struct deltabucket_published *out,
	struct deltabucket_watch *watch, struct deltabucket_error *err)
{
	struct library_call call;
	struct library_publication read;
	struct publish_outcome outcome = {0};
	library_call_begin(&call, publisher != NULL ? publisher->client : NULL, watch);
	int result = library_publication_read(&read, publication, &call.failure);
	if (result == 0)
		result = library_check(publisher, "publisher", &call.failure);
	if (result == 0)
		result = check_rank(publisher, &read.rank, &call.failure);
	if (result == 0 && out != NULL) /* a wrong size is found before anything is sent */
		result = give(out, &outcome, &call.failure);
	if (result == 0)
		result = publish(publisher, &call, &read, &outcome);
	if (result == 0 && out != NULL)
		result = give(out, &outcome, &call.failure);
	library_publication_release(&read);
	return library_call_end(&call, result, err);
}

int deltabucket_publisher_epoch(struct deltabucket_publisher *publisher, uint64_t *out_epoch,
	struct deltabucket_watch *watch, struct deltabucket_error *err)
{
	struct publish_order order = {0};
	struct library_call call;
	library_call_begin(&call, publisher != NULL ? publisher->client : NULL, watch);
	int result = library_check(publisher, "publisher", &call.failure);
	if (result == 0)
		result = library_check(out_epoch, "out_epoch", &call.failure);
	if (result == 0) {
		complete_order(publisher, &order);
		result = rank_epoch_new(&call.session, publisher->settings.run, &order,
			&publisher->epoch, &call.failure);
	}
	if (result == 0)
		*out_epoch = publisher->epoch;
	return library_call_end(&call, result, err);
}

void deltabucket_publisher_close(struct deltabucket_publisher *publisher)
{
	if (publisher == NULL)
		return;
	kept_mapping_release(&publisher->mapping);
	private_folder_remove(&publisher->folder);
	free((char *)publisher->settings.run);
	free((char *)publisher->settings.state);
	free(publisher);
}

static int check_settings(const struct deltabucket_publisher_settings *settings, struct error *err)
{
	struct run_name run;
	if (library_check(settings->run, "run", err) != 0 ||
		run_name_init(&run, settings->run, err) != 0)
		return -1;
	run_name_release(&run);
	return settings->state == NULL || settings->state[0] != '\0'
		? 0
		: error_set(err, ERROR_INVALID,
			  "the state is \"\"; it is a folder, or NULL for a state in memory");
}

static int check_rank(
	struct deltabucket_publisher *publisher, const struct rank_order *rank, struct error *err)
{
	const bool is_rank = rank->ranks > 0;
	if (is_rank ? publisher->is_alone : publisher->is_rank)
		return error_set(err, ERROR_INVALID,
			"this publisher of run %s has published %s before; open another one for "
			"that",
			publisher->settings.run, is_rank ? "alone" : "as a rank");
	if (rank->ranks > 1 && !rank->has_epoch && publisher->settings.state == NULL)
		return error_set(err, ERROR_INVALID,
			"ranks without a state folder in common need an epoch: rank 0 asks for it, "
			"and tells the others");
	publisher->is_rank = is_rank;
	publisher->is_alone = !is_rank;
	return 0;
}

static int publish(struct deltabucket_publisher *publisher, struct library_call *call,
	struct library_publication *publication, struct publish_outcome *out)
{
	struct publish_order *const order = &publication->order;
	if (publisher->settings.state == NULL) {
		if (make_folder(publisher, call, publication) != 0)
			return -1;
		call->session.files = &publisher->volatile_files;
	}
	complete_order(publisher, order);
	complete_rank(publisher, &publication->rank);
	const int result = publication->rank.ranks == 0
		? publisher_run(&call->session, publisher->settings.run, order, out, &call->failure)
		: rank_publisher_run(&call->session, publisher->settings.run, order,
			  &publication->rank, out, &call->failure);
	publisher->has_published = publisher->has_published || result == 0;
	if (out->epoch != 0)
		publisher->epoch = out->epoch;
	return result;
}

/* A step that goes whole lies there beside the one before it for a while. */
static int make_folder(struct deltabucket_publisher *publisher, struct library_call *call,
	const struct library_publication *publication)
{
	const struct memory_places places = memory_places_find();
	uint64_t bytes = 0;
	if (publisher->folder.path != NULL)
		return 0;
	if (library_publication_bytes(publication, &bytes, &call->failure) != 0)
		return -1;
	return memory_folder_make(&publisher->folder, &places, 2 * bytes + SPARE_BYTES,
		&call->session.output, &call->failure);
}

/* A take-over counts once: a publisher that takes the run from this one later keeps it. */
static void complete_order(struct deltabucket_publisher *publisher, struct publish_order *order)
{
	const struct deltabucket_publisher_settings *const settings = &publisher->settings;
	const bool in_memory = settings->state == NULL;
	order->state_folder = in_memory ? publisher->folder.path : settings->state;
	order->state_lock = in_memory ? &publisher->folder.lock_fd : NULL;
	order->mapping = in_memory ? &publisher->mapping : NULL;
	order->take_over = settings->take_over != 0 && !publisher->has_published;
	order->create_bucket = settings->create_bucket != 0;
	order->has_keep_steps = settings->keep_steps >= 0;
	order->keep_steps = order->has_keep_steps ? (uint64_t)settings->keep_steps : 0;
	order->threads = publisher->client->threads;
}

/* A rank that publishes alone, without a state folder, takes its epoch from its caller or else goes
 * on with the one that it had last. */
static void complete_rank(const struct deltabucket_publisher *publisher, struct rank_order *rank)
{
	if (rank->ranks != 1 || rank->has_epoch || publisher->settings.state != NULL)
		return;
	rank->has_epoch = publisher->epoch != 0;
	rank->epoch = publisher->epoch;
}

static int give(
	struct deltabucket_published *out, const struct publish_outcome *outcome, struct error *err)
{
	struct deltabucket_published made = {
		.step = outcome->step,
		.already = outcome->already,
		.anchor_due = outcome->anchor_due,
		.checkpoint_bytes = outcome->checkpoint_bytes,
		.delta_bytes = outcome->delta_bytes,
		.anchor_bytes = outcome->anchor_bytes,
		.elements = outcome->stats.elements,
		.changed_elements = outcome->stats.changed_elements,
		.diff_ms = outcome->diff_ms,
		.upload_ms = outcome->upload_ms,
	};
	_Static_assert((int)DELTABUCKET_DIGEST_BYTES == (int)DIGEST128_TEXT_BYTES, "room for it");
	digest128_format(&outcome->digest, made.digest);
	return sized_give(out, &made, sizeof(made), "deltabucket_published", err);
}
