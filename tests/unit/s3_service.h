/* A small HTTP server on 127.0.0.1 in place of an S3 service, which answers as a script says, right
 * or wrong: the nth request gets the nth answer, and those after the last one the last one. A
 * thread per connection. */
#ifndef TESTS_UNIT_S3_SERVICE_H
#define TESTS_UNIT_S3_SERVICE_H

#include "base/net/s3/s3_client.h"

enum { S3_SERVICE_ANSWERS_MAX = 8 };

struct s3_service_answer {
	int status;          /* 0, with a delay: the connection is cut before an answer */
	const char *headers; /* more lines, each ended by CRLF; NULL: none */
	const char *body;    /* NULL: "" */
	size_t filler;       /* so many spaces before the body */
	/* in place of the body's, for a HEAD or an answer that is cut there; 0: the body's */
	size_t length;
	bool hangs; /* there is no answer, for as long as the connection stays */
	int delay_ms;
};

struct s3_service;

/* Borrowed until the stop; ended by an answer that is nothing, or full. */
struct s3_service *s3_service_start(const struct s3_service_answer *answers);
void s3_service_stop(struct s3_service *service);
/* Begins another script. Nobody may be asking. */
void s3_service_answer_with(struct s3_service *service, const struct s3_service_answer *answers);
const char *s3_service_endpoint(const struct s3_service *service);
/* Requests of this script: "METHOD TARGET\n" each. Valid until the next request. */
const char *s3_service_trace(const struct s3_service *service);
const char *s3_service_head(const struct s3_service *service); /* of the last request */
struct span s3_service_body(const struct s3_service *service);
unsigned s3_service_count(struct s3_service *service); /* of requests of this script */
unsigned s3_service_most_at_once(const struct s3_service *service);

/* A client of it for the bucket "box" and the prefix "in/", with short pauses. `more` may have
 * further options; NULL: none. */
struct s3_client *s3_service_client(
	const struct s3_service *service, const struct s3_client_options *more);

#endif
