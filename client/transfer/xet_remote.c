/* For xet_remote_ask a 404 is an answer: the server does not know the chunk. For
 * xet_remote_has_xorb every 4xx is one: a server that does not promise to keep the xorb gets it
 * again. CODECS says that this client reads and writes the private codecs too. */
#include "client/transfer/xet_remote.h"

#include <inttypes.h>
#include <stdio.h>

enum { TARGET_BYTES = 160, HEADER_BYTES = 80, STORE_WAIT_MS = 120 * 1000 };

static const char CODECS[] = "x-deltabucket-codecs: all";

static void print_target(char out[TARGET_BYTES], const char *path, const struct chunk_id *hash);
static int post(
	const struct xet_remote *xet, const char *target, struct span body, struct error *err);

int xet_remote_ask(const struct xet_remote *xet, const struct chunk_id *id,
	struct chunk_table *table, struct error *err)
{
	char target[TARGET_BYTES];
	struct http_response response;
	struct error failure = {0};
	print_target(target, "/v1/chunks/default", id);
	const struct http_request request = {.method = "GET", .target = target};
	int result = xet_access_send(xet->access, xet->remote, &request, &response, &failure);
	if (result == 0) {
		atomic_fetch_add(&xet_access_traffic(xet->access)->received, response.body.len);
		result = chunk_table_add(table, buffer_span(&response.body), err) == 0 ? 1 : -1;
	} else if (response.status == 404) {
		result = 0;
	} else {
		*err = failure;
	}
	http_response_release(&response);
	return result;
}

int xet_remote_has_xorb(
	const struct xet_remote *xet, const struct chunk_id *hash, struct error *err)
{
	static const char *const HEADERS[] = {"Content-Type: application/json", NULL};
	char target[TARGET_BYTES];
	struct http_response response;
	struct error failure = {0};
	print_target(target, "/v1/xorb-grants/default", hash);
	const struct http_request request = {
		.method = "POST", .target = target, .headers = HEADERS, .body = span_text("{}")};
	int result = xet_access_send(xet->access, xet->remote, &request, &response, &failure);
	if (result == 0)
		result = response.status == 200 ? 1 : 0;
	else if (response.status >= 400 && response.status < 500)
		result = 0;
	else
		*err = failure;
	http_response_release(&response);
	return result;
}

int xet_remote_put_xorb(const struct xet_remote *xet, const struct chunk_id *hash, struct span body,
	struct error *err)
{
	char target[TARGET_BYTES];
	print_target(target, "/v1/xorbs/default", hash);
	return post(xet, target, body, err);
}

int xet_remote_put_shard(const struct xet_remote *xet, struct span shard, struct error *err)
{
	return post(xet, "/v1/shards", shard, err);
}

int xet_remote_reconstruct(const struct xet_remote *xet, const struct chunk_id *file, uint64_t from,
	uint64_t to, struct fetch_plan *out, struct error *err)
{
	char target[TARGET_BYTES];
	char range[HEADER_BYTES];
	struct http_response response;
	ASSERT(from < to);
	print_target(target, "/v2/reconstructions", file);
	snprintf(range, sizeof(range), "Range: bytes=%" PRIu64 "-%" PRIu64, from, to - 1);
	const char *const headers[] = {CODECS, range, NULL};
	const struct http_request request = {
		.method = "GET", .target = target, .headers = headers, .wait_ms = STORE_WAIT_MS};
	int result = xet_access_send(xet->access, xet->remote, &request, &response, err);
	if (result == 0) {
		atomic_fetch_add(&xet_access_traffic(xet->access)->received, response.body.len);
		result = fetch_plan_parse(buffer_span(&response.body), out, err);
	}
	http_response_release(&response);
	return result;
}

static void print_target(char out[TARGET_BYTES], const char *path, const struct chunk_id *hash)
{
	char text[CHUNK_ID_TEXT_BYTES];
	chunk_id_format(hash, text);
	snprintf(out, TARGET_BYTES, "%s/%s", path, text);
}

static int post(
	const struct xet_remote *xet, const char *target, struct span body, struct error *err)
{
	static const char *const HEADERS[] = {
		CODECS, "Content-Type: application/octet-stream", NULL};
	struct http_response response;
	const struct http_request request = {.method = "POST",
		.target = target,
		.headers = HEADERS,
		.body = body,
		.wait_ms = STORE_WAIT_MS};
	const int result = xet_access_send(xet->access, xet->remote, &request, &response, err);
	if (result == 0)
		atomic_fetch_add(&xet_access_traffic(xet->access)->sent, body.len);
	http_response_release(&response);
	return result;
}
