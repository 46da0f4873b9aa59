/* A batch is a body of JSON lines, one for each change. The server makes what it can and answers
 * with the list of failures, by path; each is written into the change that it belongs to. An answer
 * that names an unknown path or refuses the batch without a failure is malformed: otherwise a
 * change that was not made would count as made. Listings come in pages; the Link header of each
 * page has the address of the next. */
#include "client/remote/remote_hub.h"

#include <stdlib.h>
#include <string.h>

#include "base/encode.h"
#include "base/format/json_node.h"
#include "base/memory.h"
#include "client/remote/fetch_plan.h"
#include "client/remote/remote_error.h"
#include "client/remote/remote_json.h"

enum {
	TARGET_MAX_BYTES = 16 * 1024,
	KEY_MAX_BYTES = 1024,
	BODY_MAX_BYTES = 16 * 1024 * 1024,
	COMMIT_WAIT_MS = 120 * 1000
};

struct wanted {
	struct span key;
	bool found;
	struct hub_file file;
};

static bool is_good_segment(struct span segment);
static void put_line(struct buffer *out, const struct hub_change *change);
static void put_source(struct json_writer *writer, struct span bucket);
static int read_failures(
	struct hub_change *changes, size_t count, struct span body, struct error *err);
static int read_failure(struct hub_change *changes, size_t count, const struct json_node *item,
	size_t *at, struct error *err);
static struct error *find_failed(
	struct hub_change *changes, size_t count, struct span path, size_t *at);
static void bucket_target(struct span bucket, struct buffer *out);
static int read_page(struct span body, hub_file_fn *take, void *owner, struct error *err);
static bool read_file(const struct json_node *node, struct hub_file *out);
static int find_next_page(const char *link, char **out, struct error *err);
static int remote_hub_take_wanted(void *owner, const struct hub_file *file, struct error *err);

char *remote_hub_target(struct span bucket, const char *below, struct span path)
{
	struct buffer target;
	buffer_init(&target, TARGET_MAX_BYTES);
	buffer_add_text(&target, "/api/buckets/-/");
	encode_percent(bucket, false, &target);
	buffer_add_byte(&target, '/');
	buffer_add_text(&target, below);
	if (path.len > 0) {
		buffer_add_byte(&target, '/');
		encode_percent(span_slice(path, 0, 4 * KEY_MAX_BYTES), false, &target);
	}
	char *const text = memory_copy_text(buffer_text(&target));
	buffer_release(&target);
	return text;
}

bool remote_hub_takes(struct span key)
{
	struct span rest = key;
	struct span segment;
	if (key.len == 0 || key.len > KEY_MAX_BYTES || !span_is_utf8(key) ||
		key.data[key.len - 1] == '/')
		return false;
	if (span_find(key, '\\') >= 0 || span_find(key, 0) >= 0 || span_ends_text(key, ".."))
		return false;
	while (span_split(&rest, '/', &segment))
		if (!is_good_segment(segment))
			return false;
	return true;
}

int remote_hub_check(const struct hub_change *changes, size_t count, struct error *err)
{
	for (size_t i = 0; i < count; i++) {
		const struct span key = span_slice(changes[i].key, 0, 200);
		if (changes[i].failure.kind == ERROR_NONE)
			continue;
		*err = changes[i].failure;
		return error_wrap(err, "%.*s", (int)key.len, (const char *)key.data);
	}
	return 0;
}

int remote_hub_change(struct remote *remote, struct span bucket, struct hub_change *changes,
	size_t count, struct error *err)
{
	static const char *const HEADERS[] = {"Content-Type: application/x-ndjson", NULL};
	struct http_response response;
	struct buffer body;
	ASSERT(count > 0 && count <= REMOTE_HUB_LINES_MAX);
	buffer_init(&body, BODY_MAX_BYTES);
	for (size_t i = 0; i < count; i++) {
		changes[i].failure = (struct error){0};
		put_line(&body, &changes[i]);
	}
	if (buffer_check(&body, "a batch of changes", err) != 0) {
		buffer_release(&body);
		return -1;
	}
	char *const target = remote_hub_target(bucket, "batch", (struct span){0});
	const struct http_request request = {.method = "POST",
		.target = target,
		.headers = HEADERS,
		.body = buffer_span(&body),
		.wait_ms = COMMIT_WAIT_MS,
		.whole_errors = true};
	int result = remote_send(remote, &request, &response, err);
	if (result == 0 || response.status == 422) {
		const bool refused = result != 0;
		struct error ignored = {0};
		result = read_failures(changes, count, buffer_span(&response.body), err);
		if (result == 0 && refused && remote_hub_check(changes, count, &ignored) == 0)
			result = error_set(err, ERROR_UPSTREAM,
				"the server refuses a batch and does not say which changes failed");
	}
	http_response_release(&response);
	free(target);
	buffer_release(&body);
	return result;
}

int remote_hub_totals(
	struct remote *remote, struct span bucket, struct hub_totals *out, struct error *err)
{
	struct json_node *answer = NULL;
	struct buffer target;
	bucket_target(bucket, &target);
	const struct remote_json_request request = {
		.method = "GET", .target = buffer_text(&target)};
	int result = remote_json_send(remote, &request, &answer, err);
	if (result == 0 &&
		(!json_node_u64(json_node_member(answer, "size"), &out->bytes) ||
			!json_node_u64(json_node_member(answer, "totalFiles"), &out->files)))
		result = error_set(err, ERROR_UPSTREAM,
			"the server does not say how much bucket %.*s holds", (int)bucket.len,
			(const char *)bucket.data);
	json_node_free(answer);
	buffer_release(&target);
	return result;
}

int remote_hub_drop(struct remote *remote, struct span bucket, struct error *err)
{
	struct http_response response;
	struct buffer target;
	bucket_target(bucket, &target);
	const struct http_request request = {
		.method = "DELETE", .target = buffer_text(&target), .wait_ms = COMMIT_WAIT_MS};
	const int result = remote_send(remote, &request, &response, err);
	http_response_release(&response);
	buffer_release(&target);
	return result;
}

int remote_hub_list(struct remote *remote, struct span bucket, struct span prefix,
	hub_file_fn *take, void *owner, struct error *err)
{
	const bool slash = prefix.len > 0 && prefix.data[prefix.len - 1] == '/';
	char *const first = remote_hub_target(
		bucket, "tree", span_slice(prefix, 0, prefix.len - (slash ? 1 : 0)));
	struct buffer text;
	buffer_init(&text, TARGET_MAX_BYTES);
	buffer_format(&text, "%s?recursive=true&limit=1000", first);
	char *target = memory_copy_text(buffer_text(&text));
	buffer_release(&text);
	free(first);
	int result = 0;
	for (int pages = 0; result == 0 && target != NULL; pages++) {
		if (pages == REMOTE_HUB_PAGES_MAX) {
			result = error_set(err, ERROR_UPSTREAM,
				"the server's listing has over %d pages", REMOTE_HUB_PAGES_MAX);
			break;
		}
		const struct http_request request = {
			.method = "GET", .target = target, .wait_ms = COMMIT_WAIT_MS};
		struct http_response response;
		result = remote_send(remote, &request, &response, err);
		if (result == 0)
			result = read_page(buffer_span(&response.body), take, owner, err);
		free(target);
		target = NULL;
		if (result == 0)
			result = find_next_page(response.link, &target, err);
		http_response_release(&response);
	}
	free(target);
	return result;
}

int remote_hub_find(struct remote *remote, struct span bucket, struct span key, uint64_t *out_size,
	struct chunk_id *out_hash, struct error *err)
{
	static const char *const HEADERS[] = {"Content-Type: application/json", NULL};
	struct wanted wanted = {.key = key};
	struct http_response response;
	struct json_writer writer;
	struct buffer body;
	buffer_init(&body, 8 * KEY_MAX_BYTES);
	json_writer_init(&writer, &body);
	json_writer_object(&writer, NULL);
	json_writer_array(&writer, "paths");
	json_writer_text(&writer, NULL, key);
	json_writer_end(&writer, ']');
	json_writer_end(&writer, '}');
	char *const target = remote_hub_target(bucket, "paths-info", (struct span){0});
	const struct http_request request = {.method = "POST",
		.target = target,
		.headers = HEADERS,
		.body = buffer_span(&body),
		.wait_ms = COMMIT_WAIT_MS};
	int result = remote_send(remote, &request, &response, err);
	if (result == 0)
		result = read_page(
			buffer_span(&response.body), remote_hub_take_wanted, &wanted, err);
	http_response_release(&response);
	free(target);
	buffer_release(&body);
	if (result != 0)
		return -1;
	*out_size = wanted.file.size;
	*out_hash = wanted.file.hash;
	return wanted.found ? 1 : 0;
}

static bool is_good_segment(struct span segment)
{
	const bool is_drive = segment.len >= 2 && segment.data[1] == ':';
	return segment.len > 0 && !span_equal_text(segment, ".") &&
		!span_equal_text(segment, "..") && !is_drive;
}

static void put_line(struct buffer *out, const struct hub_change *change)
{
	static const char *const types[] = {"addFile", "deleteFile", "judgeDelete"};
	struct json_writer writer;
	char hash[CHUNK_ID_TEXT_BYTES];
	ASSERT(change->kind <= HUB_CHANGE_JUDGE);
	ASSERT(change->source.len == 0 || change->kind == HUB_CHANGE_ADD);
	json_writer_init(&writer, out);
	json_writer_object(&writer, NULL);
	json_writer_text(&writer, "type",
		span_text(change->source.len > 0 ? "copyFile" : types[change->kind]));
	json_writer_text(&writer, "path", change->key);
	if (change->kind == HUB_CHANGE_ADD) {
		chunk_id_format(&change->hash, hash);
		json_writer_text(&writer, "xetHash", span_text(hash));
		if (change->source.len == 0)
			json_writer_i64(&writer, "mtime", change->mtime_ms);
		else
			put_source(&writer, change->source);
	}
	json_writer_end(&writer, '}');
	buffer_add_byte(out, '\n');
}

static void put_source(struct json_writer *writer, struct span bucket)
{
	struct buffer id;
	buffer_init(&id, KEY_MAX_BYTES);
	buffer_format(&id, "-/%.*s", (int)bucket.len, (const char *)bucket.data);
	json_writer_text(writer, "sourceRepoType", span_text("bucket"));
	json_writer_text(writer, "sourceRepoId", buffer_span(&id));
	buffer_release(&id);
}

static int read_failures(
	struct hub_change *changes, size_t count, struct span body, struct error *err)
{
	struct json_node *const root =
		remote_json_parse(body, "the server's answer to a batch", err);
	if (root == NULL)
		return -1;
	const struct json_node *const failed = json_node_member(root, "failed");
	int result = json_node_is_array(failed)
		? 0
		: error_set(err, ERROR_UPSTREAM,
			  "the server's answer to a batch does not say what failed");
	size_t at = 0;
	for (size_t i = 0; i < json_node_count(failed) && result == 0; i++)
		result = read_failure(changes, count, json_node_at(failed, i), &at, err);
	json_node_free(root);
	return result;
}

/* A failure without a code, as older servers send it, gets the kind invalid. */
static int read_failure(struct hub_change *changes, size_t count, const struct json_node *item,
	size_t *at, struct error *err)
{
	struct span path = {0};
	struct span text = {0};
	struct span code = {0};
	json_node_text(json_node_member(item, "path"), &path);
	json_node_text(json_node_member(item, "error"), &text);
	json_node_text(json_node_member(item, "code"), &code);
	struct error *const failure = find_failed(changes, count, path, at);
	if (failure == NULL)
		return error_set(err, ERROR_UPSTREAM,
			"the server's answer to a batch names a file that was not in it");
	error_set(failure, remote_error_kind(code, ERROR_INVALID), "%.*s",
		(int)span_slice(text, 0, 300).len, (const char *)text.data);
	return 0;
}

/* The search begins where the last one ended: the server usually lists failures in the order of the
 * lines, so that it is quick. */
static struct error *find_failed(
	struct hub_change *changes, size_t count, struct span path, size_t *at)
{
	for (size_t i = 0; i < count; i++) {
		const size_t number = (*at + i) % count;
		if (!span_equal(changes[number].key, path))
			continue;
		*at = number;
		return &changes[number].failure;
	}
	return NULL;
}

static void bucket_target(struct span bucket, struct buffer *out)
{
	buffer_init(out, TARGET_MAX_BYTES);
	buffer_add_text(out, "/api/buckets/-/");
	encode_percent(bucket, false, out);
}

static int read_page(struct span body, hub_file_fn *take, void *owner, struct error *err)
{
	struct json_node *const root = remote_json_parse(body, "the server's listing", err);
	if (root == NULL)
		return -1;
	int result = json_node_is_array(root)
		? 0
		: error_set(err, ERROR_UPSTREAM, "the server's listing is malformed");
	for (size_t i = 0; i < json_node_count(root) && result == 0; i++) {
		const struct json_node *const node = json_node_at(root, i);
		struct span type = {0};
		struct hub_file file;
		json_node_text(json_node_member(node, "type"), &type);
		if (span_equal_text(type, "directory"))
			continue;
		result = read_file(node, &file)
			? take(owner, &file, err)
			: error_set(err, ERROR_UPSTREAM, "the server lists a file without a hash");
	}
	json_node_free(root);
	return result;
}

static bool read_file(const struct json_node *node, struct hub_file *out)
{
	struct span hash;
	return json_node_text(json_node_member(node, "path"), &out->key) &&
		json_node_u64(json_node_member(node, "size"), &out->size) &&
		json_node_text(json_node_member(node, "xetHash"), &hash) &&
		chunk_id_parse(hash, &out->hash);
}

/* The target of the next page, from the Link header; NULL after the last page. A next page that is
 * not understood is an error: what came so far would pass for the whole listing. */
static int find_next_page(const char *link, char **out, struct error *err)
{
	const char *const end = strstr(link, ">; rel=\"next\"");
	*out = NULL;
	if (strstr(link, "next") == NULL)
		return 0;
	char *const url =
		link[0] == '<' && end != NULL ? memory_copy(link, (size_t)(end - link) + 1) : NULL;
	if (url != NULL) {
		url[end - link] = '\0';
		*out = memory_copy_text(fetch_plan_target(url + 1));
	}
	free(url);
	return *out != NULL
		? 0
		: error_set(err, ERROR_UPSTREAM,
			  "the server's listing names its next page as %.200s; it should be <URL>; rel=\"next\"",
			  link);
}

static int remote_hub_take_wanted(void *owner, const struct hub_file *file, struct error *err)
{
	struct wanted *const wanted = owner;
	(void)err;
	if (span_equal(file->key, wanted->key)) {
		wanted->found = true;
		wanted->file = *file;
	}
	return 0;
}
