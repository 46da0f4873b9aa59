/* GET /xet/v1/reconstructions/{hash}, /xet/v2/..., /xet/v1/reconstructions?file_id=...: what of which xorbs a file is, and where to fetch it. HEAD
 * /xet/v1/files/{hash}: its size. */
#ifndef API_XET_GET_RECONSTRUCTION_H
#define API_XET_GET_RECONSTRUCTION_H

#include "api/exchange.h"

enum next get_reconstruction_v1_begin(struct exchange *exchange);
enum next get_reconstruction_v2_begin(struct exchange *exchange);
enum next get_reconstruction_batch_begin(struct exchange *exchange);
/* Of all three. */
enum next get_reconstruction_resume(struct exchange *exchange);
enum next get_reconstruction_file_begin(struct exchange *exchange);

#endif
