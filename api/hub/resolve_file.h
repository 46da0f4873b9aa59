/* GET, HEAD /buckets/{namespace}/{bucket}/resolve/{path}: sends a file's bytes, with headers that
 * tell a client how to fetch them through Xet instead. */
#ifndef API_HUB_RESOLVE_FILE_H
#define API_HUB_RESOLVE_FILE_H

#include "api/exchange/exchange.h"

enum next resolve_file_begin(struct exchange *exchange);
enum next resolve_file_resume(struct exchange *exchange);

#endif
