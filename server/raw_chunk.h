/* Checks the framing of a chunked body, as far as it is visible.
 *
 * libmicrohttpd before 1.0 accepts a lone line feed as the end of a chunk's size line and of a
 * chunk, and any bytes as an extension. A proxy in front may read on to a CR LF and see another
 * body. The framing that the library has read lies in its buffer before the piece that it hands
 * over. A size line that came in a packet of its own is gone by then. Therefore replies to chunked
 * requests also close their connection (listener_request.c), so that bytes after such a body never
 * become a request. */
#ifndef SERVER_RAW_CHUNK_H
#define SERVER_RAW_CHUNK_H

#include <stdbool.h>
#include <stddef.h>

/* `body` is the end of the head. A piece lies there or up to `most` bytes further on, and the bytes
 * between are framing. False when different readers could understand the framing before `piece` in
 * different ways. */
bool raw_chunk_is_plain(const char *body, const char *piece, size_t most);

#endif
