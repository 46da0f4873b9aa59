/* The CORS rules of a bucket: reads them from XML, prints them as XML, which is their stored form,
 * and matches them against a request's origin, method and headers. Pure functions; any thread. */
#ifndef API_S3_BUCKET_CORS_RULES_H
#define API_S3_BUCKET_CORS_RULES_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"

enum { CORS_RULES_MAX = 100, CORS_BODY_MAX_BYTES = 64 * 1024 };

struct cors_list {
	const struct span *items;
	size_t count;
};
struct cors_rule {
	struct span id;           /* empty: none */
	struct cors_list origins; /* at least one; each has at most one '*' */
	struct cors_list methods; /* at least one: GET, PUT, POST, DELETE, HEAD */
	struct cors_list headers; /* each has at most one '*' */
	struct cors_list exposed;
	bool has_max_age;
	int64_t max_age_s; /* may be negative: S3 accepts any number of 32 bits */
};
struct cors_rules {
	struct cors_rule *rules;
	size_t count;
};

/* Reads a CORSConfiguration; texts in the arena. malformed_xml, no_memory, or invalid_request with
 * the value that a rule must not have. */
int cors_rules_parse(
	struct span xml, struct arena *arena, struct cors_rules *out, struct error *err);
/* A further check for new rules: invalid_request when a header name is not one. Rules stored before
 * this check existed stay in force, so cors_rules_parse does not make it. */
int cors_rules_check(const struct cors_rules *rules, struct error *err);
void cors_rules_print(const struct cors_rules *rules, struct buffer *out);

/* Whether a preflight may ask for this method: GET, PUT, POST, DELETE or HEAD, in upper case. */
bool cors_rules_know_method(struct span method);
/* Whether a header may have this name: a token of HTTP. */
bool cors_rules_is_header_name(struct span name);
/* The first rule that lets `origin` use `method` and send all of `headers` (names separated by
 * commas; empty: none), or NULL. */
const struct cors_rule *cors_rules_match(const struct cors_rules *rules, struct span origin,
	struct span method, struct span headers);
/* Whether the rule matches `origin` by "*". Then replies name "*", else the origin. */
bool cors_rule_is_open(const struct cors_rule *rule, struct span origin);

#endif
