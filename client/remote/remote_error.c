/* An answer has one of three forms: the JSON of the steps and admin faces
 * ({"error":{"code","message"}}), the Hub's ({"error":"text"}), or S3's XML; its first byte and the
 * parsers tell which. A code is more exact than a status, except for 5xx: then the code describes
 * the server's own state ("busy", "io"), and for this client the fault is upstream. An answer
 * without a sentence, like that to a HEAD, gets one with its status. */
#include "client/remote/remote_error.h"

#include <string.h>

#include "base/format/json_node.h"
#include "client/remote/listing.h"
#include "client/work/output.h"
#include "wire/step_message.h"

enum { ARENA_BYTES = 512 * 1024, MESSAGE_MAX_BYTES = 8192 };
static const char HEAD[] = "HEAD /";
/* Codes of the Xet face that are more exact than their status. */
static const char *const XET_CODES[] = {"no_space", "content_damaged"};

/* `meaning` is for answers without a body. `of_head` is for those to HEAD, which never have one:
 * before the name that was asked for. */
static const struct status_row {
	int status;
	enum error_kind kind;
	const char *meaning;
	const char *of_head;
} STATUSES[] = {
	{301, ERROR_NO_BUCKET, "", NULL},
	{400, ERROR_INVALID, "", NULL},
	{401, ERROR_NO_CREDENTIALS, ": it needs a token, or the token is wrong",
		"without a token that the server knows nobody may look at"},
	{403, ERROR_DENIED, ": the token's key may not do this", "the token's key may not look at"},
	{404, ERROR_NOT_FOUND, ": there is no such thing", NULL},
	{405, ERROR_METHOD, "", NULL},
	{409, ERROR_EXISTS, "", NULL},
	{410, ERROR_COLLECTED, "", NULL},
	{411, ERROR_LENGTH_REQUIRED, "", NULL},
	{412, ERROR_PRECONDITION, "", NULL},
	{413, ERROR_TOO_LARGE, "", NULL},
	{416, ERROR_RANGE, "", NULL},
	{422, ERROR_INVALID, "", NULL},
	{425, ERROR_NOT_READY, "", NULL},
	{429, ERROR_UPSTREAM, ": it is busy", NULL},
	{501, ERROR_UNSUPPORTED, "", NULL},
	{503, ERROR_UPSTREAM, ": it is busy or stopping", NULL},
	{507, ERROR_NO_SPACE, ": its disk is full", NULL},
};

/* Codes of the S3 face that are more exact than their status. */
static const struct {
	const char *code;
	enum error_kind kind;
} S3_CODES[] = {
	{"NoSuchBucket", ERROR_NO_BUCKET},
	{"NoSuchKey", ERROR_NO_KEY},
	{"BucketAlreadyOwnedByYou", ERROR_BUCKET_OWNED},
	{"BucketAlreadyExists", ERROR_BUCKET_TAKEN},
	{"BucketNotEmpty", ERROR_BUCKET_NOT_EMPTY},
	{"InvalidBucketName", ERROR_BAD_NAME},
	{"KeyTooLongError", ERROR_KEY_TOO_LONG},
	{"BadDigest", ERROR_BAD_DIGEST},
	{"InvalidAccessKeyId", ERROR_UNKNOWN_KEY_ID},
	{"InvalidToken", ERROR_UNKNOWN_KEY_ID},
	{"EntityTooLarge", ERROR_TOO_LARGE},
	{"ContentDamaged", ERROR_CONTENT_DAMAGED},
};

static const struct {
	const char *name;
	enum error_kind kind;
} KINDS[] = {
#define ERROR_KIND(symbol, number, meaning) {#symbol, ERROR_##symbol},
#include "base/error.def"
#undef ERROR_KIND
};

enum error_kind remote_error_kind(struct span code, enum error_kind otherwise)
{
	for (size_t i = 0; i < sizeof(KINDS) / sizeof(KINDS[0]); i++)
		if (span_equal_nocase(code, KINDS[i].name))
			return KINDS[i].kind;
	return otherwise;
}

static const struct status_row *row_of_status(int status)
{
	static const struct status_row other = {.kind = ERROR_UPSTREAM, .meaning = ""};
	for (size_t i = 0; i < sizeof(STATUSES) / sizeof(STATUSES[0]); i++)
		if (STATUSES[i].status == status)
			return &STATUSES[i];
	return &other;
}

static enum error_kind kind_of_code(struct span code, int status)
{
	for (size_t i = 0; i < sizeof(S3_CODES) / sizeof(S3_CODES[0]); i++)
		if (span_equal_text(code, S3_CODES[i].code))
			return S3_CODES[i].kind;
	if (status >= 500 && status != 507)
		return row_of_status(status)->kind;
	return remote_error_kind(code, row_of_status(status)->kind);
}

/* A text member of the Hub's form, to which the Xet face adds a code. */
static struct span hub_text(const struct json_node *root, const char *name)
{
	struct span text = {0};
	json_node_text(json_node_member(root, name), &text);
	return text;
}

static struct span exact_code(struct span code)
{
	for (size_t i = 0; i < sizeof(XET_CODES) / sizeof(XET_CODES[0]); i++)
		if (span_equal_text(code, XET_CODES[i]))
			return span_text(XET_CODES[i]);
	return (struct span){0};
}

/* The server's own sentence, as a terminal may be given it. */
static void set_message(struct error *err, enum error_kind kind, struct span message)
{
	error_set(err, kind, "%.*s", (int)span_slice(message, 0, MESSAGE_MAX_BYTES).len,
		(const char *)message.data);
	output_clean(err->text);
}

int remote_error_set(struct error *err, int status, struct span body, const char *what)
{
	struct arena *const arena = arena_new(ARENA_BYTES);
	struct error_message json = {0};
	struct listing_error xml = {0};
	struct error ignored = {0};
	struct span code = {0};
	struct span message = {0};
	struct json_node *hub = NULL;
	if (body.len > 0 && body.data[0] == '{' &&
		error_message_parse(body, arena, &json, &ignored) == 0) {
		code = json.code;
		message = json.message;
	} else if (body.len > 0 && body.data[0] == '{') {
		hub = json_node_parse(body, "the server's answer", &ignored);
		message = hub_text(hub, "error");
		code = exact_code(hub_text(hub, "code"));
	} else if (listing_parse_error(body, arena, &xml)) {
		code = xml.code;
		message = xml.message;
	}
	const struct status_row *const row = row_of_status(status);
	const enum error_kind kind = code.len > 0 ? kind_of_code(code, status) : row->kind;
	if (message.len > 0)
		set_message(err, kind, message);
	else if (row->of_head != NULL && strncmp(what, HEAD, sizeof(HEAD) - 1) == 0)
		error_set(err, kind, "%s %s (status %d)", row->of_head, what + sizeof(HEAD) - 1,
			status);
	else
		error_set(err, kind, "the server answered %s with status %d%s", what, status,
			row->meaning);
	json_node_free(hub);
	arena_free(arena);
	return -1;
}
