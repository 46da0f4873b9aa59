/* One page of a listing, from the XML that a service sent. Memory follows the length of that text.
 * One thread at a time. */
#ifndef BASE_NET_S3_S3_PAGE_H
#define BASE_NET_S3_S3_PAGE_H

#include "base/buffer.h"

enum { S3_MARKER_MAX_BYTES = 4096 };

enum s3_page_kind { S3_PAGE_OBJECTS, S3_PAGE_UPLOADS };

struct s3_entry {
	size_t key; /* where it begins in the page's texts, as does the id */
	size_t id;  /* of an upload */
	uint64_t bytes;
	int64_t time_ms; /* of its last change, or of its beginning */
	bool has_key;    /* false after the parse: the key has a NUL */
	bool has_id;
	bool has_bytes;
	bool has_time;
};

struct s3_page {
	enum s3_page_kind kind;
	struct buffer texts; /* of the entries, each with a NUL at its end */
	struct s3_entry *entries;
	size_t count;
	size_t capacity;
	struct s3_entry entry; /* the one that is being read */
	bool is_encoded;       /* keys are */
	bool is_truncated;     /* another page follows */
	/* Where the next page begins; "" when the service does not tell. */
	char marker[S3_MARKER_MAX_BYTES];
	char id_marker[S3_MARKER_MAX_BYTES]; /* of uploads */
};

/* Keys are decoded where the page says that they are percent-encoded. upstream when the text is not
 * such a page, an entry lacks something or another page follows and it is not told where. Release
 * the page in all cases. */
int s3_page_parse(struct s3_page *page, enum s3_page_kind kind, struct span xml, struct error *err);
void s3_page_release(struct s3_page *page);
/* The text of an entry. Valid until the release. */
const char *s3_page_text(const struct s3_page *page, size_t at);

#endif
