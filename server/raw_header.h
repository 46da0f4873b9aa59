/* Compares the head of a request as it came with the headers that libmicrohttpd found in it.
 *
 * libmicrohttpd 0.9.75 joins the name of a folded line with the next line, cuts values at a NUL,
 * and takes a line that begins with a NUL for the empty line. It then sees other headers and
 * another end of the request than a proxy in front. But it parses in place: the bytes stay where
 * they were, with NULs for the separators. So this code walks the head from its first byte. Each
 * header that the library lists must lie exactly where the line before it ended, and nothing may be
 * left at the end. Releases from 1.0 on refuse such requests themselves and leave line feeds in
 * place, which the walk accepts too. With any other layout the request is refused.
 *
 * Reads only the head, even if the library claims more. */
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
	const char *fault; /* the first fault, as a sentence; NULL: none */
};

/* `method` is libmicrohttpd's own text, not a copy: the head begins there and has `len` bytes.
 * `target` may be a copy. */
void raw_header_begin(struct raw_header *raw, const char *method, struct span target, size_t len);
/* Takes the next header that the library lists. The spans are the library's own, not copies. */
void raw_header_take(struct raw_header *raw, struct span name, struct span value);
/* To be called after the last header. Nothing of the head is read afterwards. */
void raw_header_end(struct raw_header *raw);

#endif
