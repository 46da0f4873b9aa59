/* The one client of S3 services: objects of one bucket whose keys begin with one prefix. Names are
 * keys without that prefix; a key has at most 1,024 bytes. Buckets are addressed by path. libcurl
 * signs each request, with the SHA-256 of its body: a service refuses a body that does not arrive
 * as it was sent. No other checksum is asked for, because not all services compare them (Ceph's
 * does not).
 *
 * Calls block; any thread. A client has a fixed number of connections; a request beyond them waits.
 * A request that had no answer, or was answered with 408, 429, 500, 502, 503 or 504, is sent again
 * after growing pauses. While a service does not answer at all, one request tries now and then and
 * the others fail at once. Redirects are not followed.
 *
 * Errors of all calls, unless they say otherwise: busy when the service is away, asks to slow down
 * or fails, or after a cancel; denied; upstream for an answer that makes no sense, a refusal of
 * another kind and a bucket that does not exist; untrusted for a certificate; key_too_long. They
 * have the service's own words, and never a secret. */
#ifndef BASE_NET_S3_S3_CLIENT_H
#define BASE_NET_S3_S3_CLIENT_H

#include "base/buffer.h"
#include "base/net/http_client.h"

enum { S3_KEY_MAX_BYTES = 1024, S3_PREFIX_MAX_BYTES = 768 };

struct s3_client;

struct s3_client_options {           /* all is copied */
	const char *endpoint;        /* https:// or http://, host and port */
	const char *ca_file;         /* as of http_client */
	const char *bucket;          /* not encoded */
	const char *prefix;          /* not encoded, used as it is; NULL: none */
	struct http_signing signing; /* region NULL: us-east-1 */
	size_t connections;          /* 0: 8 */
	int connect_timeout_ms;      /* 0: 10 s */
	int stall_timeout_ms;        /* 0: 60 s */
	unsigned tries;              /* of one request; 0: 5 */
	int64_t pause_ms;            /* before the second try, later twice as long each; 0: 1 s */
	int64_t give_up_ms;          /* no try begins later than this; 0: 30 s */
	unsigned page;               /* entries of a listing in one answer; 0: 1,000 */
	/* Told why a request is about to be sent again; any thread, without a lock. NULL: nobody
	 * is told. */
	void (*on_retry)(void *owner, const struct error *why);
	void *owner;
};

struct s3_range {
	uint64_t offset;
	size_t length;  /* over 0 */
	uint8_t *into;  /* `length` bytes; undefined when the call fails */
	uint64_t total; /* set by the call: the bytes of the whole object; UINT64_MAX: not told */
};

/* invalid: endpoint, bucket, prefix, region or credentials that cannot be right. No request is
 * sent. */
struct s3_client *s3_client_open(const struct s3_client_options *options, struct error *err);
void s3_client_free(struct s3_client *client); /* nobody is in a call; NULL is fine */
/* Makes running calls (within about a second) and all later ones fail with busy. Any thread. */
void s3_client_cancel(struct s3_client *client);

/* Replaces an object of that name. 0: the service has said that it is stored. */
int s3_client_put(struct s3_client *client, const char *name, struct span bytes, struct error *err);
/* Appends the whole object to `out`. not_found; too_large over the cap of `out`; corrupt when the
 * length differs from what the service told. */
int s3_client_get(
	struct s3_client *client, const char *name, struct buffer *out, struct error *err);
/* Reads exactly these bytes. not_found; corrupt when the answer has other bytes than those that
 * were asked for, or more, or fewer, as when the object is shorter. */
int s3_client_get_range(
	struct s3_client *client, const char *name, struct s3_range *range, struct error *err);
/* not_found: the bucket is there and the object is not. */
int s3_client_head(
	struct s3_client *client, const char *name, uint64_t *out_bytes, struct error *err);
/* 0 also when it is absent. */
int s3_client_remove(struct s3_client *client, const char *name, struct error *err);

#endif
