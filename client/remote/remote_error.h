/* A refusing answer of the server, S3 XML or JSON, as a struct error: the kind from the answer's
 * code where it is known, else from the HTTP status; the sentence is the server's. */
#ifndef CLIENT_REMOTE_REMOTE_ERROR_H
#define CLIENT_REMOTE_REMOTE_ERROR_H

#include "base/error.h"
#include "base/span.h"

/* Always returns -1. `what` names the request ("PUT bucket/key"). */
int remote_error_set(struct error *err, int status, struct span body, const char *what);
/* The kind that error_kind_name calls `code`, of whatever case. */
enum error_kind remote_error_kind(struct span code, enum error_kind otherwise);

#endif
