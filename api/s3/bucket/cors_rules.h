/* The CORS rules of a bucket: read from XML, printed as XML (which is how they are stored), matched
 * against a request's origin, method and headers. Pure functions; any thread. */
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
	struct cors_list origins; /* each with one '*' at most */
	struct cors_list methods; /* GET, PUT, POST, DELETE, HEAD */
	struct cors_list headers; /* each with one '*' at most */
	struct cors_list exposed;
	bool has_max_age;
	int64_t max_age_s; /* below 0 as well: S3 takes any number of 32 bits */
};
struct cors_rules {
	struct cors_rule *rules;
	size_t count;
};

/* A CORSConfiguration; texts in the arena. malformed_xml, or invalid_request naming the value that
 * a rule may not have. */
int cors_rules_parse(
	struct span xml, struct arena *arena, struct cors_rules *out, struct error *err);
/* What new rules must keep to besides: header names are such. invalid_request. Rules of before that
 * was asked stay in force. */
int cors_rules_check(const struct cors_rules *rules, struct error *err);
void cors_rules_print(const struct cors_rules *rules, struct buffer *out);

/* GET, PUT, POST, DELETE, HEAD, in this case: what a preflight may ask for. */
bool cors_rules_know_method(struct span method);
/* A token of HTTP: what the name of a header may be. */
bool cors_rules_is_header_name(struct span name);
/* The first rule that lets `origin` use `method` and send all of `headers` (comma-separated names;
 * empty: none), or NULL. */
const struct cors_rule *cors_rules_match(const struct cors_rules *rules, struct span origin,
	struct span method, struct span headers);
/* Whether the rule was made for every origin: then replies name "*", else the origin. */
bool cors_rule_is_open(const struct cors_rule *rule, struct span origin);

#endif
