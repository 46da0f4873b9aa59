/* GET /-/session is of newer servers; older ones say whose the token is in the Hub's whoami. */
#include "client/doctor/server_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "client/remote/remote_json.h"
#include "client/remote/server_faults.h"

enum { GRANTS_BYTES = 768, SPEED_TRIES = 5, SLOW_MS = 500 };

static const char SERVER[] = "server";
static const char KEY[] = "key";

/* Lines of /-/ready, by how they begin. */
static const struct fault_row {
	const char *begins;
	bool is_warning;
	enum error_kind kind;
	const char *advice;
} FAULTS[] = {
	{"full", false, ERROR_NO_SPACE,
		"remove objects or runs, then `deltabucketd gc`; or give it a larger disk"},
	{"read-only", false, ERROR_READ_ONLY,
		"uploads are refused until its disk can be written; its log says why"},
	{"writes fail", false, ERROR_IO, "its log says what the disk refused"},
	{"catalog lost", false, ERROR_CORRUPT, "`deltabucketd rebuild` makes it again"},
	{"damaged", false, ERROR_CORRUPT,
		"`deltabucketd fsck` says what; \"A damaged catalog\" in OPERATIONS.md"},
	{"packs missing", false, ERROR_CORRUPT, "`deltabucketd fsck` says which"},
	{"chunks damaged", false, ERROR_CONTENT_DAMAGED,
		"`deltabucket damage` says which objects and steps; sending them again heals them"},
	{"journal incomplete", true, ERROR_IO, "its log says why"},
};
static const struct fault_row OTHER_FAULT = {"", true, ERROR_IO, "its log says more"};

static void say_fault(struct checkup *checkup, struct span line);
static const struct fault_row *row_of(struct span line);
static void say_session(struct checkup *checkup, const struct json_node *session);
static void format_grants(const struct json_node *session, char out[GRANTS_BYTES]);
static void say_version(struct checkup *checkup, const struct json_node *session);
static void say_account(struct checkup *checkup, const struct json_node *account);
static struct span text_of(const struct json_node *object, const char *name);
static int compare_times(const void *a, const void *b);

void server_check(struct checkup *checkup, struct remote *remote)
{
	const struct http_request request = {.method = "GET", .target = "/-/ready", .bearer = ""};
	struct http_response response = {0};
	struct error err = {0};
	struct span faults;
	struct span line;
	if (remote_try(remote, &request, &response, &err) != 0) {
		checkup_fail(checkup, SERVER, "its log says why", &err);
	} else {
		server_faults_of(buffer_span(&response.body), &faults);
		checkup_ok(checkup, SERVER, "ready");
		while (server_faults_next(&faults, &line))
			say_fault(checkup, line);
	}
	http_response_release(&response);
}

static void say_fault(struct checkup *checkup, struct span line)
{
	const struct fault_row *const row = row_of(line);
	struct error err;
	error_set(&err, row->kind, "%.*s", (int)line.len, (const char *)line.data);
	if (row->is_warning)
		checkup_warn(checkup, SERVER, row->advice, "%s", err.text);
	else
		checkup_fail(checkup, SERVER, row->advice, &err);
}

static const struct fault_row *row_of(struct span line)
{
	for (size_t i = 0; i < sizeof(FAULTS) / sizeof(FAULTS[0]); i++)
		if (span_starts(line, span_text(FAULTS[i].begins)))
			return &FAULTS[i];
	return &OTHER_FAULT;
}

bool server_check_key(struct checkup *checkup, struct remote *remote, bool has_token)
{
	const struct remote_json_request newer = {.method = "GET", .target = "/-/session"};
	const struct remote_json_request older = {.method = "GET", .target = "/api/whoami-v2"};
	struct json_node *answer = NULL;
	struct error err = {0};
	bool is_taken = false;
	if (!has_token) {
		checkup_warn(checkup, KEY, "`deltabucket login ENDPOINT` stores one",
			"no token is set: only public buckets can be read");
		return true;
	}
	if (remote_json_send(remote, &newer, &answer, &err) == 0 &&
		text_of(answer, "key_id").len > 0) {
		say_session(checkup, answer);
		say_version(checkup, json_node_member(answer, "server"));
		is_taken = true;
	} else {
		json_node_free(answer);
		answer = NULL;
		is_taken = remote_json_send(remote, &older, &answer, &err) == 0;
		if (is_taken)
			say_account(checkup, answer);
		else
			checkup_fail(checkup, KEY,
				"the token is mistyped, or its key was revoked: `deltabucketd keys add` makes another, `deltabucket login ENDPOINT` stores it",
				&err);
	}
	json_node_free(answer);
	return is_taken;
}

static void say_session(struct checkup *checkup, const struct json_node *session)
{
	char grants[GRANTS_BYTES];
	const struct span id = text_of(session, "key_id");
	const struct span account = text_of(session, "namespace");
	const struct span ends = text_of(session, "expires");
	format_grants(session, grants);
	checkup_ok(checkup, KEY, "%.*s of the account %.*s may %s%s%.*s", (int)id.len,
		(const char *)id.data, (int)account.len, (const char *)account.data, grants,
		ends.len > 0 ? "; it ends at " : "", (int)ends.len, (const char *)ends.data);
}

static void format_grants(const struct json_node *session, char out[GRANTS_BYTES])
{
	const struct json_node *const grants = json_node_member(session, "grants");
	bool is_root = false;
	size_t used = 0;
	json_node_bool(json_node_member(session, "root"), &is_root);
	snprintf(out, GRANTS_BYTES, "%s",
		is_root ? "do everything (it is the root key)" : "do everything in its account");
	for (size_t i = 0; i < json_node_count(grants) && used < GRANTS_BYTES; i++) {
		struct span grant = {0};
		json_node_text(json_node_at(grants, i), &grant);
		used += (size_t)snprintf(out + used, GRANTS_BYTES - used, "%s%.*s",
			i > 0 ? " " : "", (int)grant.len, (const char *)grant.data);
	}
}

static void say_version(struct checkup *checkup, const struct json_node *server)
{
	const struct span version = text_of(server, "version");
	if (version.len > 0)
		checkup_ok(checkup, "version", "deltabucket %s, deltabucketd %.*s", PACKAGE_VERSION,
			(int)version.len, (const char *)version.data);
}

/* The Hub's whoami. */
static void say_account(struct checkup *checkup, const struct json_node *account)
{
	const struct json_node *const token =
		json_node_member(json_node_member(account, "auth"), "accessToken");
	const struct span name = text_of(account, "name");
	const struct span id = text_of(token, "displayName");
	const bool is_granted = span_equal_text(text_of(token, "role"), "fineGrained");
	checkup_ok(checkup, KEY, "%.*s of the account %.*s may do %s", (int)id.len,
		(const char *)id.data, (int)name.len, (const char *)name.data,
		is_granted ? "what its grants allow" : "everything in its account");
	checkup_ok(checkup, "version", "deltabucket %s; the server does not say its own",
		PACKAGE_VERSION);
}

static struct span text_of(const struct json_node *object, const char *name)
{
	struct span text = {0};
	json_node_text(json_node_member(object, name), &text);
	return text;
}

void server_check_speed(struct checkup *checkup, struct remote *remote)
{
	const struct http_request request = {.method = "GET", .target = "/-/health", .bearer = ""};
	int64_t times[SPEED_TRIES];
	struct error err = {0};
	for (size_t i = 0; i < SPEED_TRIES; i++) {
		struct http_response response = {0};
		const int64_t begun = clock_monotonic_ms();
		const int result = remote_try(remote, &request, &response, &err);
		http_response_release(&response);
		if (result != 0) {
			checkup_fail(checkup, "latency", NULL, &err);
			return;
		}
		times[i] = clock_monotonic_ms() - begun;
	}
	qsort(times, SPEED_TRIES, sizeof(times[0]), compare_times);
	const int64_t middle = times[SPEED_TRIES / 2];
	if (middle >= SLOW_MS)
		checkup_warn(checkup, "latency", "is the server far away, or busy?",
			"a small request takes %" PRId64 " ms", middle);
	else
		checkup_ok(checkup, "latency", "a small request takes %" PRId64 " ms", middle);
}

static int compare_times(const void *a, const void *b)
{
	const int64_t first = *(const int64_t *)a;
	const int64_t second = *(const int64_t *)b;
	return (first > second) - (first < second);
}
