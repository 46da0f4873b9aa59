/* One kind of listing differs from the other in its query and in what is handed out. Keys of
 * objects are asked for in percent-encoding, because XML cannot have all characters; those of
 * uploads are not, because Ceph encodes them without saying so, and not its markers. */
#include "base/net/s3/s3_listing.h"

#include <stdlib.h>
#include <string.h>

#include "base/encode.h"
#include "base/memory.h"
#include "base/net/s3/s3_client_internal.h"
#include "base/net/s3/s3_page.h"

struct s3_listing {
	struct s3_client *client;
	enum s3_page_kind kind;
	const char *begin;
	s3_take_object_fn *take_object; /* the one of its kind */
	s3_take_unfinished_fn *take_unfinished;
	void *taker;
	char marker[S3_MARKER_MAX_BYTES]; /* of the page that is asked for; "": the first */
	char id_marker[S3_MARKER_MAX_BYTES];
};

static int run(const struct s3_listing *plan, struct error *err);
static int get_page(const struct s3_listing *listing, struct s3_page *page, struct error *err);
static void add_object_query(const struct s3_listing *listing, struct buffer *out);
static void add_upload_query(const struct s3_listing *listing, struct buffer *out);
static void add_parameter(struct buffer *out, const char *name, const char *value);
static void add_prefix(const struct s3_listing *listing, struct buffer *out);
static int give_page(
	const struct s3_listing *listing, const struct s3_page *page, struct error *err);
static const char *find_name(const struct s3_listing *listing, const char *key);
static int give_entry(const struct s3_listing *listing, const struct s3_page *page,
	const struct s3_entry *entry, struct error *err);
static int move_on(struct s3_listing *listing, const struct s3_page *page, struct error *err);

int s3_listing_objects(struct s3_client *client, const char *begin, s3_take_object_fn *take,
	void *taker, struct error *err)
{
	const struct s3_listing plan = {.client = client,
		.kind = S3_PAGE_OBJECTS,
		.begin = begin,
		.take_object = take,
		.taker = taker};
	return run(&plan, err);
}

int s3_listing_uploads(struct s3_client *client, const char *begin, s3_take_unfinished_fn *take,
	void *taker, struct error *err)
{
	const struct s3_listing plan = {.client = client,
		.kind = S3_PAGE_UPLOADS,
		.begin = begin,
		.take_unfinished = take,
		.taker = taker};
	return run(&plan, err);
}

static int run(const struct s3_listing *plan, struct error *err)
{
	struct s3_listing *listing = memory_copy(plan, sizeof(*plan));
	struct s3_page *page = memory_new(sizeof(*page));
	int result;
	do {
		result = get_page(listing, page, err);
		if (result == 0)
			result = give_page(listing, page, err);
		if (result == 0)
			result = move_on(listing, page, err);
		s3_page_release(page);
	} while (result == 0 && page->is_truncated);
	free(page);
	free(listing);
	return result;
}

static int get_page(const struct s3_listing *listing, struct s3_page *page, struct error *err)
{
	struct s3_request request = {.method = "GET"};
	struct s3_answer answer = {.response.status = 0};
	struct buffer target;
	*page = (struct s3_page){.count = 0};
	buffer_init(&target, S3_TARGET_MAX_BYTES);
	buffer_add_text(&target, listing->client->bucket_path);
	if (listing->kind == S3_PAGE_OBJECTS)
		add_object_query(listing, &target);
	else
		add_upload_query(listing, &target);
	request.target = buffer_text(&target);
	int result = buffer_check(&target, "the target of a listing", err);
	if (result == 0)
		result = s3_sender_send(listing->client, &request, &answer, err);
	if (result == 0)
		result =
			s3_page_parse(page, listing->kind, buffer_span(&answer.response.body), err);
	http_response_release(&answer.response);
	buffer_release(&target);
	return result;
}

/* The parameters stand in the order of their names, as a signature needs them. */
static void add_object_query(const struct s3_listing *listing, struct buffer *out)
{
	buffer_add_byte(out, '?');
	if (listing->marker[0] != '\0')
		add_parameter(out, "continuation-token=", listing->marker);
	buffer_format(out,
		"encoding-type=url&list-type=2&max-keys=%u&prefix=", listing->client->options.page);
	add_prefix(listing, out);
}

static void add_upload_query(const struct s3_listing *listing, struct buffer *out)
{
	buffer_add_byte(out, '?');
	if (listing->marker[0] != '\0')
		add_parameter(out, "key-marker=", listing->marker);
	buffer_format(out, "max-uploads=%u&prefix=", listing->client->options.page);
	add_prefix(listing, out);
	buffer_add_byte(out, '&');
	if (listing->id_marker[0] != '\0')
		add_parameter(out, "upload-id-marker=", listing->id_marker);
	buffer_add_text(out, "uploads=");
}

static void add_parameter(struct buffer *out, const char *name, const char *value)
{
	buffer_add_text(out, name);
	encode_percent(span_text(value), false, out);
	buffer_add_byte(out, '&');
}

static void add_prefix(const struct s3_listing *listing, struct buffer *out)
{
	encode_percent(span_text(listing->client->prefix), false, out);
	encode_percent(span_text(listing->begin), false, out);
}

static int give_page(
	const struct s3_listing *listing, const struct s3_page *page, struct error *err)
{
	int result = 0;
	for (size_t i = 0; result == 0 && i < page->count; i++)
		result = give_entry(listing, page, &page->entries[i], err);
	return result;
}

static int give_entry(const struct s3_listing *listing, const struct s3_page *page,
	const struct s3_entry *entry, struct error *err)
{
	const char *name = find_name(listing, s3_page_text(page, entry->key));
	if (name == NULL || !entry->has_key)
		return 0;
	if (listing->kind == S3_PAGE_OBJECTS) {
		const struct s3_object object = {
			.name = name, .bytes = entry->bytes, .changed_ms = entry->time_ms};
		return listing->take_object(listing->taker, &object, err);
	}
	const struct s3_unfinished unfinished = {
		.name = name, .id = s3_page_text(page, entry->id), .initiated_ms = entry->time_ms};
	return listing->take_unfinished(listing->taker, &unfinished, err);
}

/* NULL for a key that does not begin as was asked for. */
static const char *find_name(const struct s3_listing *listing, const char *key)
{
	const size_t front = strlen(listing->client->prefix);
	return strncmp(key, listing->client->prefix, front) == 0 &&
			strncmp(key + front, listing->begin, strlen(listing->begin)) == 0
		? key + front
		: NULL;
}

/* A service that goes round in circles is left. */
static int move_on(struct s3_listing *listing, const struct s3_page *page, struct error *err)
{
	if (!page->is_truncated)
		return 0;
	if (strcmp(page->marker, listing->marker) == 0 &&
		strcmp(page->id_marker, listing->id_marker) == 0)
		return error_set(err, ERROR_UPSTREAM,
			"The S3 service answered with a listing whose pages do not end: one begins where the one before began.");
	memcpy(listing->marker, page->marker, sizeof(listing->marker));
	memcpy(listing->id_marker, page->id_marker, sizeof(listing->id_marker));
	return 0;
}
