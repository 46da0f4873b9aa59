/* The tensors that a caller describes: each alone, and all, in any order, as a schema. */
#ifndef LIBRARY_TENSORS_H
#define LIBRARY_TENSORS_H

#include "library/deltabucket.h"
#include "weights/model/schema.h"

/* invalid when the tensor lacks its name or its shape, or when its dtype is unknown. Whether there
 * is data is for library_check_data, which is about a tensor that this has passed. */
int library_check_tensor(
	const struct deltabucket_tensor *tensor, enum dtype *out_dtype, struct error *err);
int library_check_data(const struct deltabucket_tensor *tensor, struct error *err);

/* The caller frees the schema, and *out_places: for each tensor of the schema its index among
 * `tensors`. Fails with invalid, and the tensor's name. Whether there is data is not looked at. */
struct schema *library_schema(const struct deltabucket_tensor *tensors, size_t count,
	size_t **out_places, struct error *err);

#endif
