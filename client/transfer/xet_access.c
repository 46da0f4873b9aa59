/* All threads share one token. It is renewed under the lock when RENEW_S seconds or less are left,
 * or when the server refuses it with 401: then the request is repeated once. A thread names the
 * token that was refused, so that a token which another thread has renewed meanwhile is not renewed
 * again. */
#include "client/transfer/xet_access.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/format/json_node.h"
#include "base/memory.h"
#include "base/thread/lock.h"
#include "client/remote/fetch_plan.h"
#include "client/remote/remote_hub.h"
#include "client/remote/remote_json.h"

enum { RENEW_S = 60, BASE_MAX_BYTES = 512, TARGET_MAX_BYTES = 4096, MS_PER_SECOND = 1000 };

struct xet_access {
	char *target; /* of requests for a token */
	struct lock lock;
	char token[XET_TOKEN_MAX_BYTES]; /* guarded by lock, as are base and expires_s */
	char base[BASE_MAX_BYTES];       /* the path of the face, without a slash at its end */
	int64_t expires_s;               /* wall clock */
	struct xet_traffic traffic;
};

static int renew(struct xet_access *access, struct remote *remote, struct error *err);
static int read_token(struct xet_access *access, struct span body, struct error *err);
static bool copy_token(const struct json_node *node, char *out, size_t capacity);
static bool copy_text(const struct json_node *node, char *out, size_t capacity);
static bool copy_base(const struct json_node *node, char *out);
static int take_token(struct xet_access *access, struct remote *remote, const char *refused,
	char *token, char *base, struct error *err);
static int64_t now_s(void);

struct xet_access *xet_access_open(
	struct remote *remote, struct span bucket, bool is_write, struct error *err)
{
	struct xet_access *const access = memory_new(sizeof(*access));
	access->target = remote_hub_target(
		bucket, is_write ? "xet-write-token" : "xet-read-token", (struct span){0});
	lock_init(&access->lock, LOCK_XET_ACCESS);
	if (renew(access, remote, err) == 0)
		return access;
	xet_access_close(access);
	return NULL;
}

void xet_access_close(struct xet_access *access)
{
	if (access == NULL)
		return;
	explicit_bzero(access->token, sizeof(access->token));
	lock_release(&access->lock);
	free(access->target);
	free(access);
}

struct xet_traffic *xet_access_traffic(struct xet_access *access)
{
	return &access->traffic;
}

int xet_access_send(struct xet_access *access, struct remote *remote,
	const struct http_request *request, struct http_response *response, struct error *err)
{
	char token[XET_TOKEN_MAX_BYTES];
	char refused[XET_TOKEN_MAX_BYTES];
	char base[BASE_MAX_BYTES];
	struct buffer target;
	int result = -1;
	ASSERT(request->target != NULL && request->target[0] == '/');
	*response = (struct http_response){0};
	buffer_init(&target, TARGET_MAX_BYTES);
	for (int tries = 0; tries < 2; tries++) {
		if (take_token(access, remote, tries == 0 ? NULL : refused, token, base, err) != 0)
			break;
		buffer_reset(&target);
		buffer_add_text(&target, base);
		buffer_add_text(&target, request->target);
		struct http_request with_token = *request;
		with_token.target = buffer_text(&target);
		with_token.bearer = token;
		http_response_release(response);
		result = remote_send(remote, &with_token, response, err);
		if (result == 0 || response->status != 401)
			break;
		memcpy(refused, token, sizeof(refused));
	}
	explicit_bzero(token, sizeof(token));
	buffer_release(&target);
	return result;
}

/* The caller holds the lock, so that only one thread renews the token. */
static int renew(struct xet_access *access, struct remote *remote, struct error *err)
{
	const struct http_request request = {.method = "GET", .target = access->target};
	struct http_response response;
	int result = remote_send(remote, &request, &response, err);
	if (result == 0)
		result = read_token(access, buffer_span(&response.body), err);
	else if (response.status >= 300 && response.status <= 501 && response.status != 500 &&
		response.status != 429)
		error_reword(err, ERROR_UNSUPPORTED, "%s", err->text);
	http_response_release(&response);
	return result;
}

static int read_token(struct xet_access *access, struct span body, struct error *err)
{
	struct json_node *const root = remote_json_parse(body, "the server's token", err);
	if (root == NULL)
		return -1;
	const bool good = copy_token(json_node_member(root, "accessToken"), access->token,
				  sizeof(access->token)) &&
		copy_base(json_node_member(root, "casUrl"), access->base) &&
		json_node_i64(json_node_member(root, "exp"), &access->expires_s);
	json_node_free(root);
	return good ? 0
		    : error_set(err, ERROR_UPSTREAM, "the server's answer to %s is not a token",
			      access->target);
}

/* The token becomes a header, so it must not have bytes that could end the header. */
static bool copy_token(const struct json_node *node, char *out, size_t capacity)
{
	if (!copy_text(node, out, capacity))
		return false;
	for (const char *at = out; *at != '\0'; at++)
		if (*at <= ' ' || *at >= 0x7f)
			return false;
	return true;
}

static bool copy_text(const struct json_node *node, char *out, size_t capacity)
{
	struct span text;
	if (!json_node_text(node, &text) || text.len == 0 || text.len >= capacity)
		return false;
	memcpy(out, text.data, text.len);
	out[text.len] = '\0';
	return true;
}

/* "https://host/xet" gives "/xet"; "https://host" gives "". */
static bool copy_base(const struct json_node *node, char *out)
{
	char url[BASE_MAX_BYTES];
	if (!copy_text(node, url, sizeof(url)))
		return false;
	const char *const path = fetch_plan_target(url);
	out[0] = '\0';
	if (path != NULL)
		memcpy(out, path, strlen(path) + 1);
	for (size_t len = strlen(out); len > 0 && out[len - 1] == '/'; len--)
		out[len - 1] = '\0';
	return true;
}

/* Copies a token that is valid for a while. `refused` is a token that the server refused, or
 * NULL. */
static int take_token(struct xet_access *access, struct remote *remote, const char *refused,
	char *token, char *base, struct error *err)
{
	int result = 0;
	lock_enter(&access->lock);
	if (now_s() + RENEW_S >= access->expires_s ||
		(refused != NULL && strcmp(refused, access->token) == 0))
		result = renew(access, remote, err);
	memcpy(token, access->token, sizeof(access->token));
	memcpy(base, access->base, sizeof(access->base));
	lock_leave(&access->lock);
	return result;
}

static int64_t now_s(void)
{
	return clock_wall_ms() / MS_PER_SECOND;
}
