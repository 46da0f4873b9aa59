/* The parts of a stream of events (live_events.c): the server's numbers, all runs, and the replicas
 * of a run. A stream works in rounds, at most one a second. In each it asks every part whether
 * there is news, which is cheap, and lets those that have some tell it piece by piece, as the
 * reader takes the pieces. For a piece the exchange has an arena and a principal of its own. */
#ifndef API_LIVE_LIVE_PART_H
#define API_LIVE_LIVE_PART_H

#include "api/exchange/exchange.h"

enum live_told { LIVE_FAILED = -1, LIVE_DONE, LIVE_MORE };

struct live_part {
	/* Whether the caller may go on. With the keys and grants of the moment. */
	bool (*may)(struct live_part *part, struct exchange *exchange);
	/* Begins the part's round: whether there is something to tell. */
	bool (*look)(struct live_part *part, struct exchange *exchange);
	/* Prints a piece of some hundred KB at most. LIVE_MORE: to be called again, once the piece
	 * is sent. LIVE_FAILED ends the stream. */
	enum live_told (*tell)(
		struct live_part *part, struct exchange *exchange, struct buffer *out);
};

#endif
