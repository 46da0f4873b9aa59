/* The content-addressed half that Hub clients use: its URL (casUrl) is the server's with /xet behind it. Telemetry comes to the root. */
#include "api/router.h"

const struct route xet_routes[] = {
	{.pattern = NULL},
};
