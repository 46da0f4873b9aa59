/* The framing of a chunked body, as far as it can be seen.
 *
 * libmicrohttpd before 1.0 takes a lone line feed for the end of a chunk's size line and of a
 * chunk, and whatever bytes for an extension, where a proxy in front may read on to a CR LF and so
 * see another body. What it has read of the framing lies in its buffer in front of the piece that
 * it hands over. A size line that came in a packet of its own is gone by then: therefore replies
 * to chunked requests close their connection as well (listener_request.c), so that nothing behind
 * such a body is ever taken for a request. */
#ifndef SERVER_RAW_CHUNK_H
#define SERVER_RAW_CHUNK_H

#include <stdbool.h>
#include <stddef.h>

/* `body` is where the head ended: pieces lie there or up to `most` bytes further on, and the bytes
 * between are framing, behind such of earlier pieces. False when the framing in front of `piece`
 * is not as every reader takes it. */
bool raw_chunk_is_plain(const char *body, const char *piece, size_t most);

#endif
