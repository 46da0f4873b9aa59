/* GET /xet/v1/fetch/{token}: sends chunk records to any caller that has a URL of a
 * reconstruction. */
#ifndef API_XET_FETCH_RECORDS_H
#define API_XET_FETCH_RECORDS_H

#include "api/exchange/exchange.h"

enum next fetch_records_begin(struct exchange *exchange);

#endif
