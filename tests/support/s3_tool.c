/* usage: s3_tool ENDPOINT BUCKET PREFIX COMMAND ARGUMENT...   does one thing with the S3 client of base/net/s3, for tests against a real service. The
 * credentials are in $S3_KEY_ID and $S3_SECRET; $S3_CA names a CA file, $S3_PAGE the entries of a page. Bodies come from stdin and go to stdout. A
 * failure is told on stderr as "KIND: TEXT", with exit status 1.
 *
 *   put NAME | get NAME | range NAME OFFSET LENGTH (stdout: TOTAL, a line, and the bytes) | head NAME | remove NAME
 *   list BEGIN (NAME <tab> BYTES <tab> MS, a line each) | uploads BEGIN (NAME <tab> ID <tab> MS)
 *   begin NAME (stdout: the id) | part NAME ID NUMBER (stdout: the ETag) | complete NAME ID BYTES ETAG... | abort NAME ID
 *   many THREADS COUNT (puts stdin COUNT times as many-0..., by so many threads) */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/net/s3/s3_listing.h"
#include "base/net/s3/s3_upload.h"

enum { BODY_MAX_BYTES = 256 * 1024 * 1024, FRONT = 5, NAME_BYTES = 40 };

struct tool {
	struct s3_client *client;
	char **words; /* the command's arguments, ended by NULL */
	int count;
	struct buffer body; /* of stdin */
};

struct crowd {
	struct tool *tool;
	int puts;
	atomic_int next;
	atomic_int failed;
};

static int tool_put(struct tool *tool, struct error *err);
static int tool_get(struct tool *tool, struct error *err);
static int tool_range(struct tool *tool, struct error *err);
static int tool_head(struct tool *tool, struct error *err);
static int tool_remove(struct tool *tool, struct error *err);
static int tool_list(struct tool *tool, struct error *err);
static int tool_uploads(struct tool *tool, struct error *err);
static int tool_begin(struct tool *tool, struct error *err);
static int tool_part(struct tool *tool, struct error *err);
static int tool_complete(struct tool *tool, struct error *err);
static int tool_abort(struct tool *tool, struct error *err);
static int tool_many(struct tool *tool, struct error *err);

static const struct {
	const char *name;
	int count; /* of arguments, at least */
	bool has_body;
	int (*run)(struct tool *tool, struct error *err);
} commands[] = {
	{"put", 1, true, tool_put},
	{"get", 1, false, tool_get},
	{"range", 3, false, tool_range},
	{"head", 1, false, tool_head},
	{"remove", 1, false, tool_remove},
	{"list", 1, false, tool_list},
	{"uploads", 1, false, tool_uploads},
	{"begin", 1, false, tool_begin},
	{"part", 3, true, tool_part},
	{"complete", 4, false, tool_complete},
	{"abort", 2, false, tool_abort},
	{"many", 2, true, tool_many},
};

static int tool_put(struct tool *tool, struct error *err)
{
	return s3_client_put(tool->client, tool->words[0], buffer_span(&tool->body), err);
}

static int tool_get(struct tool *tool, struct error *err)
{
	const int result = s3_client_get(tool->client, tool->words[0], &tool->body, err);
	if (result == 0)
		fwrite(tool->body.data, 1, tool->body.len, stdout);
	return result;
}

static int tool_range(struct tool *tool, struct error *err)
{
	struct s3_range range = {.offset = strtoull(tool->words[1], NULL, 10),
		.length = strtoull(tool->words[2], NULL, 10)};
	range.into = memory_new(range.length);
	const int result = s3_client_get_range(tool->client, tool->words[0], &range, err);
	if (result == 0) {
		printf("%" PRIu64 "\n", range.total);
		fwrite(range.into, 1, range.length, stdout);
	}
	free(range.into);
	return result;
}

static int tool_head(struct tool *tool, struct error *err)
{
	uint64_t bytes;
	const int result = s3_client_head(tool->client, tool->words[0], &bytes, err);
	if (result == 0)
		printf("%" PRIu64 "\n", bytes);
	return result;
}

static int tool_remove(struct tool *tool, struct error *err)
{
	return s3_client_remove(tool->client, tool->words[0], err);
}

static int tool_take_object(void *taker, const struct s3_object *object, struct error *err)
{
	(void)taker, (void)err;
	printf("%s\t%" PRIu64 "\t%" PRId64 "\n", object->name, object->bytes, object->changed_ms);
	return 0;
}

static int tool_list(struct tool *tool, struct error *err)
{
	return s3_listing_objects(tool->client, tool->words[0], tool_take_object, NULL, err);
}

static int tool_take_upload(void *taker, const struct s3_unfinished *upload, struct error *err)
{
	(void)taker, (void)err;
	printf("%s\t%s\t%" PRId64 "\n", upload->name, upload->id, upload->initiated_ms);
	return 0;
}

static int tool_uploads(struct tool *tool, struct error *err)
{
	return s3_listing_uploads(tool->client, tool->words[0], tool_take_upload, NULL, err);
}

static int tool_begin(struct tool *tool, struct error *err)
{
	char id[S3_UPLOAD_ID_BYTES];
	const int result = s3_upload_begin(tool->client, tool->words[0], id, err);
	if (result == 0)
		printf("%s\n", id);
	return result;
}

static int tool_part(struct tool *tool, struct error *err)
{
	const struct s3_upload upload = {.name = tool->words[0], .id = tool->words[1]};
	struct s3_etag etag;
	const int result = s3_upload_part(tool->client, &upload,
		(unsigned)strtoul(tool->words[2], NULL, 10), buffer_span(&tool->body), &etag, err);
	if (result == 0)
		printf("%s\n", etag.text);
	return result;
}

static int tool_complete(struct tool *tool, struct error *err)
{
	const struct s3_upload upload = {.name = tool->words[0], .id = tool->words[1]};
	const unsigned count = (unsigned)tool->count - 3;
	struct s3_etag *etags = memory_new_array(count, sizeof(*etags));
	for (unsigned i = 0; i < count; i++)
		snprintf(etags[i].text, sizeof(etags[i].text), "%s", tool->words[3 + i]);
	const int result = s3_upload_complete(
		tool->client, &upload, etags, count, strtoull(tool->words[2], NULL, 10), err);
	free(etags);
	return result;
}

static int tool_abort(struct tool *tool, struct error *err)
{
	const struct s3_upload upload = {.name = tool->words[0], .id = tool->words[1]};
	return s3_upload_abort(tool->client, &upload, err);
}

static void *tool_put_many(void *argument)
{
	struct crowd *crowd = argument;
	char name[NAME_BYTES];
	struct error err;
	for (int i; (i = atomic_fetch_add(&crowd->next, 1)) < crowd->puts;) {
		snprintf(name, sizeof(name), "many-%d", i);
		if (s3_client_put(
			    crowd->tool->client, name, buffer_span(&crowd->tool->body), &err) != 0)
			atomic_fetch_add(&crowd->failed, 1);
	}
	return NULL;
}

static int tool_many(struct tool *tool, struct error *err)
{
	struct crowd crowd = {.tool = tool, .puts = (int)strtol(tool->words[1], NULL, 10)};
	const size_t count = strtoul(tool->words[0], NULL, 10);
	pthread_t *threads = memory_new_array(count, sizeof(*threads));
	for (size_t i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, tool_put_many, &crowd);
	for (size_t i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	free(threads);
	return crowd.failed == 0 ? 0
				 : error_set(err, ERROR_UPSTREAM, "%d puts failed.", crowd.failed);
}

static void read_body(struct buffer *body)
{
	enum { PIECE_BYTES = 1024 * 1024 };
	for (ssize_t got = 1; got > 0;) {
		uint8_t *into = buffer_reserve(body, PIECE_BYTES);
		got = into == NULL ? 0 : read(STDIN_FILENO, into, PIECE_BYTES);
		if (got > 0)
			buffer_commit(body, (size_t)got);
	}
}

static int run(struct tool *tool, const char *name, struct error *err)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(name, commands[i].name) != 0 || tool->count < commands[i].count)
			continue;
		if (commands[i].has_body)
			read_body(&tool->body);
		return commands[i].run(tool, err);
	}
	return error_set(
		err, ERROR_INVALID, "'%s' is not a command with %d arguments.", name, tool->count);
}

int main(int argument_count, char **arguments)
{
	struct error err = {0};
	if (argument_count < FRONT)
		return 2;
	const char *page = getenv("S3_PAGE");
	const struct s3_client_options options = {.endpoint = arguments[1],
		.bucket = arguments[2],
		.prefix = arguments[3],
		.ca_file = getenv("S3_CA"),
		.signing = {.key_id = getenv("S3_KEY_ID"), .secret = getenv("S3_SECRET")},
		.tries = 3,
		.pause_ms = 100,
		.page = page != NULL ? (unsigned)strtoul(page, NULL, 10) : 0};
	struct tool tool = {.client = s3_client_open(&options, &err),
		.words = arguments + FRONT,
		.count = argument_count - FRONT};
	buffer_init(&tool.body, BODY_MAX_BYTES);
	const int result = tool.client == NULL ? -1 : run(&tool, arguments[FRONT - 1], &err);
	if (result != 0)
		fprintf(stderr, "%s: %s\n", error_kind_name(err.kind), err.text);
	buffer_release(&tool.body);
	s3_client_free(tool.client);
	return result == 0 ? 0 : 1;
}
