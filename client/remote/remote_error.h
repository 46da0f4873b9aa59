/* Turns a refusal of the server, in S3's XML or in JSON, into a struct error. The kind comes from
 * the answer's code if that is known, otherwise from the HTTP status. The sentence is the
 * server's. */
#ifndef CLIENT_REMOTE_REMOTE_ERROR_H
#define CLIENT_REMOTE_REMOTE_ERROR_H

#include "base/error.h"
#include "base/span.h"

/* Always returns -1. `what` names the request ("PUT /bucket/key") in the sentence for an answer
 * that has none. */
int remote_error_set(struct error *err, int status, struct span body, const char *what);
/* The kind whose error_kind_name is `code`, in upper or lower case; `otherwise` when there is
 * none. */
enum error_kind remote_error_kind(struct span code, enum error_kind otherwise);

#endif
