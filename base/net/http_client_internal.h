/* One request on its way, shared by http_client.c, which sends, http_answer.c, which receives, and
 * http_look.c. */
#ifndef BASE_NET_HTTP_CLIENT_INTERNAL_H
#define BASE_NET_HTTP_CLIENT_INTERNAL_H

#include <curl/curl.h>
#include <stdatomic.h>

#include "base/net/http_client.h"

enum {
	HTTP_BODY_MAX_BYTES = 16 * 1024 * 1024,
	HTTP_ERROR_BODY_MAX_BYTES = 64 * 1024,
	HTTP_URL_MAX_BYTES = 64 * 1024
};

struct http_transfer {
	CURL *easy;
	const struct http_request *request;
	struct http_response *response;
	uint64_t sent;
	bool cut;         /* an error's body went over its cap, and the rest is not read */
	struct error err; /* of the sink, the source or this code; kind none while all is well */
};

/* Sets the callbacks that fill transfer->response and feed the sink. */
void http_answer_watch(struct http_transfer *transfer);

/* Before and after a request: fill its look, if it has one. `code` is libcurl's. */
void http_look_begin(const struct http_transfer *transfer);
void http_look_end(const struct http_transfer *transfer, int code);

#endif
