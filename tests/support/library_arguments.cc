/* A program in C++ that passes libdeltabucket what it must not: every failure has its kind and a
 * text in UTF-8, and nothing else happens. It needs no server. Prints "refused" at the end. */
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <deltabucket.h>

static const char BROKEN[] = "\xff\xfe";

static void end(const char *call, const deltabucket_error &err)
{
	std::fprintf(stderr, "library_arguments: %s: %s: %s\n", call, err.kind, err.text);
	std::exit(1);
}

static void check(const char *call, bool is_refused, const deltabucket_error &err, const char *kind)
{
	if (!is_refused || std::strcmp(err.kind, kind) != 0 || err.text[0] == '\0')
		end(call, err);
	for (const char *at = err.text; *at != '\0'; at++)
		if (std::strchr(BROKEN, *at) != NULL)
			end(call, err);
}

#define REFUSED(kind, call)                                  \
	do {                                                 \
		deltabucket_error err = deltabucket_error(); \
		const bool is_refused = (call) == -1;        \
		check(#call, is_refused, err, kind);         \
	} while (0)
#define NOT_MADE(kind, call)                                 \
	do {                                                 \
		deltabucket_error err = deltabucket_error(); \
		const bool is_refused = (call) == NULL;      \
		check(#call, is_refused, err, kind);         \
	} while (0)

static const uint64_t shape[] = {4};
static unsigned char bytes[8];
static const deltabucket_tensor tensor = {"weight", "BF16", shape, 1, bytes, sizeof(bytes)};

static deltabucket_client *client_new()
{
	deltabucket_error err = deltabucket_error();
	deltabucket_client_settings settings = DELTABUCKET_CLIENT_SETTINGS;
	settings.endpoint = "http://127.0.0.1:1";
	deltabucket_client *const client = deltabucket_client_new(&settings, &err);
	if (client == NULL)
		end("deltabucket_client_new", err);
	settings.reserved = 1;
	NOT_MADE("unsupported", deltabucket_client_new(&settings, &err));
	settings = deltabucket_client_settings();
	NOT_MADE("invalid", deltabucket_client_new(&settings, &err));
	return client;
}

static int found(void *, const deltabucket_object *)
{
	return 0;
}

static void refuse_objects(deltabucket_client *client)
{
	size_t len = 0;
	deltabucket_sync_settings sync = DELTABUCKET_SYNC_SETTINGS;
	REFUSED("invalid", deltabucket_put(NULL, "bucket", "key", "", 0, NULL, &err));
	REFUSED("invalid", deltabucket_put(client, NULL, "key", "", 0, NULL, &err));
	REFUSED("invalid", deltabucket_put(client, "bucket", "", "", 0, NULL, &err));
	REFUSED("invalid", deltabucket_put(client, "bucket", "key", NULL, 1, NULL, &err));
	REFUSED("invalid", deltabucket_put_file(client, "bucket", "key", NULL, NULL, &err));
	REFUSED("invalid", deltabucket_get(client, "b", "k", 0, NULL, 1, &len, NULL, NULL, &err));
	REFUSED("invalid", deltabucket_get(client, "b", "k", 0, bytes, 1, NULL, NULL, NULL, &err));
	REFUSED("invalid", deltabucket_list(NULL, "b", "", "", found, NULL, NULL, &err));
	REFUSED("invalid", deltabucket_list(client, "b", "", "", NULL, NULL, NULL, &err));
	REFUSED("invalid", deltabucket_ask(client, "v1", NULL, NULL, NULL, &err));
	REFUSED("invalid", deltabucket_sync(client, NULL, NULL, NULL, &err));
	REFUSED("invalid", deltabucket_sync(client, &sync, NULL, NULL, &err));
	sync.bucket = "bucket";
	sync.folder = "folder";
	sync.direction = BROKEN;
	REFUSED("invalid", deltabucket_sync(client, &sync, NULL, NULL, &err));
}

static void refuse_deltas()
{
	const char *const deltas[] = {NULL};
	int is_spoiled = 1;
	deltabucket_tensor tensors[] = {tensor, tensor};
	REFUSED("invalid", deltabucket_diff(NULL, "next", "out", NULL, NULL, &err));
	REFUSED("invalid", deltabucket_diff("base", "next", "out", BROKEN, NULL, &err));
	REFUSED("invalid", deltabucket_apply("base", NULL, 1, "out", NULL, &err));
	REFUSED("invalid", deltabucket_apply("base", deltas, 1, "out", NULL, &err));
	REFUSED("invalid", deltabucket_patch(tensors, 1, deltas, 1, NULL, &is_spoiled, NULL, &err));
	if (is_spoiled != 0)
		std::exit(1);
}

static void refuse_device()
{
	deltabucket_error none = deltabucket_error();
	deltabucket_device_delta_facts facts = DELTABUCKET_DEVICE_DELTA_FACTS;
	deltabucket_tensor tensors[] = {tensor, tensor};
	NOT_MADE("invalid", deltabucket_device_new(NULL, 1, &err));
	NOT_MADE("invalid", deltabucket_device_new(tensors, 2, &err));
	tensors[1].name = BROKEN;
	NOT_MADE("invalid", deltabucket_device_new(tensors, 2, &err));
	tensors[1].name = NULL;
	NOT_MADE("invalid", deltabucket_device_new(tensors, 2, &err));
	deltabucket_device *const device = deltabucket_device_new(tensors, 1, &none);
	if (device == NULL)
		end("deltabucket_device_new", none);
	NOT_MADE("invalid", deltabucket_device_delta_open(NULL, "delta", &facts, &err));
	NOT_MADE("invalid", deltabucket_device_delta_open(device, NULL, &facts, &err));
	NOT_MADE("invalid", deltabucket_device_delta_open(device, "delta", NULL, &err));
	NOT_MADE("not_found", deltabucket_device_delta_open(device, "nosuch", &facts, &err));
	REFUSED("invalid", deltabucket_device_delta_fill(NULL, bytes, bytes, 1, &err));
	deltabucket_device_free(device);
}

/* A struct of a program that was built against another header. */
static void refuse_sizes(deltabucket_publisher *publisher)
{
	struct longer {
		deltabucket_publication known;
		uint64_t unknown;
	} made = {DELTABUCKET_PUBLICATION, 0};
	deltabucket_published out = DELTABUCKET_PUBLISHED;
	made.known.path = "nosuch";
	out.size = 0;
	REFUSED("invalid", deltabucket_publish(publisher, &made.known, &out, NULL, &err));
	made.known.size = sizeof(made);
	REFUSED("not_found", deltabucket_publish(publisher, &made.known, NULL, NULL, &err));
	made.unknown = 1;
	REFUSED("unsupported", deltabucket_publish(publisher, &made.known, NULL, NULL, &err));
	made.known.size = offsetof(deltabucket_publication, rank);
	made.known.rank = 7; /* behind its end */
	REFUSED("not_found", deltabucket_publish(publisher, &made.known, NULL, NULL, &err));
}

static void refuse_texts(deltabucket_publisher *publisher)
{
	const char *const broken[] = {"name", BROKEN, NULL};
	const char *const twice[] = {"name", "a", "name", "b", NULL};
	const char *const half[] = {"name", NULL};
	deltabucket_publication publication = DELTABUCKET_PUBLICATION;
	publication.path = "nosuch";
	publication.label = BROKEN;
	REFUSED("invalid", deltabucket_publish(publisher, &publication, NULL, NULL, &err));
	publication.label = NULL;
	publication.anchor = BROKEN;
	REFUSED("invalid", deltabucket_publish(publisher, &publication, NULL, NULL, &err));
	publication.anchor = NULL;
	publication.metadata = broken;
	REFUSED("invalid", deltabucket_publish(publisher, &publication, NULL, NULL, &err));
	publication.metadata = twice;
	REFUSED("invalid", deltabucket_publish(publisher, &publication, NULL, NULL, &err));
	publication.metadata = half;
	REFUSED("invalid", deltabucket_publish(publisher, &publication, NULL, NULL, &err));
}

static void refuse_publications(deltabucket_client *client)
{
	deltabucket_error none = deltabucket_error();
	uint64_t epoch = 0;
	deltabucket_publisher_settings settings = DELTABUCKET_PUBLISHER_SETTINGS;
	NOT_MADE("invalid", deltabucket_publisher_open(NULL, &settings, &err));
	NOT_MADE("invalid", deltabucket_publisher_open(client, &settings, &err));
	settings.run = "norun";
	NOT_MADE("bad_name", deltabucket_publisher_open(client, &settings, &err));
	settings.run = "bucket/run";
	deltabucket_publisher *const publisher =
		deltabucket_publisher_open(client, &settings, &none);
	if (publisher == NULL)
		end("deltabucket_publisher_open", none);
	refuse_sizes(publisher);
	refuse_texts(publisher);
	REFUSED("invalid", deltabucket_publish(publisher, NULL, NULL, NULL, &err));
	REFUSED("invalid", deltabucket_publisher_epoch(NULL, &epoch, NULL, &err));
	REFUSED("invalid", deltabucket_publisher_epoch(publisher, NULL, NULL, &err));
	deltabucket_publisher_close(publisher);
}

static void refuse_following(deltabucket_client *client)
{
	deltabucket_error none = deltabucket_error();
	struct deltabucket_step *step = NULL;
	deltabucket_follower_settings settings = DELTABUCKET_FOLLOWER_SETTINGS;
	NOT_MADE("invalid", deltabucket_follower_open(client, NULL, NULL, &err));
	NOT_MADE("invalid", deltabucket_follower_open(client, &settings, NULL, &err));
	settings.run = "bucket/run";
	NOT_MADE("invalid", deltabucket_follower_open(NULL, &settings, NULL, &err));
	deltabucket_follower *const follower =
		deltabucket_follower_open(client, &settings, NULL, &none);
	if (follower == NULL)
		end("deltabucket_follower_open", none);
	REFUSED("invalid", deltabucket_follower_next(NULL, -1, 0, &step, NULL, &err));
	REFUSED("invalid", deltabucket_follower_next(follower, -1, 0, NULL, NULL, &err));
	REFUSED("invalid", deltabucket_follower_report(NULL, "ready", NULL, &err));
	REFUSED("invalid", deltabucket_follower_report(follower, BROKEN, NULL, &err));
	REFUSED("not_ready", deltabucket_follower_report(follower, "ready", NULL, &err));
	REFUSED("invalid", deltabucket_follower_paused(NULL, 1, &err));
	REFUSED("not_ready", deltabucket_follower_paused(follower, 1, &err));
	REFUSED("invalid", deltabucket_step_changes(NULL, 0, NULL, NULL, &err));
	deltabucket_follower_close(follower);
}

/* Each macro is a value, so that a struct can be set anew. */
static void use_macros()
{
	struct deltabucket_step_facts facts = DELTABUCKET_STEP_FACTS;
	deltabucket_patch_settings patch = DELTABUCKET_PATCH_SETTINGS;
	deltabucket_synced synced = DELTABUCKET_SYNCED;
	deltabucket_watch_settings watch = DELTABUCKET_WATCH_SETTINGS;
	deltabucket_publication publication = deltabucket_publication();
	publication = DELTABUCKET_PUBLICATION;
	if (publication.step != -1 || publication.size != sizeof(publication) ||
		facts.size != sizeof(facts) || patch.size != sizeof(patch) ||
		synced.size != sizeof(synced) || watch.size != sizeof(watch))
		std::exit(1);
}

int main()
{
	deltabucket_client *const client = client_new();
	use_macros();
	refuse_objects(client);
	refuse_deltas();
	refuse_device();
	refuse_publications(client);
	refuse_following(client);
	deltabucket_client_free(client);
	std::puts("refused");
	return 0;
}
