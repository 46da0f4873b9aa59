/* One request without the token shows the way. Where the certificate is not accepted, further
 * requests that trust nobody find out what is there instead. */
#include "client/doctor/network_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/digest/fingerprint.h"
#include "base/file.h"
#include "base/net/http_look.h"

#define DAY_MS INT64_C(86400000)
enum {
	ADVICE_BYTES = 512,
	TIMEOUT_MS = 15 * 1000,
	PEM_MAX_BYTES = 4 * 1024 * 1024,
	CLOCK_WARN_MS = 5 * 1000,     /* the server's Date has whole seconds */
	SKEW_MAX_MS = 15 * 60 * 1000, /* the server refuses signatures that are older */
	END_WARN_DAYS = 14,
};

static const char ENDPOINT[] = "endpoint";
static const char CERTIFICATE[] = "certificate";

struct visit {
	const char *endpoint;
	const char *ca;
	const char *target;
	bool unverified;
	struct stop *stop;
};
struct visited {
	struct http_look look;
	struct http_response response;
	struct error err;
	int64_t now_ms; /* our clock when the answer came */
	bool answered;
};

static void visit(const struct visit *visit, struct visited *out);
static void check_proxy(struct checkup *checkup, const char *endpoint);
static const char *proxy_variable(const char *endpoint);
static bool is_https(const char *endpoint);
static void explain(
	struct checkup *checkup, const struct remote_options *remote, const struct visited *seen);
static bool explain_scheme(
	struct checkup *checkup, const struct remote_options *remote, const struct visited *seen);
static void explain_trust(
	struct checkup *checkup, const struct remote_options *remote, const struct visited *seen);
static void advise_ca(
	const struct remote_options *remote, const struct http_look *look, char out[ADVICE_BYTES]);
static bool offered_ca(const struct remote_options *remote, char out[FINGERPRINT_TEXT_BYTES]);
static bool given_ca(const char *path, char out[FINGERPRINT_TEXT_BYTES]);
static bool is_deltabucket(const struct http_response *response);
static void say_way(
	struct checkup *checkup, const struct remote_options *remote, const struct http_look *look);
static void check_certificate(
	struct checkup *checkup, const struct remote_options *remote, const struct http_look *look);
static void check_clock(struct checkup *checkup, const struct visited *seen);

bool network_check(struct checkup *checkup, const struct remote_options *remote)
{
	const struct visit way = {.endpoint = remote->endpoint,
		.ca = remote->ca,
		.target = "/-/ready",
		.stop = remote->stop};
	struct visited seen;
	struct error other;
	check_proxy(checkup, remote->endpoint);
	visit(&way, &seen);
	bool is_there = seen.answered && is_deltabucket(&seen.response);
	if (!seen.answered) {
		explain(checkup, remote, &seen);
	} else if (!is_there) {
		error_set(&other, ERROR_UPSTREAM,
			"%s answers, but not as deltabucketd does (status %d)", remote->endpoint,
			seen.response.status);
		checkup_fail(checkup, ENDPOINT,
			"is it the right host and port? A proxy in between must pass /-/ on",
			&other);
	} else {
		say_way(checkup, remote, &seen.look);
		check_certificate(checkup, remote, &seen.look);
	}
	if (seen.answered)
		check_clock(checkup, &seen);
	http_response_release(&seen.response);
	return is_there;
}

static void visit(const struct visit *visit, struct visited *out)
{
	*out = (struct visited){.look = {.date_ms = -1, .ends_ms = -1}};
	const struct http_client_options options = {.endpoint = visit->endpoint,
		.ca_file = visit->unverified ? NULL : visit->ca,
		.unverified = visit->unverified,
		.total_timeout_ms = TIMEOUT_MS};
	const struct http_request request = {
		.method = "GET", .target = visit->target, .look = &out->look};
	struct http_client *const client = http_client_new(&options, &out->err);
	if (client == NULL)
		return;
	stop_watch(visit->stop, client);
	out->answered = http_client_send(client, &request, &out->response, &out->err) == 0;
	out->now_ms = clock_wall_ms();
	stop_forget(visit->stop, client);
	http_client_free(client);
}

/* The variable may have a password in it. */
static void check_proxy(struct checkup *checkup, const char *endpoint)
{
	const char *const variable = proxy_variable(endpoint);
	const char *const without =
		getenv("no_proxy") != NULL ? getenv("no_proxy") : getenv("NO_PROXY");
	if (variable == NULL)
		return;
	const char *const value = getenv(variable);
	const char *const at = strrchr(value, '@');
	checkup_ok(checkup, "proxy", "%s names %s%s%s", variable, at != NULL ? at + 1 : value,
		without != NULL ? ", not for " : "", without != NULL ? without : "");
}

/* In the order in which libcurl looks; NULL when none is set. */
static const char *proxy_variable(const char *endpoint)
{
	static const char *const VARIABLES[] = {
		"https_proxy", "HTTPS_PROXY", "http_proxy", "all_proxy", "ALL_PROXY"};
	for (size_t i = 0; i < sizeof(VARIABLES) / sizeof(VARIABLES[0]); i++) {
		const char *const value = getenv(VARIABLES[i]);
		const bool fits = i >= 3 || (i < 2) == is_https(endpoint);
		if (fits && value != NULL && value[0] != '\0')
			return VARIABLES[i];
	}
	return NULL;
}

static bool is_https(const char *endpoint)
{
	return strncmp(endpoint, "https://", 8) == 0;
}

static void explain(
	struct checkup *checkup, const struct remote_options *remote, const struct visited *seen)
{
	static const char *const ADVICE[] = {
		[HTTP_REACH_NOTHING] =
			"is the host spelled right? `getent hosts HOST` asks the system",
		[HTTP_REACH_ADDRESS] =
			"does deltabucketd run there, with this port in its --listen, and does a firewall let it through?",
		[HTTP_REACH_PEER] = "does deltabucketd listen there, or another program?",
		[HTTP_REACH_SECURED] = "is the server overloaded or stopping? Its log says why",
		[HTTP_REACH_ANSWERED] = "is the server overloaded or stopping? Its log says why",
	};
	const char *const proxy = proxy_variable(remote->endpoint);
	char advice[ADVICE_BYTES];
	if (seen->err.kind == ERROR_UNTRUSTED) {
		explain_trust(checkup, remote, seen);
		return;
	}
	if (remote->ca != NULL && access(remote->ca, R_OK) != 0) {
		checkup_fail(checkup, CERTIFICATE,
			"give the server's tls/ca.pem, or `deltabucket login` once, which fetches it",
			&seen->err);
		return;
	}
	if (explain_scheme(checkup, remote, seen))
		return;
	snprintf(advice, sizeof(advice), "%s%s%s%s", ADVICE[seen->look.reach],
		proxy != NULL ? "; the proxy in " : "", proxy != NULL ? proxy : "",
		proxy != NULL ? " may be the reason" : "");
	checkup_fail(checkup, ENDPOINT, advice, &seen->err);
}

/* TLS that is not agreed on may be plain HTTP: the other scheme is tried, too. */
static bool explain_scheme(
	struct checkup *checkup, const struct remote_options *remote, const struct visited *seen)
{
	const char *const endpoint = remote->endpoint;
	struct visited other = {.answered = false};
	struct error err;
	char turned[512];
	char advice[ADVICE_BYTES];
	if (seen->look.reach < HTTP_REACH_PEER)
		return false;
	snprintf(turned, sizeof(turned), "%s%s", is_https(endpoint) ? "http://" : "https://",
		strchr(endpoint, '/') + 2);
	visit(&(struct visit){.endpoint = turned,
		      .target = "/-/ready",
		      .unverified = true,
		      .stop = remote->stop},
		&other);
	const bool answers = other.answered && is_deltabucket(&other.response);
	http_response_release(&other.response);
	if (!answers)
		return false;
	error_set(&err, ERROR_UNTRUSTED, "the server speaks %s there, and the endpoint says %s",
		is_https(endpoint) ? "plain HTTP" : "HTTPS", endpoint);
	snprintf(advice, sizeof(advice), "use %.400s%s", turned,
		is_https(endpoint) ? ", or start deltabucketd without --http" : "");
	checkup_fail(checkup, ENDPOINT, advice, &err);
	return true;
}

/* The certificate is not accepted: says which is there, and which CA the server offers. */
static void explain_trust(
	struct checkup *checkup, const struct remote_options *remote, const struct visited *seen)
{
	struct visited open;
	struct error err = seen->err;
	char advice[ADVICE_BYTES];
	char ends[CLOCK_TEXT_BYTES] = "";
	visit(&(struct visit){.endpoint = remote->endpoint,
		      .target = "/-/ready",
		      .unverified = true,
		      .stop = remote->stop},
		&open);
	http_response_release(&open.response);
	const bool is_over = open.look.ends_ms >= 0 && open.look.ends_ms < open.now_ms;
	clock_format_iso(open.look.ends_ms, ends);
	if (is_over)
		error_set(&err, ERROR_UNTRUSTED, "the certificate of %s ended at %s",
			remote->endpoint, ends);
	if (is_over)
		snprintf(advice, sizeof(advice),
			"a new one, then SIGHUP to deltabucketd; one with a CA of its own makes it at a start");
	else if (strstr(seen->err.text, "subject name") != NULL)
		snprintf(advice, sizeof(advice),
			"use a name that it has (%s), or deltabucketd --tls-name HOST",
			open.look.subject);
	else
		advise_ca(remote, &open.look, advice);
	checkup_fail(checkup, CERTIFICATE, advice, &err);
}

static void advise_ca(
	const struct remote_options *remote, const struct http_look *look, char out[ADVICE_BYTES])
{
	char offered[FINGERPRINT_TEXT_BYTES];
	char given[FINGERPRINT_TEXT_BYTES] = "";
	const bool has_given = remote->ca != NULL && given_ca(remote->ca, given);
	if (!offered_ca(remote, offered))
		snprintf(out, ADVICE_BYTES,
			"its issuer is %s, and it offers no CA of its own: give the CA's file with --ca or DELTABUCKET_CA",
			look->issuer);
	else if (has_given && strcmp(offered, given) == 0)
		snprintf(out, ADVICE_BYTES,
			"it offers the CA that %s has, but its certificate is another's: does something in between answer for it?",
			remote->ca);
	else
		snprintf(out, ADVICE_BYTES,
			"it offers a CA with the fingerprint %s%s%s. If deltabucketd printed that when it started: `deltabucket login %s --fingerprint %s`",
			offered, has_given ? "; that of the given one is " : "", given,
			remote->endpoint, offered);
}

static bool offered_ca(const struct remote_options *remote, char out[FINGERPRINT_TEXT_BYTES])
{
	struct visited open;
	struct fingerprint found;
	visit(&(struct visit){.endpoint = remote->endpoint,
		      .target = "/-/ca",
		      .unverified = true,
		      .stop = remote->stop},
		&open);
	const bool has = open.answered && open.response.status == 200 &&
		fingerprint_of_pem(buffer_span(&open.response.body), &found);
	if (has)
		fingerprint_format(&found, out);
	http_response_release(&open.response);
	return has;
}

/* The first of the file's certificates. */
static bool given_ca(const char *path, char out[FINGERPRINT_TEXT_BYTES])
{
	struct buffer pem;
	struct fingerprint found;
	struct error ignored = {0};
	buffer_init(&pem, PEM_MAX_BYTES);
	const bool has = file_read_all(path, &pem, &ignored) == 0 &&
		fingerprint_of_pem(buffer_span(&pem), &found);
	if (has)
		fingerprint_format(&found, out);
	buffer_release(&pem);
	return has;
}

/* GET /-/ready says `ready`, or an error of the admin face. */
static bool is_deltabucket(const struct http_response *response)
{
	const struct span body = buffer_span(&response->body);
	return span_starts(body, span_text("ready")) ||
		span_starts(body, span_text("{\"error\":{\"code\":"));
}

static void say_way(
	struct checkup *checkup, const struct remote_options *remote, const struct http_look *look)
{
	char tls[48] = "";
	const char *const of_proxy = look->through_proxy ? ", a proxy" : "";
	if (look->secured_us > 0)
		snprintf(tls, sizeof(tls), ", TLS %.1f ms",
			(double)(look->secured_us - look->connected_us) / 1000);
	checkup_ok(checkup, ENDPOINT,
		"%s answers from %s%s: name %.1f ms, connection %.1f ms%s, in all %.1f ms",
		remote->endpoint, look->address, of_proxy, (double)look->named_us / 1000,
		(double)(look->connected_us - look->named_us) / 1000, tls,
		(double)look->answered_us / 1000);
}

static void check_certificate(
	struct checkup *checkup, const struct remote_options *remote, const struct http_look *look)
{
	char ends[CLOCK_TEXT_BYTES];
	char given[FINGERPRINT_TEXT_BYTES] = "";
	const bool is_near =
		look->ends_ms >= 0 && look->ends_ms - clock_wall_ms() < END_WARN_DAYS * DAY_MS;
	if (!is_https(remote->endpoint)) {
		checkup_warn(checkup, CERTIFICATE, NULL,
			"plain HTTP: the token and all content go over the network unencrypted");
		return;
	}
	clock_format_iso(look->ends_ms, ends);
	if (remote->ca != NULL)
		given_ca(remote->ca, given);
	if (is_near)
		checkup_warn(checkup, CERTIFICATE,
			"a new one, then SIGHUP to deltabucketd; it makes those of its own CA by itself",
			"it is trusted, and ends at %s", ends);
	else
		checkup_ok(checkup, CERTIFICATE, "trusted by %s%s%s%s, ends at %s",
			remote->ca != NULL ? remote->ca : "the system's CAs",
			given[0] != '\0' ? " (" : "", given, given[0] != '\0' ? ")" : "", ends);
}

static void check_clock(struct checkup *checkup, const struct visited *seen)
{
	struct error err;
	const int64_t ahead_ms = seen->now_ms - seen->look.date_ms;
	const int64_t off_ms = ahead_ms < 0 ? -ahead_ms : ahead_ms;
	const char *const advice = "set the clock of the one that is wrong (NTP)";
	if (seen->look.date_ms < 0)
		return;
	error_set(&err, ERROR_SKEW,
		"this machine's clock is %" PRId64
		" s %s the server's; requests that S3 clients sign are refused from 15 min on",
		off_ms / 1000, ahead_ms < 0 ? "behind" : "ahead of");
	if (off_ms >= SKEW_MAX_MS)
		checkup_fail(checkup, "clock", advice, &err);
	else if (off_ms >= CLOCK_WARN_MS)
		checkup_warn(checkup, "clock", advice, "%s", err.text);
	else
		checkup_ok(checkup, "clock", "as the server's, within %d s", CLOCK_WARN_MS / 1000);
}
