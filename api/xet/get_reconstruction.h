/* GET /xet/v1/reconstructions/{hash}, /xet/v2/..., /xet/v1/reconstructions?file_id=..., or POST
 * there with a list: what of which xorbs a file is, and where to fetch it. HEAD
 * /xet/v1/files/{hash}: its size. */
#ifndef API_XET_GET_RECONSTRUCTION_H
#define API_XET_GET_RECONSTRUCTION_H

#include "api/exchange/exchange.h"

enum next get_reconstruction_v1_begin(struct exchange *exchange);
enum next get_reconstruction_v2_begin(struct exchange *exchange);
enum next get_reconstruction_batch_begin(struct exchange *exchange);
enum next get_reconstruction_list_begin(struct exchange *exchange);
enum next get_reconstruction_list_finish(struct exchange *exchange);
/* Of all of them. */
enum next get_reconstruction_resume(struct exchange *exchange);
enum next get_reconstruction_file_begin(struct exchange *exchange);

#endif
