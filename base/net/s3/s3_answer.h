/* An answer of an S3 service, and what it means. Bodies are XML that a peer sent. Any thread. */
#ifndef BASE_NET_S3_S3_ANSWER_H
#define BASE_NET_S3_S3_ANSWER_H

#include "base/net/http_client.h"

enum { S3_CODE_BYTES = 64, S3_MESSAGE_BYTES = 200 };

struct s3_answer {
	struct http_response response;
	char code[S3_CODE_BYTES]; /* of a refusal, "NoSuchKey" for example; "" when it has none */
	char message[S3_MESSAGE_BYTES]; /* the same; printable */
	bool is_error;                  /* the body is an error, whatever the status */
};

/* Reads the body of the response into the other fields. A body that is not an error of S3 leaves
 * them empty. */
void s3_answer_parse(struct s3_answer *answer);
/* Whether it may help to send the request again. */
bool s3_answer_is_temporary(const struct s3_answer *answer);
/* Sets the error that a refusal is. Returns -1. */
int s3_answer_refuse(
	const struct s3_answer *answer, const char *method, const char *target, struct error *err);

/* The text of the one element below the root `root`. False when the body is another document, has
 * no such element or an empty one, or it does not fit. */
bool s3_answer_find(struct span xml, const char *root, const char *name, char *out, size_t room);
/* Whether the body is a document with this root. */
bool s3_answer_has_root(struct span xml, const char *root);

#endif
