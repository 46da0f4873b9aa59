/* The head of a request as it came, held against what libmicrohttpd made of it.
 *
 * libmicrohttpd 0.9.75 joins the name of a folded line with the line behind it, cuts values at a
 * NUL and takes a line that begins with one for the empty line: it then sees other headers, and
 * another end of the request, than a proxy in front. It parses in place, though: the bytes stay
 * where they were, with NULs for the separators. So the head is walked from its first byte, and
 * each header that the library lists must lie exactly where the line before it ended, with nothing
 * left over at the end. Releases from 1.0 on refuse such requests themselves and leave line feeds
 * in place, which the walk knows too. Any other layout breaks it, and nothing is served.
 *
 * Reads the head alone, whatever the library says about the rest. */
#ifndef SERVER_RAW_HEADER_H
#define SERVER_RAW_HEADER_H

#include "base/span.h"

struct raw_header {
	const char *text; /* the request line's first byte */
	size_t len;       /* of the head, with the empty line at its end */
	size_t at;        /* where the next line begins */
	size_t bytes;     /* of the headers, as a limit counts them */
	size_t count;
	size_t hosts;
	bool is_1_0;       /* HTTP/1.0 */
	const char *fault; /* the first thing that is wrong, as a sentence; NULL: none */
};

/* `method` is libmicrohttpd's, not a copy: the head begins there and has `len` bytes. `target` may
 * be a copy. */
void raw_header_begin(struct raw_header *raw, const char *method, struct span target, size_t len);
/* The next header that the library lists; the spans are its own, not copies. */
void raw_header_take(struct raw_header *raw, struct span name, struct span value);
/* After the last of them. Nothing more is read of the head. */
void raw_header_end(struct raw_header *raw);

#endif
