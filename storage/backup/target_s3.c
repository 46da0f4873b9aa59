/* An object is one of a bucket, addressed by path (base/net/s3). The service compares the SHA-256
 * of what arrives with what was sent. The settings are those of other S3 clients:
 * AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION, AWS_ENDPOINT_URL_S3 and
 * AWS_CA_BUNDLE. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/net/s3/s3_listing.h"
#include "storage/backup/backup_target.h"

enum { PLACE_MAX_BYTES = 1024 };

struct target_s3 {
	struct backup_target target; /* first */
	struct s3_client *client;
	bool has_told; /* of a failure */
};

struct s3_taker { /* what a listing passes on to */
	backup_target_take_fn *take;
	void *taker;
};

static const char *setting(const char *const *names);
static struct s3_client *open_client(struct target_s3 *s3, const char *place, struct error *err);
static int take_credentials(struct http_signing *signing, struct error *err);
static void target_s3_tell_once(void *owner, const struct error *why);
static int answer(int result, struct error *err);
static int target_s3_put(
	struct backup_target *target, const char *name, struct span bytes, struct error *err);
static int target_s3_get(
	struct backup_target *target, const char *name, struct buffer *out, struct error *err);
static int target_s3_list(struct backup_target *target, const char *kind,
	backup_target_take_fn *take, void *taker, struct error *err);
static int target_s3_take_object(void *owner, const struct s3_object *object, struct error *err);
static int target_s3_remove(struct backup_target *target, const char *name, struct error *err);
static int target_s3_pin(struct backup_target *target, struct error *err);
static int target_s3_settle(struct backup_target *target, const char *kind, struct error *err);
static void target_s3_free(struct backup_target *target);

static const struct backup_target_ops ops = {.put = target_s3_put,
	.get = target_s3_get,
	.list = target_s3_list,
	.remove = target_s3_remove,
	.pin = target_s3_pin,
	.settle = target_s3_settle,
	.free = target_s3_free};

struct backup_target *target_s3_open(const char *place, struct error *err)
{
	if (strlen(place) > PLACE_MAX_BYTES) {
		error_set(err, ERROR_INVALID, "s3://%.80s... is too long.", place);
		return NULL;
	}
	struct target_s3 *s3 = memory_new(sizeof(*s3));
	s3->target.ops = &ops;
	s3->target.is_far = true;
	s3->client = open_client(s3, place, err);
	if (s3->client != NULL)
		return &s3->target;
	free(s3);
	return NULL;
}

/* `place` is BUCKET or BUCKET/PREFIX. One thread at a time uses a target. */
static struct s3_client *open_client(struct target_s3 *s3, const char *place, struct error *err)
{
	static const char *const region_names[] = {"AWS_REGION", "AWS_DEFAULT_REGION", NULL};
	static const char *const endpoint_names[] = {
		"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", NULL};
	static const char *const ca_names[] = {"AWS_CA_BUNDLE", NULL};
	const size_t bucket_len = strcspn(place, "/");
	const char *prefix = place + bucket_len + (place[bucket_len] == '/' ? 1 : 0);
	const bool lacks_slash = prefix[0] != '\0' && prefix[strlen(prefix) - 1] != '/';
	char bucket[PLACE_MAX_BYTES + 1];
	char folder[PLACE_MAX_BYTES + 2];
	char amazon[256];
	struct s3_client_options options = {.endpoint = setting(endpoint_names),
		.ca_file = setting(ca_names),
		.bucket = bucket,
		.prefix = folder,
		.connections = 1,
		.on_retry = target_s3_tell_once,
		.owner = s3};
	snprintf(bucket, sizeof(bucket), "%.*s", (int)bucket_len, place);
	snprintf(folder, sizeof(folder), "%s%s", prefix, lacks_slash ? "/" : "");
	if (take_credentials(&options.signing, err) != 0)
		return NULL;
	options.signing.region = setting(region_names);
	snprintf(amazon, sizeof(amazon), "https://s3.%.60s.amazonaws.com",
		options.signing.region != NULL ? options.signing.region : "us-east-1");
	if (options.endpoint == NULL)
		options.endpoint = amazon;
	return s3_client_open(&options, err);
}

/* The first of these variables that is set and not empty. */
static const char *setting(const char *const *names)
{
	for (size_t i = 0; names[i] != NULL; i++) {
		const char *value = getenv(names[i]);
		if (value != NULL && value[0] != '\0')
			return value;
	}
	return NULL;
}

static int take_credentials(struct http_signing *signing, struct error *err)
{
	static const char *const key_names[] = {"AWS_ACCESS_KEY_ID", NULL};
	static const char *const secret_names[] = {"AWS_SECRET_ACCESS_KEY", NULL};
	static const char *const session_names[] = {"AWS_SESSION_TOKEN", NULL};
	signing->key_id = setting(key_names);
	signing->secret = setting(secret_names);
	signing->session = setting(session_names);
	return signing->key_id != NULL && signing->secret != NULL
		? 0
		: error_set(err, ERROR_INVALID,
			  "A bucket needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment.");
}

static void target_s3_tell_once(void *owner, const struct error *why)
{
	struct target_s3 *s3 = owner;
	if (s3->has_told || s3->target.tell == NULL)
		return;
	s3->has_told = true;
	s3->target.tell(s3->target.owner, why);
}

static int target_s3_put(
	struct backup_target *target, const char *name, struct span bytes, struct error *err)
{
	return answer(s3_client_put(((struct target_s3 *)target)->client, name, bytes, err), err);
}

/* Backups mean by busy that the store is. */
static int answer(int result, struct error *err)
{
	if (result != 0 && err->kind == ERROR_BUSY)
		err->kind = ERROR_UPSTREAM;
	return result;
}

static int target_s3_get(
	struct backup_target *target, const char *name, struct buffer *out, struct error *err)
{
	return answer(s3_client_get(((struct target_s3 *)target)->client, name, out, err), err);
}

static int target_s3_list(struct backup_target *target, const char *kind,
	backup_target_take_fn *take, void *taker, struct error *err)
{
	struct s3_taker passed = {.take = take, .taker = taker};
	char begin[BACKUP_NAME_BYTES];
	snprintf(begin, sizeof(begin), "%s/", kind);
	return answer(s3_listing_objects(((struct target_s3 *)target)->client, begin,
			      target_s3_take_object, &passed, err),
		err);
}

static int target_s3_take_object(void *owner, const struct s3_object *object, struct error *err)
{
	const struct s3_taker *passed = owner;
	const struct backup_object given = {
		.name = object->name, .bytes = object->bytes, .changed_ms = object->changed_ms};
	return strlen(object->name) < BACKUP_NAME_BYTES ? passed->take(passed->taker, &given, err)
							: 0;
}

static int target_s3_remove(struct backup_target *target, const char *name, struct error *err)
{
	return answer(s3_client_remove(((struct target_s3 *)target)->client, name, err), err);
}

/* A bucket does not go away and leave another one. */
static int target_s3_pin(struct backup_target *target, struct error *err)
{
	(void)target, (void)err;
	return 0;
}

/* A service that has confirmed a removal keeps to it. */
static int target_s3_settle(struct backup_target *target, const char *kind, struct error *err)
{
	(void)target;
	(void)kind;
	(void)err;
	return 0;
}

static void target_s3_free(struct backup_target *target)
{
	struct target_s3 *s3 = (struct target_s3 *)target;
	s3_client_free(s3->client);
	free(s3);
}
