/* GET /xet/v1/fetch/{token}: chunk records, to whoever has a URL that a reconstruction gave out. */
#ifndef API_XET_FETCH_RECORDS_H
#define API_XET_FETCH_RECORDS_H

#include "api/exchange/exchange.h"

enum next fetch_records_begin(struct exchange *exchange);

#endif
