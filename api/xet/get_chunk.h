/* GET /xet/v1/chunks/{prefix}/{hash}: tells whether a chunk is stored here, and in which xorb
 * (storage/xet/chunk_answer.h); else 404. Clients ask for the first chunk of each file and wait for
 * the answer. */
#ifndef API_XET_GET_CHUNK_H
#define API_XET_GET_CHUNK_H

#include "api/exchange/exchange.h"

enum next get_chunk_begin(struct exchange *exchange);
enum next get_chunk_resume(struct exchange *exchange);

#endif
