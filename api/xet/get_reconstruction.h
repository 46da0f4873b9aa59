/* GET /xet/v1/reconstructions/{hash}, /xet/v2/..., /xet/v1/reconstructions?file_id=..., or POST
 * there with a list: tells of which chunks of which xorbs a file consists, and where to fetch them.
 * HEAD /xet/v1/files/{hash}: tells its size. */
#ifndef API_XET_GET_RECONSTRUCTION_H
#define API_XET_GET_RECONSTRUCTION_H

#include "api/exchange/exchange.h"

enum next get_reconstruction_v1_begin(struct exchange *exchange);
enum next get_reconstruction_v2_begin(struct exchange *exchange);
enum next get_reconstruction_batch_begin(struct exchange *exchange);
enum next get_reconstruction_list_begin(struct exchange *exchange);
enum next get_reconstruction_list_finish(struct exchange *exchange);
/* for all of the above */
enum next get_reconstruction_resume(struct exchange *exchange);
enum next get_reconstruction_file_begin(struct exchange *exchange);

#endif
